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

// rests are what writes a mark and syncs it, where the log makes none by itself.
var rests = map[string]func(l *wal.Log) error{"idle": (*wal.Log).Idle, "close": (*wal.Log).Close}

// One bad sector takes the last group and the mark behind it. The second copy of the
// mark is as durable as the first, and says that this is damage.
func TestWitnessOfALostEnd(t *testing.T) {
	for name, rest := range rests {
		r := newRun(t)
		l := mustBegin(t, r.opt)
		mustAppend(t, l, waltest.Record{Head: []byte("one")})
		from := l.Generations()[0].Length
		mustAppend(t, l, waltest.Record{Head: []byte("two")})
		if err := rest(l); err != nil {
			t.Fatal(err)
		}
		d := r.disk.Crash(func(int) waltest.Keep { return waltest.Keep{} })
		b := d.Contents(segmentFile(1))
		clear(b[from:])
		d.SetContents(segmentFile(1), b)
		_, _, err := waltest.Read(d, logDir, wal.ReaderOptions{})
		if c, ok := errors.AsType[*wal.CorruptError](err); !ok || c.LSN != 2 {
			t.Errorf("%s: got %v, want that group 2 is damaged", name, err)
		}
	}
}

// A mark that is synced makes durable what stands before it, whatever the policy.
func TestMarkMakesDurable(t *testing.T) {
	for name, rest := range rests {
		r := newRun(t)
		r.opt.Sync = wal.SyncNever
		l := mustBegin(t, r.opt)
		mustAppend(t, l, waltest.Record{Head: []byte("one")})
		if err := rest(l); err != nil {
			t.Fatal(err)
		}
		groups, _, err := waltest.Read(r.disk.Crash(func(int) waltest.Keep { return waltest.Keep{} }), logDir, wal.ReaderOptions{})
		if got := l.Durable(); got != 1 || len(groups) != 1 || err != nil {
			t.Errorf("%s: durable is %d, and %d groups are there after a power loss, %v; want 1 and 1", name, got, len(groups), err)
		}
	}
}

// A mark that could not be written or synced, in either place, is no clean end.
func TestMarkThatFails(t *testing.T) {
	for name, rest := range rests {
		for which := 1; which <= 4; which++ {
			r := newRun(t)
			r.opt.Sync = wal.SyncNever
			l := mustBegin(t, r.opt)
			mustAppend(t, l, waltest.Record{Head: []byte("one")})
			n := 0
			r.disk.Inject(func(op waltest.Op) waltest.Fault {
				if op.Kind == "write" || op.Kind == "datasync" {
					if n++; n == which {
						return waltest.Fault{Err: syscall.EIO}
					}
				}
				return waltest.Fault{}
			})
			if err := rest(l); !errors.Is(err, syscall.EIO) || !errors.Is(l.Failure(), syscall.EIO) {
				t.Errorf("%s, write or sync %d: got %v and failure %v, want EIO", name, which, err, l.Failure())
			}
		}
	}
}
