package wal_test

import (
	"bytes"
	"errors"
	"testing"

	"pawl/wal"
	"pawl/wal/waltest"
)

// fuzzDisk puts bytes where segment files are. They need not be any.
func fuzzDisk(files ...[]byte) *waltest.Disk {
	d := waltest.NewDisk()
	d.Mkdir(logDir, 0o700)
	for i, b := range files {
		d.Mkdir(generationDir(uint32(i+1)), 0o700)
		f, err := d.OpenFile(segmentFile(uint32(i+1)), 0o102, 0o600) // O_RDWR|O_CREATE
		if err != nil {
			panic(err)
		}
		f.WriteAt(b, 0)
	}
	return d
}

// FuzzReader: whatever the files hold, reading them neither panics nor gives a
// group that does not follow the one before, and a log that can be read can be
// written on.
func FuzzReader(f *testing.F) {
	// Two generations, so that every kind of entry is there, whole and torn.
	d := waltest.NewDisk()
	d.Mkdir(logDir, 0o700)
	opt := testOptions(d, 1)
	l, err := wal.Begin(opt, wal.End{Store: waltest.Store})
	if err != nil {
		f.Fatal(err)
	}
	for i := range 5 {
		if _, err := waltest.Append(l, waltest.Record{Head: []byte("head"), Body: make([]byte, i*1900)}, waltest.Record{Head: []byte("second")}); err != nil {
			f.Fatal(err)
		}
		if err := l.Idle(); err != nil {
			f.Fatal(err)
		}
	}
	if len(l.Generations()) != 2 {
		f.Fatalf("%d generations", len(l.Generations()))
	}
	first, second := d.Contents(segmentFile(1)), d.Contents(segmentFile(2))
	f.Add(first, second)
	f.Add(first, second[:200])
	f.Add(first[:3000], second)
	f.Add(first, make([]byte, 500))
	f.Add(second, first)
	flipped := bytes.Clone(first)
	flipped[300] ^= 1
	f.Add(flipped, second)
	f.Add([]byte{}, []byte{0x73, 0, 0, 0})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if len(first)+len(second) > 1<<18 {
			t.Skip()
		}
		disk := fuzzDisk(first, second)
		h, err := wal.Find(disk, logDir, wal.FindOptions{})
		if err != nil {
			if _, ok := errors.AsType[*wal.CorruptError](err); !ok {
				t.Fatalf("find: %v", err)
			}
			return
		}
		for _, info := range h.Linked {
			h.Verify(info.Generation)
			h.Remains(info.Generation, 0, func(*wal.Stored, bool) bool { return true })
		}
		var after wal.LSN
		if len(h.Linked) > 0 {
			after = h.Linked[0].FirstLSN - 1
		}
		r, err := h.Reader(wal.ReaderOptions{After: after})
		if err != nil {
			return
		}
		last := after
		for r.Next() {
			g := r.Group()
			if g.LSN != last+1 {
				t.Fatalf("group %d follows %d", g.LSN, last)
			}
			last = g.LSN
			for _, rec := range g.Records {
				if len(rec.Head) == 0 || len(rec.Body) != int(rec.Pos.Length) {
					t.Fatalf("group %d: record %+v", g.LSN, rec)
				}
			}
		}
		if r.Err() != nil {
			if _, ok := errors.AsType[*wal.CorruptError](r.Err()); !ok {
				t.Fatalf("read: %v", r.Err())
			}
			return
		}
		end := r.End()
		if end.Store == (wal.StoreID{}) {
			end.Store = waltest.Store
		}
		l, err := wal.Begin(testOptions(disk, 2), end)
		if err != nil {
			t.Fatalf("begin: %v", err)
		}
		if lsn, err := waltest.Append(l, waltest.Record{Head: []byte("h")}); err != nil || lsn != last+1 {
			t.Fatalf("group %d behind %d: %v", lsn, last, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		h, err = wal.Find(disk, logDir, wal.FindOptions{})
		if err != nil {
			t.Fatalf("find again: %v", err)
		}
		if r, err = h.Reader(wal.ReaderOptions{After: after}); err != nil {
			t.Fatalf("read again: %v", err)
		}
		for r.Next() {
		}
		if r.Err() != nil || r.End().LSN != last+1 {
			t.Fatalf("read again: group %d, %v", r.End().LSN, r.Err())
		}
	})
}
