package history

import (
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// The automaton of S16: what one job can be, as far as answers show.
type automaton struct {
	place string // absent, ready, leased, done
	lease string
	from  Time // leased: earliest end of the lease
	until Time // leased: latest end, as seen by the process that gave it
	by    int  // leased: that process
}

const (
	absent = "absent"
	ready  = "ready"
	leased = "leased"
	done   = "done"
)

// step is what one operation asks of the automaton.
type step struct {
	kind  Kind
	op    *Op
	lease string
}

// next returns every state in which the job can be after s had its effect in
// state a, and none if the answer to s is impossible there. A delivery whose
// answer was lost shows itself by nothing but a lease that ends; a job that is
// ready and one that is secretly leased are the same state here.
func (a automaton) next(s step, tolerance Time) []automaton {
	mine := a.place == leased && a.lease == s.lease
	switch s.kind {
	case Enqueue:
		to := automaton{place: ready}
		if a.place != absent {
			if s.op.Duplicate || s.op.Outcome != OK {
				return []automaton{a}
			}
			return nil
		}
		if s.op.Outcome == OK {
			return []automaton{to}
		}
		return []automaton{a, to}

	case Fetch:
		free := a.place == ready || a.place == leased && s.op.Return >= a.from-tolerance
		if !free {
			return nil
		}
		return []automaton{{
			place: leased, lease: s.lease, by: s.op.Incarnation,
			from: s.op.Call + s.op.LeaseFor, until: s.op.Return + s.op.LeaseFor,
		}}

	case Extend:
		switch {
		case s.op.Outcome == No:
			return a.refused(mine, s, tolerance)
		case !mine:
			if s.op.Outcome == OK {
				return nil
			}
			return []automaton{a}
		}
		to := a
		to.from, to.until, to.by = s.op.Call+s.op.LeaseFor, later(s.op.Return, s.op.LeaseFor), s.op.Incarnation
		if s.op.Outcome == OK {
			if a.over(s, tolerance) {
				return nil
			}
			return []automaton{to}
		}
		return []automaton{a, to}

	case Delete:
		switch s.op.Outcome {
		case OK:
			return []automaton{{place: done}}
		case No:
			return []automaton{a}
		}
		return []automaton{a, {place: done}}
	}

	// Ack, Nack, Release, Bury end a lease.
	to := automaton{place: ready}
	if s.kind == Ack {
		to.place = done
	}
	switch s.op.Outcome {
	case No:
		return a.refused(mine, s, tolerance)
	case OK:
		if !mine || a.over(s, tolerance) {
			return nil
		}
		return []automaton{to}
	}
	if mine {
		return []automaton{a, to}
	}
	return []automaton{a}
}

// refused: a lease may be refused unless it was certainly alive.
func (a automaton) refused(mine bool, s step, tolerance Time) []automaton {
	if mine && s.op.Return < a.from-tolerance {
		return nil
	}
	return []automaton{a}
}

// over tells whether the lease had certainly ended when s was called: it is
// refused from its deadline on. Across a restart the wall clock has a say in
// when that is, so nothing is certain then.
func (a automaton) over(s step, tolerance Time) bool {
	return a.by == s.op.Incarnation && s.op.Call > a.until+tolerance
}

func later(t Time, d Time) Time {
	if t > math.MaxInt64-d {
		return never
	}
	return t + d
}

// checkLinear is S16. It returns how many jobs were not decided.
func (c *checker) checkLinear() (undecided int) {
	automata := porcupine.NondeterministicModel{
		Init: func() []any { return []any{automaton{place: absent}} },
		Step: func(state, input, output any) []any {
			var states []any
			for _, a := range state.(automaton).next(input.(step), c.opt.Tolerance+c.step) {
				states = append(states, a)
			}
			return states
		},
		Equal: func(a, b any) bool { return a == b },
	}
	model := automata.ToModel()
	deadline := time.Now().Add(c.opt.Patience)
	for _, j := range c.jobs {
		if len(j.grants) == 0 {
			continue // nothing but its making; S1 and S9 ask for the rest
		}
		var ops []porcupine.Operation
		add := func(op *Op, lease string) {
			ops = append(ops, porcupine.Operation{
				ClientId: op.Client, Input: step{op.Kind, op, lease},
				Call: int64(op.Call), Return: int64(op.Return),
			})
		}
		for _, e := range j.enqueues {
			if e.Outcome != No {
				add(e, "")
			}
		}
		for _, g := range j.grants {
			add(g.fetch, g.Lease)
		}
		for _, op := range slices.Concat(j.ends, j.extends, j.deletes) {
			if op.Outcome != No || op.Error == NoLease {
				add(op, op.Lease) // other refusals say nothing about the lease
			}
		}
		left := min(time.Until(deadline), c.opt.Patience/6)
		if left <= 0 {
			undecided++
			continue
		}
		switch porcupine.CheckOperationsTimeout(model, ops, left) {
		case porcupine.Illegal:
			c.report("S16", "the %d operations on job %016x have no order that real time allows", len(ops), j.nonce)
		case porcupine.Unknown:
			undecided++
		}
	}
	return undecided
}
