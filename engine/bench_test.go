package engine_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

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

// BenchmarkMass is what the longest turns take in processor time when 100,000
// times to live, or delays, or leases are over at once.
func BenchmarkMass(b *testing.B) {
	const jobs = 100_000
	runtime.LockOSThread() // so that its processor time is that of the turns
	defer runtime.UnlockOSThread()
	for _, what := range []string{"ttl", "delay", "lease"} {
		b.Run(what, func(b *testing.B) {
			var most, p9999, count float64
			for b.Loop() {
				b.StopTimer()
				s := openShop(b, engine.Options{MeasureCPU: true})
				s.close()
				s.log.GenerationBytes = wal.DefaultGenerationBytes
				s.open()
				began := time.Now()
				left := func() state.Millis { return 20_000 - state.Millis(time.Since(began)/time.Millisecond) }
				batch := make([]engine.Command, 100)
				for range jobs / len(batch) {
					for i := range batch {
						c := &engine.Enqueue{Queue: key("mass"), Payload: []byte("x")}
						switch what {
						case "ttl":
							c.TTL = engine.Some(left())
						case "delay":
							c.Delay = left()
						}
						batch[i] = c
					}
					s.must(&engine.Multi{Commands: batch})
					if what == "lease" {
						s.must(&engine.Fetch{Queues: [][]byte{key("mass")}, LeaseMs: left(), Count: len(batch)})
					}
				}
				time.Sleep(time.Until(began.Add(20 * time.Second)))
				before := s.e.Histograms().TurnCPUSeconds
				b.StartTimer()
				for {
					next, never := s.e.Turn()
					if never || next > time.Second {
						break
					}
				}
				h := s.e.Histograms().TurnCPUSeconds.Since(before)
				most, p9999, count = max(most, h.Quantile(1)), max(p9999, h.Quantile(0.99)), float64(h.Count)
				s.close()
			}
			b.ReportMetric(most*1000, "max-ms")
			b.ReportMetric(p9999*1000, "p99-ms")
			b.ReportMetric(count, "turns")
		})
	}
}

// BenchmarkCensus is a copy of the table of queues, whose names are in no order,
// and what the dashboard samples of it.
func BenchmarkCensus(b *testing.B) {
	for _, queues := range []int{1000, 100_000} {
		s := openShop(b, engine.Options{})
		for at := 0; at < queues; at += 1000 {
			pauses := make([]engine.Command, 1000)
			for i := range pauses {
				pauses[i] = &engine.QueuePause{Queue: key(fmt.Sprintf("q-%d", (at+i)*7919%queues))}
			}
			if err := s.e.Do(pauses...); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("all/queues=%d", queues), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.e.ForgetCensus()
				s.e.Census()
			}
		})
		b.Run(fmt.Sprintf("some/queues=%d", queues), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.e.SomeQueues(1000)
			}
		})
	}
}
