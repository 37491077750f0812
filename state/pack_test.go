package state_test

import (
	"bytes"
	"crypto/sha256"
	"runtime"
	"testing"

	"pawl/internal/seeds"
	"pawl/state"
)

// pack has a state give back what it can: what is empty now is packed.
func pack(t testing.TB, s *state.State) {
	t.Helper()
	for range 2 {
		for looks := 0; s.Pack(7); looks++ {
			if looks > 1_000_000 {
				t.Fatal("there is always more to pack")
			}
		}
	}
	if s.HasEmpty() {
		t.Fatal("something is left to be packed")
	}
}

// What a large backlog took is given back when it is gone, whatever of it there was
// in which order: by the running state, and by one that is loaded. Those who come
// then have the slots and numbers that they would have had.
func TestBacklogGivesBackMemory(t *testing.T) {
	const jobs = 30_000
	for name, next := range map[string]func(i int) int{
		"in order":          func(i int) int { return i },
		"the last first":    func(i int) int { return jobs - 1 - i },
		"in no order":       func(i int) int { return i * 7919 % jobs },
		"all but some":      func(i int) int { return i },
		"in several rounds": func(i int) int { return i },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			taken := func() int64 { return int64(heap()) - int64(before) }
			s := oneQueue(t)
			full := int64(0)
			for range map[bool]int{true: 3, false: 1}[name == "in several rounds"] {
				slots := make([]state.Slot, jobs)
				for i := range slots {
					key := state.Key{1, byte(i), byte(i >> 8), byte(i >> 16)}
					slots[i] = enqueue(t, s, state.Record{Unique: key, Group: key, Expires: 1 << 40, Priority: int8(i % 3)})
				}
				full = taken()
				for i := range slots {
					if slot := slots[next(i)]; name != "all but some" || slot%1000 != 0 {
						must(t, s, s.Now(), state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
					}
				}
			}
			estimate := s.Counts().Memory
			want := sha256.Sum256(write(t, s)) // the bytes would be counted
			pack(t, s)
			if left := taken(); left > full/4 {
				t.Errorf("got %d bytes when the jobs were gone, want far less than the %d of all", left, full)
			}
			if got := s.Counts().Memory; got > estimate/4 {
				t.Errorf("got an estimate of %d bytes, want far less than %d", got, estimate)
			}
			written := write(t, s)
			if sha256.Sum256(written) != want {
				t.Error("it is another state than before")
			}
			check(t, s)
			var start, end runtime.MemStats
			before = heap()
			runtime.ReadMemStats(&start)
			loaded, err := state.Load(bytes.NewReader(written))
			if err != nil {
				t.Fatal(err)
			}
			if runtime.ReadMemStats(&end); int64(end.TotalAlloc-start.TotalAlloc) > full/3 {
				t.Errorf("loading took %d bytes, want far less than %d", end.TotalAlloc-start.TotalAlloc, full)
			}
			if left := taken(); left > full/4 {
				t.Errorf("got %d bytes when it is loaded, want far less than %d", left, full)
			}
			check(t, loaded)
			if got := loaded.Counts(); got.Memory > estimate/4 {
				t.Errorf("got an estimate of %d bytes when it is loaded, want far less than %d", got.Memory, estimate)
			}
			for range jobs / 4 {
				slot, reuse := s.NextSlot()
				if again, times := loaded.NextSlot(); again != slot || times != reuse {
					t.Fatalf("the next slot is %d, used %d times, and %d, used %d times, when it is loaded", slot, reuse, again, times)
				}
				for _, s := range []*state.State{s, loaded} {
					enqueue(t, s, state.Record{})
				}
			}
			check(t, s)
			if !bytes.Equal(write(t, s), write(t, loaded)) {
				t.Error("the two have become different states")
			}
		})
	}
}

// However often a state packs, and is loaded packed, it says what one says that never
// does, and its views stay what they were.
func TestPackedIsTheSame(t *testing.T) {
	s, plain := oneQueue(t), oneQueue(t)
	random := seeds.Rand(t.Name())
	var slots []state.Slot
	var view *state.View
	var viewed []byte
	packed := false
	for round := range 400 {
		switch n := 1 + random.IntN(700); {
		case random.IntN(5) < 2 || len(slots) == 0:
			for range n {
				slot := enqueue(t, s, state.Record{Group: state.Key{byte(n), 1}})
				if enqueue(t, plain, state.Record{Group: state.Key{byte(n), 1}}) != slot {
					t.Fatalf("round %d: another slot than %d", round, slot)
				}
				slots = append(slots, slot)
			}
		default:
			from := random.IntN(len(slots))
			to := min(from+n, len(slots))
			for _, slot := range slots[from:to] {
				for _, s := range []*state.State{s, plain} {
					must(t, s, s.Now(), state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
				}
			}
			slots = append(slots[:from], slots[to:]...)
		}
		before := s.Counts().Memory
		s.Pack(random.IntN(10))
		packed = packed || s.Counts().Memory < before
		if view != nil && random.IntN(6) == 0 {
			var b bytes.Buffer
			if _, err := view.WriteTo(&b); err != nil || !bytes.Equal(b.Bytes(), viewed) {
				t.Fatalf("round %d: the view has changed, %v", round, err)
			}
			s.Release(view)
			view = nil
		}
		if view == nil && random.IntN(3) == 0 {
			viewed = write(t, s)
			view = s.View()
		}
		if round%20 == 0 {
			check(t, s)
			if !bytes.Equal(write(t, s), write(t, plain)) {
				t.Fatalf("round %d: the two are different", round)
			}
			if view == nil {
				loaded, err := loads(t, write(t, s))
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				s = loaded
			}
		}
	}
	if !packed {
		t.Error("nothing was packed")
	}
}

// What is in use again between two looks is not packed: jobs that come and go in a
// daemon with nothing else to do have no page unpacked for each.
func TestPackLeavesWhatIsUsed(t *testing.T) {
	s := oneQueue(t)
	var slots []state.Slot
	for range 4*64 - 1 { // four pages, as slot 0 is none
		slots = append(slots, enqueue(t, s, state.Record{}))
	}
	for _, slot := range slots {
		must(t, s, s.Now(), state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
	}
	pack(t, s)
	least := s.Counts().Memory
	for range 5 {
		slot := enqueue(t, s, state.Record{})
		must(t, s, s.Now(), state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
		for s.Pack(1) {
		}
		if got := s.Counts().Memory; got <= least {
			t.Fatalf("got %d bytes, and %d with all packed: want that the page in use is not", got, least)
		}
	}
	pack(t, s)
	if got := s.Counts().Memory; got != least {
		t.Errorf("got %d bytes when nothing is in use, want %d", got, least)
	}
}

// A snapshot follows what is held: a few bytes for a slot that was used once, fewer
// where jobs were finished in some order.
func TestSnapshotFollowsWhatIsHeld(t *testing.T) {
	const jobs = 64 * 500
	for _, tt := range []struct {
		name string
		next func(i int) int
		keep int // of so many one
		most float64
	}{
		{"in order", func(i int) int { return i }, 0, 0.3},
		{"the last first", func(i int) int { return jobs - 1 - i }, 0, 0.3},
		{"by four who take turns", func(i int) int { return i%4*(jobs/4) + i/4 }, 0, 0.5},
		{"in no order", func(i int) int { return i * 7919 % jobs }, 0, 6},
		{"all but one of a page", func(i int) int { return i }, 64, 1.5},
		{"none", func(i int) int { return i }, 1, 64.3},
	} {
		s := oneQueue(t)
		for range jobs {
			enqueue(t, s, state.Record{})
		}
		for i := range jobs {
			if slot := state.Slot(1 + tt.next(i)); tt.keep == 0 || int(slot)%tt.keep != 0 {
				must(t, s, s.Now(), state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
			}
		}
		b := write(t, s)
		if each := float64(len(b)) / jobs; each > tt.most {
			t.Errorf("%s: %.2f bytes for each slot, want at most %v", tt.name, each, tt.most)
		}
		if _, err := loads(t, b); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// An extra that only names a unique key looks as if it were free. It is in use.
func TestExtrasThatOnlyNameKeys(t *testing.T) {
	s := oneQueue(t)
	var slots []state.Slot
	for i := range 300 {
		slots = append(slots, enqueue(t, s, state.Record{Unique: state.Key{byte(i), byte(i >> 8), 1}}))
	}
	for range 3 {
		loaded, err := loads(t, write(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := dump(t, loaded), dump(t, s); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		s = loaded
		for _, slot := range slots[:80] {
			must(t, s, s.Now(), state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
		}
		check(t, s)
		slots = slots[80:]
	}
}
