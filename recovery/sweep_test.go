package recovery_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
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
		var told bytes.Buffer
		go func() {
			defer close(over)
			recovery.Sweep(ctx, recovery.SweepOptions{FS: disk, Dir: "/store", Every: time.Minute, Log: slog.New(slog.NewTextHandler(&told, nil))})
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
			told string
		}{
			{"a tool looks", func() {}, true, ""},
			{"it is killed, and the disk removes nothing", func() {
				must(t, tool.Close())
				disk.Inject(func(op waltest.Op) waltest.Fault {
					if op.Kind == "remove" {
						return waltest.Fault{Err: broken}
					}
					return waltest.Fault{}
				})
			}, true, "cannot remove the copy of a tool"},
			{"the disk is well again", func() { disk.Inject(nil) }, false, "removed the copy of a tool"},
			{"there is nothing any more", func() {}, false, ""},
		} {
			told.Reset()
			step.do()
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := isThere(disk, "/store/live.tmp"); got != step.want {
				t.Errorf("%s: the copy is there: %v, want %v", step.name, got, step.want)
			}
			if got := told.String(); strings.Count(got, "\n") != min(len(step.told), 1) || !strings.Contains(got, step.told) {
				t.Errorf("%s: it said %q, want %q", step.name, got, step.told)
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

// What is removed below the backups is told, and what cannot be; not that there is
// no directory of them yet, nor what is not theirs. That is not held afterwards.
func TestSweepOfBackupsIsTold(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name, made, fails, told string
	}{
		{"nothing is there", "", "", ""},
		{"one was killed", "/backups/killed.copying", "", "removed a backup"},
		{"one is somebody else's", "/backups/other.copying", "", ""},
		{"the disk does not list", "/backups/killed.copying", "readdir", "cannot look for backups"},
		{"the disk gives no lock", "/backups/killed.copying", "lock", "cannot remove a backup"},
		{"the disk does not remove", "/backups/killed.copying", "remove", "cannot remove a backup"},
	} {
		disk := waltest.NewDisk()
		must(t, disk.Mkdir("/store", 0o700))
		if tt.made != "" {
			must(t, disk.Mkdir("/backups", 0o700))
			must(t, disk.Mkdir(tt.made, 0o700))
		}
		if tt.made == "/backups/other.copying" {
			must(t, disk.Mkdir(tt.made+"/photos", 0o700))
		}
		disk.Inject(func(op waltest.Op) waltest.Fault {
			if op.Kind == tt.fails {
				return waltest.Fault{Err: broken}
			}
			return waltest.Fault{}
		})
		var fsys vfs.FS = disk
		if tt.fails == "lock" {
			fsys = noLocks{disk}
		}
		var told bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it looks once
		recovery.Sweep(ctx, recovery.SweepOptions{FS: fsys, Dir: "/store", Backups: "/backups", Every: time.Hour, Log: slog.New(slog.NewTextHandler(&told, nil))})
		if got := told.String(); strings.Count(got, "\n") != min(len(tt.told), 1) || !strings.Contains(got, tt.told) {
			t.Errorf("%s: it said %q, want %q", tt.name, got, tt.told)
		}
		disk.Inject(nil)
		if tt.made != "" && isThere(disk, tt.made) {
			lock, err := disk.Lock(tt.made)
			must(t, err)
			must(t, lock.Close())
		}
	}
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
