package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pawl/internal/vfs"
)

func TestFile(t *testing.T) {
	var fsys vfs.FS = vfs.OS{}
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("hello"), 3); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"sync", f.Sync},
		{"datasync", f.Datasync},
		{"drop cache", f.DropCache},
		{"rename", func() error { return fsys.Rename(name, name+"b") }},
		{"link", func() error { return fsys.Link(name+"b", name) }},
		{"mkdir", func() error { return fsys.Mkdir(filepath.Join(dir, "d"), 0o700) }},
		{"sync directory", func() error { return fsys.SyncDir(dir) }},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
	}
	b := make([]byte, 8)
	if n, err := f.ReadAt(b, 0); n != 8 || string(b) != "\x00\x00\x00hello" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if n, err := f.ReadAt(b, 7); n != 1 || err != io.EOF {
		t.Errorf("read at the end: %d, %v", n, err)
	}
	if err := f.Truncate(4); err != nil {
		t.Error(err)
	}
	if size, err := f.Size(); size != 4 || err != nil {
		t.Errorf("size %d, %v", size, err)
	}
	if info, err := fsys.Stat(name); err != nil || info.Size() != 4 {
		t.Errorf("stat %v, %v", info, err)
	}
	if list, err := fsys.ReadDir(dir); err != nil || len(list) != 3 || list[0].Name() != "a" {
		t.Errorf("list %v, %v", list, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Datasync(); err == nil {
		t.Error("sync of a closed file succeeded")
	}
	if err := fsys.Remove(name); err != nil {
		t.Error(err)
	}
	if _, err := fsys.OpenFile(name, os.O_RDONLY, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open of a removed file: %v", err)
	}
	if err := fsys.SyncDir(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sync of a missing directory: %v", err)
	}
	if free, err := fsys.Available(dir); err != nil || free <= 0 {
		t.Errorf("%d bytes free, %v", free, err)
	}
	if _, err := fsys.Available(name); runtime.GOOS == "linux" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("free space of a missing directory: %v", err)
	}
}

// A link that somebody has put in the way of a new file is not followed.
func TestCreateThroughLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if f, err := (vfs.OS{}).OpenFile(link, os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		f.Close()
		t.Error("created a file through a symbolic link")
	}
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("target: %v, want none", err)
	}
}

// Who has a directory's lock may remove it and somebody else make it anew: of all
// who lock by its name, one at a time has it.
func TestLockOfWhatIsRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no lock on windows")
	}
	dir := filepath.Join(t.TempDir(), "d")
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
					t.Error(err)
				}
				lock, err := vfs.OS{}.Lock(dir)
				if errors.Is(err, vfs.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d have the lock", n)
				}
				inside.Add(-1)
				if err := os.Remove(dir); err != nil {
					t.Error(err)
				}
				lock.Close()
			}
		})
	}
	wg.Wait()
}

const helperDir = "PAWL_TEST_LOCK_DIR"

// TestMain is also the other process of TestLock.
func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		_, err := (vfs.OS{}).Lock(dir)
		held, ok := errors.AsType[*vfs.LockedError](err)
		switch {
		case err == nil:
			os.Exit(3)
		case !ok || !errors.Is(err, vfs.ErrLocked):
			os.Exit(4)
		case runtime.GOOS == "linux" && held.PID != os.Getppid() && held.PID != 0:
			os.Exit(5)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no lock on windows")
	}
	dir := t.TempDir()
	lock, err := vfs.OS{}.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := func() int {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), helperDir+"="+dir)
		err := cmd.Run()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	}
	if code := other(); code != 0 {
		t.Errorf("while it is held another process got %d, want it refused with the holder's PID (0)", code)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("the lock left %v, %v", list, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if code := other(); code != 3 {
		t.Errorf("after it was given back another process got %d, want the lock (3)", code)
	}
	if _, err := (vfs.OS{}).Lock(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("lock of a missing directory: %v", err)
	}
}
