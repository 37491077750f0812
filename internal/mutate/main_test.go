package main

import (
	"strings"
	"testing"
)

func TestMutantsOf(t *testing.T) {
	const source = `package p

func f(a, b int) (int, error) {
	if a < b && a != 0 {
		return a + b, errBad
	}
	if ok() {
		log(a | b<<1)
	} else if !ok() {
		return a, nil
	}
	return a, nil
}
`
	mutants, err := mutantsOf([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mutants {
		got = append(got, source[m.from:m.end]+"→"+m.with)
	}
	if want := "&&→|| <→<= !=→== errBad→nil +→- →! log(a | b<<1)→ |→& <<→>> !→"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if _, err := mutantsOf([]byte("no go")); err == nil {
		t.Error("what is no Go has mutants")
	}
}
