package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pawl/state"
)

// must applies a record that fits.
func must(t testing.TB, s *state.State, now state.Millis, r state.Record) {
	t.Helper()
	body := state.Body{}
	if r.Kind.HasBody() {
		body = state.Body{Generation: 1, Length: 10}
	}
	if err := s.Apply(&r, body, now); err != nil {
		t.Fatal(err)
	}
}

// oneQueue is a state with queue 1.
func oneQueue(t testing.TB) *state.State {
	s := state.New()
	must(t, s, 1, state.Record{Kind: state.KindQueue, Queue: 1, Text: []byte("p/n/q")})
	return s
}

func enqueue(t testing.TB, s *state.State, r state.Record) state.Slot {
	t.Helper()
	r.Kind = state.KindEnqueue
	r.Slot, _ = s.NextSlot()
	if r.Queue == 0 {
		r.Queue = 1
	}
	must(t, s, s.Now(), r)
	return r.Slot
}

func check(t testing.TB, s *state.State) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// A record that tells what cannot have happened is an error and changes nothing.
func TestMisfit(t *testing.T) {
	rich := func(t *testing.T) *state.State { return rich(t) } // jobs and queues: see there
	long := []byte(strings.Repeat("x", state.MaxReasonBytes+1))
	const over = state.MaxMillis + 1
	for _, tt := range []struct {
		why  string
		r    state.Record
		body state.Body
		now  state.Millis
	}{
		{why: "log time goes back", r: state.Record{Kind: state.KindDrain}, now: 29},
		{why: "log time goes back", r: state.Record{Kind: state.KindDrain}, now: over},
		{why: "unknown kind", r: state.Record{}},
		{why: "unknown kind", r: state.Record{Kind: state.KindEnd}},

		{why: "not the next free one", r: state.Record{Kind: state.KindEnqueue, Slot: 14, Queue: 1}},
		{why: "not the next free one", r: state.Record{Kind: state.KindEnqueue, Slot: 1, Queue: 1}},
		{why: "no such queue", r: state.Record{Kind: state.KindEnqueue, Slot: 15, Queue: 4}},
		{why: "no such queue", r: state.Record{Kind: state.KindEnqueue, Slot: 15, Queue: 0}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindEnqueue, Slot: 15, Queue: 1, Born: -1}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindEnqueue, Slot: 15, Queue: 1, At: over}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindEnqueue, Slot: 15, Queue: 1, Backoff: over}},
		{why: "body is shorter", r: state.Record{Kind: state.KindEnqueue, Slot: 15, Queue: 1, Overhead: 4}, body: state.Body{Length: 3}},
		{why: "unique key is taken", r: state.Record{Kind: state.KindEnqueue, Slot: 15, Queue: 1, Unique: state.Key{9}}},

		{why: "no such job", r: state.Record{Kind: state.KindLease, Slot: 15, At: 99}},
		{why: "no such job", r: state.Record{Kind: state.KindLease, Slot: 99, At: 99}},
		{why: "cannot be delivered", r: state.Record{Kind: state.KindLease, Slot: 4, At: 99}},
		{why: "cannot be delivered", r: state.Record{Kind: state.KindLease, Slot: 7, At: 99}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindLease, Slot: 1, At: over}},
		{why: "no such job", r: state.Record{Kind: state.KindAck, Slot: 15}},
		{why: "not leased", r: state.Record{Kind: state.KindAck, Slot: 1}},
		{why: "not leased", r: state.Record{Kind: state.KindRelease, Slot: 1}},
		{why: "not leased", r: state.Record{Kind: state.KindExtend, Slot: 1, At: 99}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindExtend, Slot: 11, At: over}},
		{why: "not leased", r: state.Record{Kind: state.KindFail, Slot: 1, Cause: state.CauseNack, Place: state.Ready}},
		{why: "bad cause", r: state.Record{Kind: state.KindFail, Slot: 11, Cause: state.CauseBury, Place: state.Ready}},
		{why: "has not run out", r: state.Record{Kind: state.KindFail, Slot: 11, Cause: state.CauseExpire, Place: state.Ready}, now: 399},
		{why: "bad place", r: state.Record{Kind: state.KindFail, Slot: 11, Cause: state.CauseNack, Place: state.Leased}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindFail, Slot: 11, Cause: state.CauseNack, Place: state.Delayed}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindFail, Slot: 11, Cause: state.CauseNack, Place: state.Ready, At: 9}},
		{why: "reason is too long", r: state.Record{Kind: state.KindFail, Slot: 11, Cause: state.CauseNack, Place: state.Ready, Text: long}},

		{why: "ahead of the time", r: state.Record{Kind: state.KindRange, At: 500, Slot: 2, Count: 1}, now: 499},
		{why: "covers a lease", r: state.Record{Kind: state.KindRange, At: 500, Slot: 2, Count: 6}, now: 500},
		{why: "covers other jobs", r: state.Record{Kind: state.KindRange, At: 200, Slot: 7, Count: 1}, now: 500},
		{why: "covers other jobs", r: state.Record{Kind: state.KindRange, At: 200, Slot: 8, Count: 2}, now: 500},
		{why: "covers other jobs", r: state.Record{Kind: state.KindRange, At: 20, Slot: 8, Count: 0}, now: 500},
		{why: "ahead of the time", r: state.Record{Kind: state.KindWallRange, At: 1300, Slot: 10, Count: 1}, now: 299},
		{why: "covers others", r: state.Record{Kind: state.KindWallRange, At: 1300, Slot: 9, Count: 1}, now: 300},
		{why: "ahead of the time", r: state.Record{Kind: state.KindKeyRange, At: 100, Slot: 2, Count: 1}, now: 99},
		{why: "covers others", r: state.Record{Kind: state.KindKeyRange, At: 100, Slot: 3, Count: 1}, now: 100},
		{why: "no such job", r: state.Record{Kind: state.KindLapse, Slot: 15}},
		{why: "not over", r: state.Record{Kind: state.KindLapse, Slot: 2}, now: 499},
		{why: "not over", r: state.Record{Kind: state.KindLapse, Slot: 1}, now: 499},

		{why: "no such job", r: state.Record{Kind: state.KindDelete, Slot: 15, Cause: state.CauseDelete}},
		{why: "bad cause", r: state.Record{Kind: state.KindDelete, Slot: 1, Cause: state.CauseDamage}},
		{why: "bad cause", r: state.Record{Kind: state.KindDelete, Slot: 1, Cause: state.CauseDeadFor + 1}},
		{why: "not dead", r: state.Record{Kind: state.KindDelete, Slot: 1, Cause: state.CauseDeadMax}},
		{why: "no such job", r: state.Record{Kind: state.KindBury, Slot: 15, Cause: state.CauseBury}},
		{why: "job is dead", r: state.Record{Kind: state.KindBury, Slot: 12, Cause: state.CauseBury}},
		{why: "bad cause", r: state.Record{Kind: state.KindBury, Slot: 1, Cause: state.CauseNack}},
		{why: "reason is too long", r: state.Record{Kind: state.KindBury, Slot: 1, Cause: state.CauseBury, Text: long}},

		{why: "no such job", r: state.Record{Kind: state.KindRedrive, Slot: 15, Queue: 1}},
		{why: "not dead", r: state.Record{Kind: state.KindRedrive, Slot: 1, Queue: 1}},
		{why: "no such queue", r: state.Record{Kind: state.KindRedrive, Slot: 12, Queue: 4}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindRedrive, Slot: 12, Queue: 1, Expires: over}},
		{why: "without need", r: state.Record{Kind: state.KindRedrive, Slot: 12, Queue: 1, DropKey: true}},
		{why: "no such job", r: state.Record{Kind: state.KindRun, Slot: 15}},
		{why: "job is leased", r: state.Record{Kind: state.KindRun, Slot: 11}},
		{why: "job is ready", r: state.Record{Kind: state.KindRun, Slot: 1}},
		{why: "without need", r: state.Record{Kind: state.KindRun, Slot: 7, DropKey: true}},
		{why: "without need", r: state.Record{Kind: state.KindRun, Slot: 12, DropKey: true}},
		{why: "job is leased", r: state.Record{Kind: state.KindDelay, Slot: 11, At: 9}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindDelay, Slot: 1}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindDelay, Slot: 1, At: over}},
		{why: "without need", r: state.Record{Kind: state.KindDelay, Slot: 1, At: 9, DropKey: true}},
		{why: "without need", r: state.Record{Kind: state.KindDelay, Slot: 12, At: 9, DropKey: true}},
		{why: "job is leased", r: state.Record{Kind: state.KindPriority, Slot: 11}},
		{why: "job is leased", r: state.Record{Kind: state.KindPayload, Slot: 11}},
		{why: "body is shorter", r: state.Record{Kind: state.KindPayload, Slot: 1, Overhead: 1}},
		{why: "job is leased", r: state.Record{Kind: state.KindMove, Slot: 11, Queue: 2}},
		{why: "no such queue", r: state.Record{Kind: state.KindMove, Slot: 1, Queue: 9}},
		{why: "in that queue", r: state.Record{Kind: state.KindMove, Slot: 1, Queue: 1}},
		{why: "no such job", r: state.Record{Kind: state.KindCarry, Slot: 15}},
		{why: "another one", r: state.Record{Kind: state.KindCarry, Slot: 1}, body: state.Body{Length: 14, Checksum: 6}},

		{why: "not the next free one", r: state.Record{Kind: state.KindQueue, Queue: 5, Text: []byte("p/n/e")}},
		{why: "bad queue key", r: state.Record{Kind: state.KindQueue, Queue: 4, Text: []byte("p/n/")}},
		{why: "queue exists", r: state.Record{Kind: state.KindQueue, Queue: 4, Text: []byte("p/n/a")}},
		{why: "no such queue", r: state.Record{Kind: state.KindTouch, Queue: 4}},
		{why: "no such queue", r: state.Record{Kind: state.KindForget, Queue: 4}},
		{why: "queue has jobs", r: state.Record{Kind: state.KindForget, Queue: 1}},
		{why: "no such queue", r: state.Record{Kind: state.KindSettings, Queue: 4, Settings: &state.Settings{}}},
		{why: "no settings", r: state.Record{Kind: state.KindSettings, Queue: 1}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindSettings, Queue: 1, Settings: &state.Settings{DeadFor: -1}}},
		{why: "no such queue", r: state.Record{Kind: state.KindPause, Queue: 4, At: 1}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindPause, Queue: 1}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindPause, Queue: 1, At: over}},
		{why: "no such queue", r: state.Record{Kind: state.KindResume, Queue: 4}},
		{why: "not paused", r: state.Record{Kind: state.KindResume, Queue: 1}},

		{why: "without a name", r: state.Record{Kind: state.KindCron}},
		{why: "without a name", r: state.Record{Kind: state.KindCron, Cron: &state.Cron{Namespace: "p/n"}}},
		{why: "without a name", r: state.Record{Kind: state.KindCron, Cron: &state.Cron{Name: "x"}}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindCron, Cron: &state.Cron{Namespace: "p/n", Name: "x", Next: over}}},
		{why: "bad catchup", r: state.Record{Kind: state.KindCron, Cron: &state.Cron{Namespace: "p/n", Name: "x", Catchup: 9}}},
		{why: "no such cron", r: state.Record{Kind: state.KindCronFired, Cron: &state.Cron{Namespace: "p/n", Name: "x"}}},
		{why: "no such cron", r: state.Record{Kind: state.KindCronFired}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindCronFired, Cron: &state.Cron{Namespace: "p/n", Name: "d", Last: over}}},
		{why: "no such cron", r: state.Record{Kind: state.KindCronDelete, Cron: &state.Cron{Namespace: "p/n", Name: "x"}}},
		{why: "no such cron", r: state.Record{Kind: state.KindCronDelete}},
		{why: "without a key", r: state.Record{Kind: state.KindMeta}},
		{why: "no such value", r: state.Record{Kind: state.KindMetaDelete, Text: []byte("x")}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindClock, At: over}},
		{why: "time out of bounds", r: state.Record{Kind: state.KindClock, At: -over}},
		{why: "there is a secret", r: state.Record{Kind: state.KindSecret, Text: make([]byte, 16)}},
	} {
		t.Run(fmt.Sprint(tt.r.Kind, " ", tt.why), func(t *testing.T) {
			s := rich(t)
			before := write(t, s)
			if tt.now == 0 {
				tt.now = 30
			}
			err := s.Apply(&tt.r, tt.body, tt.now)
			misfit, ok := errors.AsType[*state.MisfitError](err)
			if !ok || !strings.Contains(err.Error(), tt.why) || misfit.Kind != tt.r.Kind || misfit.Slot != tt.r.Slot {
				t.Errorf("got %v, want %q", err, tt.why)
			}
			if !bytes.Equal(write(t, s), before) {
				t.Error("the state has changed")
			}
			check(t, s)
		})
	}
	t.Run("secret after jobs", func(t *testing.T) {
		s := oneQueue(t)
		enqueue(t, s, state.Record{})
		if err := s.Apply(&state.Record{Kind: state.KindSecret, Text: make([]byte, 16)}, state.Body{}, 2); err == nil {
			t.Error("accepted: trees of delayed jobs depend on it")
		}
		if err := state.New().Apply(&state.Record{Kind: state.KindSecret, Text: make([]byte, 15)}, state.Body{}, 2); err == nil {
			t.Error("a secret of 15 bytes was accepted")
		}
	})
}

// A job's ID is of that job only, also when its slot is used again.
func TestLookup(t *testing.T) {
	s := oneQueue(t)
	var ids []state.JobID
	for range 5 {
		slot := enqueue(t, s, state.Record{Born: 77, Delay: 9})
		j, _ := s.Job(slot)
		for _, old := range ids {
			if _, ok := s.Lookup(old); ok || old == j.ID {
				t.Errorf("%v leads to %v", old, j.ID)
			}
		}
		if got, ok := s.Lookup(j.ID); got != slot || !ok {
			t.Errorf("%v: got %d, %v", j.ID, got, ok)
		}
		for _, other := range []state.JobID{
			state.NewJobID(78, slot, j.ID.Reuse(), 9), state.NewJobID(77, slot+1, j.ID.Reuse(), 9), state.NewJobID(77, 0, j.ID.Reuse(), 9),
			state.NewJobID(77, slot, j.ID.Reuse()+1, 9), state.NewJobID(77, slot, j.ID.Reuse(), 8),
		} {
			if _, ok := s.Lookup(other); ok {
				t.Errorf("%v leads to %v", other, j.ID)
			}
		}
		ids = append(ids, j.ID)
		must(t, s, 2, state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
	}
	if _, ok := s.Job(1); ok {
		t.Error("a free slot has a job")
	}
}

// A lease holds before its deadline and before its job's TTL, by its own nonce.
func TestLookupLease(t *testing.T) {
	s := oneQueue(t)
	slot := enqueue(t, s, state.Record{Expires: 150})
	must(t, s, 1, state.Record{Kind: state.KindLease, Slot: slot, Nonce: state.Nonce{5}, At: 100})
	id := state.LeaseID{Slot: slot, Nonce: state.Nonce{5}}
	holds := func(id state.LeaseID, now state.Millis, want bool) {
		t.Helper()
		if got, ok := s.LookupLease(id, now); ok != want || ok && got != slot {
			t.Errorf("lease %v at %d: got %d %v, want %v", id, now, got, ok, want)
		}
	}
	holds(id, 99, true)
	holds(id, 100, false)
	holds(state.LeaseID{Slot: slot, Nonce: state.Nonce{6}}, 50, false)
	holds(state.LeaseID{Slot: slot}, 50, false)
	holds(state.LeaseID{Slot: 99}, 50, false)
	holds(state.LeaseID{}, 50, false)
	must(t, s, 1, state.Record{Kind: state.KindExtend, Slot: slot, At: 200})
	holds(id, 149, true)
	holds(id, 150, false)
	must(t, s, 1, state.Record{Kind: state.KindRelease, Slot: slot})
	holds(id, 50, false)
	must(t, s, 1, state.Record{Kind: state.KindLease, Slot: slot, At: 100})
	holds(id, 50, false)
	holds(state.LeaseID{Slot: slot}, 50, true) // a nonce of zeros is one like others
	check(t, s)
}

// More kinds of policies than the table holds are kept with the jobs.
func TestManyPolicies(t *testing.T) {
	const jobs = 1<<16 + 50
	s := oneQueue(t)
	for i := range jobs {
		enqueue(t, s, state.Record{Tries: 1, Backoff: state.Millis(i + 1), BackoffMax: 7})
	}
	at := func(i int) {
		t.Helper()
		if j, _ := s.Job(state.Slot(i)); j.Tries != 1 || j.Backoff != state.Millis(i) || j.BackoffMax != 7 {
			t.Errorf("job %d: got %+v", i, j)
		}
	}
	for _, i := range []int{1, 2, 65534, 65535, 65536, jobs} {
		at(i)
	}
	check(t, s)
	// A redrive that changes the tries changes such a policy too.
	must(t, s, 2, state.Record{Kind: state.KindBury, Slot: jobs, Cause: state.CauseBury})
	must(t, s, 2, state.Record{Kind: state.KindRedrive, Slot: jobs, Queue: 1, Tries: 2})
	if j, _ := s.Job(jobs); j.Tries != 2 || j.Backoff != jobs {
		t.Errorf("redriven: got %+v", j)
	}
	for i := 1; i <= jobs; i++ {
		must(t, s, 2, state.Record{Kind: state.KindDelete, Slot: state.Slot(i), Cause: state.CauseDelete})
	}
	check(t, s)
	enqueue(t, s, state.Record{Tries: 3})
	check(t, s)
}

// A queue remembers MaxReasons different reasons, then "other".
func TestManyReasons(t *testing.T) {
	s := oneQueue(t)
	must(t, s, 1, state.Record{Kind: state.KindQueue, Queue: 2, Text: []byte("p/n/r")})
	bury := func(q state.QueueID, reason string) state.Slot {
		slot := enqueue(t, s, state.Record{Queue: q})
		must(t, s, 1, state.Record{Kind: state.KindBury, Slot: slot, Cause: state.CauseBury, Text: []byte(reason)})
		return slot
	}
	reason := func(slot state.Slot) string {
		j, _ := s.Job(slot)
		return j.Reason
	}
	first := bury(1, "r0")
	for i := 1; i < state.MaxReasons; i++ {
		bury(1, fmt.Sprint("r", i))
	}
	if got := reason(bury(1, "r7")); got != "r7" {
		t.Errorf("a known reason: got %q", got)
	}
	full := bury(1, "one too many")
	if reason(full) != "other" || reason(bury(1, "yet another")) != "other" {
		t.Errorf("got %q, want other", reason(full))
	}
	elsewhere := bury(2, "one too many")
	if reason(elsewhere) != "one too many" {
		t.Errorf("in another queue: got %q", reason(elsewhere))
	}
	must(t, s, 1, state.Record{Kind: state.KindMove, Slot: elsewhere, Queue: 1})
	if reason(elsewhere) != "other" {
		t.Errorf("moved to the full queue: got %q", reason(elsewhere))
	}
	check(t, s)
	must(t, s, 1, state.Record{Kind: state.KindDelete, Slot: first, Cause: state.CauseDelete})
	must(t, s, 1, state.Record{Kind: state.KindDelete, Slot: full, Cause: state.CauseDelete})
	check(t, s)
}

// Attempts are counted beyond 16 bits and failures stay at their maximum.
func TestCountsSaturate(t *testing.T) {
	s := oneQueue(t)
	slot := enqueue(t, s, state.Record{})
	const n = 1<<16 + 10
	for i := range n {
		must(t, s, 1, state.Record{Kind: state.KindLease, Slot: slot, At: 9})
		must(t, s, 1, state.Record{Kind: state.KindFail, Slot: slot, Cause: state.CauseNack, Place: state.Ready})
		if j, _ := s.Job(slot); j.Attempt != uint32(i+1) || j.Failures != uint32(min(i+1, 65535)) {
			t.Fatalf("after %d failures: got attempt %d, failures %d", i+1, j.Attempt, j.Failures)
		}
	}
	must(t, s, 1, state.Record{Kind: state.KindBury, Slot: slot, Cause: state.CauseBury})
	must(t, s, 1, state.Record{Kind: state.KindRedrive, Slot: slot, Queue: 1})
	if j, _ := s.Job(slot); j.Attempt != n || j.Failures != 0 {
		t.Errorf("redriven: got attempt %d, failures %d, want %d, 0", j.Attempt, j.Failures, n)
	}
	check(t, s)
}

// Queues that come and go leave nothing behind.
func TestQueuesComeAndGo(t *testing.T) {
	s := state.New()
	var size int
	for i := range 20_000 {
		now := state.Millis(1 + i*10)
		must(t, s, now, state.Record{Kind: state.KindQueue, Queue: s.NextQueue(), Text: fmt.Appendf(nil, "p/n/%d", i)})
		q, _ := s.QueueByKey(fmt.Appendf(nil, "p/n/%d", i))
		must(t, s, now, state.Record{Kind: state.KindSettings, Queue: q, Settings: &state.Settings{MaxLen: 5}})
		slot := enqueue(t, s, state.Record{Queue: q, Unique: state.Key{1}, Window: now + 5, Group: state.Key{2}, Tries: 3, Priority: 4})
		must(t, s, now, state.Record{Kind: state.KindLease, Slot: slot, Nonce: state.Nonce{1}, At: now + 1})
		must(t, s, now, state.Record{Kind: state.KindFail, Slot: slot, Cause: state.CauseNack, Place: state.Dead, Text: []byte("why")})
		must(t, s, now, state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete})
		must(t, s, now, state.Record{Kind: state.KindForget, Queue: q})
		if d := s.Due(now + 5); d.Kind != state.DueKeys {
			t.Fatalf("got due %+v, want the key of the queue that is gone", d)
		} else {
			must(t, s, now+5, state.Record{Kind: state.KindKeyRange, At: d.At, Slot: d.Slot, Count: d.Count})
		}
		if i == 10 {
			size = len(write(t, s))
		}
	}
	// But for what they did.
	if ended, want := s.Ended(), s.Totals(); len(ended) != 1 || ended["p"] != want || want.Delivered != 20_000 {
		t.Errorf("what has ended did %+v, want all: %+v", ended, want)
	}
	check(t, s)
	if _, ok := s.Earliest(); ok {
		t.Error("something is still to come")
	}
	// Numbers grow by some bytes.
	if got := len(write(t, s)); got > size+20 {
		t.Errorf("snapshot of %d bytes, want about %d", got, size)
	}
	c := s.Counts()
	c.Memory = 0
	if c != (state.Counts{}) {
		t.Errorf("got %+v, want nothing", c)
	}
}

// Ending says whose jobs a range ends, by either clock.
func TestEnding(t *testing.T) {
	for _, wall := range []bool{false, true} {
		s := oneQueue(t)
		must(t, s, 1, state.Record{Kind: state.KindQueue, Queue: 2, Text: []byte("p/n/other")})
		must(t, s, 1, state.Record{Kind: state.KindQueue, Queue: 3, Text: []byte("p/n/later")})
		for i, q := range []state.QueueID{2, 1, 1} {
			enqueue(t, s, state.Record{Queue: q, At: 50 + state.Millis(i), Wall: wall})
		}
		enqueue(t, s, state.Record{Queue: 3, At: 71, Wall: wall})
		d := s.Due(70)
		var got []state.QueueID
		s.Ending(&d, func(q state.QueueID) { got = append(got, q) })
		if want := []state.QueueID{2, 1, 1}; d.Count != 3 || !slices.Equal(got, want) {
			t.Errorf("wall %t: got the queues %v of %d jobs, want %v", wall, got, d.Count, want)
		}
	}
}

// A range covers at most 128, and what comes due during it waits for the next.
func TestRangeLimit(t *testing.T) {
	s := oneQueue(t)
	for range 1000 {
		enqueue(t, s, state.Record{At: 50, Expires: 60})
	}
	var counts []uint32
	for d := s.Due(70); d.Kind != state.DueNothing; d = s.Due(70) {
		counts = append(counts, d.Count)
		must(t, s, 70, state.Record{Kind: state.KindRange, At: d.At, Slot: d.Slot, Count: d.Count})
	}
	want := slices.Repeat([]uint32{128}, 2*1000/128)
	if want = append(want, 2*1000%128); !slices.Equal(counts, want) {
		t.Errorf("got ranges of %v, want %v", counts, want)
	}
	if s.Totals().Lapsed != 1000 {
		t.Errorf("got %d lapsed, want 1000", s.Totals().Lapsed)
	}
	check(t, s)
	if err := s.Apply(&state.Record{Kind: state.KindRange, At: 1, Slot: 1, Count: state.MaxRange + 1}, state.Body{}, 80); err == nil {
		t.Error("a range of 513 was accepted")
	}
}

// Cleaning finds the jobs of a generation in turns.
func TestBodiesIn(t *testing.T) {
	s := oneQueue(t)
	for i := range 300 {
		slot, _ := s.NextSlot()
		r := state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: 1}
		if err := s.Apply(&r, state.Body{Generation: 1 + uint32(i%3), Length: 10}, 1); err != nil {
			t.Fatal(err)
		}
	}
	must(t, s, 1, state.Record{Kind: state.KindDelete, Slot: 2, Cause: state.CauseDelete})
	var all []state.Slot
	turns := 0
	for from := state.Slot(0); ; turns++ {
		n := len(all)
		if all, from = s.BodiesIn(all, 2, from, 2); len(all)-n > 2 {
			t.Fatalf("got %d in a turn, want 2", len(all)-n)
		}
		if from == 0 {
			break
		}
	}
	if len(all) != 99 || all[0] != 5 || all[98] != 299 || turns < 40 {
		t.Errorf("got %d in %d turns: %v", len(all), turns, all)
	}
	if got, next := s.BodiesIn(nil, 9, 1, 1); len(got) != 0 || next != 65 {
		t.Errorf("looked for what is not there: got %v up to %d, want a turn of 64", got, next)
	}
	if got := s.Lives(); len(got) != 3 || got[1] != (state.Live{Generation: 2, Jobs: 99, Bytes: 990}) || got[1] != s.Live(2) {
		t.Errorf("got %v", got)
	}
	if got := s.Live(7); got != (state.Live{Generation: 7}) {
		t.Errorf("got %v", got)
	}
}

// Hash depends on secret and text.
func TestHash(t *testing.T) {
	a, b := state.New(), state.New()
	must(t, a, 1, state.Record{Kind: state.KindSecret, Text: []byte("0123456789abcdef")})
	must(t, b, 1, state.Record{Kind: state.KindSecret, Text: []byte("0123456789abcdeg")})
	seen := map[state.Key]string{{}: "none"}
	for _, s := range []*state.State{a, b, state.New()} {
		for _, text := range []string{"", "x", "y", "0123456789abcdef"} {
			k := s.Hash([]byte(text))
			if other, ok := seen[k]; ok {
				t.Errorf("hash of %q is that of %q", text, other)
			}
			seen[k] = text
			if s.Hash([]byte(text)) != k {
				t.Error("hash differs the second time")
			}
		}
	}
}

// Asking does not allocate where every command asks.
func TestReadsDoNotAllocate(t *testing.T) {
	s := rich(t)
	key := []byte("p/n/a")
	id := state.NewJobID(1010, 1, 0, 0)
	for name, f := range map[string]func(){
		"QueueByKey":  func() { s.QueueByKey(key) },
		"NextReady":   func() { s.NextReady(1, 40) },
		"Lookup":      func() { s.Lookup(id) },
		"LookupLease": func() { s.LookupLease(state.LeaseID{Slot: 11}, 40) },
		"Job":         func() { s.Job(2) },
		"Unique":      func() { s.Unique(1, state.Key{9}, 40) },
		"Due":         func() { s.Due(40) },
		"Earliest":    func() { s.Earliest() },
		"Settings":    func() { s.Settings(2) },
	} {
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func TestJobIs64Bytes(t *testing.T) {
	if state.JobBytes != 64 {
		t.Errorf("a job takes %d bytes, want 64", state.JobBytes)
	}
}
