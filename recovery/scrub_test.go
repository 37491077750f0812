package recovery_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/wal"
	"pawl/wal/waltest"
)

// The scrubber says nothing of a sound store that is being written, finds a
// flipped bit in a closed generation and in a snapshot, and reads no faster than
// it may.
func TestScrubber(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 400, p)
	must(t, err)
	must(t, w.work(150))
	var found []error
	s := &recovery.Scrubber{
		FS: disk, Dir: "/store", Identity: w.store.Identity, BytesPerSecond: 64 << 10,
		Found: func(err error) { found = append(found, err) },
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		must(t, s.Round(t.Context()))
		if len(found) > 0 {
			t.Fatalf("found %v in a sound store", found)
		}
		n := s.Numbers()
		if took := time.Since(began); n.Rounds != 1 || n.Bytes < 16<<10 || took < time.Duration(n.Bytes)*time.Second/(64<<10)*9/10 {
			t.Errorf("got %+v in %v", n, took)
		}
	})
	var flipped []string
	for _, name := range disk.Files() {
		if strings.HasSuffix(name, ".snapshot") || strings.Contains(name, generationName(w.log.Generations()[0].Generation)) {
			disk.Flip(name, 8*600)
			flipped = append(flipped, name)
		}
	}
	synctest.Test(t, func(t *testing.T) { must(t, s.Round(t.Context())) })
	if len(flipped) < 2 || len(found) != len(flipped) || s.Numbers().Damaged != uint64(len(flipped)) {
		t.Fatalf("flipped a bit in %v, found %v", flipped, found)
	}
	for _, err := range found {
		damage, ok := errors.AsType[*recovery.DamageError](err)
		if !ok || !strings.Contains(strings.Join(flipped, " "), damage.File) {
			t.Errorf("found %v", err)
		}
	}
	must(t, w.close())
}

// The scrubber has what it verifies read from the disk, and leaves the pages of
// generations that are written, or will be, where they are.
func TestScrubberDropsClosedFilesOnly(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 400, p)
	must(t, err)
	must(t, w.work(150))
	drops := &dropFS{FS: disk, dropped: map[string]bool{}}
	s := &recovery.Scrubber{FS: drops, Dir: "/store", Identity: w.store.Identity, Found: func(err error) { t.Error(err) }}
	synctest.Test(t, func(t *testing.T) { must(t, s.Round(t.Context())) })
	closed := map[string]bool{}
	for _, g := range w.log.Generations() {
		closed[wal.SegmentPath("/store/log", g.Generation)] = g.Sealed
	}
	var kept, verified, snapshots int
	for _, name := range disk.Files() {
		want := closed[name]
		if strings.HasSuffix(name, ".snapshot") {
			want = true
			snapshots++
		} else if want {
			verified++
		} else {
			kept++
		}
		if drops.dropped[name] != want {
			t.Errorf("%s: its pages were dropped: %v, want %v", name, drops.dropped[name], want)
		}
	}
	if kept < 2 || verified == 0 || snapshots == 0 {
		t.Errorf("%d files kept, %d generations and %d snapshots verified", kept, verified, snapshots)
	}
	must(t, w.close())
}

// dropFS notes whose pages are dropped.
type dropFS struct {
	vfs.FS
	dropped map[string]bool
}

func (f *dropFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	return &dropFile{file, name, f}, err
}

type dropFile struct {
	vfs.File
	name string
	fs   *dropFS
}

func (f *dropFile) DropCache() error {
	f.fs.dropped[f.name] = true
	return f.File.DropCache()
}

// A generation whose first entries are damaged keeps the scrubber from none of the
// others.
func TestScrubberBehindDamagedFirstEntries(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 420, p)
	must(t, err)
	for range 120 {
		_, err := w.enqueue("default/default/q", 400)
		must(t, err)
	}
	gens := w.log.Generations()
	if len(gens) < 4 {
		t.Fatalf("only %d generations", len(gens))
	}
	disk.Flip(wal.SegmentPath("/store/log", gens[0].Generation), 8*50)
	disk.Flip(wal.SegmentPath("/store/log", gens[2].Generation), 8*600)
	var found []string
	s := &recovery.Scrubber{FS: disk, Dir: "/store", Identity: w.store.Identity, Found: func(err error) { found = append(found, err.Error()) }}
	synctest.Test(t, func(t *testing.T) { must(t, s.Round(t.Context())) })
	all := strings.Join(found, "\n")
	if len(found) != 2 || !strings.Contains(all, generationName(gens[0].Generation)) || !strings.Contains(all, generationName(gens[2].Generation)) {
		t.Errorf("of damage in generations %d and %d it found\n%s", gens[0].Generation, gens[2].Generation, all)
	}
	must(t, w.close())
}

func TestScrubberRuns(t *testing.T) {
	disk, _ := cleanStore(t, 410, 1, 40)
	store, err := recovery.Open(t0, options(disk, "/store"))
	must(t, err)
	defer store.Close()
	s := &recovery.Scrubber{FS: disk, Dir: "/store", Identity: store.Identity, Every: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		if err := s.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if n := s.Numbers(); n.Rounds != 3 {
			t.Errorf("got %d rounds in two and a half hours, want 3", n.Rounds)
		}
	})
}

// TestScrubberRate: a rate holds at once, in the middle of a file, and none is a
// rest.
func TestScrubberRate(t *testing.T) {
	disk, _ := cleanStore(t, 420, 1, 40)
	store, err := recovery.Open(t0, options(disk, "/store"))
	must(t, err)
	defer store.Close()
	s := &recovery.Scrubber{FS: disk, Dir: "/store", Identity: store.Identity}
	s.SetRate(0)
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		go func() {
			defer close(over)
			if err := s.Round(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := s.Numbers(); n.Bytes != 0 {
			t.Errorf("read %d bytes at rest", n.Bytes)
		}
		s.SetRate(1)
		time.Sleep(time.Hour)
		synctest.Wait()
		slow := s.Numbers().Bytes
		s.SetRate(0)
		time.Sleep(time.Hour)
		synctest.Wait()
		if rest := s.Numbers().Bytes; rest != slow || slow == 0 {
			t.Errorf("read %d bytes at a byte a second and %d after a rest", slow, rest)
		}
		s.SetRate(1 << 30)
		began := time.Now()
		<-over
		if took := time.Since(began); took > time.Minute || s.Numbers().Rounds != 1 {
			t.Errorf("got %+v, %v after the rest", s.Numbers(), took)
		}
	})
}
