package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"pawl/state"
)

// Limits are those of Options that can change while the engine runs, with the
// same meaning and the same zero values.
type Limits struct {
	MaxWaiters         int
	MaxMemory, MaxDisk int64 // bytes
	SnapshotBytes      int64
	SnapshotRate       int64 // bytes a second
	SnapshotInterval   time.Duration
	Keep               time.Duration
}

// limits are read where they hold, by many goroutines.
type limits struct {
	waiters, memory, disk, snapshotBytes, snapshotRate atomic.Int64
	snapshotInterval, keep                             atomic.Int64 // time.Duration
}

// SetLimits makes l hold from now on. Nothing that is there is touched: jobs and
// fetchers beyond a lower limit stay, and only new ones are refused. MaxDisk is
// looked at when the space is, every second. SnapshotBytes and SnapshotInterval
// count from the newest snapshot; SnapshotRate holds for the one under way too; Keep holds for what is still there. An error
// means that nothing has changed.
func (e *Engine) SetLimits(l Limits) error {
	if l.MaxWaiters < 0 || l.MaxMemory < 0 || l.MaxDisk < 0 || l.SnapshotBytes < 0 || l.SnapshotRate < 0 || l.SnapshotInterval < 0 || l.Keep < 0 {
		return errors.New("engine: a limit is negative")
	}
	setDefault(&l.MaxWaiters, defaultWaiters)
	setDefault(&l.SnapshotBytes, defaultSnapshotBytes)
	e.limits.set(l)
	e.keeper.poke()
	return nil
}

func (m *limits) set(l Limits) {
	m.waiters.Store(int64(l.MaxWaiters))
	m.memory.Store(l.MaxMemory)
	m.disk.Store(l.MaxDisk)
	m.snapshotBytes.Store(l.SnapshotBytes)
	m.snapshotRate.Store(l.SnapshotRate)
	m.snapshotInterval.Store(int64(l.SnapshotInterval))
	m.keep.Store(int64(l.Keep))
}

// keepMillis is Limits.Keep as the state counts.
func (m *limits) keepMillis() state.Millis {
	return state.Millis(time.Duration(m.keep.Load()).Milliseconds())
}
