package recovery_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
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
			recovery.Sweep(ctx, disk, "/store", time.Minute, slog.New(slog.DiscardHandler))
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
