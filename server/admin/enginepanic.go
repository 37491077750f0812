package admin

import (
	"context"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/state"
)

// guarded is an engine whose panics end the process, as on the other edges:
// where one passes through the engine the state may be half changed and its
// locks held, and net/http would catch it and go on serving from that.
type guarded struct {
	lmstfy.Engine        // guarded by its own package
	whole         Engine // for what that lacks
}

func (g guarded) Forget(d *engine.Delivery) {
	defer engine.EndOnPanic()
	g.whole.Forget(d)
}

func (g guarded) Snapshot(ctx context.Context) error {
	defer engine.EndOnPanic()
	return g.whole.Snapshot(ctx)
}

func (g guarded) JobHistory(ctx context.Context, id state.JobID, from engine.LSN) (engine.JobHistory, error) {
	defer engine.EndOnPanic()
	return g.whole.JobHistory(ctx, id, from)
}

func (g guarded) Numbers() engine.Numbers {
	defer engine.EndOnPanic()
	return g.whole.Numbers()
}

func (g guarded) SomeQueues(n int) []engine.QueueView {
	defer engine.EndOnPanic()
	return g.whole.SomeQueues(n)
}

func (g guarded) Histograms() engine.Histograms {
	defer engine.EndOnPanic()
	return g.whole.Histograms()
}

func (g guarded) Failure() error {
	defer engine.EndOnPanic()
	return g.whole.Failure()
}
