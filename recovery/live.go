package recovery

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/wal"
)

// withStore calls use with a file system in which nobody changes the store
// meanwhile: the directory is locked, or a live one stands there as it was at one
// moment, by a copy that is removed again. use must not write to it.
func withStore(fsys vfs.FS, dir string, live bool, use func(fsys vfs.FS) error) error {
	if live {
		return withCopy(fsys, filepath.Clean(dir), use)
	}
	lock, err := lockExisting(fsys, dir)
	if err != nil {
		return err
	}
	return errors.Join(use(fsys), lock.Close())
}

// lockExisting locks a directory that must be there.
func lockExisting(fsys vfs.FS, dir string) (io.Closer, error) {
	return lockStore(Options{FS: fsys, Dir: dir, Existing: true})
}

// liveTries is how often copying is begun again because the daemon removed files
// or wrote a snapshot meanwhile.
const liveTries = 50

// errMoved says that the daemon removed files, or wrote a snapshot, while they
// were copied.
var errMoved = errors.New("the directory changed meanwhile")

// withCopy calls use with a copy, in its place, of a store that may be being
// written. Most of the copy is hard links, so it lies in the store, which may be a
// volume of its own.
func withCopy(fsys vfs.FS, dir string, use func(fsys vfs.FS) error) (err error) {
	made := filepath.Join(dir, liveName)
	lock, err := lockCopy(fsys, dir, made)
	if err != nil {
		return err
	}
	defer func() {
		if ending := errors.Join(vfs.RemoveTree(fsys, made), lock.Close()); err == nil {
			err = ending
		}
	}()
	for range liveTries {
		if err := vfs.RemoveBelow(fsys, made); err != nil { // of a tool that was killed, or of the last try
			return err
		}
		switch err := copyLive(fsys, dir, made); {
		case err == nil:
			return use(&standIn{FS: fsys, dir: dir, copy: made})
		case !errors.Is(err, errMoved):
			return err
		}
	}
	return fmt.Errorf("%s changes too fast to be copied: try again, or use a backup", dir)
}

// lockCopy makes the directory of a copy, or finds what a killed tool left, and
// locks it: two tools would take each other's copy away, and so would the daemon.
func lockCopy(fsys vfs.FS, dir, made string) (io.Closer, error) {
	lock, err := vfs.MakeLocked(fsys, made)
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil, fmt.Errorf("another tool looks at %s: %w", dir, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", dir, ErrNoStore)
	}
	return lock, err
}

// copyLive makes a copy of a store that may be being written, or returns errMoved.
// The snapshots come first: the log then has all the groups that they vouch for.
// And they are still the same at the end: so no generation went that they need.
func copyLive(fsys vfs.FS, from, to string) error {
	if err := fsys.Link(filepath.Join(from, identityName), filepath.Join(to, identityName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, err := snapshot.List(fsys, SnapshotDir(from))
	if err != nil {
		return err
	}
	if err := fsys.Mkdir(SnapshotDir(to), 0o700); err != nil {
		return err
	}
	for _, file := range before {
		err := fsys.Link(file.Path, filepath.Join(SnapshotDir(to), filepath.Base(file.Path)))
		if errors.Is(err, fs.ErrNotExist) {
			return errMoved
		}
		if err != nil {
			return err
		}
	}
	if _, err := fsys.Stat(LogDir(from)); errors.Is(err, fs.ErrNotExist) {
		return nil // whoever looks at the copy will see
	}
	if err := fsys.Mkdir(LogDir(to), 0o700); err != nil {
		return err
	}
	if err := wal.Sample(fsys, LogDir(from), LogDir(to)); errors.Is(err, fs.ErrNotExist) {
		return errMoved
	} else if err != nil {
		return err
	}
	after, err := snapshot.List(fsys, SnapshotDir(from))
	if err == nil && !slices.Equal(before, after) {
		return errMoved
	}
	return err
}

// standIn is a file system in which a copy stands in the place of a directory, for
// who only reads there: what is found is told with the name that it has.
type standIn struct {
	vfs.FS
	dir, copy string
}

func (s *standIn) name(name string) string {
	for _, top := range []string{identityName, logName, snapshotsName} {
		if below, ok := strings.CutPrefix(name, filepath.Join(s.dir, top)); ok && (below == "" || below[0] == filepath.Separator) {
			return filepath.Join(s.copy, top, below)
		}
	}
	return name
}

func (s *standIn) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	return s.FS.OpenFile(s.name(name), flag, perm)
}

func (s *standIn) ReadDir(name string) ([]fs.DirEntry, error) { return s.FS.ReadDir(s.name(name)) }

func (s *standIn) Stat(name string) (fs.FileInfo, error) { return s.FS.Stat(s.name(name)) }
