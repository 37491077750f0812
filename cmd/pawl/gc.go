package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Garbage is collected when this much has come up since the last time, however
// large the index of jobs is: that index holds no pointers, so a collection
// costs next to nothing more for it, while a percentage of it, which is Go's
// rule, would let a daemon of ten million jobs keep most of a gigabyte of
// garbage, and one of a hundred jobs collect a hundred times a second.
const (
	garbageBudget = 32 << 20
	minGCPercent  = 4
	maxGCPercent  = 800
	// startGCPercent is the least during a start. What comes up then stays, and was
	// looked through again and again at every few percent of it.
	startGCPercent = 100

	// gcTuneEvery must be short beside the time in which a heap can grow by some
	// of the budget: the old percentage of a heap that has grown is far too much.
	gcTuneEvery = 100 * time.Millisecond
)

// gcPercent is Go's setting that comes to the budget with this much live.
func gcPercent(live uint64, starting bool) int {
	least := uint64(minGCPercent)
	if starting {
		least = startGCPercent
	}
	return int(min(max(garbageBudget*100/max(live, 1), least), maxGCPercent))
}

// Memory that is free goes back to the system by itself, but slowly: the runtime
// spends a hundredth of one processor on it, looks at it only after a collection, and
// a daemon that does little collects every two minutes. So when a backlog has gone,
// and much more is free than this, or a part in freeShare of what is live, for
// freeFor, all of it is given back at once. Garbage that comes up again and again is
// less than that.
const (
	freeBytes = 2 * garbageBudget
	freeShare = 16
	freeFor   = 20 * time.Second
)

// surplus notices that so much was free for so long.
type surplus struct{ since time.Time }

// lasts is told how many bytes are live and how many free, now.
func (s *surplus) lasts(now time.Time, live, free uint64) bool {
	switch {
	case free <= max(freeBytes, live/freeShare):
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = now
	case now.Sub(s.since) >= freeFor:
		s.since = time.Time{}
		return true
	}
	return false
}

// tuneGC follows the live heap until ctx ends; the start is over when started is
// closed. Whoever sets GOGC has decided otherwise.
func tuneGC(ctx context.Context, started <-chan struct{}) {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	var free surplus
	percent := maxGCPercent
	before := debug.SetGCPercent(percent)
	defer debug.SetGCPercent(before)
	ticker := time.NewTicker(gcTuneEvery)
	defer ticker.Stop()
	starting := true
	for {
		// A change stops all goroutines for a moment: only for a tenth or more.
		metrics.Read(sample)
		live := sample[0].Value.Uint64()
		if want := gcPercent(live, starting); want*10 < percent*9 || want*10 > percent*11 {
			debug.SetGCPercent(want)
			percent = want
		}
		if free.lasts(time.Now(), live, sample[1].Value.Uint64()) {
			debug.FreeOSMemory()
		}
		select {
		case <-ctx.Done():
			return
		case <-started:
			started, starting = nil, false
			debug.FreeOSMemory() // what only the start needed
		case <-ticker.C:
		}
	}
}
