package recovery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
)

// RepairOptions say what to repair.
type RepairOptions struct {
	FS  vfs.FS // vfs.OS{}
	Dir string
	// To is a new directory for the repaired store, which must not exist; Dir is
	// not changed then. Empty is Dir itself: the damaged directory is kept beside
	// it under another name.
	To string
	// DryRun only says what would be lost.
	DryRun bool
	Wall   func() time.Time // time.Now; for the name of the kept copy
}

// Repaired says what a repair did, or would do.
type Repaired struct {
	// Needed: a start would be refused, or would not have all payloads. Without it
	// nothing was changed.
	Needed   bool
	Identity Identity // of the repaired store
	LSN      wal.LSN  // the last group of the old history in it
	Jobs     uint64   // in it
	Damage   []LostRange
	Lost     []LostJob
	// Finished are jobs that the kept part of the log still holds, but that the
	// lost part finished: they are not brought back.
	Finished []state.JobID
	Kept     string // where the damaged directory is now
	// Interrupted are stores that earlier repairs, which the power interrupted, have
	// left beside this one, and that have got other names now.
	Interrupted []Interrupted
}

// LostRange is a piece of the store that could not be used, and why.
type LostRange struct {
	File        string
	Offset      int64
	First, Last wal.LSN // groups that are lost by it, 0 when none or not known
	Why         error
}

// LostJob is a job that was in the damaged store, as far as can be told, and is
// not in the repaired one.
type LostJob struct {
	ID    state.JobID // zero where the damage hides it
	Slot  state.Slot
	Queue string // queue key; empty where the damage hides it
	// QueueGuessed: Queue is what its number meant before the damage. It may have
	// come to mean another queue in the damaged part.
	QueueGuessed bool

	Enqueued state.Millis // wall time, Unix milliseconds
	Priority int8
	Tries    uint16
	Body     []byte // what could be read of it, as the engine wrote it; nil is nothing
	Overhead int    // bytes of Body that are not payload
	Why      string
}

// Repair makes of a damaged store one that starts. It keeps the history up to
// the first group that cannot be read and that no snapshot has taken in, takes
// out the jobs whose payloads are damaged, and begins a new history number.
// Groups behind a missing one are not applied, because what they refer to may
// have been in it: a queue's number could have been given back there and taken
// by another queue, a job's slot by another job. They are listed, as far as
// they can be read.
//
// The new store is made beside, read back, and takes the place of the old one
// in one step; a crash leaves the one or the other. Files of another format are
// no damage and not repaired.
//
// With ErrUnconfirmed the repair was done, and Repaired says what. With any other
// error there is no Repaired, and the store is as it was.
func Repair(ctx context.Context, opt RepairOptions) (*Repaired, error) {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	if opt.Wall == nil {
		opt.Wall = time.Now
	}
	opt.Dir = filepath.Clean(opt.Dir)
	if opt.To != "" {
		opt.To = filepath.Clean(opt.To)
		if err := mustBeNew(opt.FS, opt.To); err != nil {
			return nil, err
		}
	}
	lock, err := lockExisting(opt.FS, opt.Dir)
	if err != nil {
		return nil, err
	}
	done, err := repair(ctx, opt)
	if closing := lock.Close(); err == nil {
		err = closing
	}
	return done, err
}

func repair(ctx context.Context, opt RepairOptions) (*Repaired, error) {
	r := &repairer{fs: &veil{FS: opt.FS, hidden: map[string]bool{}}, dir: opt.Dir, done: &Repaired{}}
	if opt.To == "" && !opt.DryRun {
		var err error
		if r.done.Interrupted, err = nameInterrupted(opt.FS, opt.Dir); err != nil {
			return nil, err
		}
	}
	b, err := r.salvage(ctx)
	if err != nil {
		return nil, err
	}
	r.done.Identity, r.done.LSN = r.src.identity, b.end.LSN
	r.done.Jobs = jobsIn(b.state.Counts()) - uint64(len(b.drop))
	if !r.done.Needed || opt.DryRun {
		return r.done, nil
	}
	r.done.Identity.History++
	made := opt.Dir + ".repairing"
	if opt.To != "" {
		made = opt.To + ".repairing"
	}
	making, err := vfs.MakeLocked(opt.FS, made)
	if err != nil {
		return nil, err
	}
	defer making.Close()
	r.fs.lifted = true // what is carried may lie in a hidden generation
	err = r.src.fork(ctx, made, b)
	if opt.To != "" {
		if err := vfs.Publish(opt.FS, made, opt.To, err); err != nil {
			return nil, err
		}
		return r.done, nil
	}
	if err != nil {
		return nil, errors.Join(err, vfs.RemoveTree(opt.FS, made))
	}
	r.done.Kept, err = replace(opt.FS, opt.Dir, made, opt.Wall())
	if err != nil && !errors.Is(err, ErrUnconfirmed) {
		return nil, err
	}
	// What is lost must be told now, confirmed or not: whoever repairs again finds
	// nothing to repair.
	return r.done, err
}

// replace puts made in the place of dir, and says how dir is called from then on.
// The two change places in one step, so dir is there at every moment. Just before
// and after that step the other one has a name that is true of either: a crash
// must leave neither the damaged store under the name of made, from where the next
// try would remove it, nor the repaired one under that of a damaged one.
func replace(fsys vfs.FS, dir, made string, now time.Time) (kept string, err error) {
	date := now.UTC().Format(repairDate)
	between, kept := dir+exchangeMark+date, dir+damagedMark+date
	if err := errors.Join(mustBeNew(fsys, kept), mustBeNew(fsys, between)); err != nil {
		return "", errors.Join(err, vfs.RemoveTree(fsys, made))
	}
	if err := fsys.Rename(made, between); err != nil {
		return "", errors.Join(err, vfs.RemoveTree(fsys, made))
	}
	if err := exchange(fsys, dir, between); err != nil {
		return "", errors.Join(fmt.Errorf("change places with %s: %w; the repaired store can be made elsewhere with --to", between, err), vfs.RemoveTree(fsys, between))
	}
	parent := filepath.Dir(dir)
	if err := fsys.SyncDir(parent); err != nil {
		return between, fmt.Errorf("%w: %w; as it was, the store is kept as %s", ErrUnconfirmed, err, between)
	}
	if err := fsys.Rename(between, kept); err != nil {
		return between, fmt.Errorf("%w: %w; as it was, the store is kept as %s or %s", ErrUnconfirmed, err, between, kept)
	}
	if err := fsys.SyncDir(parent); err != nil {
		return kept, fmt.Errorf("%w: %w; as it was, the store is kept as %s or %s", ErrUnconfirmed, err, between, kept)
	}
	return kept, nil
}

// exchange swaps two directories in one step.
func exchange(fsys vfs.FS, a, b string) error {
	switch f := fsys.(type) {
	case interface{ Exchange(a, b string) error }:
		return f.Exchange(a, b)
	case vfs.Native:
		return exchangeNative(f.NativePath(a), f.NativePath(b))
	}
	return errors.ErrUnsupported
}

// repairer finds out what of a store can be kept.
type repairer struct {
	fs   *veil
	dir  string
	src  *source
	done *Repaired
}

// damage notes what could not be used.
func (r *repairer) damage(why error) *LostRange {
	r.done.Needed = true
	lost := LostRange{File: damagedPath(why), Why: why}
	if e, ok := errors.AsType[*DamageError](why); ok {
		lost.Offset, lost.First = e.Offset, e.LSN
	}
	r.done.Damage = append(r.done.Damage, lost)
	return &r.done.Damage[len(r.done.Damage)-1]
}

// salvage says which branch is to be the repaired store.
func (r *repairer) salvage(ctx context.Context) (b branch, err error) {
	r.src = &source{fs: r.fs, dir: r.dir, progress: func(Progress) {}}
	if err := r.identify(); err != nil {
		return b, err
	}
	if err := r.findLog(); err != nil {
		return b, err
	}
	if err := r.findSnapshots(); err != nil {
		return b, err
	}
	if b.state, b.end, err = r.longest(ctx); err != nil {
		return b, err
	}
	if err := r.extend(&b); err != nil {
		return b, err
	}
	if err := r.payloads(ctx, &b); err != nil {
		return b, err
	}
	return b, r.behind(&b)
}

// identify reads STORE, or finds out from the other files whose they are.
func (r *repairer) identify() error {
	id, err := readIdentity(r.fs, r.dir, false)
	if _, damaged := errors.AsType[*DamageError](err); !damaged {
		r.src.identity = id
		return err
	}
	unreadable := err
	files, err := snapshot.List(r.fs, SnapshotDir(r.dir))
	if err != nil {
		return err
	}
	for _, file := range files {
		if meta, err := snapshot.ReadMeta(r.fs, file.Path); err == nil {
			id = Identity{ID: meta.Store, History: meta.History, Created: meta.Wall}
			break
		}
	}
	if id.ID == (snapshot.StoreID{}) {
		history, err := wal.Find(r.fs, LogDir(r.dir), wal.FindOptions{})
		if err != nil {
			return fmt.Errorf("%w; and the log does not say it either: %w", unreadable, judged(err))
		}
		id = Identity{ID: snapshot.StoreID(history.Store), History: 1}
	}
	if id.ID == (snapshot.StoreID{}) {
		return fmt.Errorf("%w; and no other file says it", unreadable)
	}
	r.src.identity = id
	r.damage(unreadable)
	return nil
}

// findLog finds the generations, without those that cannot belong to them.
func (r *repairer) findLog() error {
	for {
		history, err := wal.Find(r.fs, LogDir(r.dir), wal.FindOptions{
			Store: wal.StoreID(r.src.identity.ID), Bereft: len(r.fs.hidden) > 0,
		})
		if err == nil {
			r.src.history = history
			return nil
		}
		corrupt, ok := errors.AsType[*wal.CorruptError](err)
		if !ok || errors.Is(err, wal.ErrFormat) {
			return judged(err)
		}
		r.damage(judged(err))
		before := len(r.fs.hidden)
		if errors.Is(err, wal.ErrMissing) {
			// What was made after the missing one cannot be joined to what was before.
			if err := r.fs.hideFrom(r.dir, corrupt.Generation); err != nil {
				return err
			}
		} else {
			r.fs.hide(r.dir, corrupt.Generation)
		}
		if len(r.fs.hidden) == before {
			return judged(err)
		}
	}
}

// findSnapshots lists the snapshots of this store.
func (r *repairer) findSnapshots() error {
	files, err := snapshot.List(r.fs, SnapshotDir(r.dir))
	if err != nil {
		return err
	}
	for _, file := range files {
		meta, err := snapshot.ReadMeta(r.fs, file.Path)
		if err == nil {
			err = r.src.own(file.Path, meta)
		}
		err = judged(err)
		if _, foreign := errors.AsType[*ForeignError](err); foreign {
			r.damage(err)
			continue
		}
		if err != nil && (isOtherProgram(err) || !IsDamage(err)) {
			return err
		}
		r.src.snapshots = append(r.src.snapshots, file)
	}
	return nil
}

// longest recovers as long a history as there is. At damage it begins again,
// with the group before as the last one wanted.
func (r *repairer) longest(ctx context.Context) (*state.State, wal.End, error) {
	r.src.limit, r.src.stop, r.src.partial = math.MaxUint64, math.MaxUint64, true
	for {
		r.src.report, r.src.damaged = Report{}, nil
		st, end, err := r.src.recoverState(ctx)
		if err == nil {
			return st, end, nil
		}
		if !IsDamage(err) || isOtherProgram(err) {
			return nil, wal.End{}, err
		}
		lost := r.damage(err)
		if e, ok := errors.AsType[*wal.CorruptError](err); ok {
			lost.First = e.LSN // where a damaged snapshot is what the error is named after
		}
		// What the newest usable snapshot holds is not lost with the log.
		stop := wal.LSN(r.src.report.SnapshotLSN)
		if lost.First > stop && lost.First <= r.src.stop {
			stop = lost.First - 1
		}
		if stop >= r.src.stop {
			return nil, wal.End{}, err
		}
		r.src.limit, r.src.stop = stop, stop
	}
}

// payloads takes out the jobs whose bodies are damaged or gone, and saves sound
// ones from generations that cannot come along.
func (r *repairer) payloads(ctx context.Context, b *branch) error {
	lost := map[state.Slot]bool{}
	lose := func(job state.Job, why error) error {
		lost[job.Slot] = true
		b.drop = append(b.drop, job.Slot)
		r.done.Lost = append(r.done.Lost, LostJob{
			ID: job.ID, Slot: job.Slot, Queue: b.state.QueueKey(job.Queue), Enqueued: job.ID.Wall(),
			Priority: job.Priority, Tries: job.Tries, Why: why.Error(),
		})
		return nil
	}
	bodies := bodiesOf(b.state, livesOf(b.state))
	for _, live := range livesOf(b.state) {
		unlinked := r.src.generationOf(live)
		if unlinked != nil {
			r.damage(unlinked)
		}
		r.fs.lifted = true // the bodies in a file may be sound where its first entries are not
		err := r.src.verifyGeneration(ctx, b.state, live.Generation, bodies[live.Generation], func(job state.Job, why error) error {
			r.damage(why)
			return lose(job, why)
		})
		r.fs.lifted = false
		if err != nil && !IsDamage(err) {
			return err
		}
		if err == nil && unlinked == nil {
			continue
		}
		if err != nil && unlinked == nil {
			r.damage(err)
		}
		for _, at := range bodies[live.Generation] {
			job, _ := b.state.Job(at.slot)
			switch {
			case lost[at.slot]:
			case err != nil: // there is no file
				_ = lose(job, err)
			case job.Place == state.Dead && job.Reason == damagedReason:
				_ = lose(job, unlinked) // known to be rotten
			default:
				b.carry = append(b.carry, at)
			}
		}
	}
	return nil
}
