package recovery_test

import (
	"testing"

	"pawl/wal/waltest"
)

// What a killed process wrote and did not sync is in the page cache, and the
// next start reads it there. If the power goes during that start, at any of its
// operations, the start after it must find nothing that relies on what is lost;
// and if it goes later, what was shown meanwhile must be there.
func TestPowerCutAfterAKill(t *testing.T) {
	none := func(int) waltest.Keep { return waltest.Keep{} }
	shownMore := 0
	for seed := range uint64(8) {
		disk, past := waltest.NewDisk(), newPast()
		w, err := openWorld(disk, "/store", seed, past)
		must(t, err)
		must(t, w.work(int(5+seed)))
		writes := uint64(0)
		disk.Inject(func(op waltest.Op) waltest.Fault {
			if op.Kind == "write" {
				writes++
			}
			// The write is done, and nothing after it.
			return waltest.Fault{Crash: writes > seed, Done: true}
		})
		for err == nil {
			err = w.step()
		}
		killed := disk.Kill()
		whole := killed.Kill()
		again, err := openWorld(whole, "/store", seed+100, past)
		if err != nil {
			t.Fatalf("seed %d: start after a kill: %v", seed, err)
		}
		for at := 1; at <= whole.Ops(); at++ {
			starting := killed.Kill()
			starting.Inject(waltest.CrashAt(at, true, 0))
			// Some operations are of no consequence, so it may come through.
			_, _ = openWorld(starting, "/store", seed+100, past)
			if _, err := openWorld(starting.Crash(none), "/store", seed+200, past); err != nil {
				t.Fatalf("seed %d: start after a power cut behind operation %d of the start before: %v", seed, at, err)
			}
		}
		if shown := uint64(again.store.End.LSN); shown > past.acked {
			shownMore++
			past.acked = shown // from here on a promise
		}
		if _, err := openWorld(whole.Crash(none), "/store", seed+200, past); err != nil {
			t.Fatalf("seed %d: start after a power cut that followed: %v", seed, err)
		}
	}
	if shownMore == 0 {
		t.Error("no start showed a group that was not acknowledged: the test tests nothing")
	}
}
