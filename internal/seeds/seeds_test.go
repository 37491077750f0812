package seeds_test

import (
	"testing"

	"pawl/internal/seeds"
)

func TestSameBaseSameNumbers(t *testing.T) {
	t.Setenv(seeds.Variable, "a commit")
	first := []uint64{seeds.For("x"), seeds.Nth("x", 0), seeds.Nth("x", 1), seeds.Rand("x").Uint64()}
	second := []uint64{seeds.For("x"), seeds.Nth("x", 0), seeds.Nth("x", 1), seeds.Rand("x").Uint64()}
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("number %d: got %d and then %d from one base seed", i, first[i], second[i])
		}
	}
}

func TestBaseNameAndIndexAllMatter(t *testing.T) {
	t.Setenv(seeds.Variable, "one")
	seen := map[uint64]string{}
	note := func(what string, seed uint64) {
		if other, ok := seen[seed]; ok {
			t.Errorf("%s and %s have the same seed %d", what, other, seed)
		}
		seen[seed] = what
	}
	note("one/x", seeds.For("x"))
	note("one/y", seeds.For("y"))
	for n := range 100 {
		note("one/x/nth", seeds.Nth("x", n))
	}
	t.Setenv(seeds.Variable, "two")
	note("two/x", seeds.For("x"))
	note("two/x/0", seeds.Nth("x", 0))
}

// The numbers stand for cases in bug reports, so they must never change.
func TestNumbersAreFrozen(t *testing.T) {
	t.Setenv(seeds.Variable, "")
	if got, want := seeds.Base(), "pawl"; got != want {
		t.Fatalf("base without %s: got %q, want %q", seeds.Variable, got, want)
	}
	if got, want := seeds.For("frozen"), uint64(10313706739816396591); got != want {
		t.Errorf("For: got %d, want %d", got, want)
	}
	if got, want := seeds.Rand("frozen").Uint64(), uint64(9416174212354675189); got != want {
		t.Errorf("first number: got %d, want %d", got, want)
	}
}
