package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"pawl/internal/vfs"
)

// ephemeralPattern is what directories of --ephemeral are called, below TMPDIR.
const ephemeralPattern = "pawl-ephemeral-*"

// makeEphemeral makes a directory that goes with the daemon.
func makeEphemeral() (string, error) { return os.MkdirTemp("", ephemeralPattern) }

// clearEphemeral removes the directories of daemons that were killed and could
// not do it themselves: those that nobody holds any more. Every start does it,
// whatever it serves.
func clearEphemeral(log *slog.Logger) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), ephemeralPattern))
	if err != nil {
		return // TMPDIR is no pattern
	}
	for _, dir := range left {
		if err := removeAbandoned(dir); err != nil {
			log.Warn("cannot remove what a killed daemon has left", "dir", dir, "error", err)
		}
	}
}

// abandonedAfter is how old a directory without a holder must be: a daemon that
// is just starting has made its own and does not hold it yet.
const abandonedAfter = time.Minute

// removeAbandoned removes dir if it was made by this user and no process holds it.
func removeAbandoned(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || time.Since(info.ModTime()) < abandonedAfter {
		return nil
	}
	held, err := vfs.OS{}.Lock(dir)
	switch {
	case errors.Is(err, vfs.ErrLocked), errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist):
		return nil // in use, somebody else's, or gone meanwhile
	case err != nil:
		return err
	}
	defer held.Close()
	return os.RemoveAll(dir)
}
