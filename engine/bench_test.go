package engine_test

import (
	"fmt"
	"testing"

	"pawl/engine"
	"pawl/state"
	"pawl/wal"
)

// BenchmarkEnqueue is one durable enqueue a goroutine at a time.
func BenchmarkEnqueue(b *testing.B) {
	for _, conns := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("conns=%d", conns), func(b *testing.B) {
			s := openShop(b, engine.Options{})
			s.close()
			s.log.GenerationBytes = wal.DefaultGenerationBytes
			s.open()
			payload := make([]byte, 100)
			b.ReportAllocs()
			parallel(b, conns, func() func() {
				c := &engine.Enqueue{Queue: key("bench"), Payload: payload}
				return func() { s.must(c) }
			})
			report(b, s)
		})
	}
}

// BenchmarkCycle is enqueue, fetch with its body, and ack, each durable.
func BenchmarkCycle(b *testing.B) {
	for _, conns := range []int{1, 64} {
		b.Run(fmt.Sprintf("conns=%d", conns), func(b *testing.B) {
			s := openShop(b, engine.Options{})
			s.close()
			s.log.GenerationBytes = wal.DefaultGenerationBytes
			s.open()
			payload := make([]byte, 100)
			b.ReportAllocs()
			parallel(b, conns, func() func() {
				in := &engine.Enqueue{Queue: key("bench"), Payload: payload}
				out := &engine.Fetch{Queues: [][]byte{key("bench")}, LeaseMs: 60_000}
				ack := &engine.Ack{Leases: make([]state.LeaseID, 1)}
				return func() {
					s.must(in)
					s.must(out)
					for i := range out.Jobs {
						if err := s.e.Load(&out.Jobs[i]); err != nil {
							b.Error(err)
						}
						ack.Leases[0] = out.Jobs[i].Lease
						s.must(ack)
					}
				}
			})
			report(b, s)
		})
	}
}

// BenchmarkPipeline is 64 enqueues a submit.
func BenchmarkPipeline(b *testing.B) {
	s := openShop(b, engine.Options{})
	s.close()
	s.log.GenerationBytes = wal.DefaultGenerationBytes
	s.open()
	payload := make([]byte, 100)
	b.ReportAllocs()
	parallel(b, 16, func() func() {
		cmds := make([]engine.Command, 64)
		for i := range cmds {
			cmds[i] = &engine.Enqueue{Queue: key("bench"), Payload: payload}
		}
		return func() {
			if err := s.e.Do(cmds...); err != nil {
				b.Error(err)
			}
		}
	})
	report(b, s)
}

func parallel(b *testing.B, conns int, worker func() func()) {
	work := make(chan struct{}, conns)
	done := make(chan struct{})
	for range conns {
		step := worker()
		go func() {
			for range work {
				step()
			}
			done <- struct{}{}
		}()
	}
	b.ResetTimer()
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	for range conns {
		<-done
	}
	b.StopTimer()
}

func report(b *testing.B, s *shop) {
	n := s.e.Numbers()
	b.ReportMetric(float64(n.Records)/float64(max(n.Syncs, 1)), "records/sync")
	b.ReportMetric(float64(n.Syncs)/b.Elapsed().Seconds(), "syncs/s")
}
