package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pawl/engine"
	"pawl/state"
	"pawl/wal"
)

// BenchmarkStays is how much processor time a stay in the critical section uses
// between two looks at the clock, which is what it goes on for after its time, while a
// snapshot has a view of two million jobs. Only a transaction does all at one go. The
// jobs of a FETCH or an ACK lie each on a page of its own.
func BenchmarkStays(b *testing.B) {
	const jobs = 2_000_000
	s := openShop(b, engine.Options{MeasureCPU: true})
	s.close()
	s.log.GenerationBytes = wal.DefaultGenerationBytes
	s.open()
	batch := make([]engine.Command, 0, 1024)
	enqueue := func(n int, c func() *engine.Enqueue) []engine.Command {
		batch = batch[:0]
		for range n {
			batch = append(batch, c())
		}
		return batch
	}
	plain := func() *engine.Enqueue {
		return &engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Priority: int8(rand.IntN(256) - 128)}
	}
	for range jobs / 1000 {
		if err := s.e.Do(enqueue(1000, plain)...); err != nil {
			b.Fatal(err)
		}
	}
	debug.SetGCPercent(16) // as a daemon with so much in memory does
	fetch := func(n int) []state.LeaseID {
		c := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 600_000, Count: n}
		s.must(c)
		leases := make([]state.LeaseID, len(c.Jobs))
		for i := range leases {
			leases[i] = c.Jobs[i].Lease
		}
		return leases
	}
	serial := 0
	name := func(what string) string { serial++; return fmt.Sprint(what, serial) }
	for _, test := range []struct {
		what    string
		prepare func() []engine.Command
	}{
		{"enqueue", func() []engine.Command { return enqueue(256, plain) }},
		{"enqueue-delay", func() []engine.Command {
			return enqueue(256, func() *engine.Enqueue {
				c := plain()
				c.Delay = state.Millis(1_000_000 + rand.IntN(1_000_000))
				return c
			})
		}},
		{"enqueue-queue", func() []engine.Command {
			return enqueue(256, func() *engine.Enqueue { return &engine.Enqueue{Queue: key(name("new")), Payload: []byte("x")} })
		}},
		{"enqueue-unique", func() []engine.Command {
			return enqueue(256, func() *engine.Enqueue { c := plain(); c.Unique = []byte(name("key")); return c })
		}},
		{"enqueue-group", func() []engine.Command {
			return enqueue(256, func() *engine.Enqueue { c := plain(); c.Group = []byte(name("group")); return c })
		}},
		{"fetch", func() []engine.Command {
			return []engine.Command{&engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 600_000, Count: 1000}}
		}},
		{"ack", func() []engine.Command { return []engine.Command{&engine.Ack{Leases: fetch(1000)}} }},
		{"multi", func() []engine.Command {
			return []engine.Command{&engine.Multi{Commands: enqueue(1000, plain)}}
		}},
		{"multi-ack", func() []engine.Command {
			leases := fetch(1000)
			batch = batch[:0]
			for _, l := range leases {
				batch = append(batch, &engine.Ack{Leases: []state.LeaseID{l}})
			}
			return []engine.Command{&engine.Multi{Commands: batch}}
		}},
		{"multi-acks", func() []engine.Command {
			return []engine.Command{&engine.Multi{Commands: []engine.Command{&engine.Ack{Leases: fetch(1000)}}}}
		}},
	} {
		b.Run(test.what, func(b *testing.B) {
			runtime.LockOSThread() // so that its processor time is that of the stays
			defer runtime.UnlockOSThread()
			var all []time.Duration
			var last time.Duration
			measuring, thread := false, unix.Gettid()
			s.e.Elapse(func(began time.Time) time.Duration {
				if unix.Gettid() == thread && measuring { // not a stay of the keeper
					now := engine.ThreadCPU()
					all = append(all, now-last)
					last = now
				}
				return time.Since(began)
			})
			defer s.e.Elapse(nil)
			for range b.N {
				cmds := test.prepare()
				letGo := s.e.HoldView()
				last, measuring = engine.ThreadCPU(), true
				lsn := s.e.Submit(cmds...)
				measuring = false
				if err := s.e.Wait(lsn); err != nil || cmds[0].Err() != nil {
					b.Fatal(err, cmds[0].Err())
				}
				letGo()
			}
			reportLooks(b, all)
		})
	}
}

// reportLooks reports the longest of what was done between two looks at the clock.
func reportLooks(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	at := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() * 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(1), "max-ms")
	b.ReportMetric(float64(len(all))/float64(b.N), "looks/op")
	b.ReportMetric(0, "ns/op")
}
