package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// never is the return time of what is still open when the history ends.
const never = Time(math.MaxInt64)

// several stands in index.keys for a key that more than one job used.
const several = math.MaxUint64

// grant is one delivery together with the operation that brought it.
type grant struct {
	*Grant
	fetch *Op
	place int // in the answer, from 0
}

func (g grant) call() Time { return g.fetch.Call }
func (g grant) ret() Time  { return g.fetch.Return }

// job is everything the history says about one nonce.
type job struct {
	nonce    uint64
	enqueues []*Op   // by call
	grants   []grant // by return
	ends     []*Op   // Ack, Nack, Release, Bury of its leases, by call; outcomes of all kinds
	extends  []*Op
	deletes  []*Op
	edits    []*Op
	shown    []*Op // Peek
}

// created is the enqueue whose OK promises that the job exists, or nil.
func (j *job) created() *Op {
	for _, e := range j.enqueues {
		if e.Outcome == OK && !e.Duplicate {
			return e
		}
	}
	return nil
}

// seen tells whether any answer showed the job.
func (j *job) seen() bool { return len(j.grants) > 0 || len(j.shown) > 0 }

// queue is where it was enqueued last, "" if it never was.
func (j *job) queue() string {
	if len(j.enqueues) == 0 {
		return ""
	}
	return j.enqueues[len(j.enqueues)-1].Queue
}

// finishing returns the operations that end the job for good if they happened.
func (j *job) finishing() []*Op {
	var ops []*Op
	for _, op := range j.ends {
		if op.Kind == Ack {
			ops = append(ops, op)
		}
	}
	return append(ops, j.deletes...)
}

// index is a history sorted for checking.
type index struct {
	opt    Options
	ops    []*Op
	events []Event
	jobs   []*job // by nonce
	byName map[uint64]*job
	leases map[string][]grant
	lost   map[string][]*Op  // unknown fetches by every queue they may have touched
	keys   map[string]uint64 // queue and unique key → the only nonce it was used with, or several
	drain  Time              // when the drain began; never without one
	done   bool              // the drain emptied everything
	step   time.Duration     // how far the wall clock was stepped forward

	redriven map[string]bool            // queues whose dead letters may have been moved back
	dead     map[string]map[uint64]bool // by queue: the dead letters as last listed, once the drain had begun
}

func newIndex(h History, opt Options) *index {
	x := &index{
		opt: opt, drain: never,
		byName: map[uint64]*job{}, leases: map[string][]grant{}, lost: map[string][]*Op{}, keys: map[string]uint64{},
		redriven: map[string]bool{}, dead: map[string]map[uint64]bool{},
	}
	x.events = slices.Clone(h.Events)
	slices.SortStableFunc(x.events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	death := map[int]Time{}
	for i, e := range x.events {
		switch e.Kind {
		case Killed, Exited:
			death[e.Incarnation] = e.At
		case Drain:
			x.drain = min(x.drain, e.At)
		case Drained:
			x.done = true
		}
		if i > 0 {
			x.step += max(0, e.WallOffset-x.events[i-1].WallOffset)
		}
	}
	ops := slices.Clone(h.Ops) // to be changed below, in one piece for the sake of memory
	x.ops = make([]*Op, len(ops))
	for i := range ops {
		op := &ops[i]
		if op.Outcome == Unknown {
			// One process cannot act after its death, and may until then.
			switch at, dead := death[op.Incarnation]; {
			case !dead:
				op.Return = never
			case at < op.Call:
				op.Outcome = No // sent to a process that was dead already
			default:
				op.Return = at
			}
		}
		x.ops[i] = op
	}
	slices.SortStableFunc(x.ops, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	for _, op := range x.ops {
		x.place(op)
	}
	// Leases lead to their jobs only once all grants are known.
	for _, op := range x.ops {
		if op.Lease == "" {
			continue
		}
		gs := x.leases[op.Lease]
		if len(gs) == 0 {
			continue
		}
		j := x.job(gs[0].Nonce)
		if op.Kind == Extend {
			j.extends = append(j.extends, op)
		} else {
			j.ends = append(j.ends, op)
		}
	}
	for _, j := range x.byName {
		slices.SortStableFunc(j.grants, func(a, b grant) int { return cmp.Compare(a.ret(), b.ret()) })
		x.jobs = append(x.jobs, j)
	}
	slices.SortFunc(x.jobs, func(a, b *job) int { return cmp.Compare(a.nonce, b.nonce) })
	return x
}

func (x *index) job(nonce uint64) *job {
	j := x.byName[nonce]
	if j == nil {
		j = &job{nonce: nonce}
		x.byName[nonce] = j
	}
	return j
}

func (x *index) place(op *Op) {
	switch op.Kind {
	case Enqueue:
		j := x.job(op.Nonce)
		j.enqueues = append(j.enqueues, op)
		if key := op.Queue + "\x00" + op.Unique; op.Unique != "" {
			if first, used := x.keys[key]; used && first != op.Nonce {
				x.keys[key] = several
			} else {
				x.keys[key] = op.Nonce
			}
		}
	case Edit:
		j := x.job(op.Nonce)
		j.edits = append(j.edits, op)
	case Delete:
		j := x.job(op.Nonce)
		j.deletes = append(j.deletes, op)
	case Peek:
		for _, n := range op.Shown {
			j := x.job(n)
			j.shown = append(j.shown, op)
		}
		if op.Dead && op.Outcome == OK && op.Call > x.drain {
			// Who is dead then stays dead, so the last list is the longest.
			listed := make(map[uint64]bool, len(op.Shown))
			for _, n := range op.Shown {
				listed[n] = true
			}
			x.dead[op.Queue] = listed
		}
	case Redrive:
		if op.Outcome != No {
			x.redriven[op.Queue] = true
		}
	case Fetch:
		if op.Outcome == Unknown {
			x.lost[op.Queue] = append(x.lost[op.Queue], op)
			for _, q := range op.Or {
				x.lost[q] = append(x.lost[q], op)
			}
		}
		if op.Outcome != OK {
			return
		}
		for i := range op.Grants {
			g := grant{&op.Grants[i], op, i}
			if g.Intact {
				j := x.job(g.Nonce)
				j.grants = append(j.grants, g)
			}
			x.leases[g.Lease] = append(x.leases[g.Lease], g)
		}
	}
}

// earliestEnd is the first moment at which the lease of g can have ended by
// itself, as far as a grant that was called at t could have met it: the lease
// and every extension that no later one had certainly replaced by then.
func (x *index) earliestEnd(j *job, g grant, t Time) Time {
	type setting struct{ call, ret, end Time }
	settings := []setting{{g.call(), g.ret(), g.call() + g.fetch.LeaseFor}}
	for _, e := range j.extends {
		if e.Lease == g.Lease && e.Outcome != No {
			settings = append(settings, setting{e.Call, e.Return, e.Call + e.LeaseFor})
		}
	}
	end := never
	for _, s := range settings {
		replaced := slices.ContainsFunc(j.extends, func(e *Op) bool {
			return e.Lease == g.Lease && e.Outcome == OK && e.Call >= s.ret && e.Return <= t
		})
		if !replaced {
			end = min(end, s.end)
		}
	}
	return end
}

// latestEnd is the last moment at which the lease of g can have been alive.
func (x *index) latestEnd(j *job, g grant) Time {
	end := g.ret() + g.fetch.LeaseFor
	for _, e := range j.extends {
		if e.Lease != g.Lease || e.Outcome == No {
			continue
		}
		if e.Return == never {
			return never
		}
		end = max(end, e.Return+e.LeaseFor)
	}
	return end
}

// tolerance is how much earlier than computed a lease of a may be found ended
// by b: the checker's own, and across a restart the steps of the wall clock.
func (x *index) tolerance(a, b grant) time.Duration {
	if a.fetch.Incarnation == b.fetch.Incarnation {
		return x.opt.Tolerance
	}
	return x.opt.Tolerance + x.step
}

// given tells whether g may have been given back or finished by an operation
// called before t.
func (j *job) given(g grant, t Time) bool {
	for _, op := range j.ends {
		if op.Lease == g.Lease && op.Outcome != No && op.Call < t {
			return true
		}
	}
	for _, op := range j.deletes {
		if op.Outcome != No && op.Call < t {
			return true
		}
	}
	return false
}
