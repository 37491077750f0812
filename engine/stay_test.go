package engine_test

import (
	"slices"
	"testing"
	"time"

	"pawl/engine"
	"pawl/state"
)

// slow makes each look at the clock say that the stay has been long enough.
func slow(time.Time) time.Duration { return time.Second }

// perStay is for how many jobs a stay may go on after its time: 16 between two
// looks, and what one more piece of work is about.
const perStay = 32

// However much comes at once, a stay in the critical section ends soon after its
// time: nobody does many jobs without a look at the clock.
func TestStaysEnd(t *testing.T) {
	const jobs = 1000
	fetch := func(count int) *engine.Fetch {
		return &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000, Count: count}
	}
	tests := []struct {
		what string
		do   func(s *shop, held []engine.Delivery)
	}{
		{"enqueues", func(s *shop, held []engine.Delivery) {
			var cmds []engine.Command
			for range jobs {
				cmds = append(cmds, &engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
			}
			s.together(cmds, false)
		}},
		{"enqueues of many who must not wait", func(s *shop, held []engine.Delivery) {
			var cmds []engine.Command
			for range jobs {
				cmds = append(cmds, &engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
			}
			s.together(cmds, true)
		}},
		{"one fetch of all", func(s *shop, held []engine.Delivery) { s.together([]engine.Command{fetch(jobs)}, false) }},
		{"fetches of many who must not wait", func(s *shop, held []engine.Delivery) {
			var cmds []engine.Command
			for range 10 {
				cmds = append(cmds, fetch(jobs/10))
			}
			s.together(cmds, true)
		}},
		{"one ack of all", func(s *shop, held []engine.Delivery) {
			ack := ackOf(held)
			s.together([]engine.Command{ack}, false)
			if slices.Contains(ack.Done, false) || len(ack.Done) != jobs {
				s.t.Errorf("got %v, want %d times true", ack.Done, jobs)
			}
		}},
		{"one delete of all", func(s *shop, held []engine.Delivery) {
			remove := deleteOf(held)
			s.together([]engine.Command{remove}, false)
			if remove.Deleted != jobs {
				s.t.Errorf("%d were deleted, want %d", remove.Deleted, jobs)
			}
		}},
		{"for those who wait", func(s *shop, held []engine.Delivery) {
			s.must(fetch(jobs)) // nothing is left
			var waiters []*engine.Waiter
			for range jobs {
				waiters = append(waiters, s.await("mail"))
			}
			var cmds []engine.Command
			for range jobs {
				cmds = append(cmds, &engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
			}
			s.together(cmds, false)
			for _, w := range waiters {
				if s.got(w) == "" {
					s.t.Fatal("somebody still waits")
				}
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
				s.log.GenerationBytes = 4 << 20
				s.reopen()
				for range jobs {
					s.enqueue("mail", "x")
				}
				held := s.held(jobs)
				defer s.reap()()
				s.e.Elapse(slow)
				before := s.e.Histograms().TurnSeconds.Count
				test.do(s, held)
				if stays := s.e.Histograms().TurnSeconds.Count - before; stays < jobs/perStay {
					t.Errorf("%d jobs took %d stays, want at least %d", jobs, stays, jobs/perStay)
				}
			})
		})
	}
}

// A turn of the reaper does one piece of work after its time, of at most 128 jobs.
func TestTurnsEnd(t *testing.T) {
	const jobs = 1000
	for what, setup := range map[string]func(s *shop){
		"leases": func(s *shop) {
			for range jobs {
				s.enqueue("mail", "x")
			}
			s.must(&engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 1000, Count: jobs})
		},
		"delays": func(s *shop) {
			for range jobs {
				s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Delay: 1000})
			}
		},
		"times to live": func(s *shop) {
			for range jobs {
				s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), TTL: engine.Some(state.Millis(1000))})
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
				setup(s)
				time.Sleep(time.Second)
				s.e.Elapse(slow)
				ended := func() uint64 { return s.e.Histograms().LateSeconds.Count }
				for before := ended(); ended() < jobs; before = ended() {
					s.e.Turn()
					if n := ended() - before; n == 0 || n > 128+16 {
						t.Fatalf("a turn ended %d jobs", n)
					}
				}
			})
		})
	}
}

// held is so many jobs of a queue of their own that are leased.
func (s *shop) held(jobs int) []engine.Delivery {
	s.t.Helper()
	for range jobs {
		s.enqueue("held", "x")
	}
	f := &engine.Fetch{Queues: [][]byte{key("held")}, LeaseMs: 60_000, Count: jobs}
	s.must(f)
	return f.Jobs
}

// together has commands done by one Submit, or TrySubmit, and wants all their jobs.
func (s *shop) together(cmds []engine.Command, try bool) {
	s.t.Helper()
	var lsn engine.LSN
	if try {
		var decided int
		if lsn, decided = s.e.TrySubmit(cmds...); decided < len(cmds) {
			s.t.Fatalf("it would have to wait behind %d commands", decided)
		}
	} else {
		lsn = s.e.Submit(cmds...)
	}
	if err := s.e.Wait(lsn); err != nil {
		s.t.Fatal(err)
	}
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			s.t.Fatal(cmd.Err())
		}
		if f, ok := cmd.(*engine.Fetch); ok && len(f.Jobs) != f.Count {
			s.t.Fatalf("got %d jobs, want %d", len(f.Jobs), f.Count)
		}
	}
}
