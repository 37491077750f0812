package engine

import (
	"errors"
	"fmt"
	"time"

	"pawl/wal"
)

// spaceError is what a command hears whose records found no room in the log; nil
// where waiting helps.
func spaceError(err error) error {
	switch {
	case errors.Is(err, wal.ErrPreparing):
		return nil
	case errors.Is(err, wal.ErrNoSpace):
		return ErrNoSpace
	case errors.Is(err, wal.ErrTooLarge):
		return ErrTooLarge
	case errors.Is(err, wal.ErrClosed):
		return ErrClosed
	}
	return fmt.Errorf("open a group: %w", err)
}

// watchSpace decides whether new jobs are taken: below the reserve they are
// refused, so that what is there can still be fetched and acknowledged, and a
// snapshot can still be written.
func (k *keeper) watchSpace() {
	e := k.e
	free, err := e.fs.Available(e.start.Dir)
	if err != nil {
		e.opt.Logger.Warn("free space cannot be read", "err", err)
		return
	}
	k.free.Store(free)
	why := ""
	switch disk, most := e.log.Stats().DiskBytes+k.snapshotSize.Load(), e.limits.disk.Load(); {
	case free < k.reserve():
		why = "the disk is almost full"
	case most > 0 && disk >= most:
		why = "the limit of disk space is reached"
	}
	switch full := why != ""; {
	case full && !e.full.Swap(true):
		k.fullSince = time.Now()
		e.opt.Logger.Error(why+", new jobs are refused", "free", free, "reserve", k.reserve())
		// What a snapshot lets go may be the way out.
		if k.sinceSnapshot.Load() > 0 {
			k.begin()
		}
	case !full && e.full.Swap(false):
		e.opt.Logger.Info("space is back, new jobs are taken", "free", free, "after", time.Since(k.fullSince).Round(time.Millisecond))
	}
}

// reserve is how many bytes must stay free for everything but new jobs: the log
// until the next snapshot, the snapshot, and generations.
func (k *keeper) reserve() int64 {
	var generation int64
	if gens := k.e.log.Generations(); len(gens) > 0 {
		generation = gens[len(gens)-1].Size
	}
	return k.snapshotEvery() + k.newestSize.Load()*5/4 + 3*generation
}
