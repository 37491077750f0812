package recovery

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"pawl/internal/vfs"
)

// withStore calls use with a store that nobody changes meanwhile: the directory
// itself, locked, or for a live one a copy of hard links beside it, which is
// removed again. use must not write to it.
func withStore(fsys vfs.FS, dir string, live bool, use func(dir string) error) (err error) {
	if !live {
		lock, err := lockExisting(fsys, dir)
		if err != nil {
			return err
		}
		return errors.Join(use(dir), lock.Close())
	}
	tmp := filepath.Clean(dir) + ".live"
	defer func() {
		if removing := removeTree(fsys, tmp); err == nil {
			err = removing
		}
	}()
	for range liveTries {
		if err := removeTree(fsys, tmp); err != nil {
			return err
		}
		err := linkStore(fsys, dir, tmp)
		if err == nil {
			return use(tmp)
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
	return fmt.Errorf("%s changes too fast to be linked: try again, or use a backup", dir)
}

// liveTries is how often linking is begun again because the daemon made or
// removed files meanwhile.
const liveTries = 50

// lockExisting locks a directory that must be there.
func lockExisting(fsys vfs.FS, dir string) (io.Closer, error) {
	return lockStore(Options{FS: fsys, Dir: dir, Existing: true})
}

// errMoved says that the daemon made or removed files while they were linked.
var errMoved = errors.New("the directory changed meanwhile")

// linkStore makes a copy of hard links of a store that is being written, or
// returns errMoved.
func linkStore(fsys vfs.FS, from, to string) error {
	before, err := tree(fsys, from)
	if err != nil {
		return err
	}
	if err := fsys.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, entry := range before {
		made := filepath.Join(to, entry.path)
		if entry.dir {
			err = fsys.Mkdir(made, 0o700)
		} else {
			err = fsys.Link(filepath.Join(from, entry.path), made)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return errMoved
		}
		if err != nil {
			return err
		}
	}
	after, err := tree(fsys, from)
	if err != nil {
		return err
	}
	if !slices.Equal(before, after) {
		return errMoved
	}
	return nil
}
