package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
	"pawl/wal/waltest"
)

// Who finds a job at once does not wait, and is counted as nobody who does.
func TestAwaitWithAJobAtOnce(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.enqueue("mail", "x")
		f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000}
		w, lsn := s.e.Await(f)
		if w != nil || f.Err() != nil || len(f.Jobs) != 1 || s.e.Numbers().Waiting != 0 {
			t.Errorf("got waiter %v, %v and %d jobs, %d wait; want one job", w, f.Err(), len(f.Jobs), s.e.Numbers().Waiting)
		}
		if err := s.e.Wait(lsn); err != nil {
			t.Error(err)
		}
		if lines, _ := s.e.Lines(); lines != 0 {
			t.Errorf("there are %d lines, want none", lines)
		}
	})
}

// Whose wait is refused is told, and counted.
func TestAwaitRefused(t *testing.T) {
	inBubble(t, engine.Options{MaxWaiters: 1}, func(t *testing.T, s *shop) {
		s.await("mail")
		before := s.e.Numbers().Refused
		f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 1}
		if w, _ := s.e.Await(f); w != nil || f.Err() != engine.ErrBusy {
			t.Errorf("got waiter %v and %v, want none and ErrBusy", w, f.Err())
		}
		s.must(&engine.Stats{Queue: key("mail")})
		if n := s.e.Numbers().Refused - before; n != 1 {
			t.Errorf("%d are counted as refused, want 1", n)
		}
	})
}

// So is who comes while too much waits for a disk that hangs.
func TestAwaitUnderBackPressure(t *testing.T) {
	onHangingDisk(t, engine.Options{MaxPending: 1}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		release := disk.Hang("datasync")
		done := make(chan error, 1)
		go func() { done <- s.e.Do(&engine.Enqueue{Queue: key("other"), Payload: []byte("x")}) }()
		synctest.Wait()
		go s.e.Do(&engine.Stats{Queue: key("other")})
		time.Sleep(2 * time.Second)
		f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 1}
		if w, lsn := s.e.Await(f); w != nil || lsn != 0 || f.Err() != engine.ErrBusy {
			t.Errorf("got waiter %v, LSN %d and %v; want none and ErrBusy", w, lsn, f.Err())
		}
		release()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// When the last one has left, nothing is left of a line: reply queues would fill the
// memory with theirs.
func TestNothingIsLeftOfALine(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.QueuePause{Queue: key("mail"), For: 3_600_000})
		s.enqueue("mail", "x")
		a, b := s.await("mail", "other"), s.await("mail")
		for i, want := range [][2]int{{2, 1}, {1, 1}, {0, 0}} {
			if lines, timed := s.e.Lines(); lines != want[0] || timed != want[1] {
				t.Errorf("after %d have left: %d lines, %d to be looked at again; want %d and %d", i, lines, timed, want[0], want[1])
			}
			if i < 2 && !s.e.Cancel([]*engine.Waiter{a, b}[i]) {
				t.Errorf("waiter %d had left", i)
			}
		}
	})
}

// Who waits for a queue with very many jobs past their time is not served in one
// stay, and a millisecond later goes on.
func TestWaiterBehindManyPastTheirTime(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.QueuePause{Queue: key("mail")})
		for range 200 {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("past"), TTL: engine.Some(state.Millis(1000))})
		}
		s.enqueue("mail", "x")
		w := s.await("mail")
		time.Sleep(time.Second)
		s.must(&engine.QueueResume{Queue: key("mail")})
		for _, left := range []int64{137, 73, 9, 0} {
			if ready := s.counts("mail")[0]; ready != left {
				t.Errorf("%d jobs are ready, want %d", ready, left)
			}
			time.Sleep(time.Millisecond)
		}
		s.wantWaiters(w, "x")
	})
}

// Who waits has a job in the stay that brings it, not when somebody else comes.
func TestServedInTheStayThatBringsTheJob(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		w := s.await("mail")
		s.e.Submit(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
		if len(w.C) != 1 {
			t.Error("it still waits")
		}
		s.wantWaiters(w, "x")
	})
}
