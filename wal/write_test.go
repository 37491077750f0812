package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/wal"
	"pawl/wal/waltest"
)

func mustBegin(t *testing.T, opt wal.Options) *wal.Log {
	t.Helper()
	l, err := wal.Begin(opt, wal.End{Store: waltest.Store})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustAppend(t *testing.T, l *wal.Log, records ...waltest.Record) wal.LSN {
	t.Helper()
	lsn, err := waltest.Append(l, records...)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// TestPayloadsAtEveryLimit: bodies around every size at which something changes:
// the varints, the room left in a generation, a whole one, more than one.
func TestPayloadsAtEveryLimit(t *testing.T) {
	var around []int
	for _, edge := range []int{0, 1 << 7, 1 << 12, 1 << 14, wal.MinGenerationBytes - 384, wal.MinGenerationBytes, 1 << 20, 1 << 21} {
		span := 32
		if edge >= 1<<20 {
			span = 2
		}
		if testing.Short() {
			span /= 2
		}
		for n := edge - span; n <= edge+span; n++ {
			if n >= 0 {
				around = append(around, n)
			}
		}
	}
	r := newRun(t)
	l := mustBegin(t, r.opt)
	payload := bytes.Repeat([]byte("0123456789abcdef"), (1<<21)/16+8)
	written := 0
	flush := func() { // keep the disk small: what has been read back may go
		for _, info := range l.Generations() {
			if info.Sealed {
				if err := l.Drop(info.Generation); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i, n := range around {
		rec := waltest.Record{Head: []byte{byte(n)}, Body: payload[:n]}
		records := []waltest.Record{rec}
		mustAppend(t, l, records...)
		pos := records[0].Pos
		if n == 0 != pos.IsZero() || int(pos.Length) != n {
			t.Fatalf("%d bytes: position %v", n, pos)
		}
		got, err := l.Read(pos, []byte("before"))
		if err != nil || string(got[:6]) != "before" || !bytes.Equal(got[6:], payload[:n]) {
			t.Fatalf("%d bytes: read %d, %v", n, len(got)-6, err)
		}
		written++
		if i%50 == 49 {
			flush()
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	last := l.Generations()[0].FirstLSN
	groups, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{After: last - 1})
	if err != nil || int(end.LSN) != written || len(groups) != written-int(last)+1 {
		t.Fatalf("read %d groups up to %d, %v, want up to %d", len(groups), end.LSN, err, written)
	}
	for _, g := range groups {
		if n := around[g.LSN-1]; !bytes.Equal(g.Records[0].Body, payload[:n]) {
			t.Errorf("group %d has %d bytes, want %d", g.LSN, len(g.Records[0].Body), n)
		}
	}
}

// TestGroupFillsUp: Fits is exact, and Open's room is kept, wherever the group
// begins.
func TestGroupFillsUp(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	crowded := false
	for i := range 300 {
		want := i*13%900 + 3
		g, err := l.Open(want)
		if err != nil {
			t.Fatal(err)
		}
		if !g.Fits(want) {
			t.Fatalf("group %d was opened for %d bytes and does not have them", g.LSN(), want)
		}
		room := 0
		for g.Fits(room + 1) {
			room++
		}
		if room < wal.MinGenerationBytes/4 {
			crowded = true // by the end of the generation
		}
		if i%2 == 0 { // to the last byte
			for left := room; left > 0; left = room - g.Bytes() {
				n := min(left, 100)
				if left-n == 1 || left-n == 2 {
					n -= 3
				}
				g.Add(bytes.Repeat([]byte{'h'}, n-2), nil)
			}
			if g.Fits(1) {
				t.Fatalf("group %d has room behind its end", g.LSN())
			}
			if !g.Full() {
				t.Errorf("group %d of %d bytes is not full", g.LSN(), g.Bytes())
			}
		}
		l.Seal(g, 1, 1)
		if err := l.Commit(g); err != nil {
			t.Fatal(err)
		}
		if i%7 == 0 {
			if err := l.Idle(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !crowded {
		t.Error("no group met the end of a generation")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{}); err != nil || end.LSN != 300 || !end.Closed {
		t.Errorf("log ends with %d, closed %t, %v", end.LSN, end.Closed, err)
	}
}

// TestSealedGroupsWait: several groups, over more than one generation, are
// placed before any is written.
func TestSealedGroupsWait(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	var groups []*wal.Group
	var positions []wal.Pos
	body := bytes.Repeat([]byte{'b'}, 3000)
	for i := range 14 {
		g, err := l.Open(wal.RecordBytes(1, len(body)))
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, g.Add([]byte{byte(i + 1)}, body))
		l.Seal(g, int64(i), int64(i))
		groups = append(groups, g)
	}
	if n := positions[13].Generation; n < 3 {
		t.Fatalf("last group is in generation %d, want 3 or more", n)
	}
	for i, g := range groups {
		if err := l.Commit(g); err != nil {
			t.Fatal(err)
		}
		if got := l.Durable(); got != g.LSN() {
			t.Errorf("durable is %d after group %d", got, g.LSN())
		}
		if got, err := l.Read(positions[i], nil); err != nil || !bytes.Equal(got, body) {
			t.Errorf("body of group %d: %v", g.LSN(), err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, _, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{})
	if err != nil || len(got) != len(groups) {
		t.Fatalf("read %d groups, want %d, %v", len(got), len(groups), err)
	}
	for i, g := range got {
		if g.Records[0].Pos != positions[i] {
			t.Errorf("group %d: reader says %v, writer said %v", g.LSN, g.Records[0].Pos, positions[i])
		}
	}
}

func TestCloseWithWaitingGroup(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	g, err := l.Open(10)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Idle(); err != nil {
		t.Fatal(err)
	}
	if n := l.Stats().Markers; n != 0 {
		t.Errorf("%d marks beside an open group", n)
	}
	l.Seal(g, 1, 1)
	if err := l.Close(); err == nil {
		t.Error("closed with a group that was not committed")
	}
	if _, err := l.Open(1); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("open after close gave %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	if _, err := l.Open(1 << 28); !errors.Is(err, wal.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	if err := l.Room(1 << 40); !errors.Is(err, wal.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	mustAppend(t, l, waltest.Record{Head: []byte("still works")})
	l.Untended() // or a quarter of a gigabyte would be made
	for n, want := range map[int]error{1<<28 - 96: wal.ErrPreparing, 1<<28 - 95: wal.ErrTooLarge} {
		if err := l.Room(n); !errors.Is(err, want) {
			t.Errorf("%d bytes: got %v, want %v", n, err, want)
		}
	}
}

func TestMisuse(t *testing.T) {
	for name, misuse := range map[string]func(l *wal.Log){
		"open twice":       func(l *wal.Log) { l.Open(1); l.Open(1) },
		"no head":          func(l *wal.Log) { g, _ := l.Open(10); g.Add(nil, []byte("b")) },
		"too much":         func(l *wal.Log) { g, _ := l.Open(10); g.Add(make([]byte, 5000), nil) },
		"add after seal":   func(l *wal.Log) { g, _ := l.Open(10); l.Seal(g, 1, 1); g.Add([]byte("h"), nil) },
		"seal twice":       func(l *wal.Log) { g, _ := l.Open(10); l.Seal(g, 1, 1); l.Seal(g, 1, 1) },
		"commit unsealed":  func(l *wal.Log) { g, _ := l.Open(10); l.Commit(g) },
		"commit twice":     func(l *wal.Log) { g, _ := l.Open(10); l.Seal(g, 1, 1); l.Commit(g); l.Commit(g) },
		"withdraw sealed":  func(l *wal.Log) { g, _ := l.Open(10); l.Seal(g, 1, 1); l.Withdraw(g) },
		"withdraw records": func(l *wal.Log) { g, _ := l.Open(10); g.Add([]byte("h"), nil); l.Withdraw(g) },
		"unhold, not held": func(l *wal.Log) { l.Unhold(1) },
	} {
		t.Run(name, func(t *testing.T) {
			l := mustBegin(t, newRun(t).opt)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse(l)
		})
	}
}

func TestOptionsRefused(t *testing.T) {
	good := newRun(t).opt
	for name, change := range map[string]func(*wal.Options){
		"no directory":     func(o *wal.Options) { o.Dir = "" },
		"small generation": func(o *wal.Options) { o.GenerationBytes = wal.MinGenerationBytes - 1 },
		"large generation": func(o *wal.Options) { o.GenerationBytes = wal.MaxGenerationBytes + 1 },
		"nothing ahead":    func(o *wal.Options) { o.Ahead = -1 },
		"unknown policy":   func(o *wal.Options) { o.Sync = 9 },
		"negative time":    func(o *wal.Options) { o.Interval = -1 },
	} {
		opt := good
		change(&opt)
		if _, err := wal.Begin(opt, wal.End{Store: waltest.Store}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := wal.Begin(good, wal.End{}); err == nil {
		t.Error("no store: no error")
	}
}

// TestFullDisk: a full disk is no failure. It goes on by itself.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.opt.Foreground = false
		var told []error
		var mu sync.Mutex
		r.opt.Notify = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, err)
		}
		l := mustBegin(t, r.opt)
		synctest.Wait()
		r.disk.Limit(0)
		body := bytes.Repeat([]byte{'b'}, 2000)
		var err error
		n := 0
		for ; err == nil && n < 1000; n++ {
			_, err = waltest.Append(l, waltest.Record{Head: []byte("h"), Body: body})
			synctest.Wait()
		}
		if !errors.Is(err, wal.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) || n < 20 {
			t.Fatalf("after %d groups got %v, want ErrNoSpace after three generations", n, err)
		}
		if l.Failure() != nil {
			t.Errorf("log has failed: %v", l.Failure())
		}
		mustAppend(t, l, waltest.Record{Head: []byte("what fits into the rest still goes")})
		if err := l.Room(5000); !errors.Is(err, wal.ErrNoSpace) {
			t.Errorf("room is %v, want ErrNoSpace", err)
		}
		news := l.Prepared()
		r.disk.Limit(1 << 20)
		start := time.Now()
		<-news
		for l.Room(5000) != nil {
			<-l.Prepared()
		}
		if gone := time.Since(start); gone > time.Second {
			t.Errorf("space was seen after %v, want a second at most", gone)
		}
		mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: body})
		synctest.Wait()
		if s := l.Stats(); s.PreparationFailures == 0 || s.Prepared == 0 {
			t.Errorf("stats are %+v", s)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 2 || !errors.Is(told[0], syscall.ENOSPC) || told[1] != nil {
			t.Errorf("told %v, want ENOSPC once and nil once", told)
		}
		if _, _, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestLargeCommandOnFullDisk: a command that can not be given a generation does
// not take those of others.
func TestLargeCommandOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.opt.Foreground = false
		l := mustBegin(t, r.opt)
		synctest.Wait()
		r.disk.Limit(4 * wal.MinGenerationBytes)
		large := waltest.Record{Head: []byte("h"), Body: make([]byte, 8*wal.MinGenerationBytes)}
		if _, err := waltest.Append(l, large); !errors.Is(err, wal.ErrNoSpace) {
			t.Fatalf("got %v, want ErrNoSpace", err)
		}
		for range 20 {
			mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, 2000)})
			synctest.Wait()
		}
		r.disk.Limit(1 << 20)
		time.Sleep(5 * time.Second)
		mustAppend(t, l, large)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestIdleMark: it comes 50 ms after the last group, once, and is synced when a
// second more is quiet.
func TestIdleMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.opt.Foreground = false
		l := mustBegin(t, r.opt)
		rec := waltest.Record{Head: []byte("h")}
		mustAppend(t, l, rec)
		for range 5 { // never quiet long enough
			time.Sleep(40 * time.Millisecond)
			mustAppend(t, l, rec)
		}
		synctest.Wait()
		if n := l.Stats().Markers; n != 0 {
			t.Errorf("%d marks between groups 40 ms apart", n)
		}
		syncs := l.Stats().Syncs
		time.Sleep(60 * time.Millisecond)
		synctest.Wait()
		if n := l.Stats().Markers; n != 1 {
			t.Errorf("%d marks after 60 ms, want 1", n)
		}
		none := func(int) waltest.Keep { return waltest.Keep{} }
		if _, end, err := waltest.Read(r.disk.Crash(none), logDir, wal.ReaderOptions{}); err != nil || end.LSN != 6 {
			t.Errorf("after a power loss: group %d, %v", end.LSN, err)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if got := l.Stats().Syncs; got != syncs {
			t.Errorf("mark was synced after half a second")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := l.Stats(); got.Syncs != syncs+2 || got.Markers != 1 {
			t.Errorf("%d syncs and %d marks after two seconds, want 2 (the mark and its witness) and 1", got.Syncs-syncs, got.Markers)
		}
		// The mark vouches for the last group, so damage to it shows.
		d := r.disk.Crash(none)
		groups, _, err := waltest.Read(d, logDir, wal.ReaderOptions{})
		if err != nil || len(groups) != 6 {
			t.Fatalf("%d groups, %v", len(groups), err)
		}
		d.Flip(segmentFile(1), 8*(200+5*104+50)) // in the header of the sixth
		if _, _, err := waltest.Read(d, logDir, wal.ReaderOptions{}); err == nil {
			t.Error("damage to the last group behind a synced mark was not refused")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFullGenerationIsClosedAtOnce: its file is trimmed, and with it its memory
// given back, when the log has gone on to the next, not when it comes to rest.
func TestFullGenerationIsClosedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.opt.Foreground, r.opt.IdleAfter = false, time.Hour
		l := mustBegin(t, r.opt)
		for len(l.Generations()) < 4 {
			mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, 2000)})
			synctest.Wait()
		}
		for _, g := range l.Generations()[:3] {
			if g.Size != g.Length {
				t.Errorf("generation %d is full and not closed: %d bytes, of which %d are used", g.Generation, g.Size, g.Length)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWitnessPassedOver: the generation that has the second copy of a mark is
// removed, for a large command, before the mark is synced.
func TestWitnessPassedOver(t *testing.T) {
	for _, policy := range []wal.SyncPolicy{wal.SyncAlways, wal.SyncInterval} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			r.opt.Foreground, r.opt.Sync = false, policy
			l := mustBegin(t, r.opt)
			mustAppend(t, l, waltest.Record{Head: []byte("h")})
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if n := l.Stats().Markers; n != 1 {
				t.Fatalf("%d marks, want 1", n)
			}
			mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, 3*wal.MinGenerationBytes)})
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if err := l.Close(); err != nil {
				t.Errorf("policy %d: %v", policy, err)
			}
			if _, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{}); err != nil || end.LSN != 2 || !end.Closed || end.Cut != 0 {
				t.Errorf("policy %d: log ends with %+v, %v", policy, end, err)
			}
		})
	}
}

func TestSyncPolicies(t *testing.T) {
	for policy, want := range map[wal.SyncPolicy][3]wal.LSN{
		wal.SyncAlways:   {10, 10, 10},
		wal.SyncInterval: {1, 10, 10}, // the first one comes after a long rest
		wal.SyncNever:    {0, 0, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			r.opt.Foreground, r.opt.Sync = false, policy
			l := mustBegin(t, r.opt)
			time.Sleep(5 * time.Second)
			mustAppend(t, l, waltest.Record{Head: []byte("h")})
			synctest.Wait()
			for range 9 {
				mustAppend(t, l, waltest.Record{Head: []byte("h")})
			}
			synctest.Wait()
			got := [3]wal.LSN{0: l.Durable()}
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			got[1] = l.Durable()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			got[2] = l.Durable()
			if got != want {
				t.Errorf("policy %d: durable %v at once, after 1.5 s, after close; want %v", policy, got, want)
			}
		})
	}
}

func TestBackgroundSyncFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.opt.Foreground, r.opt.Sync = false, wal.SyncInterval
		l := mustBegin(t, r.opt)
		r.disk.Inject(func(op waltest.Op) waltest.Fault {
			if op.Kind == "datasync" {
				return waltest.Fault{Err: syscall.EIO}
			}
			return waltest.Fault{}
		})
		waltest.Append(l, waltest.Record{Head: []byte("h")})
		<-l.Failed()
		if _, err := waltest.Append(l, waltest.Record{Head: []byte("h")}); !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v, want EIO", err)
		}
		if err := l.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("close gave %v, want EIO", err)
		}
	})
}

func TestReadFromFile(t *testing.T) {
	r := newRun(t) // keeps no image
	l := mustBegin(t, r.opt)
	type body struct {
		pos  wal.Pos
		want []byte
	}
	var bodies []body
	for i := range 30 {
		records := []waltest.Record{{Head: []byte("h"), Body: bytes.Repeat([]byte{byte(i + 1)}, 1500)}}
		mustAppend(t, l, records...)
		bodies = append(bodies, body{records[0].Pos, records[0].Body})
	}
	r.disk.Inject(waltest.FailAt(r.disk.Ops()+1, syscall.EMFILE, true))
	if _, err := l.Read(bodies[0].pos, nil); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("without descriptors: got %v, want EMFILE", err)
	} else if _, ok := errors.AsType[*wal.CorruptError](err); ok {
		t.Error("no descriptor left is called damage")
	}
	r.disk.Inject(nil)
	for i, b := range bodies {
		if got, err := l.Read(b.pos, nil); err != nil || !bytes.Equal(got, b.want) {
			t.Errorf("body %d: %v", i, err)
		}
	}
	if s := l.Stats(); s.FileReads == 0 || s.CacheHits == 0 {
		t.Errorf("stats %+v, want reads of both kinds", s)
	}
	pos := bodies[0].pos
	corrupt := func(what string, pos wal.Pos) {
		t.Helper()
		dst := []byte("kept")
		got, err := l.Read(pos, dst)
		c, ok := errors.AsType[*wal.CorruptError](err)
		if !ok || c.Generation != pos.Generation || c.Offset != int64(pos.Offset) || string(got) != "kept" {
			t.Errorf("%s: got %q, %v, want a *CorruptError", what, got, err)
		}
	}
	r.disk.Flip(segmentFile(pos.Generation), int64(pos.Offset)*8)
	corrupt("flipped", pos)
	r.disk.Flip(segmentFile(pos.Generation), int64(pos.Offset)*8)
	corrupt("behind the end", wal.Pos{Generation: pos.Generation, Offset: 1 << 20, Length: 10})
	corrupt("no such generation", wal.Pos{Generation: 77, Offset: 200, Length: 10})
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "read" {
			return waltest.Fault{Err: syscall.EIO}
		}
		return waltest.Fault{}
	})
	corrupt("bad sector", pos)
	r.disk.Inject(nil)
	if got, err := l.Read(pos, nil); err != nil || !bytes.Equal(got, bodies[0].want) {
		t.Errorf("when the disk is well again: %v", err)
	}
}

func TestDescriptorCache(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	var positions []wal.Pos
	for range 270 {
		records := []waltest.Record{{Head: []byte("h"), Body: make([]byte, 9000)}}
		mustAppend(t, l, records...)
		positions = append(positions, records[0].Pos)
	}
	opens, closes := 0, 0
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		switch op.Kind {
		case "open":
			opens++
		case "close":
			closes++
		}
		return waltest.Fault{}
	})
	for range 2 {
		for _, pos := range positions[:256] {
			if _, err := l.Read(pos, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if opens != 256 || closes != 0 {
		t.Errorf("%d opened and %d closed for 256 files read twice", opens, closes)
	}
	for _, pos := range positions[256:260] {
		if _, err := l.Read(pos, nil); err != nil {
			t.Fatal(err)
		}
	}
	if opens != 260 || closes != 4 {
		t.Errorf("%d opened and %d closed for 260 files, want the four oldest closed", opens, closes)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if closes < 260 {
		t.Errorf("%d of 260 descriptors closed", closes)
	}
}

func TestDrop(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	var positions []wal.Pos
	for range 30 {
		records := []waltest.Record{{Head: []byte("h"), Body: bytes.Repeat([]byte{'b'}, 1500)}}
		mustAppend(t, l, records...)
		positions = append(positions, records[0].Pos)
	}
	infos := l.Generations()
	if len(infos) < 3 || !infos[0].Sealed || infos[len(infos)-1].Sealed || infos[0].LogTime == 0 {
		t.Fatalf("generations %+v", infos)
	}
	for i := 1; i < len(infos); i++ {
		if infos[i].FirstLSN != infos[i-1].LastLSN+1 {
			t.Errorf("generation %d begins with %d behind %d", infos[i].Generation, infos[i].FirstLSN, infos[i-1].LastLSN)
		}
	}
	newest := infos[len(infos)-1].Generation
	if err := l.Drop(newest); !errors.Is(err, wal.ErrInUse) {
		t.Errorf("drop of the newest gave %v, want ErrInUse", err)
	}
	if err := l.Drop(99); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("drop of none gave %v, want ErrNotExist", err)
	}
	second := infos[1].Generation
	l.Hold(second)
	l.Hold(second)
	l.Unhold(second)
	if got := l.Generations()[1].Holds; got != 1 {
		t.Errorf("%d holds, want 1", got)
	}
	if err := l.Drop(second); !errors.Is(err, wal.ErrHeld) {
		t.Errorf("drop of a held one gave %v, want ErrHeld", err)
	}
	l.Unhold(second)
	l.HoldAll()
	if err := l.Drop(second); !errors.Is(err, wal.ErrHeld) || l.Generations()[1].Going {
		t.Errorf("drop while all are held gave %v, want ErrHeld, and that it stays", err)
	}
	l.UnholdAll()
	broken := errors.New("broken")
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "remove" {
			return waltest.Fault{Err: broken}
		}
		return waltest.Fault{}
	})
	if err := l.Drop(second); !errors.Is(err, broken) || !l.Generations()[1].Going {
		t.Errorf("drop on a disk that removes nothing gave %v, want that, and that it is going", err)
	}
	r.disk.Inject(nil)
	var held wal.Pos
	for _, pos := range positions {
		if pos.Generation == second {
			held = pos
		}
	}
	size := l.Stats().DiskBytes
	if err := l.Drop(second); err != nil { // from the middle: the first one has a body that stays
		t.Fatal(err)
	}
	for name, d := range r.disk.States(1, 0) {
		if d.Contents(segmentFile(second)) != nil {
			t.Errorf("the dropped generation is back after a power loss, state %s", name)
		}
	}
	if got := l.Stats().DiskBytes; got >= size {
		t.Errorf("disk bytes %d, before %d", got, size)
	}
	if _, err := l.Read(held, nil); !errors.Is(err, wal.ErrMissing) {
		t.Errorf("read from a dropped generation gave %v, want ErrMissing", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{}); !errors.Is(err, wal.ErrMissing) {
		t.Errorf("reading all gave %v, want ErrMissing", err)
	}
	if _, _, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{After: infos[1].LastLSN - 1}); !errors.Is(err, wal.ErrMissing) {
		t.Errorf("reading from the dropped one gave %v, want ErrMissing", err)
	}
	groups, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{After: infos[1].LastLSN})
	if err != nil || len(groups) != 30-int(infos[1].LastLSN) || end.Linked[0].LastLSN != infos[1].LastLSN {
		t.Errorf("reading behind it: %d groups, %v, %+v", len(groups), err, end.Linked[0])
	}
	h, err := wal.Find(r.disk, logDir, wal.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range h.Linked {
		if err := h.Verify(info.Generation); err != nil {
			t.Errorf("verify: %v", err)
		}
	}
	if err := h.Verify(second); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("verify of a dropped one gave %v", err)
	}
	r.disk.Flip(segmentFile(1), int64(positions[1].Offset)*8)
	if _, ok := errors.AsType[*wal.CorruptError](h.Verify(1)); !ok {
		t.Errorf("verify saw no damage")
	}
}

// TestBeginIsDurable: when Begin returns, no power loss can change what recovery
// has decided, and what it had no use for is gone.
func TestBeginIsDurable(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	for range 3 {
		mustAppend(t, l, waltest.Record{Head: []byte("h")})
	}
	r.disk.Inject(waltest.CrashAt(r.disk.Ops()+2, false, 0)) // written, not synced
	if _, err := waltest.Append(l, waltest.Record{Head: []byte("torn")}); !errors.Is(err, waltest.ErrCrashed) {
		t.Fatalf("got %v, want a crash", err)
	}
	var torn *waltest.Disk
	for name, d := range r.disk.States(1, 0) {
		if torn == nil && strings.HasPrefix(name, "torn") {
			torn = d
		}
	}
	_, end, err := waltest.Read(torn, logDir, wal.ReaderOptions{})
	if err != nil || end.LSN != 3 || end.Cut == 0 || len(end.Unused) != 2 {
		t.Fatalf("end %+v, %v; want a torn tail behind group 3 and two generations made ahead", end, err)
	}
	opt := testOptions(torn, 2)
	if _, err = wal.Begin(opt, end); err != nil {
		t.Fatal(err)
	}
	for name, d := range torn.States(1, 4) {
		_, again, err := waltest.Read(d, logDir, wal.ReaderOptions{})
		if err != nil || again.LSN != 3 || again.Cut != 0 || again.Generation != 4 || again.Linked[0].Length != int64(end.Length) {
			t.Errorf("state %s: end %+v, %v", name, again, err)
		}
		if size := len(d.Contents(segmentFile(1))); size != int(end.Length) {
			t.Errorf("state %s: the old generation has %d bytes, want %d", name, size, end.Length)
		}
		for _, unused := range end.Unused {
			if d.Contents(segmentFile(unused)) != nil {
				t.Errorf("state %s: generation %d is still there", name, unused)
			}
		}
	}
}

// TestSnapshotVouches: what a snapshot knows can not be torn.
func TestSnapshotVouches(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	for range 3 {
		mustAppend(t, l, waltest.Record{Head: []byte("h")})
	}
	for _, row := range []struct {
		vouched wal.LSN
		refused bool
	}{{0, false}, {3, false}, {4, true}} {
		_, _, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{Vouched: row.vouched})
		if c, ok := errors.AsType[*wal.CorruptError](err); ok != row.refused || ok && c.LSN != 4 {
			t.Errorf("snapshot of %d: %v", row.vouched, err)
		}
	}
	if _, _, err := waltest.Read(newRun(t).disk, logDir, wal.ReaderOptions{After: 1}); !errors.Is(err, wal.ErrMissing) {
		t.Errorf("snapshot without a log: %v, want ErrMissing", err)
	}
}

// TestConcurrentUse: one decides, one commits, several read; for the race
// detector.
func TestConcurrentUse(t *testing.T) {
	dir := t.TempDir()
	l := mustBegin(t, wal.Options{Dir: dir, GenerationBytes: wal.MinGenerationBytes, IdleAfter: time.Millisecond, Sync: wal.SyncInterval, Interval: time.Millisecond})
	type written struct {
		group *wal.Group
		pos   wal.Pos
		body  []byte
	}
	sealed, durable := make(chan written, 4), make(chan written, 64)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(sealed)
		for i := range 400 {
			g, err := waltest.Open(l, 3000)
			if err != nil {
				t.Error(err)
				return
			}
			body := bytes.Repeat([]byte{byte(i) | 1}, i*7%2000)
			pos := g.Add(fmt.Appendf(nil, "head %d", i), body)
			l.Seal(g, int64(i), int64(i))
			sealed <- written{g, pos, body}
		}
	})
	wg.Go(func() {
		defer close(durable)
		for w := range sealed {
			if err := l.Commit(w.group); err != nil {
				t.Error(err)
				return
			}
			durable <- w
		}
	})
	for range 3 {
		wg.Go(func() {
			for w := range durable {
				l.Hold(w.pos.Generation)
				got, err := l.Read(w.pos, nil)
				l.Unhold(w.pos.Generation)
				if err != nil || !bytes.Equal(got, w.body) {
					t.Errorf("body at %v: %v", w.pos, err)
				}
				l.Stats()
				l.Generations()
				if err := l.Idle(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
