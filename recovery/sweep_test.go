package recovery_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/wal/waltest"
)

// abandoned puts into a store what a tool leaves that is killed.
func abandoned(t *testing.T, fsys vfs.FS) {
	t.Helper()
	must(t, fsys.Mkdir("/store/live.tmp", 0o700))
	must(t, fsys.Mkdir("/store/live.tmp/log", 0o700))
	must(t, fsys.Link("/store/STORE", "/store/live.tmp/STORE"))
}

func isThere(fsys vfs.FS, name string) bool {
	_, err := fsys.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// A start removes the copy of a tool that was killed, and leaves that of a tool
// that looks.
func TestStartRemovesAbandonedCopy(t *testing.T) {
	disk := waltest.NewDisk()
	w, err := openWorld(disk, "/store", 510, newPast())
	must(t, err)
	must(t, w.close())
	abandoned(t, disk)
	tool, err := disk.Lock("/store/live.tmp")
	must(t, err)
	for _, held := range []bool{true, false} {
		store, err := recovery.Open(t0, options(disk, "/store"))
		must(t, err)
		if got := isThere(disk, "/store/live.tmp/STORE"); got != held {
			t.Errorf("the copy is there: %v, want %v", got, held)
		}
		must(t, store.Close())
		must(t, tool.Close())
	}
}

// While a store runs, the copy of a tool that is killed goes after a while; one
// that cannot be removed is tried again.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		w, err := openWorld(disk, "/store", 511, newPast())
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			recovery.Sweep(ctx, recovery.SweepOptions{FS: disk, Dir: "/store", Every: time.Minute})
		}()
		synctest.Wait()
		abandoned(t, disk)
		tool, err := disk.Lock("/store/live.tmp")
		must(t, err)
		broken := errors.New("broken")
		for _, step := range []struct {
			name string
			do   func()
			want bool
		}{
			{"a tool looks", func() {}, true},
			{"it is killed, and the disk removes nothing", func() {
				must(t, tool.Close())
				disk.Inject(func(op waltest.Op) waltest.Fault {
					if op.Kind == "remove" {
						return waltest.Fault{Err: broken}
					}
					return waltest.Fault{}
				})
			}, true},
			{"the disk is well again", func() { disk.Inject(nil) }, false},
		} {
			step.do()
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := isThere(disk, "/store/live.tmp"); got != step.want {
				t.Errorf("%s: the copy is there: %v, want %v", step.name, got, step.want)
			}
		}
		cancel()
		<-over
		must(t, w.close())
	})
}

// sweptFS removes the directory that a tool has made before the tool locks it, once.
type sweptFS struct {
	vfs.FS
	swept bool
}

func (s *sweptFS) Lock(dir string) (io.Closer, error) {
	if !s.swept {
		s.swept = true
		if err := s.FS.Remove(dir); err != nil {
			return nil, err
		}
	}
	return s.FS.Lock(dir)
}

// A tool whose directory is swept away before it is locked makes another.
func TestLiveToolIsSwept(t *testing.T) {
	disk := waltest.NewDisk()
	w, err := openWorld(disk, "/store", 512, newPast())
	must(t, err)
	must(t, second(recovery.Check(t0, recovery.CheckOptions{FS: &sweptFS{FS: disk}, Dir: "/store", Live: true})))
	must(t, w.close())
}

// A backup that was not finished goes at once, unless somebody is at it, or it
// holds what no backup does; one that was finished stays.
func TestSweepOfBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		for _, dir := range []string{
			"/store", "/backups", "/backups/whole", "/backups/whole/log",
			"/backups/killed.copying", "/backups/killed.copying/log", "/backups/killed.copying/log/0000000001",
			"/backups/held.copying", "/backups/held.copying/log",
			"/backups/other.copying", "/backups/other.copying/photos",
		} {
			must(t, disk.Mkdir(dir, 0o700))
		}
		f, err := disk.OpenFile("/backups/file.copying", os.O_CREATE|os.O_WRONLY, 0o600)
		must(t, err)
		must(t, f.Close())
		at, err := disk.Lock("/backups/held.copying")
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			recovery.Sweep(ctx, recovery.SweepOptions{FS: disk, Dir: "/store", Backups: "/backups", Every: time.Minute})
		}()
		want := []string{"file.copying", "held.copying", "other.copying", "whole"}
		for _, step := range []string{"at once", "after a minute", "when it is held no more"} {
			synctest.Wait()
			entries, err := disk.ReadDir("/backups")
			must(t, err)
			var got []string
			for _, entry := range entries {
				got = append(got, entry.Name())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", step, got, want)
			}
			if step == "after a minute" {
				must(t, at.Close())
				want = []string{"file.copying", "other.copying", "whole"}
			}
			time.Sleep(time.Minute)
		}
		cancel()
		<-over
	})
}

// Nobody may take what a tool makes for abandoned, or for his own, while it is made.
func TestToolsHoldWhatTheyMake(t *testing.T) {
	for made, tool := range map[string]func(fsys vfs.FS) error{
		"/new.copying": func(fsys vfs.FS) error {
			return second(recovery.Backup(t0, recovery.BackupOptions{FS: fsys, Dir: "/store", To: "/new"}))
		},
		"/new.restoring": func(fsys vfs.FS) error {
			return second(recovery.Restore(t0, recovery.RestoreOptions{FS: fsys, Dir: "/store", To: "/new", LSN: 15}))
		},
		"/new.repairing": func(fsys vfs.FS) error {
			return second(recovery.Repair(t0, recovery.RepairOptions{FS: fsys, Dir: "/store", To: "/new"}))
		},
	} {
		t.Run(made, func(t *testing.T) {
			disk, _ := cleanStore(t, 513, 2, 20)
			if made == "/new.repairing" {
				flip("STORE", 200)(t, disk)
			}
			seen := 0
			between := &waltest.Between{FS: disk, Before: func() {
				held, err := disk.ReadDir(made)
				if err != nil || len(held) == 0 {
					return
				}
				seen++
				if lock, err := disk.Lock(made); !errors.Is(err, vfs.ErrLocked) {
					t.Errorf("its lock can be had: %v", errors.Join(err, lock.Close()))
				}
			}}
			must(t, tool(between))
			if seen == 0 {
				t.Error("the test tests nothing")
			}
			must(t, disk.Mkdir(made, 0o700))
			lock, err := disk.Lock(made)
			must(t, err)
			must(t, disk.Rename("/new", "/old"))
			if err := tool(disk); !errors.Is(err, vfs.ErrLocked) || !isThere(disk, made) || isThere(disk, "/new") {
				t.Errorf("while somebody else makes it: got %v, want that it is locked, and nothing changed", err)
			}
			must(t, lock.Close())
		})
	}
}
