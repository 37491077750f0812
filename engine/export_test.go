package engine

import (
	"time"

	"pawl/state"
)

// SetWall sets the wall clock that e sees by so much, which nobody tells it.
func (e *Engine) SetWall(by time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.StepWall(by)
}

// StepWall is SetWall within a stay. Only what Elapse was given calls it.
func (e *Engine) StepWall(by time.Duration) {
	look := e.clock.look
	e.clock.look = func() reading {
		r := look()
		r.wall += by
		return r
	}
}

// Elapse has f say how long ago a stay began, instead of the clock.
func (e *Engine) Elapse(f func(time.Time) time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock.elapsed = f
}

// Between does what others may do while a stay lets them in: cmds are decided, and
// the open group is sealed for whoever leads. Only what Elapse was given calls it.
func (e *Engine) Between(cmds ...Command) {
	for _, cmd := range cmds {
		cmd.refuse(e.decide(cmd))
	}
	if e.open != nil && e.open.Records() > 0 {
		e.seal()
	}
}

// Fill has the log take records until the smallest would have to wait for a generation,
// or is refused. Only what Elapse was given calls it.
func (e *Engine) Fill() {
	hasty := e.hasty
	e.hasty = true
	for _, size := range []int{4000, 400, 0} {
		for e.room(recordRoom+size) == nil {
			e.record(&state.Record{Kind: state.KindMeta, Text: []byte("f"), Data: make([]byte, size)}, nil)
		}
	}
	e.hasty = hasty
}

// Shut has nothing taken any more, as Close does while a stay lets others in. Only
// what Elapse was given calls it.
func (e *Engine) Shut() { e.down.Store(uint64(lsnClosed)) }

// ThreadCPU is the processor time of the calling thread.
func ThreadCPU() time.Duration { return threadCPU() }

// HoldView fixes the state as a snapshot does, until letGo is called.
func (e *Engine) HoldView() (letGo func()) {
	_, _, letGo, err := e.takeView()
	if err != nil {
		panic(err)
	}
	return letGo
}

// ViewsOut is how many views of the state there are.
func (e *Engine) ViewsOut() int { return len(e.views) }

// CensusKept is how long a census is kept.
var CensusKept = censusKept

// HoldsCensus says whether there is a census for the next who asks.
func (e *Engine) HoldsCensus() bool {
	e.census.mu.Lock()
	defer e.census.mu.Unlock()
	return e.census.last != nil
}

// ForgetCensus has the next Census look at the queues.
func (e *Engine) ForgetCensus() { e.census.forget() }

// Lines is how many lines of waiters there are, and how many of them are to be looked
// at again at a time.
func (e *Engine) Lines() (lines, timed int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiters.lines), len(e.waiters.timed)
}
