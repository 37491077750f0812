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

// RestoreOptions say what to restore.
type RestoreOptions struct {
	FS   vfs.FS // vfs.OS{}
	Dir  string
	Live bool   // as in CheckOptions
	To   string // the new directory; must not exist, its parent must

	// The moment: the last group at or before At, or with At zero the group LSN.
	At  time.Time
	LSN wal.LSN

	Progress func(Progress)
}

// Restored says what was restored.
type Restored struct {
	Identity Identity // of the new directory
	LSN      wal.LSN  // the last group of the old history in it
	At       time.Time
	Jobs     uint64
}

// ErrOutOfReach is a moment from before the oldest snapshot that is kept, or
// from which the log is not kept, exit 73.
var ErrOutOfReach = errors.New("the log does not reach back that far")

// Restore writes the state of a moment into a new directory, which begins a new
// history. It checks every payload that it needs. Dir is not changed, and
// without an error To is complete and durable; with one there is no To.
func Restore(ctx context.Context, opt RestoreOptions) (*Restored, error) {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	if err := mustBeNew(opt.FS, opt.To); err != nil {
		return nil, err
	}
	opt.To = filepath.Clean(opt.To)
	made := opt.To + ".restoring"
	lock, err := vfs.MakeLocked(opt.FS, made) // or two who make one directory would take each other's for their own
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	var done *Restored
	err = withStore(opt.FS, opt.Dir, opt.Live, func(fsys vfs.FS) (err error) {
		done, err = restore(ctx, fsys, made, opt)
		return err
	})
	if err := vfs.Publish(opt.FS, made, opt.To, err); err != nil {
		return nil, err
	}
	return done, nil
}

// restore writes the moment into a new directory made.
func restore(ctx context.Context, fsys vfs.FS, made string, opt RestoreOptions) (*Restored, error) {
	src, behind, err := surveyPast(fsys, filepath.Clean(opt.Dir))
	if err != nil {
		return nil, err
	}
	if opt.Progress != nil {
		src.progress = opt.Progress
	}
	if err := src.stopAt(opt); err != nil {
		return nil, err
	}
	st, end, err := src.recover(ctx)
	if errors.Is(err, wal.ErrMissing) {
		return nil, fmt.Errorf("%w: %w", ErrOutOfReach, err)
	}
	if err == nil && !src.reached {
		err = behind // it may have come before the moment
	}
	if err != nil {
		return nil, src.orBefore(err)
	}
	if end.LSN == 0 && !opt.At.IsZero() {
		return nil, fmt.Errorf("%w: the store began after %s", ErrOutOfReach, opt.At.UTC().Format(time.RFC3339))
	}
	if err := src.verifyBodies(ctx, st, math.MaxInt64); err != nil {
		return nil, err
	}
	if err := src.fork(ctx, made, branch{state: st, end: end}); err != nil {
		return nil, err
	}
	id := src.identity
	id.History++
	return &Restored{Identity: id, LSN: end.LSN, At: time.UnixMilli(end.WallTime), Jobs: jobsIn(st.Counts())}, nil
}

// surveyPast surveys a store of whose past something is wanted: generations that
// cannot be made out are no matter if it ends before them, and left out with all
// later ones. behind says why, nil where none are.
func surveyPast(fsys vfs.FS, dir string) (src *source, behind, err error) {
	v := &veil{FS: fsys, hidden: map[string]bool{}}
	for {
		before := len(v.hidden)
		src, err = surveyLeft(v, dir, false, before > 0)
		corrupt, ok := errors.AsType[*wal.CorruptError](err)
		if !ok || isOtherProgram(err) {
			return src, behind, err
		}
		if behind == nil {
			behind = err
		}
		if hiding := v.hideFrom(dir, corrupt.Generation); hiding != nil {
			return nil, nil, hiding
		}
		if len(v.hidden) == before {
			return nil, nil, err
		}
	}
}

// orBefore adds to an error about damage which group there is before it.
func (src *source) orBefore(err error) error {
	if src.until == nil || src.last == 0 || !IsDamage(err) {
		return err
	}
	return fmt.Errorf("%w; whether that came after the moment cannot be told: the last group before it is restored with --lsn %d", err, src.last)
}

// stopAt makes the recovery end with the moment that is wanted.
func (src *source) stopAt(opt RestoreOptions) error {
	src.partial = true
	if opt.At.IsZero() {
		src.limit, src.stop = opt.LSN, opt.LSN
		return nil
	}
	at := state.Millis(opt.At.UnixMilli())
	src.until = func(wallTime int64) bool { return state.Millis(wallTime) > at }
	// The newest snapshot from before the moment, or none.
	src.limit = 0
	for _, file := range src.snapshots {
		meta, err := snapshot.ReadMeta(src.fs, file.Path)
		switch err = judged(err); {
		case err == nil && meta.Wall <= at:
			src.limit = wal.LSN(file.LSN)
			return nil
		case err != nil && !IsDamage(err):
			return err
		}
	}
	return nil
}
