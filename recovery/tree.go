package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pawl/internal/vfs"
)

// treeEntry is a file or directory of a store, by its path below it.
type treeEntry struct {
	path string
	dir  bool
}

// tree lists what a store is made of, each directory before what it holds.
// Temporary files and files of others are left out.
func tree(fsys vfs.FS, dir string) ([]treeEntry, error) {
	entries := []treeEntry{{path: identityName}}
	for _, top := range []string{logName, snapshotsName} {
		below, err := walk(fsys, dir, top)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		entries = append(entries, below...)
	}
	return entries, nil
}

// walk lists the directory at path below root and all in it.
func walk(fsys vfs.FS, root, path string) ([]treeEntry, error) {
	children, err := fsys.ReadDir(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	entries := []treeEntry{{path: path, dir: true}}
	for _, child := range children {
		name := filepath.Join(path, child.Name())
		switch {
		case child.IsDir():
			below, err := walk(fsys, root, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
			if err != nil {
				return nil, err
			}
			entries = append(entries, below...)
		case strings.HasSuffix(name, ".tmp"), strings.HasSuffix(name, ".damaged"):
		case child.Type().IsRegular():
			entries = append(entries, treeEntry{path: name})
		default:
			return nil, fmt.Errorf("%s is no file: %s", filepath.Join(root, name), child.Type())
		}
	}
	return entries, nil
}

// copyFile copies one file, at most limit bytes of it, and syncs the copy, but
// not its directory.
func copyFile(ctx context.Context, fsys vfs.FS, from, to string, limit int64) (err error) {
	in, err := fsys.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	size, err := in.Size()
	if err != nil {
		return err
	}
	size = min(size, limit)
	out, err := fsys.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closing := out.Close(); err == nil {
			err = closing
		}
	}()
	b := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := b[:min(int64(len(b)), size-at)]
		if n, err := in.ReadAt(part, at); n < len(part) {
			return fmt.Errorf("read %s: %w", from, err)
		}
		if _, err := out.WriteAt(part, at); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return out.Sync()
}

// mustBeNew refuses a name that something has already.
func mustBeNew(fsys vfs.FS, name string) error {
	_, err := fsys.Stat(name)
	if err == nil {
		return fmt.Errorf("%s %w", name, ErrExists)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
