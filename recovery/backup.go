package recovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"pawl/internal/vfs"
	"pawl/wal"
)

// BackupOptions say what to copy.
type BackupOptions struct {
	FS  vfs.FS // vfs.OS{}
	Dir string // of a store that no daemon runs on; a running one makes backups itself
	To  string // a new directory; must not exist, its parent must
	// Base is an earlier backup on the same file system, or empty: files that are
	// the same there become hard links instead of copies.
	Base string
}

// Backup copies a store and checks the copy as Check does. Without an error To
// is complete, durable and sound; with one there is no To. A damaged store is
// not copied: its damage is the error.
func Backup(ctx context.Context, opt BackupOptions) (*Health, error) {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	opt.To = filepath.Clean(opt.To)
	if err := mustBeNew(opt.FS, opt.To); err != nil {
		return nil, err
	}
	made := opt.To + vfs.Copying
	// To may be below a daemon's --backup-dir, where what nobody holds is removed.
	lock, err := vfs.MakeLocked(opt.FS, made)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	var health *Health
	err = withStore(opt.FS, opt.Dir, false, func(vfs.FS) (err error) {
		health, err = backup(ctx, opt, made)
		return err
	})
	if err := vfs.Publish(opt.FS, made, opt.To, err); err != nil {
		return nil, err
	}
	return health, nil
}

func backup(ctx context.Context, opt BackupOptions, made string) (*Health, error) {
	if err := vfs.RemoveBelow(opt.FS, made); err != nil { // of one that was killed
		return nil, err
	}
	if err := copyTree(ctx, opt.FS, opt.Dir, made, opt.Base); err != nil {
		return nil, err
	}
	health, err := check(ctx, opt.FS, made, nil)
	if err != nil {
		return nil, err
	}
	return health, errors.Join(health.Problems...)
}

// copyTree copies what a store is made of into an empty directory, and returns
// when it is durable but for the directory's own name.
func copyTree(ctx context.Context, fsys vfs.FS, from, to, base string) error {
	entries, err := tree(fsys, from)
	if err != nil {
		return err
	}
	// A daemon that starts on the copy trims the generation that the log ends in.
	// That of the base must keep its length: nothing else there says that it was
	// not cut short. What is wrong with a log that cannot be found, the check of
	// the copy tells.
	var newest string
	if base != "" {
		if history, err := wal.Find(fsys, LogDir(from), wal.FindOptions{}); err == nil && len(history.Linked) > 0 {
			newest = wal.SegmentPath(LogDir(from), history.Linked[len(history.Linked)-1].Generation)
		}
	}
	dirs := []string{to}
	for _, entry := range entries {
		made := filepath.Join(to, entry.path)
		if entry.dir {
			if err := fsys.Mkdir(made, 0o700); err != nil {
				return err
			}
			dirs = append(dirs, made)
			continue
		}
		source := filepath.Join(from, entry.path)
		if base != "" && source != newest {
			earlier := filepath.Join(base, entry.path)
			same, err := sameBytes(ctx, fsys, source, earlier)
			if err != nil {
				return err
			}
			if same {
				if err := fsys.Link(earlier, made); err != nil {
					return err
				}
				continue
			}
		}
		if err := copyFile(ctx, fsys, source, made, math.MaxInt64); err != nil {
			return err
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := fsys.SyncDir(dirs[i]); err != nil {
			return err
		}
	}
	return nil
}

// sameBytes says that both files exist and hold the same.
func sameBytes(ctx context.Context, fsys vfs.FS, a, b string) (bool, error) {
	fa, err := fsys.OpenFile(a, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := fsys.OpenFile(b, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer fb.Close()
	size, err := fa.Size()
	if err != nil {
		return false, err
	}
	if other, err := fb.Size(); err != nil || other != size {
		return false, err
	}
	one, two := make([]byte, min(size, 1<<20)), make([]byte, min(size, 1<<20))
	for at := int64(0); at < size; at += int64(len(one)) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n := min(int64(len(one)), size-at)
		if got, err := fa.ReadAt(one[:n], at); int64(got) < n {
			return false, fmt.Errorf("read %s: %w", a, err)
		}
		if got, err := fb.ReadAt(two[:n], at); int64(got) < n {
			return false, fmt.Errorf("read %s: %w", b, err)
		}
		if !bytes.Equal(one[:n], two[:n]) {
			return false, nil
		}
	}
	return true, nil
}
