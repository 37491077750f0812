package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// A directory that must be there as a whole or not at all is made beside, under a
// name of its own, and renamed when it is durable. Whoever is killed meanwhile
// leaves one that nobody holds: MakeLocked finds it the next time.

// Copying is what the name of a backup ends in while it is made.
const Copying = ".copying"

// makeTries is how often MakeLocked makes a directory that is removed before it is
// locked.
const makeTries = 50

// MakeLocked makes a directory, or finds one that is there, and locks it: whoever
// removes what a killed process left locks it as well. It may hold something; see
// RemoveBelow. ErrLocked where somebody else is at work in it, fs.ErrNotExist
// where its parent is missing.
func MakeLocked(fsys FS, dir string) (io.Closer, error) {
	for range makeTries {
		if err := fsys.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		lock, err := fsys.Lock(dir)
		if err == nil || !errors.Is(err, fs.ErrNotExist) { // else who had it has just removed it
			return lock, err
		}
	}
	return nil, fmt.Errorf("%s: it is removed again and again", dir)
}

// Publish gives a directory that was made without an error its name, in the same
// parent, and returns when that is durable. With an error there is neither, as far
// as they can be removed.
func Publish(fsys FS, made, name string, making error) error {
	if making != nil {
		return errors.Join(making, RemoveTree(fsys, made))
	}
	if err := fsys.Rename(made, name); err != nil {
		return errors.Join(err, RemoveTree(fsys, made))
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		return errors.Join(err, RemoveTree(fsys, name))
	}
	return nil
}

// RemoveTree removes a directory and all in it. What is not there is removed.
func RemoveTree(fsys FS, dir string) error {
	err := RemoveBelow(fsys, dir)
	if err == nil {
		err = fsys.Remove(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// RemoveBelow removes all that is in a directory.
func RemoveBelow(fsys FS, dir string) error {
	children, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, child := range children {
		path := filepath.Join(dir, child.Name())
		if child.IsDir() {
			err = RemoveTree(fsys, path)
		} else {
			err = fsys.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
