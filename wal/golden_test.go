package wal_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/internal/vfs"
	"pawl/wal"
	"pawl/wal/waltest"
)

var update = flag.Bool("update", false, "write the log of the newest format and its dump again")

// TestGolden: a log of each format there ever was reads as it did when it was
// written. It is copied first, because what is read is settled.
func TestGolden(t *testing.T) {
	if *update {
		writeGolden(t, filepath.Join("testdata", "format1"))
	}
	for _, format := range []string{"format1"} {
		golden := filepath.Join("testdata", format)
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(golden, "log"))); err != nil {
			t.Fatal(err)
		}
		got := dump(t, dir)
		want, err := os.ReadFile(filepath.Join(golden, "dump.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
		}
	}
}

// dump is all that a reader says of a log.
func dump(t *testing.T, dir string) string {
	t.Helper()
	groups, end, err := waltest.Read(vfs.OS{}, dir, wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "group %d log time %d wall time %d\n", g.LSN, g.LogTime, g.WallTime)
		for _, r := range g.Records {
			fmt.Fprintf(&b, "  %q", r.Head)
			if !r.Pos.IsZero() {
				fmt.Fprintf(&b, " %v checksum %08x starts %.8q", r.Pos, r.Pos.Checksum, r.Body)
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "end generation %d length %d group %d chain %08x closed %t cut %d\n", end.Generation, end.Length, end.LSN, end.Chain, end.Closed, end.Cut)
	for _, info := range end.Linked {
		fmt.Fprintf(&b, "generation %d groups %d to %d length %d\n", info.Generation, info.FirstLSN, info.LastLSN, info.Length)
	}
	fmt.Fprintf(&b, "unused %v\n", end.Unused)
	return b.String()
}

// writeGolden writes a log with two lives, three generations, every kind of
// entry, and a torn tail that the second life trims.
func writeGolden(t *testing.T, golden string) {
	t.Helper()
	dir := filepath.Join(golden, "log")
	if err := os.RemoveAll(golden); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	opt := testOptions(nil, 7)
	opt.FS, opt.Dir = vfs.OS{}, dir
	l, err := wal.Begin(opt, wal.End{Store: waltest.Store})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		mustAppend(t, l, waltest.Record{Head: fmt.Appendf(nil, "first life %d", i), Body: bytes.Repeat([]byte("abcdefg "), i*250)},
			waltest.Record{Head: []byte("no body")})
	}
	if err := l.Idle(); err != nil { // and then the power goes
		t.Fatal(err)
	}
	f, err := os.OpenFile(wal.SegmentPath(dir, 1), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("a torn group"), l.Generations()[0].Length); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, end, err := waltest.Read(vfs.OS{}, dir, wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opt.Ahead = 1
	if l, err = wal.Begin(opt, end); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		mustAppend(t, l, waltest.Record{Head: fmt.Appendf(nil, "second life %d", i), Body: bytes.Repeat([]byte{byte(i)}, 3500)})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(golden, "dump.txt"), []byte(dump(t, dir)), 0o644); err != nil {
		t.Fatal(err)
	}
}
