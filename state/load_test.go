package state_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"pawl/state"
)

// rich is a state that has something in each of its tables, and something freed.
func rich(t testing.TB) *state.State {
	s := state.New()
	apply := func(now state.Millis, r state.Record) {
		t.Helper()
		body := state.Body{}
		if r.Kind.HasBody() {
			body = state.Body{Generation: 2, Offset: 3, Length: 14, Checksum: 5}
		}
		if err := s.Apply(&r, body, now); err != nil {
			t.Fatal(err)
		}
	}
	apply(10, state.Record{Kind: state.KindSecret, Text: []byte("0123456789abcdef")})
	apply(10, state.Record{Kind: state.KindClock, At: 1000})
	for i, name := range []string{"p/n/a", "p/n/b", "p/n/c", "p/n/d"} {
		apply(10, state.Record{Kind: state.KindQueue, Queue: state.QueueID(i + 1), Text: []byte(name)})
	}
	apply(10, state.Record{Kind: state.KindForget, Queue: 4})
	enqueue := func(slot state.Slot, r state.Record) {
		t.Helper()
		r.Kind, r.Slot, r.Born, r.Overhead = state.KindEnqueue, slot, 1010, 4
		if r.Queue == 0 {
			r.Queue = 1
		}
		apply(10, r)
	}
	g, h := state.Key{1}, state.Key{2}
	enqueue(1, state.Record{})
	enqueue(2, state.Record{Priority: 3, Expires: 500, Tries: 4, Backoff: 5, BackoffMax: 6})
	enqueue(3, state.Record{Group: g})
	enqueue(4, state.Record{Group: g, Unique: state.Key{9}, Window: 100})
	enqueue(5, state.Record{Group: g})
	enqueue(6, state.Record{Group: h, At: 300})
	enqueue(7, state.Record{At: 200})
	enqueue(8, state.Record{At: 250})
	enqueue(9, state.Record{At: 1400, Wall: true, Expires: 900})
	enqueue(10, state.Record{At: 1300, Wall: true})
	enqueue(11, state.Record{Priority: 9})
	enqueue(12, state.Record{Unique: state.Key{8}, Window: 100})
	enqueue(13, state.Record{Unique: state.Key{7}, Window: 100})
	enqueue(14, state.Record{})
	enqueue(15, state.Record{})
	enqueue(16, state.Record{Queue: 2})
	enqueue(17, state.Record{Queue: 2})
	apply(20, state.Record{Kind: state.KindLease, Slot: 11, Nonce: state.Nonce{1, 2}, At: 400})
	apply(20, state.Record{Kind: state.KindLease, Slot: 16, Nonce: state.Nonce{3}, At: 400})
	apply(20, state.Record{Kind: state.KindFail, Slot: 16, Cause: state.CauseNack, Place: state.Delayed, At: 90, Text: []byte("why")})
	apply(20, state.Record{Kind: state.KindBury, Slot: 12, Cause: state.CauseBury, Text: []byte("old")})
	apply(20, state.Record{Kind: state.KindBury, Slot: 17, Cause: state.CauseBury})
	for _, slot := range []state.Slot{13, 14, 15} {
		apply(20, state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
	}
	apply(30, state.Record{Kind: state.KindSettings, Queue: 2, Settings: &state.Settings{DeadFor: 70, RateCount: 2, MaxLen: 9}})
	apply(30, state.Record{Kind: state.KindPause, Queue: 2, At: 80})
	apply(30, state.Record{Kind: state.KindCron, Cron: &state.Cron{Namespace: "p/n", Name: "c", Spec: "s", Queue: "p/n/a", Payload: []byte("x"), Next: 2000}})
	apply(30, state.Record{Kind: state.KindCron, Cron: &state.Cron{Namespace: "p/n", Name: "d"}})
	apply(30, state.Record{Kind: state.KindCronDelete, Cron: &state.Cron{Namespace: "p/n", Name: "c"}})
	apply(30, state.Record{Kind: state.KindMeta, Text: []byte("k"), Data: []byte("v")})
	apply(30, state.Record{Kind: state.KindMeta, Text: []byte("l"), Data: []byte("w")})
	apply(30, state.Record{Kind: state.KindMetaDelete, Text: []byte("k")})
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

// spent is rich after a backlog that is gone: there are pages of which nothing is in
// use, and some of which little is.
func spent(t testing.TB) *state.State {
	s := rich(t)
	var slots []state.Slot
	const jobs = 330
	for round := range 2 {
		for range jobs >> round {
			slots = append(slots, enqueue(t, s, state.Record{}))
		}
		for i := range slots {
			if slot := slots[i*91%len(slots)]; slot != 200 && slot < 320 {
				must(t, s, s.Now(), state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
			}
		}
		slots = nil
	}
	check(t, s)
	return s
}

func write(t testing.TB, s *state.State) []byte {
	var b bytes.Buffer
	v := s.View()
	defer s.Release(v)
	if _, err := v.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// loads reads b and checks that it is either refused as no state, or a sound
// state that is written as the same bytes: those of version 2, where b is older.
func loads(t testing.TB, b []byte) (*state.State, error) {
	t.Helper()
	s, err := state.Load(bytes.NewReader(b))
	if err != nil {
		if !errors.Is(err, state.ErrLoad) {
			t.Errorf("got %v, want ErrLoad", err)
		}
		return nil, err
	}
	if err := s.Check(); err != nil {
		t.Errorf("a state that was loaded: %v", err)
	}
	again := write(t, s)
	if bytes.HasPrefix(b, []byte("pawl state 1\n")) {
		newer, err := loads(t, again)
		if err != nil || dump(t, newer) != dump(t, s) {
			t.Errorf("%x is another state when it is written as %x: %v", b, again, err)
		}
	} else if !bytes.Equal(again, b) {
		t.Errorf("%x is written as %x", b, again)
	}
	return s, nil
}

func dump(t testing.TB, s *state.State) string {
	var b strings.Builder
	if err := s.Dump(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// states are what the tests of loading begin with.
func states(t testing.TB) map[string]*state.State {
	return map[string]*state.State{"rich": rich(t), "spent": spent(t)}
}

func TestLoad(t *testing.T) {
	for name, s := range states(t) {
		b := write(t, s)
		loaded, err := loads(t, b)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := dump(t, loaded), dump(t, s); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		if _, err := state.Load(iotest.OneByteReader(bytes.NewReader(b))); err != nil {
			t.Errorf("%s, byte for byte: %v", name, err)
		}
	}
}

// Whatever is done to the bytes, they are refused or are those of a sound state.
func TestLoadDamaged(t *testing.T) {
	for name, s := range states(t) {
		b := write(t, s)
		accepted := 0
		for i := range b {
			if _, err := loads(t, b[:i]); err == nil {
				t.Errorf("%s, cut at %d of %d: accepted", name, i, len(b))
			}
			for n, flip := range []byte{0x01, 0x82} {
				if testing.Short() && i%2 != n {
					continue
				}
				c := bytes.Clone(b)
				c[i] ^= flip
				if _, err := loads(t, c); err == nil {
					accepted++
				}
			}
		}
		if _, err := loads(t, append(bytes.Clone(b), 0)); err == nil {
			t.Errorf("%s, a byte too many: accepted", name)
		}
		// Payload places, totals, nonces and the like can be anything.
		t.Logf("%s: %d bytes, %d changes accepted", name, len(b), accepted)
	}
}

// A block that says that it is shorter, and is, ends in the midst of what it
// should hold.
func TestLoadShortBlocks(t *testing.T) {
	for name, s := range states(t) {
		b := write(t, s)
		le := binary.LittleEndian
		blocks := 0
		for at := len("pawl state 2\n"); at+4 <= len(b); at += 4 + int(le.Uint32(b[at:])) {
			n := int(le.Uint32(b[at:]))
			if at+4+n > len(b) {
				t.Fatalf("%s: block at %d is longer than what is left", name, at)
			}
			for _, less := range []int{1, 8, 60} {
				if less > n {
					continue
				}
				c := bytes.Clone(b[:at+4+n-less])
				le.PutUint32(c[at:], uint32(n-less))
				if _, err := loads(t, append(c, b[at+4+n:]...)); err == nil {
					t.Errorf("%s: block at %d, %d bytes less of %d: accepted", name, at, less, n)
				}
			}
			blocks++
		}
		if blocks < 10 {
			t.Errorf("%s: %d blocks", name, blocks)
		}
	}
}

// The error of a reader is given as it is.
func TestLoadReaderFails(t *testing.T) {
	b := write(t, rich(t))
	broken := errors.New("broken")
	for i := 0; i <= len(b); i += 7 {
		if _, err := state.Load(io.MultiReader(bytes.NewReader(b[:i]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Fatalf("failing at %d: got %v", i, err)
		}
	}
}

type failingWriter int

func (w *failingWriter) Write(p []byte) (int, error) {
	if *w -= failingWriter(len(p)); *w < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteFails(t *testing.T) {
	s := rich(t)
	for i := range 20_000 {
		slot, _ := s.NextSlot()
		s.Apply(&state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: 1}, state.Body{}, state.Millis(100+i))
	}
	size := len(write(t, s))
	for _, n := range []int{0, 70_000, size - 1} {
		w := failingWriter(n)
		if _, err := s.View().WriteTo(&w); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("failing at %d: got %v", n, err)
		}
		if err := s.Dump(new(failingWriter)); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("dump: got %v", err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range states(f) {
		f.Add(write(f, s))
	}
	f.Add(write(f, state.New()))
	for version := 1; version <= goldenStates; version++ {
		b, _ := goldenState(f, version)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { loads(t, b) })
}

// A view of a table of several chunks stays as it was, and so does one taken in
// between, while entries change in place, come into chunks that were there, and
// need chunks of their own.
func TestViewsOfLargeTables(t *testing.T) {
	s := state.New()
	apply := func(r state.Record) {
		t.Helper()
		body := state.Body{}
		if r.Kind.HasBody() {
			body = state.Body{Generation: 2, Offset: 3, Length: 14, Checksum: 5}
		}
		if err := s.Apply(&r, body, 10); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(n int) {
		for range n {
			slot, _ := s.NextSlot()
			apply(state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: 1, Born: 10})
		}
	}
	bytesOf := func(v *state.View) string {
		var b bytes.Buffer
		if _, err := v.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const chunk = 64 * 256 // entries
	apply(state.Record{Kind: state.KindQueue, Queue: 1, Text: []byte("p/n/q")})
	fill(chunk + chunk/2)
	first := s.View()
	before := bytesOf(first)
	fill(chunk / 4)
	apply(state.Record{Kind: state.KindDelete, Slot: 3, Cause: state.CauseDelete})
	second := s.View()
	between := bytesOf(second)
	fill(2 * chunk)
	for slot := state.Slot(4); slot < 3*chunk; slot += 97 {
		apply(state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
	}
	for _, want := range []struct {
		v    *state.View
		text string
	}{{first, before}, {second, between}} {
		if bytesOf(want.v) != want.text {
			t.Error("a view has changed")
		}
	}
	s.Release(first)
	s.Release(second)
	third := s.View()
	defer s.Release(third)
	loaded, err := state.Load(strings.NewReader(bytesOf(third)))
	if err != nil {
		t.Fatal(err)
	}
	if bytesOf(loaded.View()) != bytesOf(third) {
		t.Error("what was loaded is another state")
	}
}

// A view is what the state was, whatever happens to the state, and the state
// goes on as if there were no view.
func TestViewStays(t *testing.T) {
	s, plain := rich(t), rich(t)
	want := write(t, s)
	views := []*state.View{s.View(), s.View()}
	done := make(chan []byte)
	go func() { // a reader of its own, for the race detector
		var b bytes.Buffer
		views[0].WriteTo(&b)
		done <- b.Bytes()
	}()
	churn := func(s *state.State) {
		for i := range 5000 {
			now := state.Millis(1000 + i)
			slot, _ := s.NextSlot()
			for _, r := range []state.Record{
				{Kind: state.KindEnqueue, Slot: slot, Queue: 3, Group: state.Key{byte(i)}, Unique: state.Key{byte(i), 1}, Window: 1},
				{Kind: state.KindBury, Slot: slot, Cause: state.CauseBury, Text: []byte{'r', byte(i)}},
				{Kind: state.KindMeta, Text: []byte("l"), Data: []byte{byte(i)}},
			} {
				if err := s.Apply(&r, state.Body{Length: 9}, now); err != nil && r.Kind != state.KindEnqueue {
					t.Error(err)
					return
				}
			}
			if i%3 == 0 {
				if err := s.Apply(&state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete}, state.Body{}, now); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}
	churn(s)
	churn(plain)
	if !bytes.Equal(<-done, want) {
		t.Error("the view that was written meanwhile has changed")
	}
	s.Release(views[0])
	if err := s.Apply(&state.Record{Kind: state.KindDelete, Slot: 1, Cause: state.CauseDelete}, state.Body{}, 9000); err != nil {
		t.Error(err)
	}
	if err := plain.Apply(&state.Record{Kind: state.KindDelete, Slot: 1, Cause: state.CauseDelete}, state.Body{}, 9000); err != nil {
		t.Error(err)
	}
	var b bytes.Buffer
	views[1].WriteTo(&b)
	if !bytes.Equal(b.Bytes(), want) {
		t.Error("the other view has changed")
	}
	s.Release(views[1])
	if !bytes.Equal(write(t, s), write(t, plain)) {
		t.Error("the state differs from one without views")
	}
}

// goldenStates is how many versions of a state's bytes there were.
const goldenStates = 2

func goldenPath(version int) string { return fmt.Sprintf("testdata/golden/%d.state", version) }

// goldenState is what a version wrote, and the dump of it.
func goldenState(t testing.TB, version int) (b, dump []byte) {
	t.Helper()
	b, err := os.ReadFile(goldenPath(version))
	if err != nil {
		t.Fatal(err)
	}
	if dump, err = os.ReadFile(goldenPath(version) + ".dump"); err != nil {
		t.Fatal(err)
	}
	return b, dump
}

// A state that a version wrote is read by all later ones, as this dump. When the
// format changes, the old pair stays and a new one comes beside it.
func TestGolden(t *testing.T) {
	if *update {
		s, path := spent(t), goldenPath(goldenStates)
		if err := errors.Join(os.WriteFile(path, write(t, s), 0o644), os.WriteFile(path+".dump", []byte(dump(t, s)), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for version := 1; version <= goldenStates; version++ {
		b, want := goldenState(t, version)
		if magic := fmt.Sprintf("pawl state %d\n", version); !bytes.HasPrefix(b, []byte(magic)) {
			t.Errorf("version %d begins with %q", version, b[:len(magic)])
		}
		loaded, err := loads(t, b)
		if err != nil {
			t.Fatal(err)
		}
		if got := dump(t, loaded); got != string(want) {
			t.Errorf("version %d: got\n%s\nwant\n%s", version, got, want)
		}
	}
	// The first one is what version 2 writes of it, to the byte.
	b, _ := goldenState(t, 1)
	first, err := loads(t, b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(write(t, first), write(t, rich(t))) {
		t.Error("what the first version wrote is another state")
	}
}

// A snapshot is written beside a daemon that goes on: it must not allocate for
// each job.
func TestWriteAllocatesNothingPerJob(t *testing.T) {
	s := state.New()
	apply := func(r state.Record, body state.Body) {
		if err := s.Apply(&r, body, 1); err != nil {
			t.Fatal(err)
		}
	}
	apply(state.Record{Kind: state.KindQueue, Queue: 1, Text: []byte("p/n/q")}, state.Body{})
	const jobs = 20_000
	for range jobs {
		slot, _ := s.NextSlot()
		apply(state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: 1, Born: 1}, state.Body{Generation: 1, Length: 3})
	}
	v := s.View()
	defer s.Release(v)
	n := testing.AllocsPerRun(3, func() {
		if _, err := v.WriteTo(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
	if n > jobs/100 {
		t.Errorf("%v allocations to write %d jobs, want a few dozens", n, jobs)
	}
}
