package lmstfy

import (
	"context"

	"pawl/engine"
)

// guarded is an engine whose panics end the process. Where one passes through
// the engine, the state may be half changed and its locks held; net/http would
// catch it and go on serving from that.
type guarded struct{ Engine }

// Guard is e with panics that end the process.
func Guard(e Engine) Engine { return guarded{e} }

func (g guarded) Submit(cmds ...engine.Command) engine.LSN {
	defer engine.EndOnPanic()
	return g.Engine.Submit(cmds...)
}

func (g guarded) Wait(lsn engine.LSN) error {
	defer engine.EndOnPanic()
	return g.Engine.Wait(lsn)
}

func (g guarded) Await(f *engine.Fetch) (*engine.Waiter, engine.LSN) {
	defer engine.EndOnPanic()
	return g.Engine.Await(f)
}

func (g guarded) Cancel(w *engine.Waiter) bool {
	defer engine.EndOnPanic()
	return g.Engine.Cancel(w)
}

func (g guarded) Load(d *engine.Delivery) error {
	defer engine.EndOnPanic()
	return g.Engine.Load(d)
}

func (g guarded) Undeliver(jobs []engine.Delivery) engine.LSN {
	defer engine.EndOnPanic()
	return g.Engine.Undeliver(jobs)
}

func (g guarded) Abandon(cmds ...engine.Command) {
	defer engine.EndOnPanic()
	g.Engine.Abandon(cmds...)
}

func (g guarded) LoadView(v *engine.JobView) error {
	defer engine.EndOnPanic()
	return g.Engine.LoadView(v)
}

func (g guarded) Purge(ctx context.Context, p *engine.QueuePurge) error {
	defer engine.EndOnPanic()
	return g.Engine.Purge(ctx, p)
}

func (g guarded) Redrive(ctx context.Context, r *engine.QueueRedrive) error {
	defer engine.EndOnPanic()
	return g.Engine.Redrive(ctx, r)
}

func (g guarded) ForgetView(v *engine.JobView) {
	defer engine.EndOnPanic()
	g.Engine.ForgetView(v)
}

func (g guarded) Census() *engine.Census {
	defer engine.EndOnPanic()
	return g.Engine.Census()
}
