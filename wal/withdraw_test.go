package wal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/wal"
	"pawl/wal/waltest"
)

// A group that is taken back leaves nothing: neither a number that is missing, nor
// bytes, nor a log that waits for it before it says that it stands still or ends.
func TestWithdraw(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	mustAppend(t, l, waltest.Record{Head: []byte("one")})
	before := l.Stats().Bytes
	withdraw := func(n int) (at wal.LSN) {
		t.Helper()
		g, err := l.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		at = g.LSN()
		l.Withdraw(g)
		return at
	}
	if at := withdraw(100); at != 2 {
		t.Errorf("the next group is %d, want 2", at)
	}
	if at := withdraw(100); at != 2 {
		t.Errorf("after one was withdrawn the next is %d, want 2", at)
	}
	if err := l.Idle(); err != nil || l.Stats().Markers != 1 {
		t.Errorf("got %d marks, %v; want one beside no group", l.Stats().Markers, err)
	}
	if got := l.Stats(); got.Groups != 1 || got.Bytes >= before+200 {
		t.Errorf("%d groups, and %d bytes more, were written, want a mark only", got.Groups, got.Bytes-before)
	}
	mustAppend(t, l, waltest.Record{Head: []byte("two")})
	withdraw(100)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	groups, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{})
	if err != nil || len(groups) != 2 || !end.Closed {
		t.Errorf("got %d groups, closed: %t, %v; want two and a clean end", len(groups), end.Closed, err)
	}
}

// Who has a group open at the moment at which the log would say that it stands still, and
// takes it back, puts that off and no more.
func TestMarkBehindAWithdrawnGroup(t *testing.T) {
	for _, policy := range []wal.SyncPolicy{wal.SyncAlways, wal.SyncInterval, wal.SyncNever} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			r.opt.Foreground, r.opt.Sync = false, policy
			l := mustBegin(t, r.opt)
			mustAppend(t, l, waltest.Record{Head: []byte("one")})
			g, err := l.Open(100)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if n := l.Stats().Markers; n != 0 {
				t.Errorf("policy %d: got %d marks beside a group, want none", policy, n)
			}
			l.Withdraw(g)
			time.Sleep(time.Second)
			if n := l.Stats().Markers; n != 1 {
				t.Errorf("policy %d: got %d marks, want one", policy, n)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The generation that a withdrawn group had entered is there for the next group, and
// may be passed over by one that does not fit it.
func TestWithdrawnGroupsGeneration(t *testing.T) {
	const most = wal.MinGenerationBytes
	for name, test := range map[string]struct {
		next      int // bytes of the group behind it
		intoFirst bool
	}{
		"the one before has room": {100, true},
		"it has room":             {4000, false},
		"it has none":             {2 * most, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			r.opt.Ahead = 2
			l := mustBegin(t, r.opt)
			var sizes []int
			add := func(n int) {
				t.Helper()
				mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, n)})
				sizes = append(sizes, n)
			}
			for range 3 { // a little is left of the first
				add(most / 4)
			}
			prepared := l.Stats().Prepared
			g, err := l.Open(4000)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Stats().Prepared; got != prepared-1 {
				t.Fatalf("%d generations are prepared, want %d: it should have entered one", got, prepared-1)
			}
			if l.Withdraw(g); l.Stats().Prepared != prepared {
				t.Errorf("%d generations are prepared, want %d again", l.Stats().Prepared, prepared)
			}
			add(test.next)
			if got := len(l.Generations()) == 1; got != test.intoFirst {
				t.Errorf("into the first generation: got %t, want %t", got, test.intoFirst)
			}
			for range 10 {
				add(2000)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			groups, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{})
			if err != nil || len(groups) != len(sizes) || !end.Closed {
				t.Fatalf("got %d groups, closed: %t, %v; want %d and a clean end", len(groups), end.Closed, err, len(sizes))
			}
			for i, g := range groups {
				if got := len(g.Records[0].Body); got != sizes[i] {
					t.Errorf("group %d has %d bytes, want %d", i, got, sizes[i])
				}
			}
		})
	}
}
