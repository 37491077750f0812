package wal_test

import (
	"errors"
	"testing"

	"pawl/wal"
	"pawl/wal/waltest"
)

// threeGenerations begins a log of three, and more made ahead.
func threeGenerations(t *testing.T, r *run) (l *wal.Log, positions []wal.Pos) {
	t.Helper()
	l = mustBegin(t, r.opt)
	for len(l.Generations()) < 3 {
		records := []waltest.Record{{Head: []byte("h"), Body: make([]byte, 3000)}}
		mustAppend(t, l, records...)
		positions = append(positions, records[0].Pos)
	}
	return l, positions
}

// A start gives back what lies behind the history of the generation before, durably
// and once: when the one behind it is dropped, only its end says how long it is. And
// it removes what was made ahead. One that cannot fails, and leaves nothing open.
func TestBeginThatCannotTidyUp(t *testing.T) {
	broken := errors.New("broken")
	for _, fails := range []struct {
		kind, name string
	}{
		{"open", segmentFile(1)},
		{"truncate", segmentFile(1)},
		{"sync", segmentFile(1)},
		{"close", segmentFile(1)},
		{"remove", segmentFile(2)},
		{"nothing", ""},
	} {
		r := newRun(t)
		mustAppend(t, mustBegin(t, r.opt), waltest.Record{Head: []byte("h")}) // and the process dies
		_, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		open, trims := 0, 0
		r.disk.Inject(func(op waltest.Op) waltest.Fault {
			fault := waltest.Fault{}
			if op.Kind == fails.kind && op.Name == fails.name {
				fault.Err = broken
			}
			switch {
			case op.Kind == "open" && fault.Err == nil:
				open++
			case op.Kind == "close":
				open--
			case op.Kind == "truncate":
				trims++
			}
			return fault
		})
		l, err := wal.Begin(r.opt, end)
		if fails.name != "" {
			if !errors.Is(err, broken) || open != 0 {
				t.Errorf("%s of %s fails: got %v, want that; %d descriptors are open", fails.kind, fails.name, err, open)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Durable(); got != end.LSN {
			t.Errorf("durable is %d, want %d", got, end.LSN)
		}
		if g := l.Generations()[0]; g.Size != g.Length || trims != 1 {
			t.Errorf("the first generation has %d bytes, of which %d are used", g.Size, g.Length)
		}
		if got, want := l.Images(), 1+l.Stats().Prepared; got != want {
			t.Errorf("%d generations are in memory, want %d", got, want)
		}
		for name, d := range r.disk.States(1, 0) {
			if got, want := int64(len(d.Contents(segmentFile(1)))), end.Linked[0].Length; got != want {
				t.Errorf("after a power loss, state %s, it has %d bytes, want %d", name, got, want)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, end, err = waltest.Read(r.disk, logDir, wal.ReaderOptions{}); err != nil {
			t.Fatal(err)
		}
		trims = 0
		if l, err = wal.Begin(r.opt, end); err != nil || trims != 1 {
			t.Fatalf("another start: %v; %d files were trimmed, want that of the second life", err, trims)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An open descriptor would keep the bytes of a generation that is gone.
func TestDropClosesWhatWasReadFrom(t *testing.T) {
	r := newRun(t)
	l, positions := threeGenerations(t, r)
	open := 0
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		switch op.Kind {
		case "open":
			open++
		case "close":
			open--
		}
		return waltest.Fault{}
	})
	if _, err := l.Read(positions[0], nil); err != nil || open != 1 {
		t.Fatalf("read: %v, %d descriptors are open, want 1", err, open)
	}
	if err := l.Drop(positions[0].Generation); err != nil || open != 0 {
		t.Errorf("drop: %v, %d descriptors are open, want none", err, open)
	}
	if _, err := l.Read(positions[0], nil); !errors.Is(err, wal.ErrMissing) {
		t.Errorf("read of what is gone: got %v, want ErrMissing", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
