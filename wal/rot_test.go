package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pawl/internal/record"
	"pawl/wal"
	"pawl/wal/waltest"
)

// smallStore is a closed log of one generation, with the two that were made
// ahead, and what is in it.
func smallStore(t *testing.T) (*run, []waltest.Group) {
	t.Helper()
	r := newRun(t)
	l := r.begin(t)
	for i := range 12 {
		r.write(l, []int{0, 40, 300, 1100}[i%4])
		if i%4 == 3 {
			r.err = errors.Join(r.err, l.Idle())
		}
	}
	if err := errors.Join(r.err, l.Close()); err != nil {
		t.Fatal(err)
	}
	if n := len(l.Generations()); n != 1 {
		t.Fatalf("store has %d generations, want 1", n)
	}
	return r, r.tried
}

// read reads without Settle: damage is on the disk and in memory alike.
func read(d *waltest.Disk) ([]waltest.Group, wal.End, error) {
	h, err := wal.Find(d, logDir, wal.FindOptions{Store: waltest.Store})
	if err != nil {
		return nil, wal.End{}, err
	}
	r, err := h.Reader(wal.ReaderOptions{})
	if err != nil {
		return nil, wal.End{}, err
	}
	var groups []waltest.Group
	for r.Next() {
		groups = append(groups, waltest.Copy(r.Group()))
	}
	return groups, r.End(), r.Err()
}

// damaged fails the test if a damaged log reads as anything but a refusal or
// what it was.
func damaged(t *testing.T, d *waltest.Disk, want []waltest.Group, what string) (refused bool) {
	t.Helper()
	n, err := readAgainst(d, want)
	if err != nil {
		if _, ok := errors.AsType[*wal.CorruptError](err); !ok {
			t.Fatalf("%s: got %v, want a *CorruptError", what, err)
		}
		return true
	}
	if n != len(want) {
		t.Fatalf("%s: read %d groups, want the %d there were, or a refusal", what, n, len(want))
	}
	return false
}

// readAgainst is read, but counts the groups that are as in want, up to the
// first that is not, and copies none.
func readAgainst(d *waltest.Disk, want []waltest.Group) (int, error) {
	h, err := wal.Find(d, logDir, wal.FindOptions{Store: waltest.Store})
	if err != nil {
		return 0, err
	}
	r, err := h.Reader(wal.ReaderOptions{})
	if err != nil {
		return 0, err
	}
	n := 0
	for r.Next() {
		if n == len(want) || !sameStored(r.Group(), want[n]) {
			return -1, nil
		}
		n++
	}
	return n, r.Err()
}

func sameStored(a *wal.Stored, b waltest.Group) bool {
	if a.LSN != b.LSN || a.LogTime != b.LogTime || a.WallTime != b.WallTime || len(a.Records) != len(b.Records) {
		return false
	}
	for i, x := range a.Records {
		y := &b.Records[i]
		if !bytes.Equal(x.Head, y.Head) || !bytes.Equal(x.Body, y.Body) || x.Pos != y.Pos {
			return false
		}
	}
	return true
}

func TestEveryBitFlipped(t *testing.T) {
	layer := record.Note(t, "4 rot")
	r, want := smallStore(t)
	step := int64(1)
	if testing.Short() {
		step = 11
	}
	for generation := uint32(1); generation <= 3; generation++ {
		name := segmentFile(generation)
		bits := int64(len(r.disk.Contents(name))) * 8
		if bits == 0 {
			t.Fatalf("no generation %d", generation)
		}
		refused := 0
		written := int64(len(bytes.TrimRight(r.disk.Contents(name), "\x00"))) * 8
		for bit := int64(0); bit < bits; bit += step {
			if bit == written+8 && step == 1 {
				step = 7 // the zeros are all alike
			}
			r.disk.Flip(name, bit)
			layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
			if damaged(t, r.disk, want, fmt.Sprintf("bit %d of generation %d", bit, generation)) {
				refused++
			}
			r.disk.Flip(name, bit)
		}
		t.Logf("generation %d: %d flips refused", generation, refused)
		if generation == 1 && refused == 0 {
			t.Error("no flip was refused")
		}
		step = 101 // the others hold nothing but a birth and a mark
	}
}

// TestFlipInEveryGroup: a group that anything later vouches for is never lost.
func TestFlipInEveryGroup(t *testing.T) {
	r, want := smallStore(t)
	for _, g := range want {
		for _, rec := range g.Records {
			if rec.Pos.IsZero() {
				continue
			}
			r.disk.Flip(segmentFile(1), int64(rec.Pos.Offset)*8+3)
			_, _, err := read(r.disk)
			corrupt, ok := errors.AsType[*wal.CorruptError](err)
			if !ok || corrupt.LSN != g.LSN || corrupt.Generation != 1 || corrupt.Path != segmentFile(1) || corrupt.Offset >= int64(rec.Pos.Offset) {
				t.Errorf("group %d: got %v, want it named", g.LSN, err)
			}
			r.disk.Flip(segmentFile(1), int64(rec.Pos.Offset)*8+3)
		}
	}
}

// TestCutAtEveryByte: a file that is shorter than it was is refused.
func TestCutAtEveryByte(t *testing.T) {
	layer := record.Note(t, "2a truncate everywhere")
	step := 1
	if testing.Short() {
		step = 7
	}
	t.Run("closed", func(t *testing.T) {
		r, want := smallStore(t)
		name := segmentFile(1)
		for n := len(r.disk.Contents(name)) - 1; n >= 0; n -= step {
			r.disk.Cut(name, n)
			layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
			if !damaged(t, r.disk, want, fmt.Sprintf("first %d bytes", n)) {
				t.Fatalf("first %d bytes: not refused", n)
			}
		}
	})
	t.Run("older one", func(t *testing.T) {
		r := newRun(t)
		r.live(t, 12)
		r.live(t, 4)
		if r.err != nil {
			t.Fatal(r.err)
		}
		name := segmentFile(1)
		for n := len(r.disk.Contents(name)) - 1; n >= 0; n -= step {
			r.disk.Cut(name, n)
			layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
			if !damaged(t, r.disk, r.tried, fmt.Sprintf("first %d bytes", n)) {
				t.Fatalf("first %d bytes: not refused", n)
			}
		}
	})
}

// TestTornAtEveryByte: after an unclean stop, where nothing vouches for the last
// groups, the bytes behind any place may never have come. What is left is a
// prefix, and the damage is counted.
func TestTornAtEveryByte(t *testing.T) {
	layer := record.Note(t, "2a truncate everywhere")
	r := newRun(t)
	r.opt.Sync = wal.SyncNever
	l := r.begin(t)
	for i := range 40 {
		r.write(l, []int{0, 40, 300, 900}[i%4])
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	infos := l.Generations()
	newest := infos[len(infos)-1]
	if len(infos) < 2 || newest.LastLSN < newest.FirstLSN+3 {
		t.Fatalf("generations %+v, want a newest one with some groups behind others", infos)
	}
	name := segmentFile(newest.Generation)
	whole := r.disk.Contents(name)
	const firstGroup = 200
	lsns := map[wal.LSN]bool{}
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := firstGroup; n <= int(newest.Length); n += step {
		torn := bytes.Clone(whole)
		clear(torn[n:])
		layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
		r.disk.SetContents(name, torn)
		got, end, err := read(r.disk)
		if lost := len(got) < int(l.Durable()); lost != (err != nil) {
			t.Fatalf("torn at %d behind %d groups, %d being durable: %v", n, len(got), l.Durable(), err)
		}
		if err != nil {
			continue
		}
		if len(got) < int(newest.FirstLSN)-1 || !slices.EqualFunc(got, r.tried[:len(got)], sameGroup) || end.LSN != wal.LSN(len(got)) {
			t.Fatalf("torn at %d: %d groups are no prefix", n, len(got))
		}
		if most := max(int64(n)-int64(end.Length), 0); end.Cut < 0 || end.Cut > most || (end.Cut == 0) != (len(bytes.TrimRight(torn[end.Length:], "\x00")) == 0) {
			t.Fatalf("torn at %d: %d bytes cut behind %d", n, end.Cut, end.Length)
		}
		lsns[end.LSN] = true
	}
	if want := int(newest.LastLSN-l.Durable()) + 1; len(lsns) != want || want < 3 {
		t.Errorf("got %d different ends, want %d", len(lsns), want)
	}
}

func TestSectorsDamaged(t *testing.T) {
	layer := record.Note(t, "4 rot")
	r := newRun(t)
	r.live(t, 12)
	r.live(t, 4)
	if r.err != nil {
		t.Fatal(r.err)
	}
	const sector = 512
	for _, name := range r.disk.Files() {
		whole := r.disk.Contents(name)
		for at := 0; at+2*sector <= len(whole); at += sector {
			for what, damage := range map[string]func(b []byte){
				"zeroed":   func(b []byte) { clear(b[at : at+sector]) },
				"repeated": func(b []byte) { copy(b[at+sector:at+2*sector], b[at:]) },
				"swapped": func(b []byte) {
					first := bytes.Clone(b[at : at+sector])
					copy(b[at:], b[at+sector:at+2*sector])
					copy(b[at+sector:], first)
				},
			} {
				b := bytes.Clone(whole)
				damage(b)
				r.disk.SetContents(name, b)
				layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
				damaged(t, r.disk, r.tried, fmt.Sprintf("%s: sector at %d %s", name, at, what))
			}
		}
		r.disk.SetContents(name, whole)
	}
	if _, end, err := read(r.disk); err != nil || !end.Closed {
		t.Errorf("undamaged: closed %t, %v", end.Closed, err)
	}
}

// TestFilesDamaged: each file missing, empty, under a neighbour's name, there
// twice, or of another store.
func TestFilesDamaged(t *testing.T) {
	layer := record.Note(t, "4 rot")
	build := func() *run {
		r := newRun(t)
		r.live(t, 12)
		r.live(t, 4)
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r
	}
	r := build()
	var numbers []uint32
	for n := range uint32(30) {
		if r.disk.Contents(segmentFile(n)) != nil {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) < 5 {
		t.Fatalf("generations %v, want more", numbers)
	}
	refused := 0
	check := func(what string, do func(d *waltest.Disk, n uint32) error) {
		for _, n := range numbers {
			d := r.disk.Kill()
			if err := do(d, n); err != nil {
				t.Fatal(err)
			}
			layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
			if damaged(t, d, r.tried, fmt.Sprintf("generation %d %s", n, what)) {
				refused++
			}
		}
	}
	check("without its file", func(d *waltest.Disk, n uint32) error { return d.Remove(segmentFile(n)) })
	check("removed", func(d *waltest.Disk, n uint32) error {
		return errors.Join(d.Remove(segmentFile(n)), d.Remove(generationDir(n)))
	})
	check("emptied", func(d *waltest.Disk, n uint32) error { d.SetContents(segmentFile(n), nil); return nil })
	check("zeroed", func(d *waltest.Disk, n uint32) error {
		d.SetContents(segmentFile(n), make([]byte, len(d.Contents(segmentFile(n)))))
		return nil
	})
	if refused == 0 {
		t.Error("nothing was refused")
	}
	refused = 0
	check("under another number", func(d *waltest.Disk, n uint32) error {
		return d.Rename(generationDir(n), generationDir(40))
	})
	check("there twice", func(d *waltest.Disk, n uint32) error {
		if err := d.Mkdir(generationDir(40), 0o700); err != nil {
			return err
		}
		return d.Link(segmentFile(n), segmentFile(40))
	})
	check("of another store", func(d *waltest.Disk, n uint32) error {
		other := newRun(t)
		end := wal.End{Store: wal.StoreID{9}, Highest: n - 1}
		l, err := wal.Begin(other.opt, end)
		if err != nil {
			return err
		}
		d.SetContents(segmentFile(n), other.disk.Contents(segmentFile(n)))
		return l.Close()
	})
	if want := 3 * len(numbers); refused != want {
		t.Errorf("%d files in the wrong place refused, want %d", refused, want)
	}
}

// TestOlderVersion: a generation as it was a while ago.
func TestOlderVersion(t *testing.T) {
	r := newRun(t)
	l := r.begin(t)
	var versions [][]byte
	for range 6 {
		r.write(l, 100)
		versions = append(versions, r.disk.Contents(segmentFile(1)))
	}
	if err := errors.Join(r.err, l.Close()); err != nil {
		t.Fatal(err)
	}
	r.live(t, 1)
	if r.err != nil {
		t.Fatal(r.err)
	}
	for i, old := range versions {
		r.disk.SetContents(segmentFile(1), old)
		if !damaged(t, r.disk, r.tried, fmt.Sprintf("version of group %d", i+1)) {
			t.Errorf("version of group %d was not refused", i+1)
		}
	}
}
