package wal_test

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/wal"
	"pawl/wal/waltest"
)

// A group that is written while the log's own sync is under way is not in that one,
// and comes with the next. Behind that there is nothing to sync.
func TestGroupBesideASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		disk := &waltest.Hanging{FS: r.disk}
		r.opt.FS, r.opt.Foreground, r.opt.Sync, r.opt.Interval = disk, false, wal.SyncInterval, time.Second
		r.opt.IdleAfter = time.Hour // a mark would be synced, and the group with it
		l := mustBegin(t, r.opt)
		time.Sleep(5 * time.Second)
		release := disk.Hang("datasync")
		mustAppend(t, l, waltest.Record{Head: []byte("one")})
		synctest.Wait()
		mustAppend(t, l, waltest.Record{Head: []byte("two")})
		release()
		synctest.Wait()
		if got := l.Durable(); got != 1 {
			t.Errorf("after the first sync: durable is %d, want 1", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := l.Durable(); got != 2 {
			t.Errorf("after the second: durable is %d, want 2", got)
		}
		syncs := l.Stats().Syncs
		if err := l.Sync(); err != nil || l.Stats().Syncs != syncs {
			t.Errorf("there was something to sync, %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A log at rest does nothing: its marks are synced once, and once more at the end.
func TestSyncsOfAQuietLog(t *testing.T) {
	for policy, want := range map[wal.SyncPolicy]uint64{wal.SyncAlways: 3, wal.SyncInterval: 3, wal.SyncNever: 0} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			r.opt.Foreground, r.opt.Sync = false, policy
			l := mustBegin(t, r.opt)
			time.Sleep(5 * time.Second)
			mustAppend(t, l, waltest.Record{Head: []byte("h")})
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := l.Stats().Syncs; got != want {
				t.Errorf("policy %d: %d syncs in an hour, want %d: the group, the mark, its witness", policy, got, want)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Between two syncs of the interval is the interval, however often the log comes to
// rest meanwhile; and it counts also where that is shorter than a rest.
func TestIntervalBetweenSyncs(t *testing.T) {
	for _, c := range []struct {
		interval, idleAfter time.Duration
		durable             []wal.LSN // after 1, 10 and 20 groups, 200 ms apart
	}{
		{3100 * time.Millisecond, 50 * time.Millisecond, []wal.LSN{1, 1, 16}},
		{100 * time.Millisecond, time.Minute, []wal.LSN{1, 10, 20}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			r.opt.Foreground, r.opt.Sync, r.opt.Interval, r.opt.IdleAfter = false, wal.SyncInterval, c.interval, c.idleAfter
			l := mustBegin(t, r.opt)
			time.Sleep(time.Hour)
			for n := 1; n <= 20; n++ {
				mustAppend(t, l, waltest.Record{Head: []byte("h")})
				time.Sleep(200 * time.Millisecond)
				synctest.Wait()
				if got := l.Stats().Syncs; n == 1 && got != 1 {
					t.Errorf("interval %v: %d syncs after one group, want 1: its mark waits for the next", c.interval, got)
				}
				if i := n / 10; n == 1 || n%10 == 0 {
					if got := l.Durable(); got != c.durable[i] {
						t.Errorf("interval %v: after %d groups %d are durable, want %d", c.interval, n, got, c.durable[i])
					}
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Of a generation that was passed over, for a large command, nothing is kept: no
// descriptor, no memory, no file.
func TestNothingIsKeptOfWhatWasPassedOver(t *testing.T) {
	r := newRun(t)
	open := map[string]int{}
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		switch op.Kind {
		case "open":
			open[op.Name]++
		case "close":
			open[op.Name]--
		}
		return waltest.Fault{}
	})
	l := mustBegin(t, r.opt)
	mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, 3*wal.MinGenerationBytes)})
	for _, passed := range []uint32{2, 3} {
		if name := segmentFile(passed); open[name] != 0 || r.disk.Contents(name) != nil {
			t.Errorf("generation %d: %d descriptors are open, and its file has %d bytes", passed, open[name], len(r.disk.Contents(name)))
		}
	}
	if got, want := l.Images(), 1+l.Stats().Prepared; got != want {
		t.Errorf("%d generations are in memory, want %d", got, want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, n := range open {
		if n != 0 {
			t.Errorf("%s: %d descriptors are open in the end", name, n)
		}
	}
}

// Of a large generation no image is kept: none will ever be as large.
func TestImageOfALargeGenerationIsNotKept(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, 3*wal.MinGenerationBytes)})
	for large := len(l.Generations()); len(l.Generations()) == large; {
		mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, 3000)})
	}
	if got := l.Spare(); got != 0 && got != wal.MinGenerationBytes {
		t.Errorf("an image of %d bytes is kept, for generations of %d", got, wal.MinGenerationBytes)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A segment that cannot be closed may have lost what it had: the log has failed,
// and Close says so whoever found it out.
func TestSegmentThatCannotBeClosed(t *testing.T) {
	for _, c := range []struct {
		name           string
		full, untended bool
	}{
		{name: "full, at the turn", full: true},
		{name: "full, when the log is closed", full: true, untended: true},
		{name: "the last one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			l := mustBegin(t, r.opt)
			l.FailClose(syscall.EIO)
			if c.untended {
				l.Untended()
			}
			for c.full && len(l.Generations()) < 2 {
				mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: make([]byte, 3000)})
			}
			if err := l.Failure(); c.full && !c.untended && !errors.Is(err, syscall.EIO) {
				t.Errorf("at the turn: got %v, want EIO", err)
			}
			for range 3 {
				if err := l.Close(); !errors.Is(err, syscall.EIO) {
					t.Errorf("close: got %v, want EIO", err)
				}
			}
			if err := l.Failure(); !errors.Is(err, syscall.EIO) {
				t.Errorf("after close: got %v, want EIO", err)
			}
			_, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{})
			if err != nil || end.Closed == c.full {
				t.Errorf("closed mark: %v, %v", end.Closed, err)
			}
		})
	}
}
