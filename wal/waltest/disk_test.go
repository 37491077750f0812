package waltest_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"pawl/internal/vfs"
	"pawl/wal/waltest"
)

func create(t *testing.T, fsys vfs.FS, name, content string) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func none(int) waltest.Keep { return waltest.Keep{} }

func keep(set ...int) func(int) waltest.Keep {
	return func(i int) waltest.Keep {
		for _, s := range set {
			if s == i {
				return waltest.Keep{What: waltest.Whole}
			}
		}
		return waltest.Keep{}
	}
}

// The disk promises what POSIX does and no more.
func TestPowerLoss(t *testing.T) {
	d := waltest.NewDisk()
	must(t, d.Mkdir("/d", 0o700))
	f := create(t, d, "/d/a", "hello")
	if got := len(d.Pending()); got != 3 {
		t.Fatalf("%d changes pending, want directory, name and write: %v", got, d.Pending())
	}
	for _, row := range []struct {
		what string
		do   func()
		keep func(int) waltest.Keep
		want string // what /d/a holds; "-" if it is not there
	}{
		{"nothing was synced", func() {}, none, "-"},
		{"the bytes came, the names did not", func() {}, keep(2), "-"},
		{"the names came, the bytes did not", func() {}, keep(0, 1), ""},
		{"all came", func() {}, keep(0, 1, 2), "hello"},
		{"the write came in part", func() {}, func(i int) waltest.Keep {
			if i == 2 {
				return waltest.Keep{What: waltest.Torn, Bytes: 2}
			}
			return waltest.Keep{What: waltest.Whole}
		}, "he"},
		{"the write came as zeros", func() {}, func(i int) waltest.Keep {
			return waltest.Keep{What: map[bool]waltest.KeepWhat{true: waltest.Zeroed, false: waltest.Whole}[i == 2]}
		}, "\x00\x00\x00\x00\x00"},
		{"file synced, names not", func() { must(t, f.Datasync()) }, none, "-"},
		{"and its directory, but not the root", func() { must(t, d.SyncDir("/d")) }, none, "-"},
		{"and the root", func() { must(t, d.SyncDir("/")) }, none, "hello"},
		{"truncated, not synced", func() { must(t, f.Truncate(1)) }, none, "hello"},
		{"truncated and synced", func() { must(t, f.Sync()) }, none, "h"},
		{"renamed away, not synced", func() { must(t, d.Rename("/d/a", "/d/b")) }, none, "h"},
		{"renamed away, came", func() {}, keep(0), "-"},
		{"removed, not synced", func() { must(t, d.Rename("/d/b", "/d/a")); must(t, d.Remove("/d/a")) }, none, "h"},
		{"removed and synced", func() { must(t, d.SyncDir("/d")) }, none, "-"},
	} {
		row.do()
		after := d.Crash(row.keep)
		got := "-"
		if _, err := after.Stat("/d/a"); err == nil {
			got = string(after.Contents("/d/a"))
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", row.what, err)
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.what, got, row.want)
		}
	}
}

// A kill keeps everything visible and makes nothing durable.
func TestKill(t *testing.T) {
	d := waltest.NewDisk()
	create(t, d, "/a", "hello")
	d.Inject(waltest.CrashAt(d.Ops()+1, false, 0))
	if _, err := d.Stat("/a"); !errors.Is(err, waltest.ErrCrashed) || !d.Crashed() {
		t.Errorf("got %v, want a crash", err)
	}
	if _, err := d.ReadDir("/"); !errors.Is(err, waltest.ErrCrashed) {
		t.Errorf("after the crash: %v", err)
	}
	next := d.Kill()
	if got := string(next.Contents("/a")); got != "hello" {
		t.Errorf("after a kill %q", got)
	}
	if got := next.Crash(none).Files(); len(got) != 0 {
		t.Errorf("after a kill and a power loss there is %v", got)
	}
}

// A failed sync is final, and its bytes seem to be there until they are read
// from the disk.
func TestFailedSync(t *testing.T) {
	d := waltest.NewDisk()
	f := create(t, d, "/a", "old")
	must(t, f.Sync())
	must(t, d.SyncDir("/"))
	if _, err := f.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	d.Inject(waltest.FailAt(d.Ops()+1, syscall.EIO, false))
	if err := f.Datasync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v, want EIO", err)
	}
	must(t, f.Datasync()) // says that all is well
	if got := string(d.Contents("/a")); got != "new" {
		t.Errorf("in memory is %q", got)
	}
	if got := string(d.Crash(none).Contents("/a")); got != "old" {
		t.Errorf("on disk is %q", got)
	}
	next := d.Kill()
	g, err := next.OpenFile("/a", os.O_RDWR, 0)
	must(t, err)
	must(t, g.Sync())
	must(t, g.DropCache())
	b := make([]byte, 3)
	if _, err := g.ReadAt(b, 0); err != nil || string(b) != "old" {
		t.Errorf("behind the cache is %q, %v", b, err)
	}
}

func TestFaults(t *testing.T) {
	d := waltest.NewDisk()
	f := create(t, d, "/a", "")
	n := d.Ops()
	d.Inject(waltest.FailAt(n+1, syscall.EIO, true))
	for range 2 {
		if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EIO) {
			t.Errorf("sticky: got %v", err)
		}
	}
	must(t, f.Sync()) // another kind
	d.Inject(func(waltest.Op) waltest.Fault { return waltest.Fault{Err: syscall.EIO, Bytes: 2} })
	if n, err := f.WriteAt([]byte("abc"), 0); n != 2 || !errors.Is(err, syscall.EIO) || string(d.Contents("/a")) != "ab" {
		t.Errorf("short write: %d, %v, %q", n, err, d.Contents("/a"))
	}
	d.Inject(func(waltest.Op) waltest.Fault { return waltest.Fault{Err: syscall.EIO, Done: true} })
	if err := d.Rename("/a", "/b"); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	if got := d.Files(); len(got) != 1 || got[0] != "/b" {
		t.Errorf("failed but done: %v", got)
	}
}

func TestFullDisk(t *testing.T) {
	d := waltest.NewDisk()
	f := create(t, d, "/a", "12345")
	d.Limit(3)
	if n, err := f.WriteAt([]byte("1234567890"), 0); n != 8 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %d, %v, want 8, ENOSPC", n, err)
	}
	if free, err := d.Available("/"); free != 0 || err != nil {
		t.Errorf("%d free, %v", free, err)
	}
	if err := f.Truncate(100); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	must(t, d.Remove("/a"))
	if free, _ := d.Available("/"); free != 8 {
		t.Errorf("%d free after removal, want 8", free)
	}
}

func TestNames(t *testing.T) {
	d := waltest.NewDisk()
	must(t, d.Mkdir("d", 0o700))
	create(t, d, "d/f", "x")
	for what, row := range map[string]struct{ got, want error }{
		"mkdir over":        {d.Mkdir("/d", 0o700), fs.ErrExist},
		"mkdir in nothing":  {d.Mkdir("/x/y", 0o700), fs.ErrNotExist},
		"mkdir in a file":   {d.Mkdir("/d/f/y", 0o700), syscall.ENOTDIR},
		"remove nothing":    {d.Remove("/d/x"), fs.ErrNotExist},
		"remove full dir":   {d.Remove("/d"), syscall.ENOTEMPTY},
		"rename nothing":    {d.Rename("/x", "/y"), fs.ErrNotExist},
		"link over":         {d.Link("/d/f", "/d/f"), fs.ErrExist},
		"link nothing":      {d.Link("/d/x", "/d/y"), fs.ErrNotExist},
		"sync no directory": {d.SyncDir("/x"), fs.ErrNotExist},
		"open nothing":      {second(d.OpenFile("/d/x", os.O_RDWR, 0)), fs.ErrNotExist},
		"open a directory":  {second(d.OpenFile("/d", os.O_RDWR, 0)), syscall.EISDIR},
		"open exclusively":  {second(d.OpenFile("/d/f", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0)), fs.ErrExist},
		"list a file":       {second(d.ReadDir("/d/f")), syscall.ENOTDIR},
		"list nothing":      {second(d.ReadDir("/x")), fs.ErrNotExist},
	} {
		if !errors.Is(row.got, row.want) {
			t.Errorf("%s: got %v, want %v", what, row.got, row.want)
		}
	}
	must(t, d.Link("/d/f", "/d/g"))
	list, err := d.ReadDir("/d")
	must(t, err)
	if len(list) != 2 || list[0].Name() != "f" || list[1].Name() != "g" || list[0].IsDir() {
		t.Errorf("list is %v", list)
	}
	f, err := d.OpenFile("/d/f", os.O_RDONLY, 0)
	must(t, err)
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EBADF) {
		t.Errorf("write to a file opened for reading: %v", err)
	}
	if n, err := f.ReadAt(make([]byte, 5), 0); n != 1 || err != io.EOF {
		t.Errorf("read got %d, %v", n, err)
	}
	must(t, f.Close())
	if _, err := f.Size(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("size of a closed file: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestLock(t *testing.T) {
	d := waltest.NewDisk()
	lock, err := d.Lock("/")
	must(t, err)
	if _, err := d.Lock("/"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	if _, err := d.Kill().Lock("/"); err != nil {
		t.Errorf("lock after the holder was killed: %v", err)
	}
	must(t, lock.Close())
	_, err = d.Lock("/")
	must(t, err)
}

// States are all different ways, and the same for the same seed.
func TestStates(t *testing.T) {
	d := waltest.NewDisk()
	f := create(t, d, "/a", strings.Repeat("x", 2000))
	must(t, d.SyncDir("/"))
	for i := range 12 {
		if _, err := f.WriteAt([]byte{byte('a' + i)}, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	contents := map[string]bool{}
	for name, after := range d.States(7, 64) {
		names = append(names, name)
		contents[string(after.Contents("/a"))] = true
	}
	if len(names) < 13*4+64 || len(contents) < 64 {
		t.Errorf("%d states, %d different", len(names), len(contents))
	}
	i := 0
	for name := range d.States(7, 64) {
		if names[i] != name {
			t.Fatalf("state %d is %q, before %q", i, name, names[i])
		}
		i++
	}
	for range d.States(7, 64) {
		break // may be left early
	}
}
