package engine_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// A cron for whose job the log has no room, while small records fit, is no work to
// be tried again at once: the turn rests, and the job comes when there is room.
func TestCronOfALogWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 16 << 10, Foreground: true}}
		s.open()
		defer s.close()
		s.must(&engine.CronSet{Cron: state.Cron{Namespace: "default/default", Name: "c", Spec: "* * * * *",
			Queue: string(key("mail")), Payload: bytes.Repeat([]byte{'p'}, 4000)}})
		s.enqueue("other", "x")
		lease := s.fetch("other", 1<<40).Lease
		disk.Limit(0)
		disk.Inject(func(op waltest.Op) waltest.Fault { // no snapshot may let anything go
			if op.Kind == "open" && strings.Contains(op.Name, ".snapshot") {
				return waltest.Fault{Err: syscall.ENOSPC}
			}
			return waltest.Fault{}
		})
		small := func() {
			t.Helper()
			s.must(&engine.Extend{Lease: lease, LeaseMs: 1 << 40})
		}
		for left := int64(4000); left >= 3000; {
			small()
			list := s.wal.Generations()
			if last := list[len(list)-1]; s.wal.Stats().Prepared == 0 {
				left = last.Size - last.Length
			}
		}
		time.Sleep(time.Minute)
		written := func() int {
			before := s.wal.Stats().Bytes
			small()
			return int(s.wal.Stats().Bytes - before)
		}
		small() // with the time and whatever else has gone by
		least := written()
		for range 3 {
			if next, never := s.e.Turn(); next != 200*time.Millisecond || never {
				t.Errorf("without room: the next turn comes after %v (never: %t), want 200ms", next, never)
			}
		}
		s.wantCounts("mail", 0, 0, 0, 0)
		if got := written(); got != least {
			t.Errorf("trying has written %d bytes to the log", got-least)
		}
		disk.Limit(1 << 30)
		disk.Inject(nil)
		s.sleep(5 * time.Second)
		s.wantCounts("mail", 1, 0, 0, 0)
	})
}

// Who abandons an answer never waits, not even for a generation that the log is
// making: the job stays leased to nobody, and comes again when its lease is over.
func TestAbandonWhileALogMakesRoom(t *testing.T) {
	onHangingDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		s.enqueue("mail", "x")
		s.enqueue("other", "x")
		f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000}
		s.must(f)
		other := s.want("other", "x").Lease
		release := disk.Hang("mkdir")
		var stop atomic.Bool
		done := make(chan struct{})
		go func() { // no command asks for less room than this one
			defer close(done)
			for ms := state.Millis(60_000); !stop.Load(); ms++ {
				s.e.Do(&engine.Extend{Lease: other, LeaseMs: ms})
			}
		}()
		synctest.Wait()
		began := time.Now()
		s.e.Abandon(f)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited for %v", waited)
		}
		s.wantCounts("mail", 0, 0, 1, 0)
		stop.Store(true)
		release()
		<-done
		s.sleep(time.Minute)
		s.want("mail", "x")
	})
}

// A stay that the log interrupts, to make a generation, has served those who wait
// before, and told the reaper what is due earlier than it knew: it may be long until
// the stay goes on.
func TestAStayEndsBeforeALogMakesRoom(t *testing.T) {
	onHangingDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		synctest.Wait() // nobody else ends a stay from here on
		w := s.await("waited")
		s.turn()
		for len(s.e.Wake()) > 0 {
			<-s.e.Wake()
		}
		release := disk.Hang("mkdir", "datasync")
		cmds := []engine.Command{&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Delay: 100},
			&engine.Enqueue{Queue: key("waited"), Payload: []byte("x")}}
		for range 300 {
			cmds = append(cmds, &engine.Enqueue{Queue: key("other"), Payload: bytes.Repeat([]byte{'x'}, 2000)})
		}
		done := make(chan error, 1)
		go func() { done <- s.e.Do(cmds...) }()
		synctest.Wait()
		select {
		case <-s.e.Wake():
		default:
			t.Error("the reaper was not told")
		}
		if len(w.C) != 1 {
			t.Error("who waits was not served")
		}
		if len(done) > 0 {
			t.Error("the log had room for all")
		}
		release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for i, cmd := range cmds {
			if cmd.Err() != nil {
				t.Fatalf("command %d: %v", i, cmd.Err())
			}
		}
	})
}

// Commands that came together and let others in between look at the clocks again
// when they go on.
func TestClocksAfterOthersWereLetIn(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		synctest.Wait() // the keeper has begun: what it does is no stay of ours
		set := false
		s.e.Elapse(func(time.Time) time.Duration {
			if !set {
				set = true
				s.e.StepWall(time.Hour)
			}
			return time.Second
		})
		var all []*engine.Enqueue
		var cmds []engine.Command
		for range 50 {
			all = append(all, &engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
			cmds = append(cmds, all[len(all)-1])
		}
		if err := s.e.Do(cmds...); err != nil {
			t.Fatal(err)
		}
		if by := all[49].ID.Wall() - all[0].ID.Wall(); by != 3_600_000 {
			t.Errorf("the last came %d ms after the first, want an hour", by)
		}
	})
}

// What one stay records goes into one group, also where it asks again for room before
// each record.
func TestAStayIsOneGroup(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		for range 60 {
			s.enqueue("mail", "x")
		}
		before := s.wal.Stats().Groups
		s.must(&engine.QueueDelete{Queue: key("mail")})
		if n := s.wal.Stats().Groups - before; n != 1 {
			t.Errorf("a queue and its 60 jobs went in %d groups, want 1", n)
		}
	})
}

// A group ends when it is large enough, here with 4 KiB, although it has room for more:
// who waits for the first of it does not wait for all.
func TestGroupsEndWhenTheyAreLargeEnough(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		var cmds []engine.Command
		for range 40 {
			cmds = append(cmds, &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 1000)})
		}
		before := s.wal.Stats().Groups
		if err := s.e.Do(cmds...); err != nil {
			t.Fatal(err)
		}
		if n := s.wal.Stats().Groups - before; n < 8 {
			t.Errorf("40 KB went in %d groups, want at least 8", n)
		}
	})
}
