//go:build linux

package main

import (
	"path/filepath"
	"testing"

	"pawl/internal/record"
)

// What is on record are the flags as given, without those that say only where
// things are, so that a slice is recognized wherever it was played.
func TestParametersOnRecord(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"-kills", "200"}, "-kills 200"},
		{[]string{"-kills=200", "-binary", "/x/pawl", "-bounds", "-record=/y", "--dir", "/z"}, "-kills=200 -bounds"},
		{[]string{"-binary"}, ""},
	} {
		l := newLab("kill", c.args)
		if got := l.parameters(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.args, got, c.want)
		}
	}
}

// A long run goes on behind the slices that are on record with the same layer,
// seed and flags, and behind no others.
func TestSlicesOnRecord(t *testing.T) {
	name := filepath.Join(t.TempDir(), "record.tsv")
	if err := record.Append(name, record.Run{Commit: "c", Layer: "3b power/xfs", Seed: "s/1", Parameters: "-cycles 40 -fs xfs"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words []string
		seed  string
		want  bool
	}{
		{[]string{"power", "-cycles", "40", "-fs", "xfs"}, "s/1", true},
		{[]string{"power", "-cycles", "40", "-fs", "xfs"}, "s/2", false},
		{[]string{"power", "-cycles", "40", "-fs", "ext4"}, "s/1", false},
		{[]string{"disk", "-cycles", "40", "-fs", "xfs"}, "s/1", false},
	} {
		if got, err := (sliceOf{c.words, c.seed}).onRecord(name); err != nil || got != c.want {
			t.Errorf("%q under %s: got %t, %v, want %t", c.words, c.seed, got, err, c.want)
		}
	}
}
