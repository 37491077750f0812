package wal_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"pawl/wal"
	"pawl/wal/waltest"
)

// Generations that were made ahead are counted with their bytes, and attempts that
// failed; one is made as soon as there is just the space for it.
func TestStatsCountWhatWasMade(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	record := waltest.Record{Head: []byte("h"), Body: make([]byte, 3000)}
	for len(l.Generations()) < 4 {
		mustAppend(t, l, record)
	}
	ahead := uint64(len(r.disk.Files()) - 1) // Begin made the first
	if s := l.Stats(); s.ZeroBytes != ahead*wal.MinGenerationBytes || s.PreparationFailures != 0 {
		t.Errorf("got %d bytes, %d failures; want those of %d generations, and none", s.ZeroBytes, s.PreparationFailures, ahead)
	}
	r.disk.Limit(0)
	refused := false
	for !refused {
		_, err := waltest.Append(l, record)
		refused = errors.Is(err, wal.ErrNoSpace)
		if err != nil && !refused {
			t.Fatal(err)
		}
	}
	before := l.Stats()
	if before.PreparationFailures == 0 {
		t.Error("no failure is counted")
	}
	r.disk.Limit(wal.MinGenerationBytes)
	mustAppend(t, l, record)
	if s := l.Stats(); s.ZeroBytes != before.ZeroBytes+wal.MinGenerationBytes {
		t.Errorf("got %d bytes more, want those of one generation", s.ZeroBytes-before.ZeroBytes)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Close tells those who wait for a generation, and waits for the maker: when it has
// returned nobody writes.
func TestCloseWaitsForTheMaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		disk := &waltest.Hanging{FS: r.disk}
		r.opt.FS, r.opt.Foreground = disk, false
		l := mustBegin(t, r.opt)
		synctest.Wait()
		release := disk.Hang("mkdir")
		for len(l.Generations()) < 2 {
			mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, 3000)})
		}
		synctest.Wait()
		news, closed := l.Prepared(), make(chan struct{})
		go func() {
			defer close(closed)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		select {
		case <-news:
		default:
			t.Error("who waits for a generation is not told")
		}
		select {
		case <-closed:
			t.Error("it is closed while the maker is at work")
		default:
		}
		release()
		<-closed
	})
}
