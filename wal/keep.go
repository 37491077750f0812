package wal

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// keeper is the goroutine that does what nobody waits for: idle marks, syncs of
// them, syncs by the interval, closing full generations. It sleeps between, and
// parks when there is nothing to come, so that a busy log pays for it once in
// IdleAfter and a quiet one not at all.
type keeper struct {
	groups atomic.Uint64 // groups written
	last   atomic.Int64  // when the last one was, since Log.started
	parked atomic.Bool
	wake   chan struct{} // capacity 1
	full   chan struct{} // capacity 1; a generation is

	// Owned by the keeper.
	marked   uint64        // value of groups that was marked
	markedAt time.Duration // when
	unsynced bool          // the mark may not be on disk
	synced   time.Duration // when the interval's last sync was
}

// groupWritten notes the time for the idle mark.
func (k *keeper) groupWritten(now time.Duration) {
	k.last.Store(int64(now))
	k.groups.Add(1)
	if k.parked.Load() && k.parked.CompareAndSwap(true, false) {
		k.wake <- struct{}{} // never blocks: one message for each parking
	}
}

// generationFull has a generation closed that nothing is written to any more. A
// keeper that is parked is woken by the group that was written to the next one.
func (k *keeper) generationFull() {
	select {
	case k.full <- struct{}{}:
	default:
	}
}

func (l *Log) runKeeper() {
	defer l.finished.Done()
	k := &l.keeper
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		seen := k.groups.Load()
		wait, more := l.keep(time.Since(l.started), seen)
		if !more {
			k.parked.Store(true)
			if k.groups.Load() != seen && k.parked.CompareAndSwap(true, false) {
				continue
			}
			select {
			case <-k.wake:
			case <-l.stop:
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-k.full: // its memory is not kept until the timer goes off
		case <-l.stop:
			return
		}
	}
}

// never is later than all that can be due.
const never = time.Duration(math.MaxInt64)

// keep does what is due and says how long to sleep, or that nothing will be due
// before another group is written.
func (l *Log) keep(now time.Duration, groups uint64) (wait time.Duration, more bool) {
	k := &l.keeper
	l.tidy()
	earliest := never
	at := func(due time.Duration) bool {
		if due <= now {
			return true
		}
		earliest = min(earliest, due)
		return false
	}
	if groups != k.marked && at(time.Duration(k.last.Load())+l.opt.IdleAfter) {
		if still, err := l.idle(); still || err != nil { // an error has poisoned the log, and Failed tells
			k.marked, k.markedAt, k.unsynced = groups, now, true
		} else {
			at(now + l.opt.IdleAfter) // a group was open, perhaps of one who decided nothing
		}
	}
	switch {
	case l.opt.Sync == SyncInterval:
		if k.unsynced || groups != k.marked {
			if at(k.synced + l.opt.Interval) {
				l.syncBehind()
				k.synced = now
				k.unsynced = false
				at(now + l.opt.Interval)
			}
		}
	case l.opt.Sync == SyncAlways && k.unsynced && groups == k.marked:
		if at(k.markedAt + max(time.Second, 10*l.opt.IdleAfter)) {
			l.syncBehind()
			k.unsynced = false
		}
	}
	return earliest - now, earliest != never
}

// syncBehind syncs what has been written, while others go on writing.
func (l *Log) syncBehind() {
	l.writing.Lock()
	gen, witness, lsn, end := l.current, l.standingWitness(), l.committed, l.written
	unsynced := [2]*generation{gen, witness}
	for i, g := range unsynced {
		if g == nil || !g.dirty {
			unsynced[i] = nil
		}
	}
	l.writing.Unlock()
	for _, g := range unsynced {
		if g == nil {
			continue
		}
		if !l.syncUnlocked(g, lsn) {
			return
		}
		lsn = 0 // nothing of the log is in the second
		l.writing.Lock()
		if l.current == gen && l.written == end { // nothing was written meanwhile
			g.dirty = false
		}
		l.writing.Unlock()
	}
}

// syncUnlocked is sync without holding writing: everything up to lsn was
// written before.
func (l *Log) syncUnlocked(gen *generation, lsn LSN) bool {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.Failure() != nil {
		return false
	}
	if err := gen.file.Datasync(); err != nil {
		l.fail(fmt.Errorf("sync %s: %w", gen.path, err))
		return false
	}
	l.counts.syncs.Add(1)
	l.raiseDurable(lsn)
	return true
}

// tidy closes full generations and removes those that were passed over. Both
// only give back memory and space, so the next start can do it too.
func (l *Log) tidy() {
	l.mu.Lock()
	retired, passed := l.retired, l.passed
	l.retired, l.passed = nil, nil
	l.mu.Unlock()
	for _, gen := range retired {
		l.retire(gen)
	}
	for _, gen := range passed {
		gen.abandon()
		l.images.remove(gen)
		removeGeneration(l.opt.FS, l.opt.Dir, gen.number)
	}
}

// retire closes a full generation, trims its file, and keeps its image for
// reading as long as there is memory for it.
func (l *Log) retire(gen *generation) {
	if err := gen.segment.close(); err != nil {
		l.fail(fmt.Errorf("close %s: %w", gen.path, err))
	}
	gen.segment = nil // the library's has all entries in memory a second time
	l.mu.Lock()
	var info *Info
	for _, m := range l.members {
		if m.Generation == gen.number {
			info = m
		}
	}
	length := int64(0)
	if info != nil {
		length = info.Length
	}
	l.mu.Unlock()
	if info != nil && gen.file.Truncate(length) == nil {
		l.mu.Lock()
		info.Size = length
		l.mu.Unlock()
	}
	gen.file.Close()
	free := l.images.keep(gen, l.opt.CacheBytes)
	l.mu.Lock()
	if len(free) == l.opt.GenerationBytes {
		l.spare = free
	}
	l.mu.Unlock()
}
