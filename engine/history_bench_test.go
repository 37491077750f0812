package engine_test

import (
	"testing"

	"pawl/engine"
	"pawl/wal"
)

// BenchmarkJobHistory looks for a job of 128 MiB of log before, of other jobs'
// lives of 100 bytes each.
func BenchmarkJobHistory(b *testing.B) {
	s := openShop(b, engine.Options{SnapshotBytes: 256 << 20})
	s.close()
	s.log.GenerationBytes, s.log.Sync = wal.DefaultGenerationBytes, wal.SyncNever
	s.open()
	id := s.enqueue("mail", "looked for")
	batch := make([]engine.Command, 512)
	for i := range batch {
		batch[i] = &engine.Enqueue{Queue: key("others"), Payload: make([]byte, 100)}
	}
	for s.e.Numbers().LogBytesWritten < 128<<20 {
		s.must(&engine.Multi{Commands: batch})
		fetch := &engine.Fetch{Queues: [][]byte{key("others")}, LeaseMs: 60_000, Count: len(batch)}
		s.must(fetch)
		ack := &engine.Ack{}
		for _, d := range fetch.Jobs {
			ack.Leases = append(ack.Leases, d.Lease)
		}
		s.must(ack)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := s.e.JobHistory(b.Context(), id, 0)
		if err != nil || len(h.Events) != 1 {
			b.Fatalf("got %+v, %v", h, err)
		}
		b.SetBytes(h.Bytes)
	}
}
