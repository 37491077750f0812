package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pawl/snapshot"
)

// A snapshot of so many jobs takes as long as its rate says, and no longer where
// the log gets on faster, where there is no rate, or where nobody waits any more.
func TestPace(t *testing.T) {
	const (
		jobs = 1 << 20 // 64 MiB, twice
		rate = 16 << 20
		step = 256 << 10
		due  = 64 << 20 // bytes of log
	)
	for _, c := range []struct {
		name string
		rate int64
		log  float64 // bytes of log by those of the snapshot, all through
		ends time.Duration
		want time.Duration
	}{
		{"a quiet log", rate, 0, 0, 8 * time.Second},
		{"a log that gets on as fast", rate, 0.5, 0, 8 * time.Second},
		{"a log that gets on faster", rate, 0.51, 0, 0},
		{"no rate", 0, 0, 0, 0},
		{"stopped", rate, 0, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Engine{}
				e.keeper.init(e)
				defer e.keeper.cancel()
				e.limits.snapshotBytes.Store(due)
				e.limits.snapshotRate.Store(c.rate)
				e.keeper.written.Store(10 * due) // what is written before it begins counts for nothing
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.ends > 0 {
					time.AfterFunc(c.ends, cancel)
				}
				beside := e.beside(&snapshot.Meta{Jobs: jobs})
				began := time.Now()
				for range 2 * 64 << 20 / step {
					e.keeper.written.Add(uint64(c.log * step))
					beside.Pace(ctx, step)
				}
				if took := time.Since(began).Round(10 * time.Millisecond); took != c.want {
					t.Errorf("took %v, want %v", took, c.want)
				}
			})
		})
	}
}

// What other things took is made up for, but not without bounds; and a new rate
// holds at once.
func TestPaceMakesUpForLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{}
		e.keeper.init(e)
		defer e.keeper.cancel()
		e.limits.snapshotBytes.Store(64 << 20)
		e.limits.snapshotRate.Store(1 << 20)
		pay := e.beside(&snapshot.Meta{Jobs: 1 << 20}).Pace
		takes := func(bytes int, want time.Duration) {
			t.Helper()
			began := time.Now()
			pay(t.Context(), bytes)
			if took := time.Since(began); took != want {
				t.Errorf("%d bytes took %v, want %v", bytes, took, want)
			}
		}
		takes(1<<19, 500*time.Millisecond)
		time.Sleep(time.Hour)
		takes(1<<19, 400*time.Millisecond)
		takes(1<<10, 0) // too short for a timer, and owed
		takes(1<<19, 500*time.Millisecond+time.Second/1024)
		e.limits.snapshotRate.Store(2 << 20)
		takes(1<<19, 250*time.Millisecond)
	})
}
