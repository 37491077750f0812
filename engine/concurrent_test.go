package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pawl/engine"
	"pawl/internal/seeds"
	"pawl/state"
	"pawl/wal/waltest"
)

// Many clients at once: every job is delivered to one worker at a time and
// finished once, whoever leads the commits, waits, gives up or is late.
func TestManyClients(t *testing.T) {
	s := openOnDisk(t, waltest.NewDisk(), engine.Options{SnapshotBytes: 64 << 10})
	stop := s.reap()
	defer stop()

	const producers, workers, each = 8, 8, 100
	queues := [][]byte{key("a"), key("b"), key("c")}
	var finished sync.Map
	var left atomic.Int64
	left.Store(producers * each)
	over := make(chan struct{})
	var clients sync.WaitGroup
	for p := range producers {
		clients.Go(func() {
			for i := range each {
				c := &engine.Enqueue{
					Queue: queues[i%3], Payload: fmt.Appendf(nil, "%d-%d", p, i), Priority: int8(i % 2),
					Delay: state.Millis(i % 3),
				}
				if err := s.e.Do(c); err != nil || c.Err() != nil {
					t.Errorf("enqueue: %v, %v", err, c.Err())
				}
			}
		})
	}
	for w := range workers {
		rng := seeds.Rand(fmt.Sprintf("%s-%d", t.Name(), w))
		clients.Go(func() {
			f := &engine.Fetch{Queues: queues, LeaseMs: 3_600_000}
			for {
				waiter, lsn := s.e.Await(f)
				if waiter != nil {
					select {
					case <-waiter.C:
					case <-over:
						if s.e.Cancel(waiter) {
							return
						}
						<-waiter.C
					}
					lsn = waiter.LSN
				}
				if err := s.e.Wait(lsn); err != nil || f.Err() != nil || len(f.Jobs) != 1 {
					t.Errorf("fetch: %v, %v, %d jobs", err, f.Err(), len(f.Jobs))
					return
				}
				if rng.IntN(4) == 0 { // the connection broke
					s.e.Undeliver(f.Jobs)
					continue
				}
				if err := s.e.Load(&f.Jobs[0]); err != nil {
					t.Error(err)
				}
				lease := f.Jobs[0].Lease
				if rng.IntN(4) == 0 {
					if c := (&engine.Nack{Lease: lease}); s.e.Do(c) != nil || c.Err() != nil {
						t.Errorf("nack: %v", c.Err())
					}
					continue
				}
				if _, twice := finished.LoadOrStore(string(f.Jobs[0].Payload), true); twice {
					t.Errorf("job %s was finished before", f.Jobs[0].Payload)
				}
				if c := (&engine.Ack{Leases: []state.LeaseID{lease}}); s.e.Do(c) != nil || c.Err() != nil {
					t.Errorf("ack: %v", c.Err())
				}
				if left.Add(-1) == 0 {
					close(over)
				}
			}
		})
	}
	clients.Wait()
	for _, q := range []string{"a", "b", "c"} {
		s.wantCounts(q, 0, 0, 0, 0)
	}
	if err := s.e.Check(); err != nil {
		t.Error(err)
	}
	if n := s.e.Numbers(); n.Acked != producers*each || n.Waiting != 0 {
		t.Errorf("got %d acked, %d waiting, want %d and 0", n.Acked, n.Waiting, producers*each)
	}
	before := s.dump()
	stop()
	s.reopen()
	s.differ("after a restart", placeless(s.dump()), placeless(before))
}

// A queue is deleted as a whole or not at all, whatever is leased from it
// meanwhile: the removal goes in turns, and a FETCH can come in between.
func TestQueueDeleteBesideFetches(t *testing.T) {
	s := openShop(t, engine.Options{})
	const jobs = 1000
	for range 10 {
		for first := 0; first < jobs; first += 100 {
			var cmds []engine.Command
			for range 100 {
				cmds = append(cmds, &engine.Enqueue{Queue: key("q")})
			}
			if err := s.e.Do(cmds...); err != nil {
				t.Fatal(err)
			}
		}
		begin, over := make(chan struct{}), make(chan error, 1)
		go func() {
			<-begin
			var err error
			for range 20 {
				f := &engine.Fetch{Queues: [][]byte{key("q")}, LeaseMs: 60_000}
				if err = s.e.Do(f); err != nil {
					break
				}
				for i := range f.Jobs {
					s.e.Forget(&f.Jobs[i])
				}
			}
			over <- err
		}()
		close(begin)
		del := &engine.QueueDelete{Queue: key("q")}
		if err := s.e.Do(del); err != nil {
			t.Fatal(err)
		}
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		n := s.counts("q")
		switch left := n[0] + n[1] + n[2] + n[3]; {
		case del.Err() == engine.ErrQueueLeased && left == jobs:
			s.must(&engine.QueuePause{Queue: key("q")})
			for n[2] > 0 { // so that the next round begins with an empty queue
				peek := &engine.QueuePeek{Queue: key("q"), Place: state.Leased, Count: 100}
				s.must(peek)
				for i := range peek.Jobs {
					s.e.ForgetView(&peek.Jobs[i])
					s.must(&engine.JobDelete{IDs: []state.JobID{peek.Jobs[i].ID}})
				}
				n = s.counts("q")
			}
			s.must(&engine.QueueDelete{Queue: key("q")})
		case del.Err() == nil && left == 0:
		default:
			t.Fatalf("delete: got %v, and %d of %d jobs are left", del.Err(), left, jobs)
		}
	}
}
