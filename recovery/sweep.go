package recovery

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"pawl/internal/vfs"
)

// Sweep removes from a running store, every so often until ctx ends, the copy that a tool left that was killed while it looked (CheckOptions.Live
// and others): its hard links keep generations and snapshots on the disk that the
// store has done with. A start does that too.
func Sweep(ctx context.Context, fsys vfs.FS, dir string, every time.Duration, log *slog.Logger) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			sweep(fsys, dir, log)
		case <-ctx.Done():
			return
		}
	}
}

// sweep removes a tool's copy if no tool holds it. A tool locks its copy before it
// puts anything in, and begins again if it is gone then. That it cannot be removed
// hurts nothing but space.
func sweep(fsys vfs.FS, dir string, log *slog.Logger) {
	made := filepath.Join(dir, liveName)
	lock, err := fsys.Lock(made)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, vfs.ErrLocked), errors.Is(err, errors.ErrUnsupported):
		return
	case err == nil:
		err = errors.Join(removeTree(fsys, made), lock.Close())
	}
	if err != nil {
		log.Warn("cannot remove the copy of a tool that was killed", "dir", made, "error", err)
		return
	}
	log.Info("removed the copy of a tool that was killed", "dir", made)
}
