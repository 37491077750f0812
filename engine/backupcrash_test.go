package engine_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/internal/vfs"
	"pawl/wal/waltest"
)

// copyFS calls Before before each operation on what a backup makes, and on nothing
// else.
type copyFS struct {
	*waltest.Disk
	*waltest.Between
}

func (c copyFS) of(name string) vfs.FS {
	if strings.HasPrefix(name, "copy") {
		return c.Between
	}
	return c.Disk
}

func (c copyFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	return c.of(name).OpenFile(name, flag, perm)
}
func (c copyFS) Mkdir(name string, perm fs.FileMode) error  { return c.of(name).Mkdir(name, perm) }
func (c copyFS) Remove(name string) error                   { return c.of(name).Remove(name) }
func (c copyFS) Rename(from, to string) error               { return c.of(to).Rename(from, to) }
func (c copyFS) Link(from, to string) error                 { return c.of(to).Link(from, to) }
func (c copyFS) ReadDir(name string) ([]fs.DirEntry, error) { return c.of(name).ReadDir(name) }
func (c copyFS) Stat(name string) (fs.FileInfo, error)      { return c.of(name).Stat(name) }
func (c copyFS) SyncDir(name string) error                  { return c.of(name).SyncDir(name) }
func (c copyFS) Available(dir string) (int64, error)        { return c.Disk.Available(dir) }

// The power goes, or the process is killed, at any moment of a backup: what has its
// name is all of it, and where there is none a daemon makes it, whatever was left.
// Nobody may take what is left for abandoned while the backup is made.
func TestPowerCutInABackup(t *testing.T) {
	disk := waltest.NewDisk()
	fsys := copyFS{disk, &waltest.Between{FS: disk}}
	s := aFewGenerations(t, fsys)
	defer s.close()
	before := s.dump()
	moments, states, there, again := uint64(0), 0, 0, 0
	const made = "copy" + engine.Copying
	look := func() {
		moments++
		if lock, err := disk.Lock(made); err == nil {
			lock.Close()
			if held, err := disk.ReadDir(made); err == nil && len(held) > 0 {
				t.Error("nobody holds the copy that is being made")
			}
		}
		for name, left := range disk.States(moments, 1) {
			states++
			if _, err := left.Stat("copy"); err == nil {
				if there++; dumpOf(t, left, "copy") != before {
					t.Fatalf("moment %d, state %s: half a backup has its name", moments, name)
				}
				continue
			} else if !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if name != "none" && name != "all" {
				continue
			}
			again++
			next := &shop{t: t, fs: left, dir: "data", log: s.log}
			next.open()
			err := next.e.Backup(t.Context(), "copy")
			next.close()
			if err != nil || dumpOf(t, left, "copy") != before {
				t.Fatalf("moment %d, state %s: the next try: %v, or half a backup", moments, name, err)
			}
		}
	}
	fsys.Before = look
	if err := s.e.Backup(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	fsys.Before = nil
	look()
	if there == 0 || again == 0 {
		t.Error("the test tests nothing")
	}
	t.Logf("%d moments, %d states, the backup was there in %d, made again in %d", moments, states, there, again)
}
