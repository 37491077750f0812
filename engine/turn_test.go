package engine_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/wal"
	"pawl/wal/waltest"
)

// Of too many queues the idle ones go early: beyond three quarters of the limit
// after a second, beyond half of it after ten, to the millisecond, and the others
// after their hour.
func TestCrowdedQueues(t *testing.T) {
	inBubble(t, engine.Options{MaxQueues: 16}, func(t *testing.T, s *shop) {
		for i := range 14 {
			name := fmt.Sprint("reply/", i)
			s.enqueue(name, "x")
			s.ack(s.want(name, "x"))
		}
		began := time.Now()
		for _, step := range []struct {
			at    time.Duration
			there int
		}{
			{999 * time.Millisecond, 14}, {time.Second, 12},
			{9999 * time.Millisecond, 12}, {10 * time.Second, 8},
			{time.Hour - time.Millisecond, 8}, {time.Hour, 0},
		} {
			s.sleep(step.at - time.Since(began))
			if n := s.e.Numbers().QueueCount; n != int64(step.there) {
				t.Errorf("after %v: got %d queues, want %d", step.at, n, step.there)
			}
		}
	})
}

// A turn that finds no room in the log rests instead of trying again at once, and
// what was due comes when there is room.
func TestTurnOfALogWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 16 << 10, Foreground: true}}
		s.open()
		defer s.close()
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Delay: 60_000})
		disk.Limit(0)
		disk.Inject(func(op waltest.Op) waltest.Fault { // no snapshot may let anything go
			if op.Kind == "open" && strings.Contains(op.Name, ".snapshot") {
				return waltest.Fault{Err: syscall.ENOSPC}
			}
			return waltest.Fault{}
		})
		for on := true; s.do(&engine.Drain{On: on}) == nil; on = !on {
		}
		time.Sleep(time.Minute)
		for range 3 {
			if next, never := s.e.Turn(); next != 200*time.Millisecond || never {
				t.Errorf("without room: the next turn comes after %v (never: %t), want 200ms", next, never)
			}
		}
		s.wantCounts("mail", 0, 1, 0, 0)
		disk.Limit(1 << 30)
		disk.Inject(nil)
		s.sleep(5 * time.Second)
		s.wantCounts("mail", 1, 0, 0, 0)
	})
}
