package wal_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"pawl/internal/vfs"
	"pawl/wal"
	"pawl/wal/waltest"
)

// copyUpwards copies a log as who does not know that it is being written: each
// file from its beginning, the oldest first.
func copyUpwards(fsys vfs.FS, from, to string) error {
	names, err := fsys.ReadDir(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := fsys.Mkdir(filepath.Join(to, name.Name()), 0o700); err != nil {
			return err
		}
		file := filepath.Join(name.Name(), filepath.Base(segmentFile(1)))
		in, err := fsys.OpenFile(filepath.Join(from, file), os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		out, err := fsys.OpenFile(filepath.Join(to, file), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		block := make([]byte, 4096)
		for at := int64(0); ; at += int64(len(block)) {
			n, err := in.ReadAt(block, at)
			if _, err := out.WriteAt(block[:n], at); err != nil {
				return err
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		in.Close()
		out.Close()
	}
	return nil
}

// verifyAtRest checks all that is in a log which nobody writes, and says where it
// ends.
func verifyAtRest(fsys vfs.FS, dir string, vouched wal.LSN) (wal.LSN, error) {
	h, err := wal.Find(fsys, dir, wal.FindOptions{Store: waltest.Store})
	if err != nil {
		return 0, err
	}
	for _, info := range h.Linked {
		if err := h.Verify(info.Generation); err != nil {
			return 0, err
		}
	}
	r, err := h.Reader(wal.ReaderOptions{After: h.Linked[len(h.Linked)-1].FirstLSN - 1, Vouched: vouched})
	if err != nil {
		return 0, err
	}
	for r.Next() {
	}
	return r.End().LSN, r.Err()
}

// A log is copied while it is written: whatever the writer does between any two
// operations of who copies, the copy is a sound log with all that was durable
// before. That what the writer does is enough is seen by copying without care.
func TestSampleWhileWriting(t *testing.T) {
	misled, copies, step := 0, 0, 1
	if testing.Short() {
		step = 5
	}
	for _, burst := range []struct{ groups, generations, keep int }{{1, 0, 100}, {7, 0, 100}, {0, 1, 100}, {0, 2, 100}, {0, 3, 2}, {0, 4, 3}, {5, 1, 2}} {
		for _, careful := range []bool{true, false} {
			for at := 0; at < 100; at += step {
				disk := waltest.NewDisk()
				b := newBusyLog(t, disk)
				b.fill(5, 100)
				b.append(at % 9)
				durable := b.l.Durable()
				reader, ops := &waltest.Between{FS: disk}, 0
				reader.Before = func() {
					if ops == at || ops == at+1 || ops == at+5 {
						b.append(burst.groups)
						b.fill(burst.generations, burst.keep)
					}
					ops++
				}
				if err := disk.Mkdir("/copy", 0o700); err != nil {
					t.Fatal(err)
				}
				sample := wal.Sample
				if !careful {
					sample = copyUpwards
				}
				err := sample(reader, logDir, "/copy")
				reader.Before = nil
				if errors.Is(err, fs.ErrNotExist) {
					continue // one went that was listed
				}
				var end wal.LSN
				if err == nil {
					end, err = verifyAtRest(disk, "/copy", durable)
				}
				switch {
				case !careful && err != nil:
					misled++
				case careful && err != nil:
					t.Fatalf("burst of %+v before operation %d: %v", burst, at, err)
				case careful && end < durable:
					t.Fatalf("burst of %+v before operation %d: the copy ends with group %d, but %d was durable", burst, at, end, durable)
				case careful:
					copies++
				}
				if ops < at {
					break
				}
			}
		}
	}
	if misled == 0 || copies < 50 {
		t.Errorf("%d copies were sound, and %d without care were not", copies, misled)
	}
}

// Damage is in the copy as it is in the log.
func TestSampleOfDamage(t *testing.T) {
	disk := waltest.NewDisk()
	b := newBusyLog(t, disk)
	b.fill(3, 100)
	b.append(5)
	list := b.l.Generations()
	newest := segmentFile(list[len(list)-1].Generation)
	for i, spoil := range []func(){
		func() { disk.Flip(newest, 300*8) },                                        // a group that later ones vouch for
		func() { disk.Cut(newest, wal.MinGenerationBytes-100) },                    // not by the log: nothing is linked behind it
		func() { disk.Flip(segmentFile(list[len(list)-2].Generation), 2000*8) },    // sealed
		func() { disk.SetContents(segmentFile(list[1].Generation), []byte("no")) }, // another file
	} {
		bad := disk.Kill()
		disk, bad = bad, disk // spoil is about disk
		spoil()
		if err := disk.Mkdir("/copy", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := wal.Sample(disk, logDir, "/copy"); err != nil {
			t.Fatalf("damage %d: %v", i, err)
		}
		_, _, err := waltest.Read(disk, "/copy", wal.ReaderOptions{})
		_, _, want := waltest.Read(disk, logDir, wal.ReaderOptions{})
		got, ok := errors.AsType[*wal.CorruptError](err)
		there, damaged := errors.AsType[*wal.CorruptError](want)
		if !ok || !damaged || got.Generation != there.Generation || got.Offset != there.Offset {
			t.Errorf("damage %d: got %v, want %v", i, err, want)
		}
		disk = bad
	}
}

// readings answers each reading with the next of its texts, the last for ever.
type readings []string

func (r *readings) ReadAt(p []byte, _ int64) (int, error) {
	text := (*r)[0]
	if len(*r) > 1 {
		*r = (*r)[1:]
	}
	if n := copy(p, text); n < len(p) {
		return n, io.EOF
	}
	return len(p), nil
}

// What is read while it is being written was never there as a whole.
func TestReadStill(t *testing.T) {
	for _, c := range []struct {
		seen readings
		want string
	}{
		{readings{"abcd"}, "abcd"},
		{readings{"a\x00c\x00", "abcd"}, "abcd"},
		{readings{"\x00\x00c\x00", "a\x00c\x00", "a\x00c\x00", "abcd"}, "a\x00c\x00"},
		{readings{"ab\x00\x00", "ab"}, "ab\x00\x00"}, // cut off, where zeros were
		{readings{"ab"}, "ab\x00\x00"},
	} {
		b, before := []byte("last"), make([]byte, 4) // as another block has left them
		copy(before, c.seen[0])
		if err := wal.ReadStill(&c.seen, b, before, 0); err != nil || string(b) != c.want {
			t.Errorf("got %q, %v, want %q", b, err, c.want)
		}
	}
}
