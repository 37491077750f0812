package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"pawl/wal"
)

// keeper looks after what lies on the disk, in one goroutine beside the
// commands: it watches the space and the log, writes snapshots, carries live bodies out of
// generations that are mostly dead, and removes generations that nothing needs.
// Memory of jobs that are gone it gives back, too.
// It sleeps while nothing is written.
type keeper struct {
	e      *Engine
	ctx    context.Context
	cancel context.CancelFunc
	kick   chan struct{}
	idle   atomic.Bool // sleeps until kicked
	over   sync.WaitGroup

	sinceSnapshot atomic.Int64 // bytes of records since the newest snapshot's LSN
	written       atomic.Uint64
	floor         atomic.Uint64 // LSN up to which no log is needed for replay
	snapshotLSN   atomic.Uint64
	snapshotAt    atomic.Int64 // wall ms of the newest; 0 is none
	snapshotMs    atomic.Int64
	snapshotted   atomic.Uint64 // bytes of all snapshots that were finished
	snapshotSize  atomic.Int64  // bytes of all snapshots
	newestSize    atomic.Int64
	failures      atomic.Uint64
	writing       atomic.Bool
	cleaned       atomic.Uint64 // bytes
	free          atomic.Int64

	retryAt atomic.Int64 // no snapshot by itself before, Unix nanoseconds

	mu      sync.Mutex
	stopped bool
	flight  *flight // the snapshot under way, nil when none is
	waiting *flight // the one after it, which somebody asked for

	// Owned by the keeper's goroutine.
	rotten    map[uint32]bool      // generations with a body that cannot be carried
	unneeded  map[uint32]time.Time // since when a generation is not needed
	packAt    time.Time            // when to look for memory to give back
	unpacked  bool                 // there may be some
	fullSince time.Time
}

// flight is one snapshot and all who wait for it.
type flight struct {
	done chan struct{}
	err  error
}

func (k *keeper) init(e *Engine) {
	k.e = e
	k.kick = make(chan struct{}, 1)
	k.unneeded = make(map[uint32]time.Time)
	k.rotten = make(map[uint32]bool)
	k.ctx, k.cancel = context.WithCancel(context.Background())
}

func (k *keeper) run() {
	k.over.Add(1)
	go func() {
		defer k.over.Done()
		k.loop()
	}()
}

// stop ends what the keeper does and returns when it is over.
func (k *keeper) stop() {
	k.mu.Lock()
	k.stopped = true
	k.mu.Unlock()
	k.cancel()
	k.over.Wait()
}

// wrote is told of each group that is safe. The group that makes a snapshot due
// wakes the keeper: until its next look a fast daemon writes many times
// snapshotEvery, all of which would have to stay.
func (k *keeper) wrote(bytes int) {
	k.written.Add(uint64(bytes))
	since, due := k.sinceSnapshot.Add(int64(bytes)), k.snapshotEvery()
	if k.idle.Load() || since >= due && since-int64(bytes) < due {
		k.poke()
	}
}

func (k *keeper) poke() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// lookEvery is how often the keeper looks while something is written.
const lookEvery = time.Second

func (k *keeper) loop() {
	k.takeStock()
	k.sinceSnapshot.Add(k.tail())
	timer := time.NewTimer(0)
	defer timer.Stop()
	var seen uint64
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.e.log.Failed():
			k.e.noticeFailure()
			return
		case <-timer.C:
		case <-k.kick:
		}
		k.idle.Store(false)
		written := k.written.Load()
		k.watchSpace()
		k.maybeSnapshot()
		busy := k.cleanFor(lookEvery)
		k.dropGenerations()
		k.unpacked = k.unpacked || written != seen
		k.giveBack()
		switch {
		case busy, written != seen, k.e.full.Load(), k.ctx.Err() != nil:
			timer.Reset(lookEvery)
		default:
			// Whoever writes from here on kicks; what was written since the look
			// above is looked at in a moment.
			k.idle.Store(true)
			timer.Stop()
			if k.written.Load() != written {
				timer.Reset(lookEvery)
			} else if d := k.untilLook(); d > 0 {
				timer.Reset(d)
			}
		}
		seen = written
	}
}

// tail is how much log a start would replay: without it, a daemon that is often
// restarted would never write a snapshot.
func (k *keeper) tail() (bytes int64) {
	for _, g := range k.e.log.Generations() {
		if uint64(g.LastLSN) > k.snapshotLSN.Load() {
			bytes += g.Length
		}
	}
	return bytes
}

// dropGenerations removes what nothing needs: sealed, its groups below every
// snapshot that is kept, no body of a job in it, the group that ended the last
// of them durable, nobody reading, and all of that for at least Limits.Keep.
func (k *keeper) dropGenerations() {
	e := k.e
	floor := LSN(k.floor.Load())
	if floor == 0 {
		return
	}
	var candidates []wal.Info
	for _, g := range e.log.Generations() {
		if g.Sealed && g.LastLSN <= floor {
			candidates = append(candidates, g)
		}
	}
	if len(candidates) == 0 {
		return
	}
	if !e.enter() {
		return
	}
	free := candidates[:0]
	for _, g := range candidates {
		if e.st.Live(g.Generation).Jobs == 0 {
			free = append(free, g)
		} else {
			delete(k.unneeded, g.Generation)
		}
	}
	if e.Wait(e.leave()) != nil {
		return
	}
	now := time.Now()
	for _, g := range free {
		since, known := k.unneeded[g.Generation]
		if !known {
			since = now
			k.unneeded[g.Generation] = now
		}
		if now.Sub(since) < time.Duration(e.limits.keep.Load()) {
			continue
		}
		switch err := e.log.Drop(g.Generation); {
		case err == nil:
			delete(k.unneeded, g.Generation)
		case errors.Is(err, wal.ErrHeld), errors.Is(err, wal.ErrInUse):
		default:
			e.opt.Logger.Warn("generation cannot be removed, it is tried again", "generation", g.Generation, "err", err)
			return
		}
	}
}
