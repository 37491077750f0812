package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/wal"
	"pawl/wal/waltest"
)

// The keeper of a daemon to which nobody writes looks again when generations have been
// kept for long enough, and then sleeps.
func TestKeeperOfAQuietDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keep = 10 * time.Minute
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", opt: engine.Options{SnapshotBytes: 1 << 30, Keep: keep}, log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer s.close()
		for range 3 {
			for range 50 {
				s.enqueue("mail", strings.Repeat("x", 1000))
				s.ack(s.fetch("mail", 60_000))
			}
			if err := s.e.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var looks atomic.Int64
		disk.Inject(func(op waltest.Op) waltest.Fault {
			if op.Kind == "available" && op.Name == s.dir {
				looks.Add(1)
			}
			return waltest.Fault{}
		})
		generations := func(after time.Duration) int64 {
			time.Sleep(after)
			synctest.Wait()
			s.counts("mail")
			return s.e.Numbers().Generations
		}
		kept := generations(keep - time.Minute)
		if kept < 8 {
			t.Errorf("%d generations, want those of the last ten minutes", kept)
		}
		if left := generations(keep/2 + time.Minute); left > kept-3 {
			t.Errorf("%d of %d generations are left, though they were kept for long enough", left, kept)
		}
		looks.Store(0)
		if generations(10 * time.Hour); looks.Load() > 100 {
			t.Errorf("it looked %d times in ten quiet hours", looks.Load())
		}
	})
}
