//go:build !unix

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
)

const noFollow = 0

func datasync(f *os.File) error { return f.Sync() }

func dropCache(*os.File) error { return nil }

// Directories cannot be synced here.
func syncDir(*os.File) error { return nil }

func available(string) (int64, error) { return math.MaxInt64, nil }

func lockDir(dir string) (io.Closer, error) {
	return nil, &fs.PathError{Op: "lock", Path: dir, Err: errors.ErrUnsupported}
}
