//go:build unix

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

func syncDir(d *os.File) error { return d.Sync() }

func available(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := ignoringEINTR(func() error { return unix.Statfs(dir, &s) }); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	blocks, size := uint64(s.Bavail), uint64(s.Bsize)
	if size != 0 && blocks > math.MaxInt64/size {
		return math.MaxInt64, nil
	}
	return int64(blocks * size), nil
}

// lockDir locks the directory's own inode: there is no file to leave behind,
// and the kernel drops the lock when the process dies.
func lockDir(dir string) (io.Closer, error) {
	for {
		d, err := lockOpen(dir)
		if err != nil {
			return nil, err
		}
		// Who held it before may have removed it, or given the name to another one,
		// since it was opened: that one would not be locked.
		if same, err := isStill(d, dir); same {
			return d, nil
		} else if err = errors.Join(err, d.Close()); err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
	}
}

// isStill says whether an open directory is the one that has a name now.
func isStill(d *os.File, name string) (bool, error) {
	opened, err := d.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(name)
	if err != nil {
		return false, err
	}
	return os.SameFile(opened, named), nil
}

// lockOpen locks what has the name when it is opened.
func lockOpen(dir string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	err = ignoringEINTR(func() error { return unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		held := &LockedError{Dir: dir, PID: lockHolder(d)}
		d.Close()
		return nil, held
	}
	if err != nil {
		d.Close()
		return nil, &fs.PathError{Op: "flock", Path: dir, Err: err}
	}
	return d, nil
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
