// Package reaper ends what time ends: leases that ran out, delays that are
// over, jobs past their time to live, pauses, recurring enqueues. It knows when
// the next of them is due and nothing else; what that means is the engine's.
//
// It sleeps until the engine wants it, which is at the earliest deadline, or before
// to look whether the clock was set. An engine whose earliest deadline moves
// forward says so on the channel Wake gives.
//
//	r := reaper.New(engine)
//	err := r.Run(ctx) // until ctx ends
package reaper

import (
	"context"
	"time"
)

// Timekeeper is the engine as the reaper sees it.
type Timekeeper interface {
	// Turn does what is due now, for half a millisecond or so, and says how
	// long until there is more to do; never is for nothing at all. A turn that
	// left work behind answers how long it must rest, so that mass endings
	// leave most of the time to the clients.
	Turn() (next time.Duration, never bool)
	// Wake receives when the next turn is due earlier than the last one said.
	Wake() <-chan struct{}
}

// Reaper runs turns when they are due.
type Reaper struct{ engine Timekeeper }

// New makes a reaper for one engine. Nothing happens before Run.
func New(engine Timekeeper) *Reaper { return &Reaper{engine} }

// Run takes turns until ctx ends, and returns its error. It blocks, and leaves
// nothing behind.
func (r *Reaper) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-r.engine.Wake():
		}
		next, never := r.engine.Turn()
		if never {
			timer.Stop()
			continue
		}
		timer.Reset(max(next, 0))
	}
}
