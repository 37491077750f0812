package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pawl/engine"
	"pawl/internal/seeds"
	"pawl/reaper"
	"pawl/state"
	"pawl/wal/waltest"
)

// Many clients at once: every job is delivered to one worker at a time and
// finished once, whoever leads the commits, waits, gives up or is late.
func TestManyClients(t *testing.T) {
	s := openOnDisk(t, waltest.NewDisk(), engine.Options{SnapshotBytes: 64 << 10})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- reaper.New(s.e).Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()

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
	cancel()
	s.reopen()
	s.differ("after a restart", placeless(s.dump()), placeless(before))
}
