package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"pawl/internal/vfs"
	"pawl/wal"
)

// writeLog appends groups to the log in dir that begins behind end: group n has
// one record with head "head n" and body "body n", and n for its times.
func writeLog(t *testing.T, dir string, end wal.End, groups int) {
	t.Helper()
	l, err := wal.Begin(wal.Options{Dir: dir, GenerationBytes: wal.MinGenerationBytes, Foreground: true}, end)
	if err != nil {
		t.Fatal(err)
	}
	for range groups {
		g, err := l.Open(100)
		if err != nil {
			t.Fatal(err)
		}
		n := int(g.LSN())
		g.Add(fmt.Appendf(nil, "head %d", n), fmt.Appendf(nil, "body %d", n))
		l.Seal(g, int64(n), int64(n))
		if err := l.Commit(g); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, dir string) *wal.History {
	t.Helper()
	h, err := wal.Find(vfs.OS{}, dir, wal.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// heads reads the whole log.
func heads(t *testing.T, h *wal.History) (all []string, end wal.End) {
	t.Helper()
	r, err := h.Reader(wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		for _, rec := range r.Group().Records {
			all = append(all, string(rec.Head))
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return all, r.End()
}

var store = wal.StoreID{1, 2, 3}

// From every group of a log another history can begin, in a copy, and holds
// the groups up to it and the new ones.
func TestEndAt(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, wal.End{Store: store}, 150) // more than one generation
	_, end := heads(t, find(t, dir))
	writeLog(t, dir, end, 20)
	h := find(t, dir)
	if len(h.Linked) < 3 {
		t.Fatalf("got %d generations, want 3 at least", len(h.Linked))
	}
	if _, err := h.EndAt(171); err == nil {
		t.Error("a group behind the last one has an end")
	}
	for lsn := wal.LSN(0); lsn <= 170; lsn++ {
		end, err := h.EndAt(lsn)
		if err != nil {
			t.Fatalf("group %d: %v", lsn, err)
		}
		if end.LSN != lsn || end.WallTime != int64(lsn) {
			t.Fatalf("group %d: got the end %+v", lsn, end)
		}
		if lsn%13 != 0 && lsn != 170 {
			continue
		}
		forked := t.TempDir()
		for _, info := range end.Linked {
			b, err := os.ReadFile(wal.SegmentPath(dir, info.Generation))
			if err != nil {
				t.Fatal(err)
			}
			path := wal.SegmentPath(forked, info.Generation)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		writeLog(t, forked, end, 3)
		got, last := heads(t, find(t, forked))
		if want := int(lsn) + 3; len(got) != want || last.LSN != wal.LSN(want) || got[want-1] != fmt.Sprintf("head %d", want) {
			t.Fatalf("group %d: got %d groups up to %d in the fork, want %d", lsn, len(got), last.LSN, want)
		}
	}
}

func TestEndAtDroppedGroup(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, wal.End{Store: store}, 150)
	h := find(t, dir)
	first := h.Linked[0]
	if err := os.RemoveAll(filepath.Dir(wal.SegmentPath(dir, first.Generation))); err != nil {
		t.Fatal(err)
	}
	h = find(t, dir)
	if _, err := h.EndAt(first.LastLSN - 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a dropped group, want fs.ErrNotExist", err)
	}
	// The one that the oldest generation follows is known by its link.
	end, err := h.EndAt(first.LastLSN)
	if err != nil || end.LSN != first.LastLSN || end.Generation != first.Generation || len(end.Linked) != 0 {
		t.Errorf("got %+v, %v", end, err)
	}
}

func TestEndAtDamage(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, wal.End{Store: store}, 10)
	path := wal.SegmentPath(dir, 1)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[1000] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = find(t, dir).EndAt(10)
	if _, ok := errors.AsType[*wal.CorruptError](err); !ok {
		t.Errorf("got %v, want a CorruptError", err)
	}
}

func TestRemains(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, wal.End{Store: store}, 10)
	h := find(t, dir)
	path := wal.SegmentPath(dir, 1)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var offsets []int64
	err = h.Remains(1, 0, func(g *wal.Stored, sound bool) bool {
		if !sound || g.LSN != wal.LSN(len(offsets)+1) || string(g.Records[0].Body) != fmt.Sprintf("body %d", g.LSN) {
			t.Errorf("got group %d, sound %v, of an undamaged log", g.LSN, sound)
		}
		offsets = append(offsets, g.Offset)
		return true
	})
	if err != nil || len(offsets) != 10 {
		t.Fatalf("got %d groups, %v, want 10", len(offsets), err)
	}
	raw[offsets[4]+4] ^= 1  // magic of group 5
	raw[offsets[6]+96] ^= 1 // content of group 7
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = h.Remains(1, offsets[3], func(g *wal.Stored, sound bool) bool {
		got = append(got, fmt.Sprintf("%d %v %d", g.LSN, sound, len(g.Records)))
		return g.LSN < 9
	})
	if want := "[4 true 1 6 true 1 7 false 1 8 true 1 9 true 1]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if err := h.Remains(99, 0, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a generation that is not there, want fs.ErrNotExist", err)
	}
}
