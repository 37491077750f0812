package recovery

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"pawl/internal/vfs"
)

// SweepOptions say what is looked after while a store runs.
type SweepOptions struct {
	FS      vfs.FS // vfs.OS{}
	Dir     string // of the store
	Backups string // the directory below which backups are made; empty is none
	Every   time.Duration
	Log     *slog.Logger // hears what was removed; nil is nobody
}

// Sweep removes what was left by those who were killed while they made a copy of a
// running store, every so often until ctx ends: in the store the copy of a tool
// that looked at it (CheckOptions.Live and others), whose hard links keep
// generations and snapshots on the disk that the store has done with, and which a
// start removes too; and, from the beginning, backups that were not finished.
func Sweep(ctx context.Context, opt SweepOptions) {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	ticks := time.NewTicker(opt.Every)
	defer ticks.Stop()
	for {
		if opt.Backups != "" {
			sweepBackups(opt.FS, opt.Backups, opt.Log)
		}
		select {
		case <-ticks.C:
			sweep(opt.FS, opt.Dir, opt.Log)
		case <-ctx.Done():
			return
		}
	}
}

// sweep removes a tool's copy if no tool holds it. That it cannot be removed hurts
// nothing but space.
func sweep(fsys vfs.FS, dir string, log *slog.Logger) {
	made := filepath.Join(dir, liveName)
	if removed, err := removeAbandoned(fsys, made, func() bool { return true }); err != nil {
		log.Warn("cannot remove the copy of a tool that was killed", "dir", made, "error", err)
	} else if removed {
		log.Info("removed the copy of a tool that was killed", "dir", made)
	}
}

// sweepBackups removes the backups below dir that nobody makes any more, and that
// never were finished. The directory is the operator's: what holds anything that
// no backup does is not touched.
func sweepBackups(fsys vfs.FS, dir string, log *slog.Logger) {
	entries, err := fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("cannot look for backups that were not finished", "dir", dir, "error", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasSuffix(entry.Name(), vfs.Copying) {
			continue
		}
		made := filepath.Join(dir, entry.Name())
		if removed, err := removeAbandoned(fsys, made, func() bool { return isCopy(fsys, made) }); err != nil {
			log.Warn("cannot remove a backup that was not finished", "dir", made, "error", err)
		} else if removed {
			log.Info("removed a backup that was not finished", "dir", made)
		}
	}
}

// removeAbandoned removes a directory that nobody holds, if it is one to be
// removed: whoever makes a copy locks it before anything is in it, and begins
// again if it is gone then.
func removeAbandoned(fsys vfs.FS, made string, ours func() bool) (removed bool, err error) {
	lock, err := fsys.Lock(made)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, vfs.ErrLocked), errors.Is(err, errors.ErrUnsupported):
		return false, nil
	case err != nil:
		return false, err
	case !ours():
		return false, lock.Close()
	}
	err = errors.Join(vfs.RemoveTree(fsys, made), lock.Close())
	return err == nil, err
}

// isCopy says that a directory holds nothing but what a copy of a store does.
func isCopy(fsys vfs.FS, dir string) bool {
	entries, err := fsys.ReadDir(dir)
	for _, entry := range entries {
		if name := entry.Name(); name != identityName && name != logName && name != snapshotsName {
			return false
		}
	}
	return err == nil
}
