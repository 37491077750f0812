package main

import (
	"strings"
	"testing"
)

const sample = `mode: set
pawl/wal/log.go:10.2,12.3 3 0
pawl/wal/log.go:13.2,14.3 1 1
pawl/wal/make.go:1.2,2.3 4 0
mode: set
pawl/wal/log.go:10.2,12.3 3 1
pawl/wal/log.go:13.2,14.3 1 0
pawl/state/a.go:1.1,2.2 0 0
`

func TestProfile(t *testing.T) {
	p := make(profile)
	if err := p.read(strings.NewReader(sample)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if !p.print(&out, []bar{{"pawl/wal", 50}, {"pawl/wal/log.go", 100}}) {
		t.Errorf("half of wal and all of log.go are below their bars:\n%s", &out)
	}
	for _, b := range []bar{{"pawl/wal", 50.1}, {"pawl/wal/make.go", 1}, {"pawl/wal/gone.go", 100}} {
		if p.print(&out, []bar{b}) {
			t.Errorf("%v is reached", b)
		}
	}
	out.Reset()
	p.printMissing(&out)
	if got, want := out.String(), "wal/make.go:1.2,2.3\n"; got != want {
		t.Errorf("missing: got %q, want %q", got, want)
	}
}

func TestNoProfile(t *testing.T) {
	for _, text := range []string{"nonsense\n", "a:1.1,1.2 x 1\n", "a:1.1,1.2 1 x\n", "a:x.1,1.2 1 1\n"} {
		if err := make(profile).read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
