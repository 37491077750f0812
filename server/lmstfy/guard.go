package lmstfy

import (
	"context"
	"fmt"
	"runtime/debug"

	"pawl/engine"
)

// guarded is an engine whose panics end the process. Where one passes through
// the engine, the state may be half changed and its locks held; net/http would
// catch it and go on serving from that.
type guarded struct{ Engine }

// endOnPanic is deferred around every call of the engine that may change
// something. It panics where nobody recovers.
func endOnPanic() {
	if v := recover(); v != nil {
		text := fmt.Sprintf("%v\n\n%s", v, debug.Stack())
		go func() { panic(text) }()
		select {} // the process is about to end; nothing may be answered
	}
}

func (g guarded) Submit(cmds ...engine.Command) engine.LSN {
	defer endOnPanic()
	return g.Engine.Submit(cmds...)
}

func (g guarded) Wait(lsn engine.LSN) error {
	defer endOnPanic()
	return g.Engine.Wait(lsn)
}

func (g guarded) Await(f *engine.Fetch) (*engine.Waiter, engine.LSN) {
	defer endOnPanic()
	return g.Engine.Await(f)
}

func (g guarded) Cancel(w *engine.Waiter) bool {
	defer endOnPanic()
	return g.Engine.Cancel(w)
}

func (g guarded) Load(d *engine.Delivery) error {
	defer endOnPanic()
	return g.Engine.Load(d)
}

func (g guarded) Undeliver(jobs []engine.Delivery) engine.LSN {
	defer endOnPanic()
	return g.Engine.Undeliver(jobs)
}

func (g guarded) LoadView(v *engine.JobView) error {
	defer endOnPanic()
	return g.Engine.LoadView(v)
}

func (g guarded) Purge(ctx context.Context, p *engine.QueuePurge) error {
	defer endOnPanic()
	return g.Engine.Purge(ctx, p)
}

func (g guarded) Redrive(ctx context.Context, r *engine.QueueRedrive) error {
	defer endOnPanic()
	return g.Engine.Redrive(ctx, r)
}
