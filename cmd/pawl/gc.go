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

	// gcTuneEvery must be short beside the time in which a heap can grow by some
	// of the budget: the old percentage of a heap that has grown is far too much.
	gcTuneEvery = 100 * time.Millisecond
)

// gcPercent is Go's setting that comes to the budget with this much live.
func gcPercent(live uint64) int {
	return int(min(max(garbageBudget*100/max(live, 1), minGCPercent), maxGCPercent))
}

// tuneGC follows the live heap until ctx ends. Whoever sets GOGC has decided
// otherwise.
func tuneGC(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := maxGCPercent
	before := debug.SetGCPercent(percent)
	defer debug.SetGCPercent(before)
	ticker := time.NewTicker(gcTuneEvery)
	defer ticker.Stop()
	for {
		// A change stops all goroutines for a moment: only for a tenth or more.
		metrics.Read(sample)
		if want := gcPercent(sample[0].Value.Uint64()); want*10 < percent*9 || want*10 > percent*11 {
			debug.SetGCPercent(want)
			percent = want
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
