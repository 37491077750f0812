package resp

import (
	"context"

	"pawl/engine"
	"pawl/state"
)

// guarded is an engine whose panics end the process. A bug in this package costs
// the connection (see Server.recovered); one below it, where the state may be
// half changed, must not be survived.
type guarded struct{ e Engine }

func (g guarded) Submit(cmds ...engine.Command) engine.LSN {
	defer engine.EndOnPanic()
	return g.e.Submit(cmds...)
}

func (g guarded) TrySubmit(cmds ...engine.Command) (lsn engine.LSN, decided int) {
	defer engine.EndOnPanic()
	return g.e.TrySubmit(cmds...)
}

func (g guarded) Wait(lsn engine.LSN) error {
	defer engine.EndOnPanic()
	return g.e.Wait(lsn)
}

func (g guarded) Arrived() engine.Arrival {
	defer engine.EndOnPanic()
	return g.e.Arrived()
}

func (g guarded) Answered(a engine.Arrival, lsn engine.LSN, n int) {
	defer engine.EndOnPanic()
	g.e.Answered(a, lsn, n)
}

func (g guarded) Await(f *engine.Fetch) (*engine.Waiter, engine.LSN) {
	defer engine.EndOnPanic()
	return g.e.Await(f)
}

func (g guarded) Cancel(w *engine.Waiter) bool {
	defer engine.EndOnPanic()
	return g.e.Cancel(w)
}

func (g guarded) Load(d *engine.Delivery) error {
	defer engine.EndOnPanic()
	return g.e.Load(d)
}

func (g guarded) TryLoad(d *engine.Delivery) bool {
	defer engine.EndOnPanic()
	return g.e.TryLoad(d)
}

func (g guarded) Undeliver(jobs []engine.Delivery) engine.LSN {
	defer engine.EndOnPanic()
	return g.e.Undeliver(jobs)
}

func (g guarded) Abandon(cmds ...engine.Command) {
	defer engine.EndOnPanic()
	g.e.Abandon(cmds...)
}

func (g guarded) LoadView(v *engine.JobView) error {
	defer engine.EndOnPanic()
	return g.e.LoadView(v)
}

func (g guarded) ForgetView(v *engine.JobView) {
	defer engine.EndOnPanic()
	g.e.ForgetView(v)
}

func (g guarded) Purge(ctx context.Context, p *engine.QueuePurge) error {
	defer engine.EndOnPanic()
	return g.e.Purge(ctx, p)
}

func (g guarded) Redrive(ctx context.Context, r *engine.QueueRedrive) error {
	defer engine.EndOnPanic()
	return g.e.Redrive(ctx, r)
}

func (g guarded) Snapshot(ctx context.Context) error {
	defer engine.EndOnPanic()
	return g.e.Snapshot(ctx)
}

func (g guarded) Backup(ctx context.Context, dir string) error {
	defer engine.EndOnPanic()
	return g.e.Backup(ctx, dir)
}

func (g guarded) JobHistory(ctx context.Context, id state.JobID, from engine.LSN) (engine.JobHistory, error) {
	defer engine.EndOnPanic()
	return g.e.JobHistory(ctx, id, from)
}

func (g guarded) Numbers() engine.Numbers {
	defer engine.EndOnPanic()
	return g.e.Numbers()
}

func (g guarded) Failed() <-chan struct{} {
	defer engine.EndOnPanic()
	return g.e.Failed()
}
