package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
)

// try has commands decided without a wait, and gives how many were.
func (s *shop) try(cmds ...engine.Command) (decided int) {
	s.t.Helper()
	began := time.Now()
	lsn, decided := s.e.TrySubmit(cmds...)
	if took := time.Since(began); took != 0 {
		s.t.Fatalf("it has waited for %v", took)
	}
	if err := s.e.Wait(lsn); err != nil {
		s.t.Fatal(err)
	}
	for i, cmd := range cmds[:decided] {
		if cmd.Err() != nil {
			s.t.Fatalf("command %d, %T: %v", i, cmd, cmd.Err())
		}
	}
	return decided
}

// TrySubmit ends where the log has to make a generation first: with as many commands
// as there is room for, and nothing of the others.
func TestTrySubmit(t *testing.T) {
	onGatedDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *gatedFS) {
		synctest.Wait() // the log has made what it keeps ahead
		open := disk.shut()
		const most = 1000
		cmds := []engine.Command{&engine.Stats{Queue: key("mail")}, &engine.Fetch{Queues: [][]byte{key("none")}, LeaseMs: 1000}}
		others := len(cmds)
		for range most {
			cmds = append(cmds, &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 1000)})
		}
		decided := s.try(cmds...)
		jobs := decided - others
		if jobs < 100 || jobs == most { // three generations of 64 KiB are there
			t.Fatalf("%d jobs were taken without a new generation", jobs)
		}
		s.wantCounts("mail", int64(jobs), 0, 0, 0)
		rest := cmds[decided:]
		if n := s.try(rest...); n != 0 {
			t.Errorf("%d more were decided without room", n)
		}
		s.wantCounts("mail", int64(jobs), 0, 0, 0)
		open()
		time.Sleep(time.Second)
		if s.try(rest...) == 0 {
			t.Error("nothing is taken when there is room again")
		}
		large := &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 100<<10)} // of a generation that must be made
		small := &engine.Enqueue{Queue: key("large"), Payload: []byte("x")}
		if n := s.try(large, small); n != 0 {
			t.Errorf("%d were decided, one of which has no room", n)
		}
		s.wantCounts("large", 0, 0, 0, 0)
		s.must(large) // as if it had never been tried
	})
}

// Who lets others in when a millisecond is over may find that they have used up the
// room: TrySubmit ends there.
func TestTrySubmitFindsNoRoomAfterABreak(t *testing.T) {
	const jobs, at = 100, 16 // 16 jobs go by until the clock is looked at
	enqueue := func() engine.Command { return &engine.Enqueue{Queue: key("new"), Payload: []byte("x")} }
	for name, test := range map[string]func(s *shop, held []engine.Delivery) (cmds []engine.Command, decided int){
		"between commands": func(*shop, []engine.Delivery) (cmds []engine.Command, decided int) {
			for range jobs {
				cmds = append(cmds, enqueue())
			}
			return cmds, at
		},
		"within a fetch, which has taken some": func(s *shop, _ []engine.Delivery) ([]engine.Command, int) {
			for range jobs {
				s.enqueue("mail", "x")
			}
			return []engine.Command{&engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000, Count: jobs}, enqueue()}, 1
		},
		"within a fetch that meets none but those whose time is over": func(s *shop, _ []engine.Delivery) ([]engine.Command, int) {
			for range jobs {
				s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), TTL: engine.Some(state.Millis(1))})
			}
			s.enqueue("mail", "x")
			time.Sleep(time.Millisecond)
			return []engine.Command{&engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000}, enqueue()}, 0
		},
		"behind an ack": func(_ *shop, held []engine.Delivery) ([]engine.Command, int) {
			return []engine.Command{ackOf(held), enqueue()}, 1
		},
		"behind a delete": func(_ *shop, held []engine.Delivery) ([]engine.Command, int) {
			return []engine.Command{deleteOf(held), enqueue()}, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			onGatedDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *gatedFS) {
				cmds, want := test(s, s.held(jobs))
				synctest.Wait()
				open := disk.shut()
				s.during(s.e.Fill)
				decided := s.try(cmds...)
				if decided != want {
					t.Errorf("got %d decided, want %d", decided, want)
				}
				open()
				for _, cmd := range cmds[decided:] {
					s.must(cmd)
				}
				s.e.Elapse(nil)
				before := s.dump()
				s.reopen()
				s.differ("after a restart", s.dump(), before)
			})
		})
	}
}

// An ACK or a JOB DELETE of very many lets others in and needs room behind that: it is
// for those who can wait.
func TestTrySubmitLeavesTheLargest(t *testing.T) {
	const jobs = 129
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		held := s.held(jobs)
		for _, cmd := range []engine.Command{ackOf(held), deleteOf(held)} {
			if n := s.try(&engine.Stats{Queue: key("held")}, cmd); n != 1 {
				t.Errorf("%T: got %d decided, want 1", cmd, n)
			}
		}
		s.wantCounts("held", 0, 0, jobs, 0)
		if n := s.try(&engine.Multi{Commands: []engine.Command{ackOf(held)}}); n != 1 {
			t.Error("a transaction stays together, and is decided")
		}
		s.wantCounts("held", 0, 0, 0, 0)
	})
}
