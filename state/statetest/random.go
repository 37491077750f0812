package statetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pawl/state"
)

// A Run is one random history of a State and its Model.
type Run struct {
	t    testing.TB
	rnd  *rand.Rand
	s    *state.State
	m    *Model
	log  []entry
	snap []snapshot
}

// entry is one record of the log as it was applied.
type entry struct {
	head []byte
	body state.Body
	now  state.Millis
}

// snapshot is a view that was taken after n records.
type snapshot struct {
	n     int
	view  *state.View
	bytes []byte
}

// Random makes steps random steps from seed, with all checks after each, and
// then replays them from the beginning and from snapshots on the way.
func Random(t testing.TB, seed uint64, steps int) {
	t.Helper()
	r := &Run{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), s: state.New(), m: NewModel()}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, after %d records", seed, len(r.log))
		}
	}()
	now := state.Millis(1_000_000)
	r.apply(state.Record{Kind: state.KindSecret, Text: []byte("sixteen  secrets")}, state.Body{}, now)
	for i := range steps {
		if t.Failed() {
			return
		}
		if r.rnd.IntN(3) == 0 {
			now += state.Millis(r.rnd.IntN(40))
		}
		if r.rnd.IntN(1000) == 0 {
			now += state.IdleFor
		}
		now = max(now, r.m.Now) // a Time may have been ahead
		rec, body := r.step(now)
		r.apply(rec, body, now)
		r.compare(r.m.Now)
		if err := r.s.Check(); err != nil {
			t.Errorf("after %s: %v", show(rec), err)
		}
		if i == steps/3 || i == steps/2 {
			// Written later, when the state has gone on.
			r.snap = append(r.snap, snapshot{n: len(r.log), view: r.s.View()})
		}
		if i == steps*2/3 {
			r.writeSnapshots()
		}
	}
	r.writeSnapshots()
	r.replay()
}

func show(r state.Record) string { return fmt.Sprintf("%+v", r) }

// apply gives a record to both, in the form in which it is logged.
func (r *Run) apply(rec state.Record, body state.Body, now state.Millis) {
	head := rec.AppendHead(nil)
	var read state.Record
	if _, err := state.Decode(head, &read); err != nil {
		// Records that cannot be logged are the decoder's to refuse.
		return
	}
	ok := r.m.Apply(&read, body, now)
	err := r.s.Apply(&read, body, now)
	if ok != (err == nil) {
		r.t.Errorf("%s at %d: model says %v, state says %v", show(rec), now, ok, err)
	}
	if err == nil {
		r.log = append(r.log, entry{head, body, now})
	}
}

var keys = []state.Key{{}, {}, {1}, {2}, {3}}

func (r *Run) key() state.Key { return keys[r.rnd.IntN(len(keys))] }

func (r *Run) oneOf(n int) bool { return r.rnd.IntN(n) == 0 }

// when is a time around now.
func (r *Run) when(now state.Millis) state.Millis { return now - 20 + state.Millis(r.rnd.IntN(120)) }

// sometimes is v in one of n cases, else 0.
func sometimes[T any](r *Run, n int, v T) (none T) {
	if r.oneOf(n) {
		return v
	}
	return none
}

// job is a random job, preferring those in place; slot 1 if there is none.
func (r *Run) job(place state.Place) state.Slot {
	var some, all []state.Slot
	for slot, j := range r.m.Jobs {
		if j == nil {
			continue
		}
		all = append(all, state.Slot(slot))
		if j.Place == place {
			some = append(some, state.Slot(slot))
		}
	}
	switch {
	case len(some) > 0 && !r.oneOf(30):
		return some[r.rnd.IntN(len(some))]
	case len(all) > 0:
		return all[r.rnd.IntN(len(all))]
	}
	return 1
}

func (r *Run) queue() state.QueueID {
	ids := slices.Sorted(maps.Keys(r.m.Queues))
	if len(ids) == 0 || r.oneOf(200) {
		return state.QueueID(1 + r.rnd.IntN(4))
	}
	return ids[r.rnd.IntN(len(ids))]
}

func (r *Run) body() state.Body {
	return state.Body{
		Generation: 1 + uint32(r.rnd.IntN(3)), Offset: r.rnd.Uint32(),
		Length: 5 + uint32(r.rnd.IntN(100)), Checksum: r.rnd.Uint32(),
	}
}

func (r *Run) nonce() (n state.Nonce) {
	for i := range n {
		n[i] = byte(r.rnd.Uint32())
	}
	return n
}

// step is a random record, most often one that fits.
func (r *Run) step(now state.Millis) (state.Record, state.Body) {
	none := state.Body{}
	if r.s.Counts().Jobs[state.Ready]+r.s.Counts().Jobs[state.Dead] > 20 && r.oneOf(2) {
		return state.Record{Kind: state.KindDelete, Slot: r.job(state.Dead), Cause: state.CausePurge}, none
	}
	switch n := r.rnd.IntN(100); {
	case len(r.m.Queues) == 0 || len(r.m.Queues) < 4 && n == 0:
		name := []byte("p/n/" + string(rune('a'+r.rnd.IntN(6))))
		return state.Record{Kind: state.KindQueue, Queue: r.s.NextQueue(), Text: name}, none
	case n < 22:
		rec := state.Record{
			Kind: state.KindEnqueue, Queue: r.queue(), Born: 5_000_000 + now, Overhead: uint16(r.rnd.IntN(6)),
			At: sometimes(r, 3, r.when(now)), Expires: sometimes(r, 3, r.when(now)+40), Priority: sometimes(r, 4, int8(r.rnd.IntN(3)-1)),
			Delay: sometimes(r, 5, r.rnd.Uint32()), Tries: sometimes(r, 2, uint16(r.rnd.IntN(3))), Backoff: sometimes(r, 4, state.Millis(r.rnd.IntN(3))),
			Unique: sometimes(r, 2, r.key()), Group: r.key(),
		}
		rec.Slot, _ = r.s.NextSlot()
		if rec.Unique != (state.Key{}) {
			rec.Window = r.when(now)
		}
		if rec.At != 0 && r.oneOf(2) {
			rec.Wall = true
			rec.At += r.m.Offset
		}
		return rec, r.body()
	case n < 40:
		slot, block := r.s.NextReady(max(1, r.existing()), now)
		if slot == 0 || block.Why != state.NotBlocked {
			slot = r.job(state.Ready)
		}
		return state.Record{Kind: state.KindLease, Slot: slot, Nonce: r.nonce(), At: r.when(now)}, none
	case n < 46:
		return state.Record{Kind: state.KindAck, Slot: r.job(state.Leased)}, none
	case n < 56:
		rec := state.Record{
			Kind: state.KindFail, Slot: r.job(state.Leased), Place: state.Place(1 + r.rnd.IntN(4)), Cause: state.CauseNack,
			Text: sometimes(r, 2, []byte{'a' + byte(r.rnd.IntN(3))}),
		}
		if rec.Place == state.Leased {
			rec.Place = state.Dead
		}
		if rec.Place == state.Delayed {
			rec.At = max(1, r.when(now))
		}
		return rec, none
	case n < 59:
		return state.Record{Kind: state.KindRelease, Slot: r.job(state.Leased)}, none
	case n < 61:
		return state.Record{Kind: state.KindExtend, Slot: r.job(state.Leased), At: r.when(now)}, none
	case n < 74:
		return r.due(now), none
	case n < 75:
		return state.Record{Kind: state.KindLapse, Slot: r.job(state.Ready)}, none
	case n < 77:
		return state.Record{Kind: state.KindDelete, Slot: r.job(state.Ready), Cause: state.CauseDelete + state.Cause(r.rnd.IntN(4))}, none
	case n < 79:
		return state.Record{Kind: state.KindBury, Slot: r.job(state.Leased), Cause: state.CauseBury, Text: sometimes(r, 2, []byte("b"))}, none
	case n < 83:
		slot, q := r.job(state.Dead), r.queue()
		if j := r.m.Job(slot); j != nil && r.oneOf(2) {
			q = j.Queue
		}
		return state.Record{
			Kind: state.KindRedrive, Slot: slot, Queue: q, DropKey: r.dropKey(slot, q),
			Tries: uint16(r.rnd.IntN(3)), Expires: sometimes(r, 3, r.when(now)+40),
		}, none
	case n < 85:
		slot := r.job(state.Delayed)
		if r.oneOf(3) {
			slot = r.job(state.Dead)
		}
		return state.Record{Kind: state.KindRun, Slot: slot, DropKey: r.dropKey(slot, 0)}, none
	case n < 88:
		slot := r.job(state.Place(1 + r.rnd.IntN(4)))
		return state.Record{Kind: state.KindDelay, Slot: slot, At: max(1, r.when(now)), Wall: r.oneOf(3), DropKey: r.dropKey(slot, 0)}, none
	case n < 90:
		return state.Record{Kind: state.KindPriority, Slot: r.job(state.Ready), Priority: int8(r.rnd.IntN(3) - 1)}, none
	case n < 91:
		return state.Record{Kind: state.KindPayload, Slot: r.job(state.Ready), Overhead: uint16(r.rnd.IntN(7))}, r.body()
	case n < 93:
		return state.Record{Kind: state.KindMove, Slot: r.job(state.Place(1 + r.rnd.IntN(4))), Queue: r.queue()}, none
	case n < 94:
		slot := r.job(state.Ready)
		b := r.body()
		if j := r.m.Job(slot); j != nil {
			b.Length, b.Checksum = j.Body.Length, j.Body.Checksum
		}
		return state.Record{Kind: state.KindCarry, Slot: slot}, b
	case n < 95:
		return state.Record{Kind: state.KindSettings, Queue: r.queue(), Settings: &state.Settings{
			MaxLeased: sometimes(r, 3, uint32(1+r.rnd.IntN(3))), RateCount: sometimes(r, 3, uint32(1+r.rnd.IntN(3))),
			RatePer: sometimes(r, 2, state.Millis(1+r.rnd.IntN(50))), DeadMax: sometimes(r, 3, uint64(1+r.rnd.IntN(4))),
			DeadFor: sometimes(r, 3, state.Millis(1+r.rnd.IntN(200))),
		}}, none
	case n < 96:
		return state.Record{Kind: state.KindPause, Queue: r.queue(), At: sometimes(r, 2, r.when(now)) + sometimes(r, 9, state.Forever/2)}, none
	case n < 97:
		return state.Record{Kind: state.KindResume, Queue: r.queue()}, none
	case n < 98:
		return state.Record{Kind: state.KindForget + state.Kind(sometimes(r, 2, -1)), Queue: r.queue()}, none
	default:
		return r.other(now), none
	}
}

// existing is a random queue, 0 for none.
func (r *Run) existing() state.QueueID {
	ids := slices.Sorted(maps.Keys(r.m.Queues))
	return ids[r.rnd.IntN(len(ids))]
}

func (r *Run) dropKey(slot state.Slot, q state.QueueID) bool {
	j := r.m.Job(slot)
	if j == nil || j.Place != state.Dead || r.oneOf(20) {
		return r.oneOf(20)
	}
	if q == 0 {
		q = j.Queue
	}
	return r.m.Queues[q] != nil && r.m.KeyTaken(j, q)
}

// due is the record for what State says is due.
func (r *Run) due(now state.Millis) state.Record {
	d := r.s.Due(now)
	switch d.Kind {
	case state.DueRange, state.DueWallRange, state.DueKeys:
		kind := map[state.DueKind]state.Kind{state.DueRange: state.KindRange, state.DueWallRange: state.KindWallRange, state.DueKeys: state.KindKeyRange}[d.Kind]
		return state.Record{Kind: kind, At: d.At, Slot: d.Slot, Count: d.Count - sometimes(r, 20, min(d.Count-1, 1))}
	case state.DueLease:
		rec := state.Record{Kind: state.KindFail, Slot: d.Slot, Cause: state.CauseExpire, Place: state.Ready}
		switch r.rnd.IntN(4) {
		case 0:
			rec.Place = state.Dead
		case 1:
			rec.Place, rec.At = state.Delayed, now+20
		}
		return rec
	case state.DueDead:
		return state.Record{Kind: state.KindDelete, Slot: d.Slot, Cause: d.Cause}
	case state.DuePause:
		return state.Record{Kind: state.KindResume, Queue: d.Queue}
	case state.DueIdle:
		return state.Record{Kind: state.KindForget, Queue: d.Queue}
	case state.DueCron:
		return state.Record{Kind: state.KindCronFired, Cron: &state.Cron{
			Namespace: d.Cron.Namespace, Name: d.Cron.Name, Next: d.Cron.Next + 50, Last: d.Cron.Next,
		}}
	}
	return state.Record{Kind: state.KindTouch, Queue: r.queue()}
}

// other is about no job.
func (r *Run) other(now state.Millis) state.Record {
	cron := state.Cron{Namespace: "p/n", Name: string(rune('a' + r.rnd.IntN(3))), Queue: "p/n/a", Payload: []byte("x"), Next: sometimes(r, 2, now)}
	key := []byte{'a' + byte(r.rnd.IntN(3))}
	switch r.rnd.IntN(9) {
	case 0:
		return state.Record{Kind: state.KindCron, Cron: &cron}
	case 1:
		return state.Record{Kind: state.KindCronDelete, Cron: &cron}
	case 2:
		return state.Record{Kind: state.KindMeta, Text: key, Data: []byte{byte(now)}}
	case 3:
		return state.Record{Kind: state.KindMetaDelete, Text: key}
	case 4:
		return state.Record{Kind: state.KindDrain, On: r.oneOf(2)}
	case 5:
		return state.Record{Kind: state.KindClock, At: r.m.Offset + state.Millis(r.rnd.IntN(100)-50)}
	case 6:
		return state.Record{Kind: state.KindSecret, Text: make([]byte, 16)}
	case 7:
		return state.Record{Kind: state.KindTime, At: now + state.Millis(r.rnd.IntN(30)-5)}
	}
	return state.Record{Kind: state.Kind(1 + r.rnd.IntN(34)), Slot: r.job(0), Queue: r.queue(), Count: 1, Cause: state.CauseNack, At: 7,
		Settings: &state.Settings{}, Cron: &cron, Text: []byte("0123456789abcdef"), Place: state.Ready}
}

// compare asks both the same questions.
// Looking at a queue takes longest, so most often only some are looked at.
func (r *Run) compare(now state.Millis) {
	everything := r.oneOf(20)
	t, s, m := r.t, r.s, r.m
	if s.Now() != m.Now || s.Offset() != m.Offset || s.Draining() != m.Draining || s.Totals() != m.Totals {
		t.Errorf("now, offset, draining, totals: got %v %v %v %v, want %v %v %v %v",
			s.Now(), s.Offset(), s.Draining(), s.Totals(), m.Now, m.Offset, m.Draining, m.Totals)
	}
	n := 0
	for id := range s.Queues {
		n++
		q := m.Queues[id]
		if q == nil {
			t.Errorf("queue %d: got one, want none", id)
			return
		}
		if everything || r.oneOf(4) {
			r.compareQueue(id, q, now)
		}
	}
	if n != len(m.Queues) {
		t.Errorf("got %d queues, want %d", n, len(m.Queues))
	}
	if everything || r.oneOf(4) {
		r.compareDue(now)
	}
	if slot, reuse := s.NextSlot(); slot != state.Slot(m.slots.next()) || reuse != m.reuse[slot] {
		t.Errorf("next slot: got %d used %d times, want %d used %d times", slot, reuse, m.slots.next(), m.reuse[slot])
	}
	if everything {
		r.compareNamed()
	}
}

// compareNamed compares crons and values.
func (r *Run) compareNamed() {
	t, s, m := r.t, r.s, r.m
	for _, c := range s.Crons() {
		if want := m.Crons[[2]string{c.Namespace, c.Name}]; want == nil || fmt.Sprint(*c) != fmt.Sprint(*want) {
			t.Errorf("cron: got %v, want %v", c, want)
		}
	}
	if c := s.Counts(); c.Crons != uint64(len(m.Crons)) || c.Metas != uint64(len(m.Metas)) {
		t.Errorf("got %d crons and %d values, want %d and %d", c.Crons, c.Metas, len(m.Crons), len(m.Metas))
	}
	s.Metas("", func(key string, value []byte) bool {
		if want, ok := m.Metas[key]; !ok || want != string(value) {
			t.Errorf("value of %q: got %q, want %q", key, value, want)
		}
		return true
	})
}

func (r *Run) compareQueue(id state.QueueID, q *modelQueue, now state.Millis) {
	t, s, m := r.t, r.s, r.m
	v := s.Queue(id)
	var n [5]uint32
	var size uint64
	var slots []state.Slot
	for p := state.Ready; p <= state.Dead; p++ {
		want := m.Page(id, p)
		n[p] = uint32(len(want))
		slots = s.Page(slots[:0], id, p, 0, 100)
		if len(slots) != len(want) {
			t.Errorf("%v jobs of queue %d: got %v, want %d", p, id, slots, len(want))
			return
		}
		for i, j := range want {
			if got, _ := s.Job(slots[i]); got != m.view(j) {
				t.Errorf("%v job %d of queue %d:\n got %+v\nwant %+v", p, i, id, got, m.view(j))
			}
			if p != state.Dead {
				size += uint64(j.Size)
			}
		}
		if i := len(want) / 2; i > 0 {
			if rest := s.Page(nil, id, p, want[i-1].Slot, 3); !slices.Equal(rest, slots[i:min(i+3, len(slots))]) {
				t.Errorf("page of %v behind %d: got %v, want %v", p, i, rest, slots[i:])
			}
		}
	}
	got := [5]uint32{0, v.Ready, v.Delayed, v.Leased, v.Dead}
	if got != n || v.Bytes != size || v.PausedUntil != q.paused || v.Totals != q.totals || v.Settings != q.settings || v.Key != q.key {
		t.Errorf("queue %d:\n got %+v\nwant %v %d %d %v %v", id, v, n, size, q.paused, q.totals, q.settings)
	}
	slot, block := s.NextReady(id, now)
	if want := m.Next(id, now); slot != want {
		t.Errorf("next of queue %d: got %d %v, want %d", id, slot, block, want)
	}
	for _, key := range keys[2:] {
		got, ok := s.Unique(id, key, now)
		var want state.JobID
		c := m.holder(id, key)
		if c != 0 {
			want = m.Claims[c].id
		}
		if got != want || ok != (c != 0) {
			t.Errorf("key %x in queue %d: got %v %v, want %v", key[0], id, got, ok, want)
		}
	}
}

func (m *Model) view(j *modelJob) state.Job {
	v := j.Job
	v.Blocked = j.Place == state.Ready && m.blocked(j)
	return v
}

// compareDue checks what is due first, and when.
func (r *Run) compareDue(now state.Millis) {
	m := r.m
	earliest, ok := state.Millis(0), false
	consider := func(at state.Millis) {
		if !ok || at < earliest {
			earliest, ok = at, true
		}
	}
	for _, all := range [][]at{m.deadlines(state.MaxMillis), m.windowsOver(state.MaxMillis)} {
		if len(all) > 0 {
			consider(all[0].at)
		}
	}
	if all := m.wallDue(state.MaxMillis); len(all) > 0 {
		consider(all[0].at - m.Offset)
	}
	for id, q := range m.Queues {
		if q.paused != 0 && q.paused != state.Forever {
			consider(q.paused)
		}
		if q.usedPos != 0 {
			consider(q.usedAt + state.IdleFor)
		}
		if dead := m.Page(id, state.Dead); len(dead) > 0 {
			if q.settings.DeadMax > 0 && len(dead) > int(q.settings.DeadMax) {
				consider(1)
			} else if q.settings.DeadFor > 0 {
				consider(dead[0].Since + q.settings.DeadFor)
			}
		}
	}
	for _, c := range m.Crons {
		if c.Next != 0 {
			consider(c.Next - m.Offset)
		}
	}
	got, gotOK := r.s.Earliest()
	if got != earliest || gotOK != ok {
		r.t.Errorf("earliest: got %d %v, want %d %v", got, gotOK, earliest, ok)
	}
	if d := r.s.Due(now); (d.Kind != state.DueNothing) != (ok && earliest <= now) {
		r.t.Errorf("due at %d: got %+v, want something %v", now, d, ok && earliest <= now)
	}
}

func (r *Run) writeSnapshots() {
	for i := range r.snap {
		sn := &r.snap[i]
		if sn.view == nil {
			continue
		}
		sn.bytes = encode(r.t, sn.view)
		r.s.Release(sn.view)
		sn.view = nil
	}
}

func encode(t testing.TB, v *state.View) []byte {
	var b bytes.Buffer
	if n, err := v.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Errorf("write of %d bytes, want %d: %v", n, b.Len(), err)
	}
	return b.Bytes()
}

// replay checks that the log gives the same state again, from its beginning and
// from each snapshot, record by record and as a start does it.
func (r *Run) replay() {
	want, wantBytes := dump(r.t, r.s), encode(r.t, r.s.View())
	for _, sn := range append([]snapshot{{}}, r.snap...) {
		for _, start := range []bool{false, true} {
			s := r.replayed(sn, start)
			if s == nil {
				return
			}
			if err := s.Check(); err != nil {
				r.t.Errorf("replay from %d, as a start %v: %v", sn.n, start, err)
			}
			if got := dump(r.t, s); got != want {
				r.t.Errorf("replay from %d, as a start %v: got\n%s\nwant\n%s", sn.n, start, got, want)
			}
			if !bytes.Equal(encode(r.t, s.View()), wantBytes) {
				r.t.Errorf("replay from %d, as a start %v: snapshots differ", sn.n, start)
			}
		}
	}
}

// replayed is the state that the log gives behind a snapshot, nil after an error.
func (r *Run) replayed(sn snapshot, start bool) *state.State {
	s := state.New()
	if sn.n > 0 {
		var err error
		if s, err = state.Load(bytes.NewReader(sn.bytes)); err != nil {
			r.t.Errorf("load after %d records: %v", sn.n, err)
			return nil
		}
		// A list that leads back into itself would hold up the next record for
		// ever; the check finds it and ends.
		if err := s.Check(); err != nil {
			r.t.Errorf("loaded after %d records: %v", sn.n, err)
			return nil
		}
	}
	if start {
		s.BeginReplay()
		defer s.EndReplay()
	}
	for i, e := range r.log[sn.n:] {
		var rec state.Record
		if _, err := state.Decode(e.head, &rec); err != nil {
			r.t.Errorf("record %d: %v", sn.n+i, err)
		}
		if err := s.Apply(&rec, e.body, e.now); err != nil {
			r.t.Errorf("record %d from %d, as a start %v: %v", sn.n+i, sn.n, start, err)
			return nil
		}
	}
	return s
}

func dump(t testing.TB, s *state.State) string {
	var b bytes.Buffer
	if err := s.Dump(&b); err != nil {
		t.Error(err)
	}
	return b.String()
}
