//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every planted bug has its place in the source, exactly once: whoever changes
// that line moves the bug along, and finds out here rather than at the end of
// the long proofs.
func TestPlantsHaveTheirPlaces(t *testing.T) {
	if len(plants) != 28 {
		t.Errorf("got %d planted bugs, want 28", len(plants))
	}
	names := map[string]bool{}
	for _, p := range slices.Concat(plants, rules) {
		if names[p.name] {
			t.Errorf("two bugs are called %q", p.name)
		}
		names[p.name] = true
		source, err := os.ReadFile(filepath.Join("..", "..", p.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(source), p.old); n != 1 {
			t.Errorf("%q: its place is in %s %d times, want once", p.name, p.file, n)
		}
		if p.old == p.new {
			t.Errorf("%q changes nothing", p.name)
		}
	}
}

// The layers that have a number are layers.
func TestNumbersAreOfLayers(t *testing.T) {
	known := map[string]bool{}
	for _, l := range layers() {
		known[l.name] = true
	}
	for name := range numbers {
		if !known[name] {
			t.Errorf("%q has a number, but is no layer", name)
		}
	}
}
