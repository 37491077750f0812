package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// OS is the real file system.
type OS struct{}

var (
	_ FS     = OS{}
	_ Native = OS{}
)

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s: %v", e.Dir, ErrLocked)
	}
	return fmt.Sprintf("%s: %v (pid %d)", e.Dir, ErrLocked, e.PID)
}

func (e *LockedError) Is(target error) bool { return target == ErrLocked }

func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if flag&os.O_CREATE != 0 {
		flag |= noFollow
	}
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (OS) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (OS) Remove(name string) error                   { return os.Remove(name) }
func (OS) Rename(oldname, newname string) error       { return os.Rename(oldname, newname) }
func (OS) Link(oldname, newname string) error         { return os.Link(oldname, newname) }
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (OS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (OS) Available(dir string) (int64, error)        { return available(dir) }
func (OS) Lock(dir string) (io.Closer, error)         { return lockDir(dir) }

// NativePath is name itself.
func (OS) NativePath(name string) string { return name }

func (OS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	if err := syncDir(d); err != nil {
		d.Close()
		return &fs.PathError{Op: "sync directory", Path: name, Err: err}
	}
	return d.Close()
}

// osFile is an *os.File without an offset.
type osFile struct{ f *os.File }

func (f osFile) ReadAt(p []byte, off int64) (int, error)  { return f.f.ReadAt(p, off) }
func (f osFile) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }
func (f osFile) Close() error                             { return f.f.Close() }
func (f osFile) Sync() error                              { return f.f.Sync() }
func (f osFile) Truncate(size int64) error                { return f.f.Truncate(size) }

func (f osFile) Datasync() error {
	if err := datasync(f.f); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.f.Name(), Err: err}
	}
	return nil
}

func (f osFile) DropCache() error {
	if err := dropCache(f.f); err != nil {
		return &fs.PathError{Op: "fadvise", Path: f.f.Name(), Err: err}
	}
	return nil
}

func (f osFile) Size() (int64, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
