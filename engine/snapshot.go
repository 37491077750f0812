package engine

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"pawl/snapshot"
	"pawl/state"
)

// Snapshot writes one of the state as it is now, or later, and returns when it
// is in place. Whoever asks while one is under way shares the next one. A
// context that ends gives up the waiting, not the snapshot.
func (e *Engine) Snapshot(ctx context.Context) error {
	if e.down.Load() != 0 {
		return e.refusal()
	}
	k := &e.keeper
	k.mu.Lock()
	var f *flight
	switch {
	case k.stopped:
		k.mu.Unlock()
		return ErrClosed
	case k.flight != nil:
		if k.waiting == nil {
			k.waiting = &flight{done: make(chan struct{})}
		}
		f = k.waiting
	default:
		f = k.take()
	}
	k.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take begins a snapshot. The caller holds mu; none is under way.
func (k *keeper) take() *flight {
	f := k.waiting
	if f == nil {
		f = &flight{done: make(chan struct{})}
	}
	k.waiting = nil
	k.flight = f
	k.over.Add(1)
	go func() {
		defer k.over.Done()
		f.err = k.snapshot()
		k.mu.Lock()
		k.flight = nil
		if k.waiting != nil {
			if k.stopped {
				k.waiting.err = ErrClosed
				close(k.waiting.done)
				k.waiting = nil
			} else {
				k.take()
			}
		}
		k.mu.Unlock()
		close(f.done)
		k.poke() // generations may go now
	}()
	return f
}

// snapshotEvery is how many bytes of log make a snapshot due: so many that what
// is written to snapshots is no more than eight times what is written to the log.
// A start reads that eighth of the snapshot besides, which is little.
func (k *keeper) snapshotEvery() int64 {
	return snapshotEvery(k.e.limits.snapshotBytes.Load(), k.newestSize.Load())
}

func snapshotEvery(snapshotBytes, newest int64) int64 { return max(snapshotBytes, newest/8) }

// DiskBound is how many bytes log and snapshots take at most, however old the
// oldest job is and however many there have been: live is the bytes of the records
// of the jobs that there are, snapshot those of one snapshot of them, snapshotBytes
// is Options.SnapshotBytes, generation the size of one.
//
// From the older of the two snapshots to the end lies the log of two; of what is
// before, cleaning leaves twice what is alive, and half as much again while it is
// being carried. Two generations are made ahead, and two are not full or not yet
// dropped. What Limits.Keep and backups hold comes on top, and what is written
// while a snapshot is: another snapshotEvery at most, if the disk keeps up.
func DiskBound(live, snapshot, snapshotBytes, generation int64) int64 {
	return live*5/2 + 2*snapshot + 2*snapshotEvery(snapshotBytes, snapshot) + 4*generation
}

// maybeSnapshot begins one when there is enough log since the last, or when it is
// old.
func (k *keeper) maybeSnapshot() {
	bytes := k.sinceSnapshot.Load()
	due := bytes >= k.snapshotEvery()
	if k.e.limits.snapshotInterval.Load() > 0 && bytes > 0 && k.untilSnapshot() <= 0 {
		due = true
	}
	if due && time.Now().UnixNano() >= k.retryAt.Load() {
		k.begin()
	}
}

// begin begins a snapshot unless one is under way.
func (k *keeper) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flight == nil && !k.stopped {
		k.take()
	}
}

// untilSnapshot is how long until SnapshotInterval asks for one; 0 is never, or
// now.
func (k *keeper) untilSnapshot() time.Duration {
	interval := time.Duration(k.e.limits.snapshotInterval.Load())
	if interval <= 0 || k.sinceSnapshot.Load() == 0 {
		return 0
	}
	last := time.UnixMilli(k.snapshotAt.Load())
	if k.snapshotAt.Load() == 0 {
		last = k.e.clock.start
	}
	return max(0, time.Until(last.Add(interval)))
}

// snapshotRetry is how long the keeper waits after a snapshot that failed.
const snapshotRetry = 30 * time.Second

// snapshot writes one, and removes those that it replaces.
func (k *keeper) snapshot() error {
	e := k.e
	k.writing.Store(true)
	defer k.writing.Store(false)
	began := time.Now()
	view, meta, release, err := e.takeView()
	if err != nil {
		return err
	}
	since := k.sinceSnapshot.Swap(0)
	file, err := snapshot.Write(k.ctx, e.fs, e.start.SnapshotDir, onceWritten{view, release}, meta, e.beside(&meta))
	release()
	if err != nil {
		k.sinceSnapshot.Add(since)
		k.failures.Add(1)
		k.retryAt.Store(time.Now().Add(snapshotRetry).UnixNano())
		if k.ctx.Err() == nil {
			e.opt.Logger.Error("snapshot failed, it is tried again", "err", err)
		}
		return fmt.Errorf("snapshot: %w", err)
	}
	took := time.Since(began)
	k.snapshotAt.Store(int64(meta.Wall))
	k.snapshotMs.Store(took.Milliseconds())
	k.snapshotted.Add(uint64(file.Size))
	e.opt.Logger.Info("snapshot written", "lsn", meta.LSN, "jobs", meta.Jobs, "bytes", file.Size, "took", took)
	k.takeStock()
	return nil
}

// takeStock removes the snapshots that nothing needs any more and counts the
// others.
func (k *keeper) takeStock() {
	e := k.e
	floor, err := snapshot.Prune(e.fs, e.start.SnapshotDir, state.Millis(time.Now().UnixMilli()), e.limits.keepMillis())
	if err != nil {
		e.opt.Logger.Warn("old snapshots cannot be removed, it is tried again with the next", "err", err)
	}
	k.floor.Store(max(k.floor.Load(), floor))
	files, err := snapshot.List(e.fs, e.start.SnapshotDir)
	if err != nil || len(files) == 0 {
		return
	}
	var size int64
	for _, f := range files {
		size += f.Size
	}
	k.snapshotSize.Store(size)
	k.newestSize.Store(files[0].Size)
	k.snapshotLSN.Store(files[0].LSN)
}

// onceWritten is a view that is given back when it is written: what changes while
// the file is read back must not be there twice.
type onceWritten struct {
	*state.View
	release func()
}

// WriteTo implements io.WriterTo.
func (v onceWritten) WriteTo(w io.Writer) (int64, error) {
	defer v.release()
	return v.View.WriteTo(w)
}

// takeView seals the open group and fixes the state as it is after it. Only one
// view is out at a time; release gives it back, and does nothing the second time.
func (e *Engine) takeView() (*state.View, snapshot.Meta, func(), error) {
	e.views <- struct{}{}
	if !e.enter() {
		<-e.views
		return nil, snapshot.Meta{}, nil, e.refusal()
	}
	if e.open != nil && e.open.Records() > 0 {
		e.seal()
	}
	counts := e.st.Counts()
	meta := snapshot.Meta{
		Store: e.start.Store, History: e.start.History, LSN: uint64(e.last),
		LogTime: e.st.Now(), Wall: e.clock.wall(e.st.Now()),
	}
	for _, n := range counts.Jobs {
		meta.Jobs += n
	}
	view := e.st.View()
	e.leave()
	return view, meta, sync.OnceFunc(func() {
		e.mu.Lock()
		e.st.Release(view)
		e.mu.Unlock()
		<-e.views
	}), nil
}

// waitDurable returns nil once lsn is on disk, also where the log's policy lets
// Wait return before that: under never, nobody else might sync it for hours.
func (e *Engine) waitDurable(ctx context.Context, lsn LSN) error {
	if err := e.Wait(lsn); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.log.Durable() < lsn && e.log.Sync() != nil {
		return ErrFailed
	}
	return nil
}
