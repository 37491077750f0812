package wal_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"pawl/internal/vfs"
	"pawl/wal"
	"pawl/wal/waltest"
)

// The first entries of a generation say whose it is and where it stands. Each
// row damages them in the newest of two in a way that leaves them whole.
func TestFirstEntriesOutOfPlace(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(birth, link *wal.Forged)
		want   string // part of the error
	}{
		{"birth of another length", func(b, _ *wal.Forged) { b.Content = make([]byte, 16) }, "birth entry: length does not match"},
		{"birth of another store", func(b, _ *wal.Forged) { b.Store = wal.StoreID{9} }, "birth entry: belongs to another store"},
		{"birth of another kind", func(b, _ *wal.Forged) { b.Kind = 4; b.Content = nil }, "birth entry: entry of kind 4 out of place"},
		{"birth of a newer format", func(b, _ *wal.Forged) { b.Kind = 7 }, "birth entry: unknown format"},
		{"link of another length", func(_, l *wal.Forged) { l.Content = nil }, "link entry: length does not match"},
		{"link of another store", func(_, l *wal.Forged) { l.Store = wal.StoreID{9} }, "link entry: belongs to another store"},
		{"link of a newer format", func(_, l *wal.Forged) { l.Kind = 7 }, "link entry: unknown format"},
		{"link with another salt", func(_, l *wal.Forged) { l.Salt = 1 }, "link entry: salt is not that of the generation"},
	} {
		for _, known := range []wal.StoreID{waltest.Store, {}} {
			first := plain(1, 0, 0, 0, 0, 3)
			b, chain := first.bytes()
			next := plain(2, 1, uint32(len(b)), 3, chain, 3)
			row.change(&next.entries[0], &next.entries[1])
			if known == (wal.StoreID{}) && row.name == "birth of another store" {
				continue // the first one read says whose they are, and it is not this one
			}
			err := readAll(put(t, first, next), known)
			c, ok := errors.AsType[*wal.CorruptError](err)
			if !ok || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: got %v, want %q", row.name, err, row.want)
			} else if c.Generation != 2 || c.Path != segmentFile(2) {
				t.Errorf("%s: named %s", row.name, c.Path)
			}
		}
	}
}

// Of a log that nobody knows the store of, the first generation read says it:
// also to its own link.
func TestLinkOfAnotherStore(t *testing.T) {
	g := plain(1, 0, 0, 0, 0, 3)
	g.entries[1].Store = wal.StoreID{9}
	err := readAll(put(t, g), wal.StoreID{})
	if !errors.Is(err, wal.ErrForeign) || !strings.Contains(err.Error(), "link entry") {
		t.Errorf("got %v", err)
	}
}

// readAll reads a log as whoever knows its store, or nobody, does.
func readAll(fsys vfs.FS, store wal.StoreID) error {
	h, err := wal.Find(fsys, logDir, wal.FindOptions{Store: store})
	if err != nil {
		return err
	}
	r, err := h.Reader(wal.ReaderOptions{})
	if err != nil {
		return err
	}
	for r.Next() {
	}
	return r.Err()
}

// A log whose first generation follows groups of none has lost its beginning.
func TestLinkToNothing(t *testing.T) {
	err := readAll(put(t, plain(1, 0, 0, 7, 0, 2)), waltest.Store)
	if !errors.Is(err, wal.ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
}

// What has no name of a generation is not looked at, nor is a file with one.
func TestOtherNamesInTheDirectory(t *testing.T) {
	d := put(t, plain(1, 0, 0, 0, 0, 3))
	for _, name := range []string{"1", "0000000000", "4294967296", "99999999999", "000000000x", "lost+found"} {
		if err := d.Mkdir(logDir+"/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f, err := d.OpenFile(logDir+"/0000000002", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := readAll(d, waltest.Store); err != nil {
		t.Error(err)
	}
	h, err := wal.Find(d, logDir, wal.FindOptions{})
	if err != nil || len(h.Linked) != 1 || len(h.Unused) != 0 || h.Store != waltest.Store {
		t.Errorf("got %+v, %v", h, err)
	}
}

// shrinking is a file system whose files are shorter when they are read than
// when they were asked how long they are.
type shrinking struct{ vfs.FS }

type shrinkingFile struct{ vfs.File }

func (s shrinking) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	return shrinkingFile{f}, err
}

func (f shrinkingFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p[:len(p)/2], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// A file that gets shorter while it is read is no log of anything.
func TestFileThatShrinks(t *testing.T) {
	d := put(t, plain(1, 0, 0, 0, 0, 3))
	if err := readAll(shrinking{d}, waltest.Store); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("while it was found: got %v", err)
	}
	h, err := wal.Find(d, logDir, wal.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.SetContents(segmentFile(1), d.Contents(segmentFile(1))[:300])
	r, err := h.Reader(wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Next() {
		t.Error("a group of a file that is gone")
	}
	if c, ok := errors.AsType[*wal.CorruptError](r.Err()); !ok || c.Path != segmentFile(1) {
		t.Errorf("while it was read: got %v", r.Err())
	}
	if _, err := h.EndAt(2); err == nil {
		t.Error("it has an end at group 2")
	}
	if err := h.Remains(1, 0, func(*wal.Stored, bool) bool { return true }); err != nil {
		t.Errorf("what remains of it: %v", err)
	}
	shrunk, err := wal.Find(d, logDir, wal.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.SetContents(segmentFile(1), d.Contents(segmentFile(1))[:10])
	if err := shrunk.Remains(1, 0, func(*wal.Stored, bool) bool { return true }); err == nil {
		t.Error("something remains of a generation without first entries")
	}
}

// The end of a log without groups is known.
func TestEndAtOfAnEmptyLog(t *testing.T) {
	d := waltest.NewDisk()
	if err := d.Mkdir(logDir, 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := wal.Find(d, logDir, wal.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if end, err := h.EndAt(0); err != nil || end.LSN != 0 || end.Generation != 0 {
		t.Errorf("got %+v, %v", end, err)
	}
	if _, err := h.EndAt(1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("group 1: got %v", err)
	}
}

// A generation of another store among ours: what remains of it is nobody's.
func TestRemainsOfAnotherStore(t *testing.T) {
	h, err := wal.Find(put(t, plain(1, 0, 0, 0, 0, 3)), logDir, wal.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if h.Store = (wal.StoreID{9}); h.Remains(1, 0, func(*wal.Stored, bool) bool { return true }) == nil {
		t.Error("the groups of another store remain")
	}
	if err := h.Remains(3, 0, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a generation that is not there: got %v", err)
	}
}
