package recovery

import (
	"context"
	"errors"
	"path/filepath"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
)

// CheckOptions say what to check.
type CheckOptions struct {
	FS  vfs.FS // vfs.OS{}
	Dir string
	// Live checks the directory of a running daemon, as it was at one moment, by a
	// copy in it that is mostly hard links and removed again. Without it such a
	// directory is refused with ErrLocked.
	Live     bool
	Progress func(Progress)
}

// Health is what Check found.
type Health struct {
	Identity Identity
	State    *state.State // as a start would recover it; nil where it would not
	End      wal.End
	Report   Report
	// Problems are why a start would be refused, or would not have all payloads.
	// None means that a start succeeds without loss.
	Problems []error
	// Notes are damage that costs nothing: bytes that no job and no start needs.
	Notes []error

	Generations, Snapshots int
	Bytes                  int64 // of all files
}

// Check reads a whole store, verifies every byte that matters, and says what a
// start would make of it. It changes nothing, not even when a file was last
// written. An error says that there was nothing to judge: no store, locked, or
// not readable; damage is in Health.Problems.
func Check(ctx context.Context, opt CheckOptions) (*Health, error) {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	var health *Health
	err := withStore(opt.FS, opt.Dir, opt.Live, func(fsys vfs.FS) (err error) {
		health, err = check(ctx, fsys, filepath.Clean(opt.Dir), opt.Progress)
		return err
	})
	return health, err
}

func check(ctx context.Context, fsys vfs.FS, dir string, progress func(Progress)) (*Health, error) {
	h := &Health{}
	src, err := survey(fsys, dir, false)
	if err != nil {
		return h.refused(err)
	}
	if progress != nil {
		src.progress = progress
	}
	h.Identity = src.identity
	st, end, err := src.recover(ctx)
	h.Report = src.report
	h.count(src)
	for _, damaged := range src.damaged {
		h.Notes = append(h.Notes, damaged.err)
	}
	if err != nil {
		return h.refused(err)
	}
	h.State, h.End = st, end
	bodies := bodiesOf(st, livesOf(st))
	for _, live := range livesOf(st) {
		err := src.verifyGeneration(ctx, st, live.Generation, bodies[live.Generation], func(_ state.Job, err error) error {
			h.Problems = append(h.Problems, err)
			return nil
		})
		if err != nil {
			if _, err := h.refused(err); err != nil {
				return nil, err
			}
		}
	}
	return h, h.verifyRest(ctx, src)
}

// refused takes damage for a finding and gives any other error back.
func (h *Health) refused(err error) (*Health, error) {
	if !IsDamage(err) {
		return nil, err
	}
	h.Problems = append(h.Problems, err)
	return h, nil
}

// verifyRest looks at what a start would not read.
func (h *Health) verifyRest(ctx context.Context, src *source) error {
	known := make(map[string]bool)
	for _, err := range append(h.Notes, h.Problems...) {
		known[damagedPath(err)] = true
	}
	note := func(path string, err error) error {
		if err = judged(err); err == nil || IsDamage(err) {
			if err != nil && !known[path] {
				h.Notes = append(h.Notes, err)
			}
			return nil
		}
		return err
	}
	for _, file := range src.snapshots {
		_, err := snapshot.Verify(ctx, src.fs, file.Path)
		if err := note(file.Path, err); err != nil {
			return err
		}
	}
	for _, info := range src.history.Linked {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := wal.SegmentPath(LogDir(src.dir), info.Generation)
		if err := note(path, src.history.Verify(info.Generation)); err != nil {
			return err
		}
	}
	return nil
}

// damagedPath is the file that an error of IsDamage is about.
func damagedPath(err error) string {
	if e, ok := errors.AsType[*DamageError](err); ok {
		return e.File
	}
	if e, ok := errors.AsType[*FormatError](err); ok {
		return e.File
	}
	if e, ok := errors.AsType[*ForeignError](err); ok {
		return e.File
	}
	return ""
}

func (h *Health) count(src *source) {
	h.Generations, h.Snapshots = len(src.history.Linked), len(src.snapshots)
	for _, info := range src.history.Linked {
		h.Bytes += info.Size
	}
	for _, file := range src.snapshots {
		h.Bytes += file.Size
	}
}
