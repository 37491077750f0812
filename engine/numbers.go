package engine

import (
	"runtime"
	"time"

	"pawl/state"
)

// tally counts what only the engine sees. Guarded by the critical section.
type tally struct {
	refused, duplicates, records, steps uint64
}

// Numbers reads them. What the critical section guards is at most as old as
// the last group when it is taken all the time; the rest is of now.
func (e *Engine) Numbers() Numbers {
	var n Numbers
	for range 8 {
		if e.mu.TryLock() {
			e.publish()
			e.mu.Unlock()
			break
		}
		runtime.Gosched()
	}
	if p := e.published.Load(); p != nil {
		n = *p
	}
	log := e.log.Stats()
	k := &e.keeper
	n.Waiting = e.waiters.count.Load()
	n.DurableLSN = LSN(e.commits.safe.Load())
	n.Groups, n.Records, n.Syncs, n.LogBytesWritten = log.Groups, log.Records, log.Syncs, log.Bytes
	n.LogBytes = log.DiskBytes
	n.Generations = int64(len(e.log.Generations()))
	n.OldestUnsyncedMs = e.oldestUnsynced().Milliseconds()
	n.SnapshotLSN = LSN(k.snapshotLSN.Load())
	n.SnapshotAt = state.Millis(k.snapshotAt.Load())
	n.SnapshotMs = k.snapshotMs.Load()
	n.SnapshotBytesWritten, n.ZeroBytesWritten = k.snapshotted.Load(), log.ZeroBytes
	n.SnapshotFailures = k.failures.Load()
	n.Snapshotting = k.writing.Load()
	n.Full = e.full.Load()
	n.DiskFree = k.free.Load()
	n.DamagedBodies = e.damaged.Load()
	n.CleanedBytes = k.cleaned.Load()
	n.CutBytes = e.start.End.Cut
	n.RecoveredMs = e.start.Recovered.Milliseconds()
	return n
}

// publish copies what the critical section guards to where nobody waits for it.
func (e *Engine) publish() {
	counts, totals, was := e.st.Counts(), e.st.Totals(), &e.began
	n := &Numbers{
		QueueCount: int64(counts.Queues), GroupCount: int64(counts.Groups),
		Enqueued: totals.Enqueued - was.Enqueued, Delivered: totals.Delivered - was.Delivered, Acked: totals.Acked - was.Acked,
		Nacked: totals.Nacked - was.Nacked, Released: totals.Released - was.Released, Expired: totals.Expired - was.Expired,
		Dead: totals.Dead - was.Dead, Deleted: totals.Deleted - was.Deleted, Lapsed: totals.Lapsed - was.Lapsed,
		Duplicates: e.tally.duplicates, Refused: e.tally.refused, ClockSteps: e.tally.steps,
		AppliedLSN: e.last, Draining: e.st.Draining(), MemoryBytes: int64(counts.Memory),
	}
	for place, jobs := range counts.Jobs {
		n.Jobs[place] = int64(jobs)
	}
	for _, l := range e.st.Lives() {
		n.LiveBytes += int64(l.Bytes)
	}
	e.published.Store(n)
	e.publishedAt = e.now
}

// publishEvery is how old published numbers may be while the critical section is
// busy, in milliseconds.
const publishEvery state.Millis = 200

// oldestUnsynced is how long the write under way has taken so far.
func (e *Engine) oldestUnsynced() time.Duration {
	since := e.commits.began.Load()
	if since == 0 {
		return 0
	}
	return max(0, time.Since(e.clock.start)-time.Duration(since))
}

// Histograms reads the distributions.
func (e *Engine) Histograms() Histograms {
	return Histograms{
		SyncSeconds:  e.syncTime.view(1e-5),
		GroupRecords: e.groupRecords.view(1),
		GroupBytes:   e.groupBytes.view(1),
		WaitSeconds:  e.waitTime.view(1e-3),
		RunSeconds:   e.runTime.view(1e-3),
		TurnSeconds:  e.turnTime.view(1e-6),

		TurnCPUSeconds: e.turnCPU.view(1e-6),
		LateSeconds:    e.lateTime.view(1e-6),
		LessOwnSync:    e.lessOwn.view(1e-9),
		LessAllSyncs:   e.lessAll.view(1e-9),
	}
}

// Numbers are counters and gauges of the engine and its log since it opened.
// Reading them never waits for the disk or the critical section.
type Numbers struct {
	Jobs                         [5]int64 // by Place
	QueueCount, GroupCount       int64
	Waiting                      int64 // blocked fetchers
	Enqueued, Delivered, Acked   uint64
	Nacked, Released, Expired    uint64
	Dead, Deleted, Lapsed        uint64
	Duplicates, Refused          uint64
	AppliedLSN, DurableLSN       LSN
	Groups, Records, Syncs       uint64
	LogBytesWritten              uint64
	ZeroBytesWritten             uint64 // of generations, before there is anything in them
	SnapshotBytesWritten         uint64
	LogBytes, LiveBytes          int64 // on disk; of bodies of existing jobs
	Generations                  int64
	OldestUnsyncedMs             int64
	SnapshotLSN                  LSN
	SnapshotAt                   state.Millis // wall; 0 is none since the start
	SnapshotMs                   int64        // how long the last one took
	SnapshotFailures             uint64
	Snapshotting, Full, Draining bool
	DiskFree                     int64
	MemoryBytes                  int64 // of the state
	DamagedBodies, CleanedBytes  uint64
	ClockSteps                   uint64
	CutBytes                     int64 // at the last start
	RecoveredMs                  int64
}
