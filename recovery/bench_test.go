package recovery_test

import (
	"testing"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/state"
	"pawl/wal"
)

// BenchmarkOpenSmall is the start of a store of some dozen jobs in memory: what
// the tests that try thousands of damages pay for each.
func BenchmarkOpenSmall(b *testing.B) {
	disk, _ := cleanStore(b, 20, 2, 8)
	b.ReportAllocs()
	for b.Loop() {
		d := disk.Kill()
		store, err := recovery.Open(t0, options(d, "/store"))
		must(b, err)
		must(b, store.Close())
	}
}

// manyJobs is a store on the real file system with so many jobs of 100 bytes,
// delayed or ready, and a snapshot of them if wanted.
func manyJobs(b *testing.B, jobs int, delayed, snapshot bool) string {
	b.Helper()
	dir := b.TempDir()
	store, err := recovery.Open(b.Context(), options(vfs.OS{}, dir))
	must(b, err)
	log, err := wal.Begin(wal.Options{Dir: store.LogDir(), Sync: wal.SyncNever, Foreground: true}, store.End)
	must(b, err)
	w := &world{fs: vfs.OS{}, dir: dir, store: store, log: log, st: store.State, past: newPast(), wall: 1_700_000_000_000}
	body := make([]byte, 100)
	queue := state.Record{Kind: state.KindQueue, Queue: w.st.NextQueue(), Text: []byte("default/default/q")}
	records := []*state.Record{&queue}
	var head []byte
	for done := 0; done < jobs; {
		g, err := log.Open(1000)
		must(b, err)
		for !g.Full() && done < jobs && g.Fits(1000) {
			for _, r := range records {
				must(b, w.st.Apply(r, state.Body(g.Add(r.AppendHead(head[:0]), nil)), 0))
			}
			records = nil
			slot, _ := w.st.NextSlot()
			r := state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: queue.Queue, Born: w.wall}
			if delayed {
				r.At = w.wall + 1 + state.Millis(uint32(done)*2654435761)>>4 // in no order
			}
			head = r.AppendHead(head[:0])
			must(b, w.st.Apply(&r, state.Body(g.Add(head, body)), 0))
			done++
		}
		log.Seal(g, 0, int64(w.wall))
		must(b, log.Commit(g))
		w.past.acked = uint64(g.LSN())
		w.past.dumps[w.past.acked] = ""
	}
	if snapshot {
		must(b, w.snapshot())
	}
	must(b, w.close())
	return dir
}

// BenchmarkStart is a restart with a million jobs, in a snapshot or in the log.
func BenchmarkStart(b *testing.B) {
	const jobs = 1_000_000
	for _, tt := range []struct {
		name              string
		delayed, snapshot bool
	}{{"ready/snapshot", false, true}, {"ready/log", false, false}, {"delayed/snapshot", true, true}, {"delayed/log", true, false}} {
		b.Run(tt.name, func(b *testing.B) {
			dir := manyJobs(b, jobs, tt.delayed, tt.snapshot)
			opt := options(vfs.OS{}, dir)
			opt.VerifyBodies = -1
			b.ReportAllocs()
			for b.Loop() {
				store, err := recovery.Open(b.Context(), opt)
				must(b, err)
				must(b, store.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/jobs, "ns/job")
		})
	}
	b.Run("bodies", func(b *testing.B) {
		dir := manyJobs(b, jobs, false, true)
		for b.Loop() {
			store, err := recovery.Open(b.Context(), options(vfs.OS{}, dir))
			must(b, err)
			must(b, store.Close())
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/jobs, "ns/job")
	})
}
