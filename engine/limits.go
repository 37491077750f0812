package engine

import (
	"errors"
	"sync/atomic"
)

// Limits are those of Options that can change while the engine runs, with the
// same meaning: 0 is no limit, but for MaxWaiters, where it is the default.
type Limits struct {
	MaxWaiters         int
	MaxMemory, MaxDisk int64 // bytes
}

// limits are read where they hold, by many goroutines.
type limits struct {
	waiters, memory, disk atomic.Int64
}

// SetLimits makes l hold from now on. Nothing that is there is touched: jobs and
// fetchers beyond a lower limit stay, and only new ones are refused. MaxDisk is
// looked at when the space is, every second. An error means that nothing has
// changed.
func (e *Engine) SetLimits(l Limits) error {
	if l.MaxWaiters < 0 || l.MaxMemory < 0 || l.MaxDisk < 0 {
		return errors.New("engine: a limit is negative")
	}
	setDefault(&l.MaxWaiters, defaultWaiters)
	e.limits.set(l)
	e.keeper.poke()
	return nil
}

func (m *limits) set(l Limits) {
	m.waiters.Store(int64(l.MaxWaiters))
	m.memory.Store(l.MaxMemory)
	m.disk.Store(l.MaxDisk)
}
