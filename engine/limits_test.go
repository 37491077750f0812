package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/wal"
	"pawl/wal/waltest"
)

// TestSetLimits: a limit that is lowered holds at once for what is new, and one
// that is taken away lets it in again.
func TestSetLimits(t *testing.T) {
	s := openShop(t, engine.Options{})
	set := func(l engine.Limits) {
		t.Helper()
		if err := s.e.SetLimits(l); err != nil {
			t.Fatal(err)
		}
	}
	enqueue := func() error {
		c := &engine.Enqueue{Queue: key("q"), Payload: []byte("x")}
		if err := s.e.Do(c); err != nil {
			t.Fatal(err)
		}
		return c.Err()
	}
	s.enqueue("q", "before")
	set(engine.Limits{MaxMemory: 1})
	if err := enqueue(); err != engine.ErrNoMemory {
		t.Errorf("one byte of memory: got %v, want ErrNoMemory", err)
	}
	s.want("q", "before")
	set(engine.Limits{})
	if err := enqueue(); err != nil {
		t.Errorf("no limit of memory: got %v", err)
	}

	// The keeper looks at the disk by itself.
	await := func(what string, want error) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			err := enqueue()
			if errors.Is(err, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: got %v, want %v", what, err, want)
			}
		}
	}
	set(engine.Limits{MaxDisk: 1})
	await("one byte of disk", engine.ErrNoSpace)
	set(engine.Limits{})
	await("no limit of disk", nil)

	set(engine.Limits{MaxWaiters: 1})
	first, _ := s.e.Await(&engine.Fetch{Queues: [][]byte{key("empty")}, LeaseMs: 1000})
	refused := &engine.Fetch{Queues: [][]byte{key("empty")}, LeaseMs: 1000}
	if second, _ := s.e.Await(refused); first == nil || second != nil || refused.Err() != engine.ErrBusy {
		t.Errorf("two fetchers wait where one may: %v, %v, %v", first, second, refused.Err())
	}
	set(engine.Limits{})
	second, _ := s.e.Await(refused)
	if second == nil {
		t.Fatal("a fetcher may not wait though the limit is gone")
	}
	s.e.Cancel(first)
	s.e.Cancel(second)

	if err := s.e.SetLimits(engine.Limits{MaxDisk: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
}

// TestSetKeeping: when snapshots are written and how long log stays changes while
// the engine runs.
func TestSetKeeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{t: t, fs: waltest.NewDisk(), dir: "data", opt: engine.Options{SnapshotBytes: 1 << 30}, log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer func() { s.close() }()
		set := func(l engine.Limits) {
			t.Helper()
			if err := s.e.SetLimits(l); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		churn := func() {
			for range 200 {
				s.enqueue("mail", strings.Repeat("x", 1000))
				s.ack(s.fetch("mail", 60_000))
			}
		}
		churn()
		if n := s.e.Numbers(); n.SnapshotLSN != 0 {
			t.Fatalf("a snapshot of group %d, long before it is due", n.SnapshotLSN)
		}
		set(engine.Limits{SnapshotBytes: 64 << 10, Keep: time.Hour})
		first := s.e.Numbers().SnapshotLSN
		if first == 0 {
			t.Error("no snapshot though 200 KB of log are more than the new bound")
		}
		churn()
		set(engine.Limits{SnapshotBytes: 1 << 30, SnapshotInterval: time.Minute, Keep: time.Hour})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if again := s.e.Numbers().SnapshotLSN; again <= first {
			t.Errorf("two minutes after the interval was set to one the newest snapshot is of group %d as before", again)
		}
		kept := s.e.Numbers().Generations
		if kept < 20 {
			t.Errorf("%d generations, want those of the last hour", kept)
		}
		set(engine.Limits{SnapshotBytes: 64 << 10})
		churn()
		time.Sleep(time.Minute)
		synctest.Wait()
		if left := s.e.Numbers().Generations; left > kept/2 {
			t.Errorf("%d of %d generations are left though none is kept any more", left, kept)
		}
	})
}

// A large snapshot makes the next one due later, and the log of two longer.
func TestDiskBound(t *testing.T) {
	for _, c := range []struct{ live, snapshot, snapshotBytes, generation, want int64 }{
		{0, 0, 0, 0, 0},
		{1000, 0, 0, 0, 2500},
		{0, 400, 100, 0, 2*400 + 2*100},
		{0, 8000, 100, 10, 2*8000 + 2*1000 + 4*10},
	} {
		if got := engine.DiskBound(c.live, c.snapshot, c.snapshotBytes, c.generation); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}
