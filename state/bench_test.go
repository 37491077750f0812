package state_test

import (
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

// What a plain waiting job costs, without and with a TTL.
func BenchmarkMemory(b *testing.B) {
	for name, expires := range map[string]state.Millis{"plain": 0, "ttl": 1 << 40} {
		b.Run(name, func(b *testing.B) {
			const jobs = 1_000_000
			for b.Loop() {
				before := heap()
				n := newBench(b)
				for i := range jobs {
					e := expires
					if e != 0 {
						e += state.Millis(i * 7919 % jobs)
					}
					n.enqueue(e)
				}
				b.ReportMetric(float64(heap()-before)/jobs, "bytes/job")
				b.ReportMetric(float64(n.Counts().Memory)/jobs, "estimated-bytes/job")
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

// Writing and loading a million jobs, and what a View costs its owner.
func BenchmarkSnapshot(b *testing.B) {
	n := newBench(b)
	for i := range 1_000_000 {
		n.enqueue(state.Millis(1<<40 + i*7919%1_000_000))
	}
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			n.Release(n.View())
		}
	})
	b.Run("write", func(b *testing.B) {
		v := n.View()
		defer n.Release(v)
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
		for b.Loop() {
			r, w := io.Pipe()
			go func() { _, err := v.WriteTo(w); w.CloseWithError(err) }()
			if _, err := state.Load(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
