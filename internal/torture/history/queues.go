package history

import (
	"cmp"
	"slices"
)

// checkCounts: S10, and S9 for jobs that were counted and not shown.
func (c *checker) checkCounts() {
	jobsOf := map[string][]*job{}
	for _, j := range c.jobs {
		if len(j.enqueues) > 0 {
			jobsOf[j.enqueues[0].Queue] = append(jobsOf[j.enqueues[0].Queue], j)
		}
	}
	lives, lasting := map[string]lifetimes{}, map[string]lifetimes{}
	for queue, jobs := range jobsOf {
		lives[queue] = newLifetimes(jobs)
		lasting[queue] = newLifetimes(slices.DeleteFunc(slices.Clone(jobs), c.vanished))
	}
	for _, s := range c.ops {
		if s.Kind != Stats || s.Outcome != OK || s.Count == nil {
			continue
		}
		n := s.Count
		if n.Processing != n.ActiveLeases || n.ActiveLeases > n.Heap || min(n.Ready, n.Processing, n.Dead) < 0 {
			c.report("S10", "stats of %q at %v contradict themselves: %+v", s.Queue, s.Return, *n)
		}
		if high := lives[s.Queue].most(s); n.Ready > high {
			c.report("S10", "%q has %d ready jobs at %v, but at most %d can exist", s.Queue, n.Ready, s.Return, high)
		}
		// Without jobs of its own the queue is one of an earlier part.
		if l, ours := lasting[s.Queue]; ours && c.done {
			if total, high := n.Ready+n.Processing+n.Dead+max(0, n.Delayed), l.most(s); total > high && total <= lives[s.Queue].most(s) {
				c.report("S9", "%q held %d jobs at %v (%+v), but no more than %d were there later or finished", s.Queue, total, s.Return, *n, high)
			}
		}
		if !s.Quiet || n.Delayed < 0 {
			continue
		}
		low, high := 0, 0
		for _, j := range jobsOf[s.Queue] {
			l, h := j.existed(s)
			low, high = low+l, high+h
		}
		if total := n.Ready + n.Processing + n.Dead + n.Delayed; total < low || total > high {
			c.report("S10", "%q holds %d jobs at rest at %v (%+v), but between %d and %d exist", s.Queue, total, s.Return, *n, low, high)
		}
	}
}

// vanished tells whether a job, if it ever existed, was gone at the end without
// a reason. That is no loss where its enqueue had no answer, unless an answer
// counted it.
func (c *checker) vanished(j *job) bool {
	return !j.seen() && j.created() == nil && !c.onlyOfKey(j) && !c.diedOpenly(j) &&
		!slices.ContainsFunc(j.finishing(), func(op *Op) bool { return op.Outcome != No })
}

// lifetimes are when the jobs of a queue can have begun to exist, and when they
// had certainly ended, each sorted: there are many looks at the counters, and
// for most of them a bound from above must do.
type lifetimes struct{ begun, ended []Time }

func newLifetimes(jobs []*job) (l lifetimes) {
	for _, j := range jobs {
		begun, ended := never, never
		for _, e := range j.enqueues {
			if e.Outcome != No {
				begun = min(begun, e.Call)
			}
		}
		if begun == never {
			continue
		}
		for _, op := range j.finishing() {
			if op.Outcome == OK {
				ended = min(ended, op.Return)
			}
		}
		l.begun = append(l.begun, begun)
		// Whatever it was that ended, it counts for nothing before it can exist.
		l.ended = append(l.ended, max(begun, ended))
	}
	slices.Sort(l.begun)
	slices.Sort(l.ended)
	return l
}

// most is how many jobs can have existed while s ran.
func (l lifetimes) most(s *Op) int {
	begun, _ := slices.BinarySearch(l.begun, s.Return) // called before it returned
	ended, _ := slices.BinarySearch(l.ended, s.Call)   // returned before it was called
	return begun - ended
}

// existed gives the least and the greatest number of jobs, 0 or 1 each, that
// the nonce can stand for while s ran.
func (j *job) existed(s *Op) (low, high int) {
	for _, e := range j.enqueues {
		if e.Outcome != No && e.Call < s.Return {
			high = 1
		}
		if e.Outcome == OK && !e.Duplicate && e.Return < s.Call {
			low = 1
		}
	}
	for _, g := range j.grants {
		if g.ret() < s.Call {
			low = 1
		}
	}
	for _, op := range j.finishing() {
		if op.Outcome == OK && op.Return < s.Call {
			return 0, 0
		}
		if op.Outcome != No && op.Call < s.Return {
			low = 0
		}
	}
	if low == 0 && high == 1 {
		// Delivered later, so it was there if it had been there before.
		before := slices.ContainsFunc(j.enqueues, func(e *Op) bool { return e.Outcome == OK && !e.Duplicate && e.Return < s.Call }) ||
			slices.ContainsFunc(j.grants, func(g grant) bool { return g.ret() < s.Call })
		after := slices.ContainsFunc(j.grants, func(g grant) bool { return g.call() > s.Return })
		if before && after {
			low = 1
		}
	}
	return low, high
}

// checkApart: S12. Between two looks at a queue with nothing done to it, jobs
// may change places as time passes, but their number stands still.
func (c *checker) checkApart() {
	type look struct {
		op    *Op
		total int
	}
	looks := map[string][]look{}
	deeds := map[string][]*Op{} // whatever may have changed a queue, by call
	lease := func(op *Op) string {
		if gs := c.leases[op.Lease]; len(gs) > 0 {
			return gs[0].fetch.Queue
		}
		return ""
	}
	for _, op := range c.ops { // by call
		switch op.Kind {
		case Stats:
			if op.Outcome == OK && op.Count != nil && op.Count.Delayed >= 0 {
				n := op.Count
				looks[op.Queue] = append(looks[op.Queue], look{op, n.Ready + n.Processing + n.Dead + n.Delayed})
			}
		case Peek:
		case Ack, Nack, Release, Bury, Extend:
			deeds[lease(op)] = append(deeds[lease(op)], op)
		case Delete, Edit:
			queue := ""
			if j := c.byName[op.Nonce]; len(j.enqueues) > 0 {
				queue = j.enqueues[0].Queue
			}
			deeds[queue] = append(deeds[queue], op)
		default:
			for _, queue := range append([]string{op.Queue}, op.Or...) {
				deeds[queue] = append(deeds[queue], op)
			}
		}
	}
	for queue, ls := range looks {
		ops, k, latest := deeds[queue], 0, Time(-1) // latest return of those called so far
		slices.SortFunc(ls, func(a, b look) int { return cmp.Compare(a.op.Return, b.op.Return) })
		for i, b := range ls {
			for ; k < len(ops) && ops[k].Call < b.op.Return; k++ {
				if ops[k].Outcome != No {
					latest = max(latest, ops[k].Return)
				}
			}
			if i == 0 {
				continue
			}
			if a := ls[i-1]; a.op.Return < b.op.Call && latest < a.op.Call && a.total != b.total {
				c.report("S12", "%q held %d jobs at %v and %d at %v, with nothing done to it between",
					queue, a.total, a.op.Return, b.total, b.op.Return)
			}
		}
	}
}

// inOrder is one job whose first delivery must follow the order of enqueues.
type inOrder struct {
	nonce   uint64
	enqueue *Op
	first   grant
}

// checkOrder: S11.
func (c *checker) checkOrder() {
	type lane struct {
		queue    string
		priority int
	}
	lanes := map[lane][]inOrder{}
	for _, j := range c.jobs {
		if len(j.enqueues) != 1 || len(j.grants) == 0 {
			continue
		}
		e := j.enqueues[0]
		if e.Outcome == No || e.Delay > 0 || e.Unordered || e.Duplicate {
			continue
		}
		first := slices.MinFunc(j.grants, func(a, b grant) int { return cmp.Compare(a.ret(), b.ret()) })
		lanes[lane{e.Queue, e.Priority}] = append(lanes[lane{e.Queue, e.Priority}], inOrder{j.nonce, e, first})
	}
	for l, jobs := range lanes {
		// For each a, by the call of its first fetch: did a fetch that
		// returned before bring a job that was enqueued after a?
		byCall := slices.Clone(jobs)
		slices.SortFunc(byCall, func(a, b inOrder) int { return cmp.Compare(a.first.call(), b.first.call()) })
		byReturn := slices.Clone(jobs)
		slices.SortFunc(byReturn, func(a, b inOrder) int { return cmp.Compare(a.first.ret(), b.first.ret()) })
		var latest *inOrder // of those returned so far, the one enqueued last
		k := 0
		for _, a := range byCall {
			for ; k < len(byReturn) && byReturn[k].first.ret() < a.first.call(); k++ {
				if latest == nil || byReturn[k].enqueue.Call > latest.enqueue.Call {
					latest = &byReturn[k]
				}
			}
			if latest == nil || a.enqueue.Outcome != OK || a.enqueue.Return >= latest.enqueue.Call {
				continue
			}
			if c.perhapsHeld(l.queue, a.enqueue.Call, a.first.call()) {
				continue // a lost answer may have had it, and put it back at the tail
			}
			c.report("S11", "in %q job %016x, enqueued at %v, was delivered at %v, after job %016x, enqueued at %v and delivered at %v",
				l.queue, a.nonce, a.enqueue.Return, a.first.ret(), latest.nonce, latest.enqueue.Call, latest.first.ret())
		}
		// Within one answer the order is the answer's.
		byFetch := map[*Op][]inOrder{}
		for _, j := range jobs {
			byFetch[j.first.fetch] = append(byFetch[j.first.fetch], j)
		}
		for _, together := range byFetch {
			slices.SortFunc(together, func(a, b inOrder) int { return cmp.Compare(a.first.place, b.first.place) })
			for i := 1; i < len(together); i++ {
				a, b := together[i-1], together[i]
				if b.enqueue.Outcome == OK && b.enqueue.Return < a.enqueue.Call && !c.perhapsHeld(l.queue, b.enqueue.Call, b.first.call()) {
					c.report("S11", "one answer from %q brought job %016x before job %016x, which was enqueued first", l.queue, a.nonce, b.nonce)
				}
			}
		}
	}
}

// perhapsHeld tells whether a fetch whose answer was lost can have taken a job
// of the queue between from and to.
func (c *checker) perhapsHeld(queue string, from, to Time) bool {
	return slices.ContainsFunc(c.lost[queue], func(f *Op) bool { return f.Call < to && f.Return > from })
}

// span is a time during which a job was certainly ready: from the return of
// what made it so to the call of the fetch that took it.
type span struct {
	from, to Time
	nonce    uint64
	priority int
}

// checkReady: S17 and S23.
func (c *checker) checkReady() {
	spans := map[string][]span{}
	for _, j := range c.jobs {
		if len(j.enqueues) != 1 {
			continue
		}
		e := j.enqueues[0]
		if e.Unordered || e.Duplicate || e.Tries > 0 {
			continue
		}
		add := func(from, called Time) {
			to := never
			for _, g := range j.grants {
				if g.ret() > called {
					to = min(to, g.call())
				}
			}
			for _, op := range append(slices.Clone(j.deletes), j.edits...) {
				to = min(to, op.Call)
			}
			if to == never && !c.done {
				return // whether it was there is not known
			}
			if from < to {
				spans[e.Queue] = append(spans[e.Queue], span{from, to, j.nonce, e.Priority})
			}
		}
		if e.Outcome == OK && e.Delay == 0 {
			add(e.Return, e.Call)
		}
		for _, op := range j.ends {
			if op.Outcome == OK && (op.Kind == Release || op.Kind == Nack && op.Delay == 0 && !e.Backoff) {
				add(op.Return, op.Call)
			}
		}
	}
	fetches := map[string][]*Op{}
	for _, op := range c.ops {
		if op.Kind == Fetch && op.Outcome == OK && len(op.Or) == 0 {
			fetches[op.Queue] = append(fetches[op.Queue], op)
		}
	}
	for queue, ss := range spans {
		slices.SortFunc(ss, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		c.checkEmpty(queue, ss, fetches[queue])
		c.checkPriority(queue, ss, fetches[queue])
	}
}

// checkEmpty: S17. A fetch that found nothing must not lie within a span.
func (c *checker) checkEmpty(queue string, spans []span, fetches []*Op) {
	longest, k := span{to: -1}, 0
	for _, f := range fetches { // by call
		for ; k < len(spans) && spans[k].from < f.Call; k++ {
			if spans[k].to > longest.to {
				longest = spans[k]
			}
		}
		if len(f.Grants) == 0 && longest.to > f.Return && !c.perhapsLeased(queue, f.Call, f.Return) {
			c.report("S17", "a fetch from %q (%v to %v) found nothing, but job %016x was ready from %v on",
				queue, f.Call, f.Return, longest.nonce, longest.from)
		}
	}
}

// perhapsLeased tells whether a fetch whose answer was lost can hold a job of
// the queue at any time between from and to.
func (c *checker) perhapsLeased(queue string, from, to Time) bool {
	return slices.ContainsFunc(c.lost[queue], func(f *Op) bool {
		return f.Call < to && (f.Return == never || f.Return+f.LeaseFor+c.opt.Grace > from)
	})
}

// checkPriority: S23. A delivery must not lie within the span of a job of
// higher priority.
func (c *checker) checkPriority(queue string, spans []span, fetches []*Op) {
	priorities := map[int][]span{}
	for _, s := range spans {
		priorities[s.priority] = append(priorities[s.priority], s)
	}
	if len(priorities) < 2 {
		return
	}
	for higher, ss := range priorities {
		longest, k := span{to: -1}, 0
		for _, f := range fetches {
			for ; k < len(ss) && ss[k].from < f.Call; k++ {
				if ss[k].to > longest.to {
					longest = ss[k]
				}
			}
			if longest.to <= f.Return || c.perhapsLeased(queue, f.Call, f.Return) {
				continue
			}
			for _, g := range f.Grants {
				j := c.byName[g.Nonce]
				if j != nil && len(j.enqueues) == 1 && j.enqueues[0].Priority < higher {
					c.report("S23", "a fetch from %q (%v to %v) brought job %016x of priority %d, but job %016x of priority %d was ready from %v on",
						queue, f.Call, f.Return, g.Nonce, j.enqueues[0].Priority, longest.nonce, higher, longest.from)
					break
				}
			}
		}
	}
}

// checkBatches: S21.
func (c *checker) checkBatches() {
	batches := map[int][]*Op{}
	for _, op := range c.ops {
		if op.Batch != 0 {
			batches[op.Batch] = append(batches[op.Batch], op)
		}
	}
	for id, ops := range batches {
		var there, gone *Op // an enqueue that happened, one that did not
		applied := never    // when it is known to have happened
		for _, op := range ops {
			if op.Outcome == OK {
				applied = min(applied, op.Return)
			}
			if op.Kind != Enqueue {
				continue
			}
			j := c.byName[op.Nonce]
			switch {
			case j.seen():
				there = op
				for _, g := range j.grants {
					applied = min(applied, g.ret())
				}
			case c.done && !slices.ContainsFunc(j.finishing(), func(o *Op) bool { return o.Outcome != No }):
				gone = op
			}
		}
		if there != nil && gone != nil {
			c.report("S21", "transaction %d: job %016x exists, job %016x does not", id, there.Nonce, gone.Nonce)
		}
		for _, op := range ops {
			if op.Kind != Ack || len(c.leases[op.Lease]) == 0 {
				continue
			}
			j := c.byName[c.leases[op.Lease][0].Nonce]
			if j == nil {
				continue
			}
			back := slices.IndexFunc(j.grants, func(g grant) bool { return g.call() > max(applied, op.Call) })
			if applied != never && back >= 0 {
				c.report("S21", "transaction %d happened, but job %016x, which it finished, was delivered at %v", id, j.nonce, j.grants[back].ret())
			}
			after := slices.ContainsFunc(j.grants, func(g grant) bool { return g.ret() > op.Call })
			other := slices.ContainsFunc(j.finishing(), func(o *Op) bool { return o != op && o.Outcome != No })
			if applied == never && gone != nil && c.done && !after && !other && !c.diedOpenly(j) {
				c.report("S21", "transaction %d: job %016x was not enqueued, but job %016x is finished", id, gone.Nonce, j.nonce)
			}
		}
	}
}

// afterFailure is how long after a failed sync an answer may still be on its way.
const afterFailure = 50_000_000 // 50 ms

// checkFailedSync: S14.
func (c *checker) checkFailedSync() {
	for i, e := range c.events {
		if e.Kind != SyncFailed {
			continue
		}
		until := never
		for _, later := range c.events[i:] {
			if later.Kind == Ready {
				until = later.At
				break
			}
		}
		first, _ := slices.BinarySearchFunc(c.ops, e.At+afterFailure, func(op *Op, t Time) int { return cmp.Compare(op.Call, t+1) })
		for _, op := range c.ops[first:] {
			if op.Call >= until {
				break
			}
			changes := op.Kind != Stats && op.Kind != Peek && (op.Kind != Fetch || len(op.Grants) > 0)
			if changes && op.Outcome == OK && op.Incarnation == e.Incarnation {
				c.report("S14", "a sync failed at %v, but %s, called at %v, was acknowledged", e.At, op.Kind, op.Call)
			}
		}
	}
}
