package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/internal/seeds"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// model is what the engine should do, in maps and sorted slices, and shares no
// code with it.
type model struct {
	now    state.Millis
	seq    int // rises with everything that takes a place in an order
	jobs   map[state.JobID]*modelJob
	queues map[string]*modelQueue
}

type modelQueue struct {
	paused state.Millis // until; 0 is not
	maxLen int
	keys   map[string]modelKey
}

type modelKey struct {
	id    state.JobID
	until state.Millis
}

type modelJob struct {
	id                state.JobID
	queue, payload    string
	place             state.Place
	priority          int8
	order             int // among the ready, and among the dead
	at                state.Millis
	expires           state.Millis // 0 is never
	tries             int
	failures, attempt int
	lease             state.LeaseID
	unique            string
}

func newModel() *model {
	return &model{jobs: map[state.JobID]*modelJob{}, queues: map[string]*modelQueue{}}
}

func (m *model) queue(name string) *modelQueue {
	q := m.queues[name]
	if q == nil {
		q = &modelQueue{keys: map[string]modelKey{}}
		m.queues[name] = q
	}
	return q
}

func (m *model) count(queue string) (n [4]int64) {
	places := map[state.Place]int{state.Ready: 0, state.Delayed: 1, state.Leased: 2, state.Dead: 3}
	for _, j := range m.jobs {
		if j.queue == queue {
			n[places[j.place]]++
		}
	}
	return n
}

// holder is the job that holds a unique key.
func (m *model) holder(queue, key string) (state.JobID, bool) {
	k, ok := m.queue(queue).keys[key]
	if !ok {
		return state.JobID{}, false
	}
	j := m.jobs[k.id]
	return k.id, m.now < k.until || j != nil && j.place != state.Dead && j.unique == key
}

func (m *model) ready(j *modelJob) {
	m.seq++
	j.place, j.order = state.Ready, m.seq
}

func (m *model) next(queue string) *modelJob {
	var best *modelJob
	if q := m.queue(queue); m.now < q.paused {
		return nil
	}
	for _, j := range m.jobs {
		if j.queue != queue || j.place != state.Ready {
			continue
		}
		if best == nil || j.priority > best.priority || j.priority == best.priority && j.order < best.order {
			best = j
		}
	}
	return best
}

// fail is a NACK, or a lease that ran out.
func (m *model) fail(j *modelJob, delay state.Millis) {
	j.failures++
	switch {
	case j.tries != 0 && j.failures >= j.tries:
		m.bury(j)
	case delay > 0:
		j.place, j.at = state.Delayed, m.now+delay
	default:
		m.ready(j)
	}
}

func (m *model) bury(j *modelJob) {
	m.seq++
	j.place, j.order, j.expires = state.Dead, m.seq, 0
}

// pass lets time go by: what ends is ended in the order of the deadlines, and
// of the slots where they are equal.
func (m *model) pass(now state.Millis) {
	m.now = now
	type end struct {
		at state.Millis
		j  *modelJob
	}
	var ends []end
	for _, j := range m.jobs {
		at := state.Millis(1 << 60)
		if j.place == state.Delayed || j.place == state.Leased {
			at = j.at
		}
		if j.expires != 0 {
			at = min(at, j.expires)
		}
		if at <= now {
			ends = append(ends, end{at, j})
		}
	}
	slices.SortFunc(ends, func(a, b end) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.j.id.Slot(), b.j.id.Slot()))
	})
	for _, e := range ends {
		switch j := e.j; {
		case j.expires != 0 && j.expires <= e.at:
			delete(m.jobs, j.id)
		case j.place == state.Leased:
			m.fail(j, 0)
		default:
			m.ready(j)
		}
	}
	// What became ready while its time to live ended in the same sleep.
	for id, j := range m.jobs {
		if j.expires != 0 && j.expires <= now {
			delete(m.jobs, id)
		}
	}
}

// player sends random commands to engine and model and compares the answers.
type player struct {
	*shop
	m      *model
	rng    *rand.Rand
	leases []state.LeaseID
	ids    []state.JobID
	of     map[state.LeaseID]state.JobID
}

func (p *player) pick(n int) int { return p.rng.IntN(n) }

func (p *player) name() string { return fmt.Sprintf("q%d", p.pick(3)) }

// held is the model's job of a lease, nil when the lease is over.
func (p *player) held(lease state.LeaseID) *modelJob {
	j := p.m.jobs[p.of[lease]]
	if j == nil || j.place != state.Leased || j.lease != lease {
		return nil
	}
	return j
}

func (p *player) lease() state.LeaseID {
	if len(p.leases) == 0 {
		return state.LeaseID{}
	}
	return p.leases[max(0, len(p.leases)-1-p.pick(20))]
}

func (p *player) id() state.JobID {
	if len(p.ids) == 0 {
		return state.JobID{}
	}
	return p.ids[max(0, len(p.ids)-1-p.pick(40))]
}

// wantErr compares a refusal.
func (p *player) wantErr(cmd engine.Command, want error) bool {
	p.t.Helper()
	if err := p.do(cmd); err != want {
		p.t.Fatalf("%T: got %v, want %v (%s)", cmd, err, want, seeds.Replay())
	}
	return want == nil
}

func (p *player) leaseErr(j *modelJob) error {
	if j == nil {
		return engine.ErrNoLease
	}
	return nil
}

func (p *player) step() {
	switch n := p.pick(100); {
	case n < 30:
		p.playEnqueue()
	case n < 55:
		p.playFetch()
	case n < 65:
		lease := p.lease()
		j := p.held(lease)
		if p.wantErr(&engine.Ack{Leases: []state.LeaseID{lease}}, p.leaseErr(j)) {
			delete(p.m.jobs, j.id)
		}
	case n < 72:
		lease := p.lease()
		j := p.held(lease)
		c := &engine.Nack{Lease: lease}
		if p.pick(2) == 0 {
			c.Delay = engine.Some(state.Millis(p.pick(50)))
		}
		if p.wantErr(c, p.leaseErr(j)) {
			p.m.fail(j, c.Delay.Value)
		}
	case n < 76:
		lease := p.lease()
		j := p.held(lease)
		if p.wantErr(&engine.Release{Lease: lease}, p.leaseErr(j)) {
			p.m.seq++
			j.place, j.order = state.Ready, -p.m.seq
		}
	case n < 78:
		lease := p.lease()
		j := p.held(lease)
		if p.wantErr(&engine.Bury{Lease: lease}, p.leaseErr(j)) {
			p.m.bury(j)
		}
	case n < 81:
		lease := p.lease()
		j := p.held(lease)
		c := &engine.Extend{Lease: lease, LeaseMs: state.Millis(1 + p.pick(100))}
		if p.wantErr(c, p.leaseErr(j)) {
			j.at = p.m.now + c.LeaseMs
		}
	case n < 83:
		id := p.id()
		c := &engine.JobDelete{IDs: []state.JobID{id}}
		p.wantErr(c, nil)
		if j := p.m.jobs[id]; (j != nil) != (c.Deleted == 1) {
			p.t.Fatalf("delete: got %d, want %v (%s)", c.Deleted, j != nil, seeds.Replay())
		}
		delete(p.m.jobs, id)
	case n < 85:
		name := p.name()
		c := &engine.QueuePause{Queue: key(name), For: state.Millis(1 + p.pick(60))}
		p.wantErr(c, nil)
		p.m.queue(name).paused = p.m.now + c.For
	case n < 86:
		name := p.name()
		p.wantErr(&engine.QueueResume{Queue: key(name)}, nil)
		p.m.queue(name).paused = 0
	case n < 87:
		p.playRedrive()
	case n < 88:
		name := p.name()
		limit := p.pick(2) * 30
		p.wantErr(&engine.QueueSet{Queue: key(name), Settings: state.Settings{MaxLen: uint64(limit)}, Which: state.SetMaxLen}, nil)
		p.m.queue(name).maxLen = limit
	case n < 90:
		name := p.name()
		if got, want := p.counts(name), p.m.count(name); got != want {
			p.t.Fatalf("queue %s: got ready, delayed, leased, dead %v, want %v (%s)", name, got, want, seeds.Replay())
		}
	default:
		p.sleep(time.Duration(p.pick(15)) * time.Millisecond)
		p.m.pass(state.Millis(time.Now().UnixMilli()))
	}
}

func (p *player) playEnqueue() {
	name := p.name()
	c := &engine.Enqueue{Queue: key(name), Payload: []byte(fmt.Sprint(p.m.seq)), Priority: int8(p.pick(3) - 1)}
	if p.pick(3) == 0 {
		c.Delay = state.Millis(p.pick(60))
	}
	if p.pick(4) == 0 {
		c.TTL = engine.Some(state.Millis(1 + p.pick(200)))
	}
	if p.pick(2) == 0 {
		c.Tries = engine.Some(uint16(1 + p.pick(3)))
	}
	if p.pick(3) == 0 {
		c.Unique, c.For = []byte(fmt.Sprint(p.pick(10))), state.Millis(1+p.pick(100))
	}
	q := p.m.queue(name)
	holder, held := p.m.holder(name, string(c.Unique))
	held = held && c.Unique != nil
	n := p.m.count(name)
	var want error
	switch {
	case c.TTL.Set && c.Delay > 0 && c.TTL.Value <= c.Delay:
		want = engine.ErrTTLShorter
	case held:
	case q.maxLen > 0 && n[0]+n[1]+n[2] >= int64(q.maxLen):
		want = engine.ErrQueueFull
	}
	if !p.wantErr(c, want) {
		return
	}
	if c.Duplicate != held || held && c.ID != holder {
		p.t.Fatalf("enqueue: got %v, duplicate %v, want %v, %v (%s)", c.ID, c.Duplicate, holder, held, seeds.Replay())
	}
	if held {
		return
	}
	j := &modelJob{id: c.ID, queue: name, payload: string(c.Payload), priority: c.Priority, tries: int(c.Tries.Value), unique: string(c.Unique)}
	if p.m.jobs[c.ID] != nil {
		p.t.Fatalf("enqueue: job %v twice (%s)", c.ID, seeds.Replay())
	}
	if c.TTL.Set {
		j.expires = p.m.now + c.TTL.Value
	}
	if c.Unique != nil {
		q.keys[j.unique] = modelKey{c.ID, p.m.now + c.For}
	}
	p.m.ready(j)
	if c.Delay > 0 {
		j.place, j.at = state.Delayed, p.m.now+c.Delay
	}
	p.m.jobs[c.ID] = j
	p.ids = append(p.ids, c.ID)
}

func (p *player) playFetch() {
	first, second := p.name(), p.name()
	f := &engine.Fetch{Queues: [][]byte{key(first), key(second)}, LeaseMs: state.Millis(1 + p.pick(100)), Count: 1 + p.pick(3)}
	p.wantErr(f, nil)
	var want []*modelJob
	for _, name := range []string{first, second} {
		for len(want) < f.Count {
			j := p.m.next(name)
			if j == nil {
				break
			}
			j.attempt++
			j.place, j.at = state.Leased, p.m.now+f.LeaseMs
			want = append(want, j)
		}
	}
	if len(f.Jobs) != len(want) {
		p.t.Fatalf("fetch: got %d jobs, want %d (%s)", len(f.Jobs), len(want), seeds.Replay())
	}
	for i, j := range want {
		d := &f.Jobs[i]
		if err := p.e.Load(d); err != nil {
			p.t.Fatal(err)
		}
		if d.ID != j.id || string(d.Payload) != j.payload || int(d.Attempt) != j.attempt || int(d.Failures) != j.failures {
			p.t.Fatalf("fetch: got %v %q attempt %d failures %d, want %v %q %d %d (%s)", d.ID, d.Payload, d.Attempt, d.Failures,
				j.id, j.payload, j.attempt, j.failures, seeds.Replay())
		}
		j.lease = d.Lease
		p.leases, p.of[d.Lease] = append(p.leases, d.Lease), d.ID
	}
}

func (p *player) playRedrive() {
	name := p.name()
	r := &engine.QueueRedrive{Queue: key(name), Count: int64(1 + p.pick(5))}
	if err := p.e.Redrive(context.Background(), r); err != nil {
		p.t.Fatal(err)
	}
	var dead []*modelJob
	for _, j := range p.m.jobs {
		if j.queue == name && j.place == state.Dead {
			dead = append(dead, j)
		}
	}
	slices.SortFunc(dead, func(a, b *modelJob) int { return cmp.Compare(a.order, b.order) })
	q, moved := p.m.queue(name), int64(0)
	for _, j := range dead {
		if n := p.m.count(name); moved == r.Count || q.maxLen > 0 && n[0]+n[1]+n[2] >= int64(q.maxLen) {
			break
		}
		if id, held := p.m.holder(name, j.unique); j.unique != "" && held && id != j.id {
			j.unique = ""
		}
		if j.unique != "" {
			q.keys[j.unique] = modelKey{j.id, q.keys[j.unique].until}
		}
		j.failures = 0
		p.m.ready(j)
		moved++
	}
	if r.Moved != moved {
		p.t.Fatalf("redrive: got %d, want %d (%s)", r.Moved, moved, seeds.Replay())
	}
	p.sleep(0) // what took more than one turn rested in between
	p.m.pass(state.Millis(time.Now().UnixMilli()))
}

// placeless is a dump without the places of bodies, which cleaning changes.
func placeless(dump string) string {
	return strings.TrimRight(bodyPlace.ReplaceAllString(dump, ""), "\n")
}

var bodyPlace = regexp.MustCompile(`(?m) body=[0-9/+a-f]+|^ *generation .*$`)

// Random commands, with restarts, power losses and snapshots between them: the
// answers are those of the model, and a restart changes nothing.
func TestModel(t *testing.T) {
	steps := 20_000
	if testing.Short() {
		steps = 4_000
	}
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", opt: engine.Options{SnapshotBytes: 64 << 10}, log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer func() { s.close() }()
		p := &player{shop: s, m: newModel(), rng: seeds.Rand(t.Name()), of: map[state.LeaseID]state.JobID{}}
		p.m.pass(state.Millis(time.Now().UnixMilli()))
		for i := range steps {
			p.step()
			if i%1500 != 1499 {
				continue
			}
			if err := s.e.Check(); err != nil {
				t.Fatalf("step %d: %v (%s)", i, err, seeds.Replay())
			}
			if p.pick(3) == 0 {
				if err := s.e.Snapshot(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			s.counts("q0") // waits for all that was decided, also by turns
			before := s.dump()
			if p.pick(2) == 0 {
				s.reopen()
			} else { // all that was answered survives the power
				old := s.e
				disk = disk.Crash(func(int) waltest.Keep { return waltest.Keep{} })
				s.fs = disk
				s.open()
				_ = old.Close(context.Background())
			}
			s.differ(fmt.Sprintf("step %d, after the restart (%s)", i, seeds.Replay()), placeless(s.dump()), placeless(before))
			s.turn()
			p.m.pass(state.Millis(time.Now().UnixMilli()))
		}
	})
}
