package engine

import (
	"context"
	"time"

	"pawl/snapshot"
)

// A pace spreads the writing of a snapshot over time. At its full speed, the writer
// has one of two cores and most of what the disk does to itself, and what clients
// get done meanwhile is halved; nothing waits for a snapshot but the log, which
// must not grow much beyond what made it due. So it goes at Limits.SnapshotRate,
// unless the log has grown by a larger share of what makes the next one due than it
// has got done itself.
type pace struct {
	k     *keeper
	from  uint64    // bytes of log that had been written when it began
	whole int64     // bytes to write and to read back, about
	done  int64     // of these
	ready time.Time // when all that is done would be, at the rate
}

// beside is what a snapshot of meta is written beside.
func (e *Engine) beside(meta *snapshot.Meta) snapshot.Beside {
	const entry = 64 // bytes of a job in a snapshot
	k := &e.keeper
	p := &pace{k: k, from: k.written.Load(), whole: 2 * max(int64(meta.Jobs)*entry, k.newestSize.Load(), 1), ready: time.Now()}
	return snapshot.Beside{
		Durable: func(ctx context.Context) error { return e.waitDurable(ctx, LSN(meta.LSN)) },
		Pace:    p.pay,
	}
}

const (
	// shortestRest is how long a rest must be for a timer to be worth it.
	shortestRest = 2 * time.Millisecond
	// mostOwed bounds how much of the time that other things took, a slow disk or
	// a busy machine, a pace makes up for.
	mostOwed = 100 * time.Millisecond
)

// pay rests as long as n bytes more should have taken.
func (p *pace) pay(ctx context.Context, n int) {
	p.done += int64(n)
	now := time.Now()
	rate := p.k.e.limits.snapshotRate.Load()
	if rate == 0 || p.behind() {
		p.ready = now
		return
	}
	if early := now.Add(-mostOwed); p.ready.Before(early) {
		p.ready = early
	}
	p.ready = p.ready.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
	if rest := p.ready.Sub(now); rest >= shortestRest {
		sleep(ctx, rest)
	}
}

// behind says that the log gets on faster.
func (p *pace) behind() bool {
	grown := int64(p.k.written.Load() - p.from)
	return float64(grown)*float64(p.whole) > float64(p.done)*float64(p.k.snapshotEvery())
}
