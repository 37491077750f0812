package wal_test

import (
	"errors"
	"syscall"
	"testing"

	"pawl/wal"
	"pawl/wal/waltest"
)

// No mark is written while a group is open or waits: its place is behind the
// group's, and what it says of the one before would be wrong there.
func TestNoMarkBesideAGroup(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	mustAppend(t, l, waltest.Record{Head: []byte("one")})
	g, err := l.Open(wal.RecordBytes(3, 0))
	if err != nil {
		t.Fatal(err)
	}
	idle := func(when string, want uint64) {
		t.Helper()
		if err := l.Idle(); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if n := l.Stats().Markers; n != want {
			t.Errorf("%s: got %d marks, want %d", when, n, want)
		}
	}
	idle("beside an open group", 0)
	g.Add([]byte("two"), nil)
	l.Seal(g, 1, 1)
	idle("beside a group that waits", 0)
	if err := l.Commit(g); err != nil {
		t.Fatal(err)
	}
	idle("behind it", 1)
	idle("and again", 1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	groups, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{})
	if err != nil || len(groups) != 2 || !end.Closed {
		t.Errorf("got %d groups, closed: %t, %v; want two and a clean end", len(groups), end.Closed, err)
	}
}

// Who waits for a generation hears that the log has failed.
func TestFailureWakesWhoWaits(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	mustAppend(t, l, waltest.Record{Head: []byte("one")})
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "datasync" {
			return waltest.Fault{Err: syscall.EIO}
		}
		return waltest.Fault{}
	})
	news := l.Prepared()
	if _, err := waltest.Append(l, waltest.Record{Head: []byte("two")}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v, want EIO", err)
	}
	select {
	case <-news:
	default:
		t.Error("nobody was told")
	}
	if err := l.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("sync of a log that has failed: got %v, want EIO", err)
	}
}
