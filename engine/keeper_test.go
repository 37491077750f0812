package engine

import "testing"

// The group that makes a snapshot due wakes the keeper, once: the ones before
// and behind it leave it to its timer.
func TestADueSnapshotWakesTheKeeper(t *testing.T) {
	e := &Engine{}
	e.limits.snapshotBytes.Store(100)
	k := &e.keeper
	k.init(e)
	woken := func() bool {
		select {
		case <-k.kick:
			return true
		default:
			return false
		}
	}
	for i, c := range []struct {
		bytes int
		wakes bool
	}{{60, false}, {39, false}, {1, true}, {50, false}, {500, false}} {
		k.wrote(c.bytes)
		if got := woken(); got != c.wakes {
			t.Errorf("group %d of %d bytes: woken %t, want %t", i+1, c.bytes, got, c.wakes)
		}
	}
	k.newestSize.Store(8000) // so large that it waits for an eighth of it
	for i, c := range []struct {
		bytes int
		wakes bool
	}{{249, false}, {1, true}} {
		if i == 0 {
			k.sinceSnapshot.Store(750)
		}
		k.wrote(c.bytes)
		if got := woken(); got != c.wakes {
			t.Errorf("behind a large snapshot, group %d of %d bytes: woken %t, want %t", i+1, c.bytes, got, c.wakes)
		}
	}
	k.sinceSnapshot.Store(0) // a snapshot has begun
	k.wrote(1000)
	if !woken() {
		t.Error("one group larger than all of it does not wake the keeper")
	}
}
