package state_test

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"pawl/state"
)

// bench is a state with one queue, and records on their way to it.
type bench struct {
	*state.State
	b   *testing.B
	now state.Millis
	buf []byte
	seq uint64
}

func newBench(b *testing.B) *bench {
	n := &bench{State: state.New(), b: b, now: 1_000_000}
	n.apply(&state.Record{Kind: state.KindQueue, Queue: 1, Text: []byte("default/default/mail")}, state.Body{})
	return n
}

// apply also pays for writing and reading the record, as a daemon does that is
// alive and one that replays.
func (n *bench) apply(r *state.Record, body state.Body) {
	n.buf = r.AppendHead(n.buf[:0])
	if err := n.Apply(r, body, n.now); err != nil {
		n.b.Fatal(err)
	}
}

func (n *bench) enqueue(expires state.Millis) {
	slot, _ := n.NextSlot()
	n.apply(&state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: 1, Born: n.now, Overhead: 2, Expires: expires},
		state.Body{Generation: 1, Offset: uint32(slot), Length: 102, Checksum: uint32(slot)})
}

func (n *bench) lease() state.Slot {
	slot, _ := n.NextReady(1, n.now)
	n.seq++
	nonce := state.Nonce{byte(n.seq), byte(n.seq >> 8), byte(n.seq >> 16)}
	n.apply(&state.Record{Kind: state.KindLease, Slot: slot, Nonce: nonce, At: n.now + 30_000}, state.Body{})
	return slot
}

// A job's whole life, with 0, 10⁴ and 10⁶ others waiting.
func BenchmarkEnqueueLeaseAck(b *testing.B) {
	for name, waiting := range map[string]int{"empty": 0, "10k": 10_000, "1M": 1_000_000} {
		b.Run(name, func(b *testing.B) {
			n := newBench(b)
			for range waiting {
				n.enqueue(0)
			}
			b.ReportAllocs()
			for b.Loop() {
				n.now++
				n.enqueue(0)
				slot := n.lease()
				n.apply(&state.Record{Kind: state.KindAck, Slot: slot}, state.Body{})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
		})
	}
}

// What one more of each costs: jobs that wait, plain, with a TTL, delayed, leased,
// with a unique key; a queue with one job, and with a hundred, less the jobs; a
// group with a job; a queue that has nothing.
func BenchmarkMemory(b *testing.B) {
	const jobs = 1_000_000
	later := func(i int) state.Millis { return 1<<40 + state.Millis(i*7919%jobs) }
	key := func(i int) state.Key {
		return state.Key{byte(i), byte(i >> 8), byte(i >> 16), 1}
	}
	plain := func(int, *state.Record) {}
	for _, test := range []struct {
		name    string
		n       int // of what is measured
		queues  int // jobs are spread over so many
		jobs    int
		change  func(i int, r *state.Record)
		lease   bool
		without float64 // bytes per job that are not counted
	}{
		{"plain job", jobs, 1, jobs, plain, false, 0},
		{"job with TTL", jobs, 1, jobs, func(i int, r *state.Record) { r.Expires = later(i) }, false, 0},
		{"delayed job", jobs, 1, jobs, func(i int, r *state.Record) { r.At = later(i) }, false, 0},
		{"leased job", jobs / 10, 1, jobs / 10, plain, true, 0},
		{"job with unique key", jobs, 1, jobs, func(i int, r *state.Record) { r.Unique, r.Window = key(i), 1 }, false, 0},
		{"ready job of 10000 queues", jobs, 10_000, jobs, plain, false, 0},
		{"queue", 10_000, 10_000, jobs, plain, false, 64},
		{"empty queue", 100_000, 100_000, 0, plain, false, 0},
		{"group", 100_000, 1, 100_000, func(i int, r *state.Record) { r.Group = key(i) }, false, 64},
	} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				n := newBench(b)
				for q := 2; q <= test.queues; q++ {
					n.apply(&state.Record{Kind: state.KindQueue, Queue: state.QueueID(q), Text: fmt.Appendf(nil, "default/default/mail-%d", q)}, state.Body{})
				}
				for i := range test.jobs {
					slot, _ := n.NextSlot()
					r := state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: state.QueueID(1 + i%test.queues), Born: n.now}
					test.change(i, &r)
					n.apply(&r, state.Body{Generation: 1, Offset: uint32(slot), Length: 102, Checksum: uint32(slot)})
					if test.lease {
						n.lease()
					}
				}
				each := func(all uint64) float64 { return (float64(all) - test.without*float64(test.jobs)) / float64(test.n) }
				b.ReportMetric(each(heap()-before), "bytes/each")
				b.ReportMetric(each(n.Counts().Memory), "estimated-bytes/each")
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Writing and loading a million jobs, what a View costs its owner, and the same when
// the jobs are gone.
func BenchmarkSnapshot(b *testing.B) {
	n := newBench(b)
	const jobs = 1_000_000
	for i := range jobs {
		n.enqueue(state.Millis(1<<40 + i*7919%jobs))
	}
	benchSnapshot(b, n)
	for i := range jobs {
		n.apply(&state.Record{Kind: state.KindDelete, Slot: state.Slot(1 + i), Cause: state.CauseDelete}, state.Body{})
	}
	b.Run("gone", func(b *testing.B) { benchSnapshot(b, n) })
}

func benchSnapshot(b *testing.B, n *bench) {
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			n.Release(n.View())
		}
	})
	b.Run("write", func(b *testing.B) {
		v := n.View()
		defer n.Release(v)
		b.ReportAllocs()
		for b.Loop() {
			size, err := v.WriteTo(io.Discard)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(size)
		}
	})
	b.Run("load", func(b *testing.B) {
		v := n.View()
		defer n.Release(v)
		b.ReportAllocs()
		for b.Loop() {
			r, w := io.Pipe()
			go func() { _, err := v.WriteTo(w); w.CloseWithError(err) }()
			if _, err := state.Load(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
