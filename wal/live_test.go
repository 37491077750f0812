package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"

	"pawl/internal/vfs"
	"pawl/wal"
	"pawl/wal/waltest"
)

// verifyLive does what a scrubber does.
func verifyLive(fsys vfs.FS, opt wal.FindOptions) error {
	opt.Store = waltest.Store
	h, err := wal.Find(fsys, logDir, opt)
	if err != nil {
		return err
	}
	for _, damage := range h.Damaged {
		return damage
	}
	for _, info := range h.Linked {
		if !info.Sealed {
			continue
		}
		if err := h.Verify(info.Generation); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("verify generation %d: %w", info.Generation, err)
		}
	}
	return nil
}

// busyLog is a log in small generations that takes the oldest away now and then.
type busyLog struct {
	t *testing.T
	l *wal.Log
	n int
}

func newBusyLog(t *testing.T, fsys vfs.FS) *busyLog {
	if err := fsys.Mkdir(logDir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := wal.Begin(wal.Options{FS: fsys, Dir: logDir, GenerationBytes: wal.MinGenerationBytes, Foreground: true}, wal.End{Store: waltest.Store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &busyLog{t: t, l: l}
}

// append writes so many groups.
func (b *busyLog) append(groups int) {
	b.t.Helper()
	for range groups {
		b.n++
		size := 200 + b.n%7*130
		if b.n%41 == 0 {
			size = wal.MinGenerationBytes // overtakes what was prepared
		}
		if _, err := waltest.Append(b.l, waltest.Record{Head: []byte("head"), Body: make([]byte, size)}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// fill writes until so many generations more are full, and drops all but keep.
func (b *busyLog) fill(generations, keep int) {
	b.t.Helper()
	last := func() uint32 { list := b.l.Generations(); return list[len(list)-1].Generation }
	for at := last(); generations > 0; {
		b.append(1)
		if now := last(); now != at {
			at = now
			generations--
		}
	}
	for list := b.l.Generations(); len(list) > keep; list = list[1:] {
		// Sometimes one from the middle.
		if err := b.l.Drop(list[min(b.n%2, len(list)-2)].Generation); err != nil {
			b.t.Fatal(err)
		}
		if b.n%2 == 1 && len(list) > 2 {
			list[1] = list[0]
		}
	}
}

// A log is looked at while it is written: whatever the writer does between any
// two operations of the reader, a sound log has no damage. That what the writer
// does is enough to mislead who does not know about it is seen by looking
// without Live.
func TestFindWhileWriting(t *testing.T) {
	misled := 0
	for _, burst := range []struct{ generations, keep int }{{1, 100}, {2, 100}, {3, 2}, {4, 3}, {1, 2}} {
		for _, live := range []bool{true, false} {
			for at := range 200 {
				disk := waltest.NewDisk()
				b := newBusyLog(t, disk)
				b.fill(5, 100)
				reader, ops := &waltest.Between{FS: disk}, 0
				reader.Before = func() {
					if ops == at || ops == at+3 {
						b.fill(burst.generations, burst.keep)
					}
					ops++
				}
				err := verifyLive(reader, wal.FindOptions{Live: live})
				if live && err != nil {
					t.Fatalf("burst of %+v before operation %d of the reader: %v", burst, at, err)
				}
				if !live && err != nil {
					misled++
				}
				if ops < at {
					break
				}
			}
		}
	}
	if misled == 0 {
		t.Error("without Live nothing was misled: the bursts are too small")
	}
}

// The other way round: before each operation of the writer somebody looks at all.
func TestFindBetweenWrites(t *testing.T) {
	disk := waltest.NewDisk()
	writer, looks := &waltest.Between{FS: disk}, 0
	b := newBusyLog(t, writer)
	writer.Before = func() {
		looks++
		if err := verifyLive(disk, wal.FindOptions{Live: true}); err != nil {
			t.Fatalf("before operation %d of the writer: %v", looks, err)
		}
	}
	for range 8 {
		b.fill(3, 4)
	}
	if looks < 500 {
		t.Errorf("looked %d times, want 500", looks)
	}
}

// A log looks at itself while it is being written, however fast.
func TestHistoryWhileWriting(t *testing.T) {
	own := &waltest.Between{FS: waltest.NewDisk()}
	b := newBusyLog(t, own)
	b.fill(5, 100)
	own.Before = func() { b.fill(2, 100) }
	verify := func(h *wal.History, err error) {
		t.Helper()
		if err != nil || len(h.Linked) < 5 {
			t.Fatalf("got %v", err)
		}
		b.fill(2, 100)
		for _, info := range h.Linked {
			if err := h.Verify(info.Generation); err != nil {
				t.Error(err)
			}
		}
	}
	h, err := b.l.History()
	own.Before = nil
	verify(h, err)
	// The newest that it finds now is cut off, being full, only behind its history.
	verify(b.l.History())
}

// Rot in a closed generation is found all the same, its first entries included;
// and in one that was passed over.
func TestFindLiveDamage(t *testing.T) {
	disk := waltest.NewDisk()
	b := newBusyLog(t, disk)
	b.fill(6, 100)
	list := b.l.Generations()
	for _, offset := range []int64{9, 70, 140, 400} {
		for _, info := range list[:len(list)-1] {
			name := segmentFile(info.Generation)
			disk.Flip(name, offset*8)
			if c, ok := errors.AsType[*wal.CorruptError](verifyLive(disk, wal.FindOptions{Live: true})); !ok {
				t.Errorf("a bit at %d of generation %d: got no damage", offset, info.Generation)
			} else if c.Generation != info.Generation && c.Generation != info.Generation+1 {
				t.Errorf("a bit at %d of generation %d: got %v", offset, info.Generation, c)
			}
			disk.Flip(name, offset*8)
		}
	}
	if err := verifyLive(disk, wal.FindOptions{Live: true}); err != nil {
		t.Error(err)
	}
}

// What the disk refuses to read is told as that, wherever in the look it happens
// and whether there is damage or not, and never taken for damage or an end.
func TestLiveLookOnFailingDisk(t *testing.T) {
	broken := errors.New("broken")
	for _, offset := range []int64{0, 70} {
		disk := waltest.NewDisk()
		b := newBusyLog(t, disk)
		b.fill(6, 100)
		if offset > 0 {
			disk.Flip(segmentFile(b.l.Generations()[2].Generation), offset*8)
		}
		failed := 0
		for at := 0; ; at++ {
			now, hit := 0, false
			disk.Inject(func(op waltest.Op) waltest.Fault {
				if op.Kind == "close" { // of a file that was read
					return waltest.Fault{}
				}
				if now++; now-1 != at {
					return waltest.Fault{}
				}
				hit = true
				return waltest.Fault{Err: broken}
			})
			err := verifyLive(disk, wal.FindOptions{Live: true})
			disk.Inject(nil)
			if !hit {
				break
			}
			failed++
			if !errors.Is(err, broken) {
				t.Errorf("damage at %d, operation %d fails: got %v", offset, at, err)
			}
		}
		if failed < 10 {
			t.Errorf("damage at %d: %d operations failed, want 10 at least", offset, failed)
		}
	}
}

// cutting is a disk on which one file is whole whenever somebody asks for its size,
// and cut off right after that.
type cutting struct {
	*waltest.Disk
	name   string
	whole  []byte
	length int
}

type cuttingFile struct {
	vfs.File
	c *cutting
}

func (c *cutting) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := c.Disk.OpenFile(name, flag, perm)
	if err == nil && name == c.name {
		return cuttingFile{f, c}, nil
	}
	return f, err
}

func (f cuttingFile) Size() (int64, error) {
	f.c.SetContents(f.c.name, f.c.whole)
	defer f.c.Cut(f.c.name, f.c.length)
	return f.File.Size()
}

// A generation whose first entries are damaged is cut off behind its history, as
// every full one is, while it is looked at: that is still the damage, and no failure
// to read.
func TestDamagedGenerationIsCutOff(t *testing.T) {
	for _, offset := range []int64{50, 150} { // the birth, the link
		disk := waltest.NewDisk()
		b := newBusyLog(t, disk)
		b.fill(6, 100)
		list := b.l.Generations()
		info := list[slices.IndexFunc(list[1:], func(info wal.Info) bool { return info.Length < wal.MinGenerationBytes })+1]
		name := segmentFile(info.Generation)
		disk.Flip(name, offset*8)
		whole := append(disk.Contents(name), make([]byte, wal.MinGenerationBytes-info.Length)...)
		h, err := wal.Find(&cutting{disk, name, whole, int(info.Length)}, logDir, wal.FindOptions{Live: true})
		if err != nil {
			t.Errorf("damage at %d: %v", offset, err)
			continue
		}
		if len(h.Damaged) != 1 || h.Damaged[0].Generation != info.Generation {
			t.Errorf("damage at %d: got %v, want that of generation %d", offset, h.Damaged, info.Generation)
		}
		groups := 0
		err = h.Remains(info.Generation, 0, func(*wal.Stored, bool) bool { groups++; return true })
		if err != nil || wal.LSN(groups) != info.LastLSN-info.FirstLSN+1 {
			t.Errorf("damage at %d: %d groups remain of %+v, %v", offset, groups, info, err)
		}
	}
}

// huge is a file system with a file that says it is very long.
type huge struct {
	vfs.FS
	name string
	size int64
	read int
}

type hugeFile struct {
	vfs.File
	h *huge
}

func (h *huge) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	if err == nil && name == h.name {
		return &hugeFile{f, h}, nil
	}
	return f, err
}

func (f *hugeFile) Size() (int64, error) { return f.h.size, nil }

func (f *hugeFile) ReadAt(p []byte, off int64) (int, error) {
	f.h.read += len(p)
	n, err := f.File.ReadAt(p, off)
	if n < len(p) {
		clear(p[n:])
		return len(p), nil
	}
	return n, err
}

// A file in the log's directory may have any length: what is read of it, and held
// in memory, is no more than a generation can have.
func TestFindHugeFiles(t *testing.T) {
	const size = 1 << 50
	for _, c := range []struct {
		name  string
		spoil func(b []byte)
		want  string
	}{
		{"never linked", func([]byte) {}, ""},
		{"the one that is written", func([]byte) {}, ""},
		{"no birth", func(b []byte) { clear(b) }, "no generation has"},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := waltest.NewDisk()
			b := newBusyLog(t, disk)
			b.fill(2, 100)
			list := b.l.Generations()
			number := list[len(list)-1].Generation
			if c.name != "the one that is written" {
				number++ // prepared
			}
			name := segmentFile(number)
			data := disk.Contents(name)
			c.spoil(data)
			disk.SetContents(name, data)
			fsys := &huge{FS: disk, name: name, size: size}
			_, _, err := waltest.Read(fsys, logDir, wal.ReaderOptions{})
			switch corrupt, ok := errors.AsType[*wal.CorruptError](err); {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (!ok || corrupt.Generation != number):
				t.Errorf("got %v, want damage of generation %d", err, number)
			}
			if fsys.read == 0 || fsys.read > 4*wal.MinGenerationBytes {
				t.Errorf("read %d bytes", fsys.read)
			}
		})
	}
}

// The same of a generation that is searched for what remains of it.
func TestRemainsOfHugeFiles(t *testing.T) {
	disk := waltest.NewDisk()
	b := newBusyLog(t, disk)
	b.fill(3, 100)
	first := b.l.Generations()[0]
	fsys := &huge{FS: disk, name: segmentFile(first.Generation), size: 1 << 50}
	h, err := wal.Find(fsys, logDir, wal.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fsys.read = 0
	last := wal.LSN(0)
	if err := h.Remains(first.Generation, 0, func(g *wal.Stored, sound bool) bool { last = g.LSN; return sound }); err != nil {
		t.Fatal(err)
	}
	if last != first.LastLSN || fsys.read > 2*wal.MinGenerationBytes {
		t.Errorf("found groups up to %d, want %d; read %d bytes", last, first.LastLSN, fsys.read)
	}
}

// failing is a file system on which asking about files, or reading beyond the
// first entries, fails.
type failing struct {
	vfs.FS
	stat, read error
}

type failingFile struct {
	vfs.File
	err error
}

func (f failing) Stat(name string) (fs.FileInfo, error) {
	if f.stat != nil {
		return nil, f.stat
	}
	return f.FS.Stat(name)
}

func (f failing) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	return failingFile{file, f.read}, err
}

func (f failingFile) ReadAt(p []byte, off int64) (int, error) {
	if f.err != nil && off > 0 {
		return 0, f.err
	}
	return f.File.ReadAt(p, off)
}

// What keeps a reader from looking is told, and is no damage.
func TestFindThatFails(t *testing.T) {
	disk := waltest.NewDisk()
	b := newBusyLog(t, disk)
	b.fill(5, 100)
	list := b.l.Generations()
	if err := b.l.Drop(list[2].Generation); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, err := wal.Find(failing{FS: disk, stat: broken}, logDir, wal.FindOptions{Live: true}); !errors.Is(err, broken) {
		t.Errorf("got %v, want that a generation cannot be asked for its size", err)
	}
	// Gone since it was looked at: who reads it will see.
	if _, err := wal.Find(failing{FS: disk, stat: fs.ErrNotExist}, logDir, wal.FindOptions{Live: true}); err != nil {
		t.Error(err)
	}
	name := segmentFile(list[len(list)-1].Generation + 1) // prepared
	disk.SetContents(name, make([]byte, wal.MinGenerationBytes))
	if _, err := wal.Find(failing{FS: disk, read: broken}, logDir, wal.FindOptions{}); !errors.Is(err, broken) {
		t.Errorf("got %v, want that a generation without a birth cannot be read", err)
	}
}
