package recovery_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pawl/internal/record"
	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/snapshot"
	"pawl/wal/waltest"
)

var update = flag.Bool("update", false, "write a golden store of the present formats where there is none")

// goldenStores is how often a format of a file of a store changed, and once more:
//
//	1  STORE 1, log 1, snapshots 1
//	2  snapshots 2
const goldenStores = 2

func goldenPath(n int) string { return filepath.Join("testdata", "golden", strconv.Itoa(n)) }

// A store of every format there ever was opens for ever, as the state that is
// written down beside it. testdata/golden/N is a data directory of the formats of
// goldenStores, testdata/golden/N.state its state. What is there is never written
// again: a change of a format adds a directory.
func TestGoldenStores(t *testing.T) {
	layer := record.Note(t, "9 repair and upgrade")
	for format := 1; format <= goldenStores; format++ {
		dir := goldenPath(format)
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && *update && format == goldenStores {
			writeGolden(t, dir)
		}
		disk := load(t, dir)
		layer.Cases++
		want, err := os.ReadFile(dir + ".state")
		must(t, err)
		before := image(disk)
		health, err := recovery.Check(t.Context(), recovery.CheckOptions{FS: disk, Dir: "/store"})
		must(t, err)
		if len(health.Problems)+len(health.Notes) != 0 || !image(disk).equal(before) {
			t.Errorf("format %d: got %v, %v", format, health.Problems, health.Notes)
		}
		store, err := recovery.Open(t.Context(), options(disk, "/store"))
		must(t, err)
		if got := dump(store.State); got != string(want) {
			t.Errorf("format %d: got\n%s\nwant\n%s", format, got, want)
		}
		if r := store.Report; r.SnapshotLSN == 0 || r.Groups == 0 || r.Bodies == 0 {
			t.Errorf("format %d: the store does not show all there is: %+v", format, r)
		}
		// It is not only read: it goes on.
		p := newPast()
		p.dumps[uint64(store.End.LSN)], p.acked = string(want), uint64(store.End.LSN)
		must(t, store.Close())
		w, err := openWorld(disk, "/store", 1, p)
		must(t, err)
		must(t, w.work(10))
		must(t, w.snapshot())
		must(t, w.work(10))
		must(t, w.close())
		w, err = openWorld(disk, "/store", 2, p)
		must(t, err)
		must(t, w.close())
	}
}

// load copies a directory of the real file system to a disk in memory, without
// the zeros at the ends of segment files being on the real one.
func load(t testing.TB, dir string) *waltest.Disk {
	t.Helper()
	disk := waltest.NewDisk()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		to := filepath.ToSlash(filepath.Join("/store", rel))
		if d.IsDir() {
			return disk.Mkdir(to, 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return put(disk, to, b)
	})
	must(t, err)
	return disk
}

func put(fs vfs.FS, name string, b []byte) error {
	f, err := fs.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close())
}

// writeGolden makes a store with all there is: several generations, payloads
// below the snapshot, slots that are free in it, groups behind it.
func writeGolden(t *testing.T, dir string) {
	disk, p := cleanStore(t, 600, 2, 30)
	w, err := openWorld(disk, "/store", 601, p)
	must(t, err)
	must(t, w.comeAndGo(200))
	must(t, w.snapshot())
	must(t, w.work(12))
	must(t, w.close())
	for _, name := range disk.Files() {
		path := filepath.Join(dir, filepath.FromSlash(name[len("/store"):]))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, disk.Contents(name), 0o644))
	}
	must(t, os.WriteFile(dir+".state", []byte(p.dumps[p.acked]), 0o644))
}

// FuzzOpen gives arbitrary bytes for a file of a store: a start never panics,
// never hangs, and refuses or gives a state that is sound in itself.
func FuzzOpen(f *testing.F) {
	disk := load(f, goldenPath(goldenStores))
	files := disk.Files()
	for i, name := range files {
		b := disk.Contents(name)
		f.Add(uint8(i), b)
		f.Add(uint8(i), bytes.TrimRight(b, "\x00"))
		f.Add(uint8(i), []byte{})
		if strings.Contains(name, "/snapshots/") {
			older, err := os.ReadFile(filepath.Join(goldenPath(1), "snapshots", snapshot.Name(51)))
			must(f, err)
			f.Add(uint8(i), older)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		bad := disk.Kill()
		name := files[int(which)%len(files)]
		bad.SetContents(name, b)
		store, err := recovery.Open(t.Context(), options(bad, "/store"))
		if err != nil {
			if code := recovery.ExitCode(err); code != recovery.ExitDamaged {
				t.Fatalf("%s: exit %d: %v", name, code, err)
			}
			return
		}
		if err := errors.Join(store.State.Check(), store.Close()); err != nil {
			t.Fatal(err)
		}
	})
}
