package history

import (
	"cmp"
	"slices"
)

// checkLoss: S1 and S9. Both need a drain that emptied everything.
func (c *checker) checkLoss(j *job) {
	if !c.done {
		return
	}
	created := j.created()
	if created == nil && !j.seen() && !c.onlyOfKey(j) {
		return
	}
	for _, op := range j.finishing() {
		if op.Outcome != No {
			return // finished, or perhaps finished
		}
	}
	for _, g := range j.grants {
		if g.ret() > c.drain {
			return // there at the end
		}
	}
	if c.diedOpenly(j) {
		return
	}
	if c.dead[j.queue()] != nil && c.mayHaveDied(j) {
		c.report("S20", "job %016x had reason to die, but is neither among the dead letters nor anywhere else", j.nonce)
	}
	switch {
	case created != nil:
		c.report("S1", "job %016x in %q, acknowledged at %v by incarnation %d, was not there at the end and nobody finished it",
			j.nonce, created.Queue, created.Return, created.Incarnation)
	case !j.seen():
		c.report("S1", "job %016x, acknowledged as a duplicate of itself, was not there at the end and nobody finished it", j.nonce)
	default:
		c.report("S9", "job %016x was seen, but not there at the end, and nobody finished it", j.nonce)
	}
}

// onlyOfKey tells whether the job was acknowledged as a duplicate under a key
// that no other job ever used, so that the duplicate is the job itself.
func (c *checker) onlyOfKey(j *job) bool {
	for _, e := range j.enqueues {
		if e.Outcome == OK && e.Duplicate {
			return c.keys[e.Queue+"\x00"+e.Unique] == j.nonce
		}
	}
	return false
}

// diedOpenly tells whether the job is, or may be, among the dead letters.
func (c *checker) diedOpenly(j *job) bool {
	if listed := c.dead[j.queue()]; listed != nil {
		return listed[j.nonce]
	}
	return c.mayHaveDied(j)
}

// mayHaveDied tells whether anything that was done can have made the job a dead
// letter.
func (c *checker) mayHaveDied(j *job) bool {
	for _, op := range j.ends {
		if op.Kind == Bury && op.Outcome != No {
			return true
		}
	}
	tries := 0
	for _, e := range j.enqueues {
		tries = max(tries, e.Tries)
	}
	return tries > 0 && len(j.grants)+len(c.lost[j.queue()]) >= tries
}

// checkOrigin: S2 and S15.
func (c *checker) checkOrigin(j *job) {
	for _, g := range j.grants {
		if len(j.enqueues) == 0 {
			c.report("S2", "job %016x was delivered at %v, but never enqueued", j.nonce, g.ret())
			return
		}
		attempted, possible, here := false, false, false
		for _, e := range j.enqueues {
			if e.Call > g.ret() {
				continue
			}
			attempted = true
			here = here || e.Queue == g.fetch.Queue || slices.Contains(g.fetch.Or, e.Queue)
			possible = possible || e.Outcome != No
		}
		switch {
		case !attempted:
			c.report("S2", "job %016x was delivered at %v, before its enqueue was called", j.nonce, g.ret())
		case !here:
			c.report("S2", "job %016x of queue %q was delivered from %q", j.nonce, j.enqueues[0].Queue, g.fetch.Queue)
		case !possible:
			c.report("S2", "job %016x was delivered, but its enqueue had been refused: %s", j.nonce, j.enqueues[0].Error)
			c.report("S15", "enqueue of %016x was refused (%s), yet the job exists", j.nonce, j.enqueues[0].Error)
		}
	}
	// A refused ack must not have finished its job.
	for _, op := range j.ends {
		if op.Outcome != No || !c.done || op.Kind != Ack {
			continue
		}
		other := slices.ContainsFunc(j.finishing(), func(o *Op) bool { return o.Outcome != No })
		if again := slices.ContainsFunc(j.grants, func(g grant) bool { return g.ret() > op.Call }); !other && !again && !c.diedOpenly(j) {
			c.report("S15", "ack of lease %s was refused (%s), yet job %016x is gone", op.Lease, op.Error, j.nonce)
		}
	}
}

// checkFinal: S3, S4, S6 and for deletions S22.
func (c *checker) checkFinal(j *job) {
	var won []*Op
	for _, op := range j.ends {
		if op.Kind != Ack || op.Outcome != OK {
			continue
		}
		for _, other := range won {
			if other.Lease == op.Lease {
				c.report("S4", "lease %s of job %016x was acknowledged twice, at %v and %v", op.Lease, j.nonce, other.Return, op.Return)
			} else {
				c.report("S4", "job %016x was finished by lease %s and by lease %s", j.nonce, other.Lease, op.Lease)
			}
		}
		won = append(won, op)
		for _, g := range j.grants {
			if g.call() > op.Return {
				c.report("S3", "job %016x, finished at %v by lease %s, was delivered again to a fetch called at %v (incarnation %d, then %d)",
					j.nonce, op.Return, op.Lease, g.call(), op.Incarnation, g.fetch.Incarnation)
			}
		}
	}
	for _, op := range j.ends {
		if op.Outcome != OK {
			continue
		}
		held := c.leases[op.Lease][0]
		for _, g := range j.grants {
			if g.Lease != op.Lease && g.call() > held.ret() && g.ret() < op.Call {
				c.report("S6", "%s of lease %s was accepted at %v, but job %016x had been delivered again as %s at %v",
					op.Kind, op.Lease, op.Return, j.nonce, g.Lease, g.ret())
			}
		}
	}
	for _, op := range j.deletes {
		if op.Outcome != OK {
			continue
		}
		for _, g := range j.grants {
			if g.call() > op.Return {
				c.report("S22", "job %016x, deleted at %v, was delivered to a fetch called at %v", j.nonce, op.Return, g.call())
			}
		}
	}
}

// pairs is how many later grants of a job each grant is compared with.
const pairs = 64

// checkLeases: S5.
func (c *checker) checkLeases(j *job) {
	for i, a := range j.grants {
		for _, b := range j.grants[i+1 : min(len(j.grants), i+1+pairs)] {
			tolerance := c.tolerance(a, b)
			if a.fetch == b.fetch {
				c.report("S5", "job %016x was delivered twice in one answer, as %s and %s", j.nonce, a.Lease, b.Lease)
				continue
			}
			last := max(a.ret(), b.ret())
			if a.ret() <= b.call() {
				if end := c.earliestEnd(j, a, b.call()); !j.given(a, last) && last < end-tolerance {
					c.report("S5", "job %016x, leased as %s until %v at the earliest, was delivered again as %s at %v",
						j.nonce, a.Lease, end, b.Lease, b.ret())
				}
				continue
			}
			// The fetches overlapped, so either may have been first.
			end := min(c.earliestEnd(j, a, b.call()), c.earliestEnd(j, b, a.call()))
			if !j.given(a, last) && !j.given(b, last) && last < end-tolerance {
				c.report("S5", "job %016x had two live leases at %v, %s and %s", j.nonce, last, a.Lease, b.Lease)
			}
		}
	}
}

// checkPayloads: S2's checksums and S13.
func (c *checker) checkPayloads() {
	for _, op := range c.ops {
		if op.Kind != Fetch || op.Outcome != OK {
			continue
		}
		for _, g := range op.Grants {
			if !g.Intact {
				c.report("S2", "a fetch from %q at %v brought bytes that no client ever made (lease %s)", op.Queue, op.Return, g.Lease)
				continue
			}
			j := c.byName[g.Nonce]
			if j == nil || len(j.enqueues) == 0 || len(j.edits) > 0 {
				continue
			}
			if !slices.ContainsFunc(j.enqueues, func(e *Op) bool { return e.Digest == g.Digest }) {
				c.report("S13", "payload of job %016x has digest %x, went in with %x", g.Nonce, g.Digest, j.enqueues[0].Digest)
			}
		}
	}
}

// checkIDs: S7 and the first half of S8.
func (c *checker) checkIDs() {
	owner := map[string]uint64{} // task ID → nonce
	claim := func(id string, nonce uint64, how string) {
		if id == "" {
			return
		}
		if first, taken := owner[id]; taken && first != nonce {
			c.report("S7", "task ID %s was given to job %016x and, %s, to job %016x", id, first, how, nonce)
		}
		owner[id] = nonce
	}
	for _, j := range c.jobs {
		id := ""
		for _, e := range j.enqueues {
			if e.Outcome == OK && !e.Duplicate {
				claim(e.Job, j.nonce, "by an enqueue")
				if id != "" && id != e.Job {
					c.report("S8", "job %016x was enqueued as %s and as %s", j.nonce, id, e.Job)
				}
				id = e.Job
			}
		}
		for _, g := range j.grants {
			claim(g.Job, j.nonce, "by a delivery")
			if id != "" && g.Job != id {
				if len(j.enqueues) > 1 || j.created() == nil {
					c.report("S8", "job %016x exists twice, as %s and as %s", j.nonce, id, g.Job)
				}
				c.report("S7", "task ID of job %016x was %s and became %s", j.nonce, id, g.Job)
			}
			id = g.Job
		}
	}
	for _, op := range c.ops {
		for i := range op.Grants {
			if gs := c.leases[op.Grants[i].Lease]; len(gs) > 1 && gs[0].Grant == &op.Grants[i] {
				c.report("S7", "lease %s was given %d times, first to job %016x at %v, then to job %016x at %v",
					gs[0].Lease, len(gs), gs[0].Nonce, gs[0].ret(), gs[1].Nonce, gs[1].ret())
			}
		}
	}
}

// checkBefore: S7 over the parts of a history. Here every ID counts once: what
// an ID does within the part is the affair of checkIDs.
func (c *checker) checkBefore() {
	if c.opt.Before == nil {
		return
	}
	jobs, leases := map[string]bool{}, map[string]bool{}
	for _, op := range c.ops {
		if op.Kind == Enqueue && op.Job != "" && !op.Duplicate {
			jobs[op.Job] = true
		}
		for i := range op.Grants {
			jobs[op.Grants[i].Job], leases[op.Grants[i].Lease] = true, true
		}
	}
	for _, ids := range []struct {
		what string
		here map[string]bool
	}{{"task", jobs}, {"lease", leases}} {
		for id := range ids.here {
			if !c.opt.Before.add(ids.what, id) {
				c.report("S7", "%s ID %s was given before, in an earlier part of the history", ids.what, id)
			}
		}
	}
}

// checkUnique: the second half of S8.
func (c *checker) checkUnique() {
	byKey := map[string][]*Op{}
	for _, op := range c.ops {
		if op.Kind == Enqueue && op.Unique != "" && op.Outcome == OK {
			key := op.Queue + "\x00" + op.Unique
			byKey[key] = append(byKey[key], op)
		}
	}
	for _, ops := range byKey {
		for i, first := range ops {
			for _, second := range ops[i+1:] {
				inside := second.Call > first.Return && second.Return < first.Call+first.For-c.opt.Tolerance-c.step
				if !first.Duplicate && inside && second.Job != first.Job {
					c.report("S8", "key %q in %q made job %s, and %v later job %s, within its window of %v",
						first.Unique, first.Queue, first.Job, second.Call-first.Return, second.Job, first.For)
				}
			}
		}
	}
}

// checkDelay: S18.
func (c *checker) checkDelay(j *job) {
	for _, e := range j.enqueues {
		if e.Delay == 0 || len(j.enqueues) > 1 {
			continue
		}
		for _, g := range j.grants {
			tolerance := c.opt.Tolerance
			if g.fetch.Incarnation != e.Incarnation {
				tolerance += c.step
			}
			if g.ret() < e.Call+e.Delay-tolerance {
				c.report("S18", "job %016x with a delay of %v was delivered %v after its enqueue was called", j.nonce, e.Delay, g.ret()-e.Call)
			}
		}
	}
	for _, n := range j.ends {
		if n.Kind != Nack || n.Outcome != OK || n.Delay == 0 {
			continue
		}
		for _, g := range j.grants {
			tolerance := c.opt.Tolerance
			if g.fetch.Incarnation != n.Incarnation {
				tolerance += c.step
			}
			if g.call() > n.Return && g.ret() < n.Call+n.Delay-tolerance {
				c.report("S18", "job %016x, given back for %v, was delivered %v after", j.nonce, n.Delay, g.ret()-n.Call)
			}
		}
	}
}

// checkAttempts: S19.
func (c *checker) checkAttempts(j *job) {
	queue, tries := j.queue(), 0
	for _, e := range j.enqueues {
		tries = e.Tries
	}
	var counted []grant
	for _, g := range j.grants { // by return
		if g.Attempt > 0 {
			counted = append(counted, g)
		}
	}
	// What was delivered before a fetch was called has a smaller number.
	byCall := slices.Clone(counted)
	slices.SortStableFunc(byCall, func(a, b grant) int { return cmp.Compare(a.call(), b.call()) })
	var before grant // the greatest number of those that had returned
	k := 0
	for _, b := range byCall {
		for ; k < len(counted) && counted[k].ret() <= b.call(); k++ {
			if before.Grant == nil || counted[k].Attempt > before.Attempt {
				before = counted[k]
			}
		}
		if before.Grant != nil && b.Attempt <= before.Attempt {
			c.report("S19", "attempts of job %016x: %d, then %d (incarnations %d, %d)", j.nonce, before.Attempt, b.Attempt, before.fetch.Incarnation, b.fetch.Incarnation)
			return
		}
	}
	// Answers that overlap may be read in any order, so gaps are looked for in that
	// of the numbers.
	slices.SortStableFunc(counted, func(a, b grant) int { return cmp.Compare(a.Attempt, b.Attempt) })
	for i := 1; i < len(counted); i++ {
		a, b := counted[i-1], counted[i]
		unseen := b.Attempt - a.Attempt - 1
		if unseen < 0 {
			c.report("S19", "attempt %d of job %016x was delivered twice, as %s and %s", a.Attempt, j.nonce, a.Lease, b.Lease)
			continue
		}
		if unseen == 0 {
			continue
		}
		// A fetch whose answer was lost may have had it in between.
		lost := 0
		for _, f := range c.lost[queue] {
			if f.Call < b.ret() && f.Return > a.call() {
				lost++
			}
		}
		if unseen > lost {
			c.report("S19", "attempts of job %016x: %d, then %d, with only %d lost answers between", j.nonce, a.Attempt, b.Attempt, lost)
		}
	}
	if tries == 0 {
		return
	}
	spared := 0 // deliveries that were no failures
	for _, op := range j.ends {
		if op.Kind == Release && op.Outcome != No {
			spared++
		}
	}
	if len(j.grants) > tries+spared && !c.redriven[queue] {
		c.report("S19", "job %016x with %d tries was delivered %d times, %d of them released", j.nonce, tries, len(j.grants), spared)
	}
}

// checkDead: S20.
func (c *checker) checkDead(j *job) {
	for _, p := range j.shown {
		if !p.Dead || p.Outcome != OK || len(j.enqueues) == 0 {
			continue
		}
		buried := slices.ContainsFunc(j.ends, func(op *Op) bool { return op.Kind == Bury && op.Outcome != No && op.Call < p.Return })
		if buried {
			continue
		}
		tries, failures := j.enqueues[0].Tries, 0
		for _, g := range j.grants {
			if g.call() < p.Return {
				failures++
			}
		}
		for _, f := range c.lost[j.enqueues[0].Queue] {
			if f.Call < p.Return {
				failures++
			}
		}
		if tries == 0 || failures < tries {
			c.report("S20", "job %016x is among the dead letters at %v: %d tries, at most %d failures, not buried", j.nonce, p.Return, tries, failures)
		}
	}
}

// checkEdits: S22 for payloads.
func (c *checker) checkEdits(j *job) {
	if len(j.edits) == 0 || len(j.enqueues) == 0 {
		return
	}
	writes := append([]*Op{j.enqueues[0]}, j.edits...)
	for _, g := range j.grants {
		var from *Op
		for _, w := range writes {
			if w.Digest == g.Digest {
				from = w
			}
		}
		if from == nil {
			c.report("S13", "payload of job %016x has digest %x, which nobody wrote", j.nonce, g.Digest)
			continue
		}
		for _, w := range writes {
			if w != from && w.Outcome == OK && w.Call > from.Return && w.Return < g.call() {
				c.report("S22", "job %016x was edited at %v, but a fetch called at %v brought what was written at %v",
					j.nonce, w.Return, g.call(), from.Return)
			}
		}
	}
}
