package recovery_test

import (
	"flag"
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
// delayed or ready: those in a snapshot, and those in the log behind it.
func manyJobs(b *testing.B, delayed bool, inSnapshot, inLog int) string {
	b.Helper()
	dir := b.TempDir()
	store, err := recovery.Open(b.Context(), options(vfs.OS{}, dir))
	must(b, err)
	log, err := wal.Begin(wal.Options{Dir: store.LogDir(), Sync: wal.SyncNever, Foreground: true}, store.End)
	must(b, err)
	w := &world{fs: vfs.OS{}, dir: dir, store: store, log: log, st: store.State, past: newPast(), wall: 1_700_000_000_000}
	queue := w.st.NextQueue()
	w.st.BeginReplay() // ten million would take minutes one by one
	enqueueMany(b, w, inSnapshot, delayed, &state.Record{Kind: state.KindQueue, Queue: queue, Text: []byte("default/default/q")})
	w.st.EndReplay()
	if inSnapshot > 0 {
		must(b, w.snapshot())
	}
	enqueueMany(b, w, inLog, delayed)
	must(b, w.close())
	return dir
}

// enqueueMany puts jobs into queue 1, behind the records that come first.
func enqueueMany(b *testing.B, w *world, jobs int, delayed bool, first ...*state.Record) {
	body := make([]byte, 100)
	var head []byte
	for done := 0; done < jobs || len(first) > 0; {
		g, err := w.log.Open(1000)
		must(b, err)
		for ; len(first) > 0; first = first[1:] {
			r := first[0]
			must(b, w.st.Apply(r, state.Body(g.Add(r.AppendHead(head[:0]), nil)), 0))
		}
		for !g.Full() && done < jobs && g.Fits(1000) {
			slot, _ := w.st.NextSlot()
			r := state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: 1, Born: w.wall}
			if delayed {
				r.At = w.wall + 1 + state.Millis(uint32(slot)*2654435761)>>4 // in no order
			}
			head = r.AppendHead(head[:0])
			must(b, w.st.Apply(&r, state.Body(g.Add(head, body)), 0))
			done++
		}
		w.log.Seal(g, 0, int64(w.wall))
		must(b, w.log.Commit(g))
		w.past.acked = uint64(g.LSN())
		w.past.dumps[w.past.acked] = ""
	}
}

var startJobs = flag.Int("start-jobs", 1_000_000, "of BenchmarkStart: jobs in the snapshot")

// BenchmarkStart is a restart with many jobs in a snapshot and behind it as much
// log as a daemon lets there be, and with a million jobs in the log alone.
func BenchmarkStart(b *testing.B) {
	const tail = 430_000
	for _, tt := range []struct {
		name          string
		delayed       bool
		snapshot, log int
	}{
		{"ready/snapshot", false, *startJobs, tail}, {"ready/log", false, 0, 1_000_000},
		{"delayed/snapshot", true, *startJobs, tail}, {"delayed/log", true, 0, 1_000_000},
	} {
		b.Run(tt.name, func(b *testing.B) {
			dir := manyJobs(b, tt.delayed, tt.snapshot, tt.log)
			opt := options(vfs.OS{}, dir)
			opt.VerifyBodies = -1
			b.ReportAllocs()
			for b.Loop() {
				store, err := recovery.Open(b.Context(), opt)
				must(b, err)
				must(b, store.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tt.snapshot+tt.log), "ns/job")
		})
	}
	b.Run("bodies", func(b *testing.B) {
		const jobs = 1_000_000
		dir := manyJobs(b, false, jobs, 0)
		for b.Loop() {
			store, err := recovery.Open(b.Context(), options(vfs.OS{}, dir))
			must(b, err)
			must(b, store.Close())
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/jobs, "ns/job")
	})
}
