package recovery

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/vfs"
	"pawl/wal"
)

// veil is a file system in which some directories cannot be seen. Repair and
// restore look through it at what would be left if they were gone.
type veil struct {
	vfs.FS
	hidden map[string]bool
	lifted bool // all can be seen
}

func (v *veil) hides(name string) bool {
	if v.lifted {
		return false
	}
	for dir := name; ; dir = filepath.Dir(dir) {
		if v.hidden[dir] {
			return true
		}
		if !strings.ContainsRune(dir, filepath.Separator) || dir == filepath.Dir(dir) {
			return false
		}
	}
}

// hide makes a generation of the store in dir invisible.
func (v *veil) hide(dir string, generation uint32) {
	v.hidden[filepath.Dir(wal.SegmentPath(LogDir(dir), generation))] = true
}

// hideFrom hides a generation and all later ones.
func (v *veil) hideFrom(dir string, generation uint32) error {
	numbers, err := generationNumbers(v.FS, dir)
	for _, number := range numbers {
		if number >= generation {
			v.hide(dir, number)
		}
	}
	return err
}

func (v *veil) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if v.hides(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return v.FS.OpenFile(name, flag, perm)
}

func (v *veil) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := v.FS.ReadDir(name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return v.hides(filepath.Join(name, e.Name())) }), err
}
