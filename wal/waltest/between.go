package waltest

import (
	"io/fs"

	"pawl/internal/vfs"
)

// Between is a file system that calls Before before each operation on it, but not
// before those that Before leads to: one who works while another does.
type Between struct {
	vfs.FS
	Before func() // nil is nothing
	inside bool
}

func (b *Between) turn() {
	if b.Before != nil && !b.inside {
		b.inside = true
		b.Before()
		b.inside = false
	}
}

// OpenFile implements vfs.FS.
func (b *Between) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	b.turn()
	f, err := b.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &betweenFile{f, b}, nil
}

// Mkdir implements vfs.FS.
func (b *Between) Mkdir(name string, perm fs.FileMode) error {
	b.turn()
	return b.FS.Mkdir(name, perm)
}

// Remove implements vfs.FS.
func (b *Between) Remove(name string) error { b.turn(); return b.FS.Remove(name) }

// Link implements vfs.FS.
func (b *Between) Link(oldname, newname string) error {
	b.turn()
	return b.FS.Link(oldname, newname)
}

// ReadDir implements vfs.FS.
func (b *Between) ReadDir(name string) ([]fs.DirEntry, error) { b.turn(); return b.FS.ReadDir(name) }

// Stat implements vfs.FS.
func (b *Between) Stat(name string) (fs.FileInfo, error) { b.turn(); return b.FS.Stat(name) }

// SyncDir implements vfs.FS.
func (b *Between) SyncDir(name string) error { b.turn(); return b.FS.SyncDir(name) }

type betweenFile struct {
	vfs.File
	b *Between
}

func (f *betweenFile) ReadAt(p []byte, off int64) (int, error) {
	f.b.turn()
	return f.File.ReadAt(p, off)
}

func (f *betweenFile) WriteAt(p []byte, off int64) (int, error) {
	f.b.turn()
	return f.File.WriteAt(p, off)
}

func (f *betweenFile) Truncate(size int64) error { f.b.turn(); return f.File.Truncate(size) }

func (f *betweenFile) Size() (int64, error) { f.b.turn(); return f.File.Size() }

func (f *betweenFile) Sync() error { f.b.turn(); return f.File.Sync() }
