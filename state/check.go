package state

import "fmt"

// Check says what is wrong with the state, nil when all lists, indexes and
// counts agree. It looks at everything.
func (s *State) Check() error {
	if err := s.checkTables(false); err != nil {
		return err
	}
	return s.checkIndexes()
}

// A checker follows every reference of the tables. It trusts none: the first
// that leads nowhere, to a free entry, or a second time to the same entry ends
// the check.
type checker struct {
	*State
	err error

	listed  []bool // jobs that were met in a list or tree
	strays  []mark // jobs that stray, by due time
	planted bool   // the trees of delayed jobs were found right
	extra   []bool // extras that a job names
	level   []bool // levels that a queue names
	setting []bool
	grouped []bool // groups that were met in a queue's chain
	free    struct{ queues, extras, levels, groups, claims, reasons, policies, settings []bool }

	groupRefs, reasonRefs, policyRefs, reasonsOf, claimsOf, claimRefs []uint32
	sums                                                              []queueCounts
}

// queueCounts are what the jobs of a queue add up to.
type queueCounts struct {
	in    [5]uint32
	bytes uint64
}

func (c *checker) fail(format string, args ...any) bool {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	return false
}

// checkTables checks all that the tables say of each other. fill lets it make the
// indexes of the jobs' times on the way, which helps.
func (s *State) checkTables(fill bool) error {
	c := &checker{State: s}
	plant := func() bool { return true }
	if fill {
		plant = c.checkPlanted
	}
	for _, step := range []func() bool{
		c.checkRoot, c.checkFree, c.checkJobs, plant, c.checkClaims, c.checkGroups, c.checkShared,
		c.checkQueues, c.checkAllListed, c.checkIdle, c.checkCrons,
	} {
		if !step() {
			return c.err
		}
	}
	return nil
}

func (c *checker) checkRoot() bool {
	return c.now >= 0 && c.now <= MaxMillis && c.offset >= -MaxMillis && c.offset <= MaxMillis ||
		c.fail("log time %d, offset %d", c.now, c.offset)
}

// checkFree follows the lists of free entries.
func (c *checker) checkFree() bool {
	jobs, ok := freeEntries(c, "jobs", &c.jobs)
	if !ok {
		return false
	}
	for i, free := range jobs {
		if i == 0 {
			continue
		}
		if j := c.jobs.at(uint32(i)); free != (j.where == 0) {
			return c.fail("job %d: free %v, place %d", i, free, j.where)
		} else if free && *j != (job{born: uint64(j.reuse()), next: j.next}) {
			return c.fail("job %d is free and not empty", i)
		}
	}
	if c.free.queues, ok = freeEntries(c, "queues", &c.queues); !ok {
		return false
	}
	if c.free.extras, ok = freeEntries(c, "extras", &c.extras); !ok {
		return false
	}
	if c.free.levels, ok = freeEntries(c, "levels", &c.levels); !ok {
		return false
	}
	if c.free.groups, ok = freeEntries(c, "groups", &c.groups); !ok {
		return false
	}
	if c.free.claims, ok = freeEntries(c, "claims", &c.claims); !ok {
		return false
	}
	if c.free.reasons, ok = freeEntries(c, "reasons", &c.reasons); !ok {
		return false
	}
	if c.free.policies, ok = freeEntries(c, "policies", &c.policies); !ok {
		return false
	}
	if c.free.settings, ok = freeEntries(c, "settings", &c.settings); !ok {
		return false
	}
	return true
}

// freeEntries says which entries of a table are free. A free entry is zero but
// for its link, and for what a job's slot remembers.
func freeEntries[T comparable, P entry[T]](c *checker, name string, s *slab[T, P]) (free []bool, ok bool) {
	free = make([]bool, uint64(s.last)+1)
	n := uint32(0)
	for i := s.free; i != 0; i = *P(s.at(i)).link() {
		if !s.has(i) || free[i] {
			return nil, c.fail("%s: free list leads to %d", name, i)
		}
		free[i] = true
		n++
		if _, isJob := any(*s.at(i)).(job); isJob {
			continue
		}
		e := *s.at(i)
		*P(&e).link() = 0
		if e != *new(T) {
			return nil, c.fail("%s: entry %d is free and not empty", name, i)
		}
	}
	if n != s.last-s.used {
		return nil, c.fail("%s: %d free entries, want %d", name, n, s.last-s.used)
	}
	return free, true
}

// inUse reports whether i is an entry that is not free.
func inUse(free []bool, i uint32) bool {
	return i != 0 && uint64(i) < uint64(len(free)) && !free[i]
}

// checkJobs checks each job by itself, and counts what it refers to.
func (c *checker) checkJobs() bool {
	c.listed = make([]bool, uint64(c.jobs.last)+1)
	c.extra = make([]bool, len(c.free.extras))
	c.claimRefs = make([]uint32, len(c.free.claims))
	c.groupRefs = make([]uint32, len(c.free.groups))
	c.reasonRefs = make([]uint32, len(c.free.reasons))
	c.policyRefs = make([]uint32, len(c.free.policies))
	c.sums = make([]queueCounts, len(c.free.queues))
	used := uint32(0)
	for i := uint32(1); i != 0 && i <= c.jobs.last; i++ {
		j := c.jobs.at(i)
		if j.where == 0 {
			continue
		}
		if !c.checkJob(i, j) {
			return false
		}
		if j.strays() {
			c.strays = append(c.strays, mark{j.whenAt(), i})
		}
		n := &c.sums[j.queue]
		n.in[j.place()]++
		if j.place() != Dead {
			n.bytes += uint64(j.size())
		}
	}
	for i := range c.extra {
		if c.extra[i] {
			used++
		}
	}
	return used == c.extras.used || c.fail("%d extras that no job has", c.extras.used-used)
}

func (c *checker) checkJob(i uint32, j *job) bool {
	p := j.place()
	switch {
	case p < Ready || p > Dead || j.where&^(placeBits|inGroup|dueWall) != 0:
		return c.fail("job %d: place %d", i, j.where)
	case !inUse(c.free.queues, j.queue):
		return c.fail("job %d: queue %d", i, j.queue)
	case j.length < uint32(j.overhead):
		return c.fail("job %d: overhead %d of %d", i, j.overhead, j.length)
	case j.isWall() && p != Delayed:
		return c.fail("job %d: %v by wall time", i, p)
	case p == Dead && j.expiresAt() != 0:
		return c.fail("job %d: dead with a TTL", i)
	case p == Delayed && j.whenAt() == 0:
		return c.fail("job %d: delayed until 0", i)
	}
	switch n := j.policy(); {
	case n == 0:
	case n == ownPolicy:
		if j.extra == 0 {
			return c.fail("job %d: no policy of its own", i)
		}
	case !inUse(c.free.policies, uint32(n)):
		return c.fail("job %d: policy %d", i, n)
	default:
		c.policyRefs[n]++
	}
	if j.extra == 0 {
		return !j.joined() || c.fail("job %d: in no group", i)
	}
	if !inUse(c.free.extras, j.extra) || c.extra[j.extra] {
		return c.fail("job %d: extra %d", i, j.extra)
	}
	c.extra[j.extra] = true
	return c.checkExtra(i, j, c.extras.at(j.extra))
}

func (c *checker) checkExtra(i uint32, j *job, x *extra) bool {
	switch {
	case *x == extra{}:
		return c.fail("job %d: extra that says nothing", i)
	case x.nonce != Nonce{} && j.place() != Leased:
		return c.fail("job %d: lease while %v", i, j.place())
	case (x.tries != 0 || x.backoff != 0 || x.backoffMax != 0) != (j.policy() == ownPolicy):
		return c.fail("job %d: two policies, or none", i)
	case x.reason != 0 && (!inUse(c.free.reasons, x.reason) || c.reasons.at(x.reason).queue != j.queue):
		return c.fail("job %d: reason %d", i, x.reason)
	case x.claim != 0 && !inUse(c.free.claims, x.claim):
		return c.fail("job %d: claim %d", i, x.claim)
	case x.group != 0 && !inUse(c.free.groups, x.group):
		return c.fail("job %d: group %d", i, x.group)
	case x.group == 0 && j.joined():
		return c.fail("job %d: in no group", i)
	}
	if x.reason != 0 {
		c.reasonRefs[x.reason]++
	}
	serial := c.queues.at(j.queue).serial
	if x.claim != 0 {
		c.claimRefs[x.claim]++
		l := c.claims.at(x.claim)
		if l.slot != i || l.queue != j.queue || l.serial != serial || l.id != j.id(i) || j.place() != Dead && !l.held {
			return c.fail("job %d: claim %d is another's", i, x.claim)
		}
	}
	if x.group == 0 {
		return true
	}
	c.groupRefs[x.group]++
	g := c.groups.at(x.group)
	head := g.head == i
	switch {
	case g.serial != serial:
		return c.fail("job %d: group %d of another queue", i, x.group)
	case head != (j.joined() && (head || j.place() != Ready)):
		return c.fail("job %d: head of group %d", i, x.group)
	case (j.place() == Ready || j.place() == Leased) != j.joined() && !(head && j.place() == Delayed):
		return c.fail("job %d: %v, in group %v", i, j.place(), j.joined())
	}
	return true
}

func (c *checker) checkClaims() bool {
	c.claimsOf = make([]uint32, len(c.free.queues))
	for i := uint32(1); i != 0 && i <= c.claims.last; i++ {
		if c.free.claims[i] {
			continue
		}
		l := c.claims.at(i)
		switch {
		case l.serial == 0 || l.serial > c.serial || l.key == Key{} || l.next != 0 || !c.queues.has(l.queue):
			return c.fail("claim %d of nothing", i)
		case (l.slot != 0) != (c.claimRefs[i] == 1) || c.claimRefs[i] > 1:
			return c.fail("claim %d of slot %d, named %d times", i, l.slot, c.claimRefs[i])
		case l.slot == 0 && !l.held:
			return c.fail("claim %d of a job that is gone is not held", i)
		}
		if l.held && c.queues.at(l.queue).serial == l.serial {
			c.claimsOf[l.queue]++
		}
	}
	return true
}

func (c *checker) checkGroups() bool {
	for i := uint32(1); i != 0 && i <= c.groups.last; i++ {
		if c.free.groups[i] {
			continue
		}
		g := c.groups.at(i)
		switch {
		case g.serial == 0 || g.key == Key{}:
			return c.fail("group %d of nothing", i)
		case g.refs == 0 || g.refs != c.groupRefs[i]:
			return c.fail("group %d: %d references, want %d", i, g.refs, c.groupRefs[i])
		case g.head == 0 && g.first != 0:
			return c.fail("group %d has no head", i)
		case (g.first == 0) != (g.last == 0):
			return c.fail("group %d: ends %d and %d", i, g.first, g.last)
		}
		if g.head == 0 {
			continue
		}
		if !c.jobs.has(g.head) {
			return c.fail("group %d: head %d", i, g.head)
		}
		if j := c.jobs.at(g.head); !j.joined() || c.extraOf(j).group != i {
			return c.fail("group %d: head %d is not in it", i, g.head)
		}
	}
	return true
}

// checkShared checks what jobs share: reasons and policies.
func (c *checker) checkShared() bool {
	c.reasonsOf = make([]uint32, len(c.free.queues))
	for i := uint32(1); i != 0 && i <= c.reasons.last; i++ {
		if c.free.reasons[i] {
			continue
		}
		r := c.reasons.at(i)
		if r.text == "" || r.refs == 0 || r.refs != c.reasonRefs[i] || r.next != 0 {
			return c.fail("reason %d: %d references, want %d", i, r.refs, c.reasonRefs[i])
		}
		c.reasonsOf[r.queue]++
	}
	for i := uint32(1); i != 0 && i <= c.policies.last; i++ {
		if c.free.policies[i] {
			continue
		}
		p := c.policies.at(i)
		if p.policyValue == (policyValue{}) || p.refs == 0 || p.refs != c.policyRefs[i] || p.next != 0 {
			return c.fail("policy %d: %d references, want %d", i, p.refs, c.policyRefs[i])
		}
	}
	return true
}

func (c *checker) checkQueues() bool {
	c.level = make([]bool, len(c.free.levels))
	c.setting = make([]bool, len(c.free.settings))
	c.grouped = make([]bool, len(c.free.groups))
	for i := uint32(1); i != 0 && i <= c.queues.last; i++ {
		if !c.free.queues[i] && !c.checkQueue(i, c.queues.at(i)) {
			return false
		}
	}
	return true
}

func (c *checker) checkQueue(i uint32, q *queue) bool {
	n := &c.sums[i]
	switch {
	case !ValidQueueKey([]byte(q.key)) || q.serial == 0 || q.serial > c.serial:
		return c.fail("queue %d: key %q, serial %d", i, q.key, q.serial)
	case q.ready != n.in[Ready] || q.delayed != n.in[Delayed] || q.leased != n.in[Leased] || q.dead != n.in[Dead] || q.bytes != n.bytes:
		return c.fail("queue %d: counts %d %d %d %d %d, want %v", i, q.ready, q.delayed, q.leased, q.dead, q.bytes, n)
	case q.reasons != c.reasonsOf[i]:
		return c.fail("queue %d: %d reasons, want %d", i, q.reasons, c.reasonsOf[i])
	case q.claims != c.claimsOf[i]:
		return c.fail("queue %d: %d claims, want %d", i, q.claims, c.claimsOf[i])
	}
	if q.settings != 0 {
		if !inUse(c.free.settings, q.settings) || c.setting[q.settings] {
			return c.fail("queue %d: settings %d", i, q.settings)
		}
		c.setting[q.settings] = true
		// A rate whose interval is 0 is none that normal gives.
		if t := c.settings.at(q.settings); t.Settings == (Settings{}) || t.Settings != t.normal() || t.next != 0 {
			return c.fail("queue %d: settings %v", i, t.Settings)
		}
	}
	return c.checkReady(i, q) && c.checkWaiting(i, q) &&
		(c.planted || c.checkTree(i, q.due, treeBounds{}, 0) && c.checkTree(i, q.dueWall, treeBounds{wall: true}, 0)) &&
		c.checkList(i, q.leasedFirst, q.leasedLast, func(_ uint32, j *job) bool { return j.place() == Leased }) &&
		c.checkList(i, q.deadFirst, q.deadLast, func(_ uint32, j *job) bool { return j.place() == Dead }) &&
		c.checkGrave(i, q)
}

func (c *checker) checkGrave(i uint32, q *queue) bool {
	if at := c.grave(q); q.graveAt != at {
		return c.fail("queue %d: dead jobs to go at %d, want %d", i, q.graveAt, at)
	}
	return true
}

func (c *checker) checkReady(i uint32, q *queue) bool {
	for n, above := q.level, int(1<<7); n != 0; n = c.levels.at(n).next {
		if !inUse(c.free.levels, n) || c.level[n] {
			return c.fail("queue %d: level %d", i, n)
		}
		c.level[n] = true
		l := c.levels.at(n)
		if int(l.priority) >= above || l.first == 0 {
			return c.fail("queue %d: level of priority %d is out of order or empty", i, l.priority)
		}
		above = int(l.priority)
		if !c.checkList(i, l.first, l.last, func(slot uint32, j *job) bool {
			return j.place() == Ready && !c.waits(slot, j) && j.priority == l.priority
		}) {
			return false
		}
	}
	return true
}

func (c *checker) checkWaiting(i uint32, q *queue) bool {
	prev := uint32(0)
	for n := q.groupFirst; n != 0; n = c.groups.at(n).next {
		if !inUse(c.free.groups, n) || c.grouped[n] {
			return c.fail("queue %d: group %d", i, n)
		}
		c.grouped[n] = true
		g := c.groups.at(n)
		if g.prev != prev || g.serial != q.serial || g.first == 0 {
			return c.fail("queue %d: group %d is not among its neighbours", i, n)
		}
		prev = n
		if !c.checkList(i, g.first, g.last, func(slot uint32, j *job) bool {
			return j.place() == Ready && c.waits(slot, j) && c.extraOf(j).group == n
		}) {
			return false
		}
	}
	return q.groupLast == prev || c.fail("queue %d: last group %d, want %d", i, q.groupLast, prev)
}

// meet notes that a job of queue i stands in a list, which must be its only one.
func (c *checker) meet(i, slot uint32) bool {
	if !c.jobs.has(slot) || c.listed[slot] || c.jobs.at(slot).where == 0 || c.jobs.at(slot).queue != i {
		return c.fail("queue %d: a list leads to job %d", i, slot)
	}
	c.listed[slot] = true
	return true
}

func (c *checker) checkList(i, first, last uint32, belongs func(uint32, *job) bool) bool {
	prev := uint32(0)
	for slot := first; slot != 0; slot = c.jobs.at(slot).next {
		if !c.meet(i, slot) {
			return false
		}
		if j := c.jobs.at(slot); j.prev != prev || !belongs(slot, j) {
			return c.fail("queue %d: job %d is in a list of others", i, slot)
		}
		prev = slot
	}
	return last == prev || c.fail("queue %d: a list ends with job %d, want %d", i, last, prev)
}

// checkPlanted fills the indexes of times from the jobs, which are right each by
// itself, and compares the trees of delayed jobs with what they must be: with the
// jobs in order there is but one treap for each queue, and to follow it along its
// right edge takes one look at each job. checkTree is to say what is wrong where
// something is.
func (c *checker) checkPlanted() bool {
	c.fillTimes()
	sortMarks(c.strays)
	c.planted = c.checkPlantedBy(false) && c.checkPlantedBy(true)
	if !c.planted {
		clear(c.listed)
	}
	return true
}

func (c *checker) checkPlantedBy(wall bool) bool {
	strays := c.strays
	if wall {
		strays = nil
	}
	edges := make([]edge, uint64(c.queues.last)+1)
	ok := true
	c.eachDue(wall, strays, func(j dueJob) bool {
		e, rank := &edges[j.queue], c.rank(j.slot)
		left, right := e.pop(rank, false)
		*e = append(*e, edgeNode{rank, j.slot, j.next})
		c.listed[j.slot] = true
		ok = right && j.prev == left
		return ok
	})
	for i := uint32(1); ok && i != 0 && i <= c.queues.last; i++ {
		root, right := edges[i].pop(0, true)
		ok = right && *c.queues.at(i).tree(wall) == root
	}
	return ok
}

// maxTreeDepth is far beyond what a treap of 2^32 jobs comes to by chance.
const maxTreeDepth = 512

// treeBounds are what all of a tree of delayed jobs must lie between.
type treeBounds struct {
	wall       bool // due by wall time
	above      mark // the zero mark bounds nothing: no job is due at 0
	below      mark // counts if isBelow
	isBelow    bool
	rankAtMost uint64 // counts if isRanked
	isRanked   bool
}

// checkTree checks that a tree of delayed jobs is in order, and a heap.
func (c *checker) checkTree(i, slot uint32, in treeBounds, depth int) bool {
	if slot == 0 {
		return true
	}
	if !c.meet(i, slot) {
		return false
	}
	j := c.jobs.at(slot)
	m, rank := mark{j.whenAt(), slot}, c.rank(slot)
	if in.isRanked && rank > in.rankAtMost {
		return c.fail("queue %d: tree of delayed jobs is no heap at job %d", i, slot)
	}
	if j.place() != Delayed || j.isWall() != in.wall || depth > maxTreeDepth || !in.above.less(m) || in.isBelow && !m.less(in.below) {
		return c.fail("queue %d: tree of delayed jobs is out of order at job %d", i, slot)
	}
	left, right := in, in
	left.rankAtMost, left.isRanked = rank, true
	right.rankAtMost, right.isRanked = rank, true
	left.below, left.isBelow = m, true
	right.above = m
	return c.checkTree(i, j.prev, left, depth+1) && c.checkTree(i, j.next, right, depth+1)
}

// checkAllListed checks that no job and no shared entry is outside all lists.
func (c *checker) checkAllListed() bool {
	count := func(all []bool) (n uint32) {
		for _, met := range all {
			if met {
				n++
			}
		}
		return n
	}
	switch {
	case count(c.listed) != c.jobs.used:
		return c.fail("%d jobs in lists, want %d", count(c.listed), c.jobs.used)
	case count(c.level) != c.levels.used:
		return c.fail("%d levels in queues, want %d", count(c.level), c.levels.used)
	case count(c.setting) != c.settings.used:
		return c.fail("%d settings of queues, want %d", count(c.setting), c.settings.used)
	}
	for i := uint32(1); i != 0 && i <= c.groups.last; i++ {
		if g := c.groups.at(i); !c.free.groups[i] && (g.first != 0) != c.grouped[i] {
			return c.fail("group %d with waiting jobs is not in its queue's list, or the other way round", i)
		} else if !c.free.groups[i] && g.first == 0 && (g.prev != 0 || g.next != 0) {
			return c.fail("group %d without waiting jobs has neighbours", i)
		}
	}
	return true
}

func (c *checker) checkIdle() bool {
	n, prev, used := 0, uint32(0), Millis(0)
	met := make([]bool, len(c.free.queues))
	for i := c.idleFirst; i != 0; i = c.queues.at(i).idleNext {
		if !inUse(c.free.queues, i) || met[i] {
			return c.fail("list of idle queues leads to %d", i)
		}
		met[i] = true
		q := c.queues.at(i)
		if q.idlePrev != prev || q.usedAt < used || q.usedAt > c.now {
			return c.fail("queue %d is not in order in the list of idle queues", i)
		}
		prev, used = i, q.usedAt
		n++
	}
	if c.idleLast != prev {
		return c.fail("list of idle queues ends with %d, want %d", c.idleLast, prev)
	}
	for i := uint32(1); i != 0 && i <= c.queues.last; i++ {
		if c.free.queues[i] {
			continue
		}
		q := c.queues.at(i)
		if q.idle != c.isIdle(q) || q.idle != met[i] || !q.idle && (q.usedAt != 0 || q.idlePrev != 0 || q.idleNext != 0) {
			return c.fail("queue %d: idle %v, in the list %v", i, q.idle, met[i])
		}
	}
	return true
}

// checkCrons checks crons and metas, whose free entries have no name.
func (c *checker) checkCrons() bool {
	crons, metas := uint32(0), uint32(0)
	each(&c.crons, func(i uint32, e *cron) {
		if e.Name != "" && e.Namespace != "" && e.next == 0 {
			crons++
		}
	})
	each(&c.metas, func(i uint32, e *meta) {
		if e.key != "" && e.next == 0 {
			metas++
		}
	})
	return c.checkNamed("crons", crons, c.crons.used, c.crons.last, c.crons.free, func(i uint32) (uint32, bool) {
		e := c.crons.at(i)
		return e.next, e.Name == ""
	}) && c.checkNamed("metas", metas, c.metas.used, c.metas.last, c.metas.free, func(i uint32) (uint32, bool) {
		e := c.metas.at(i)
		return e.next, e.key == ""
	})
}

func (c *checker) checkNamed(name string, named, used, last, free uint32, link func(uint32) (next uint32, empty bool)) bool {
	n := uint32(0)
	for i := free; i != 0; n++ {
		if i > last || n >= last {
			return c.fail("%s: free list leads to %d", name, i)
		}
		next, empty := link(i)
		if !empty {
			return c.fail("%s: entry %d is free and not empty", name, i)
		}
		i = next
	}
	return named == used && used+n == last || c.fail("%s: %d and %d free, want %d of %d", name, named, n, used, last)
}

// checkIndexes checks that maps, indexes and sums say what the tables say, which
// are right.
func (s *State) checkIndexes() error {
	c := &checker{State: s}
	var jobs [5]uint64
	var bytes uint64
	var deadlines, walls, windows, pauses, graves, fires int
	lives := map[uint32]Live{}
	has := func(x index, n *int, what string, at Millis, i uint32) {
		*n++
		if !x.has(at, i) {
			c.fail("%s %d at %d is not in its index", what, i, at)
		}
	}
	each(&s.jobs, func(i uint32, j *job) {
		if j.where == 0 {
			return
		}
		jobs[j.place()]++
		if j.place() != Dead {
			bytes += uint64(j.size())
		}
		l := lives[j.generation]
		lives[j.generation] = Live{j.generation, l.Jobs + 1, l.Bytes + uint64(j.length)}
		if at, ok := j.deadline(); ok {
			has(s.deadlines, &deadlines, "job", at, i)
		}
		if j.isWall() {
			has(s.walls, &walls, "job", j.whenAt(), i)
		}
	})
	each(&s.claims, func(i uint32, l *claim) {
		if l.serial == 0 || !l.held {
			return
		}
		if s.claimOf[l.name()] != i {
			c.fail("claim %d is not the one of its key", i)
		}
		if !s.alive(l) {
			has(s.windows, &windows, "claim", l.until, i)
		}
	})
	each(&s.queues, func(i uint32, q *queue) {
		if q.serial == 0 {
			return
		}
		if s.queueOf[q.key] != i {
			c.fail("queue %d is not the one of its key", i)
		}
		if q.pausedUntil != 0 && q.pausedUntil != Forever {
			has(s.pauses, &pauses, "queue", q.pausedUntil, i)
		}
		if q.graveAt != 0 {
			has(s.graves, &graves, "queue", q.graveAt, i)
		}
	})
	each(&s.groups, func(i uint32, g *group) {
		if g.serial != 0 && s.groupOf[queueText{g.serial, g.key}] != i {
			c.fail("group %d is not the one of its key", i)
		}
	})
	each(&s.reasons, func(i uint32, r *reason) {
		if r.refs != 0 && s.reasonOf[reasonText{r.queue, r.text}] != i {
			c.fail("reason %d is not the one of its text", i)
		}
	})
	each(&s.policies, func(i uint32, p *policy) {
		if p.refs != 0 && s.policyOf[p.policyValue] != i {
			c.fail("policy %d is not the one of its values", i)
		}
	})
	each(&s.crons, func(i uint32, e *cron) {
		if e.Name == "" {
			return
		}
		if s.cronOf[e.key()] != i {
			c.fail("cron %d is not the one of its name", i)
		}
		if e.Next != 0 {
			has(s.fires, &fires, "cron", e.Next, i)
		}
	})
	each(&s.metas, func(i uint32, m *meta) {
		if m.key != "" && s.metaOf[m.key] != i {
			c.fail("value %d is not the one of its key", i)
		}
	})
	c.checkSizes([]size{
		{"deadlines", s.deadlines.len(), deadlines},
		{"due wall times", s.walls.len(), walls},
		{"windows", s.windows.len(), windows},
		{"pauses", s.pauses.len(), pauses},
		{"graves", s.graves.len(), graves},
		{"crons that fire", s.fires.len(), fires},
		{"generations", len(s.lives), len(lives)},
		{"payload bytes", int(s.bytes), int(bytes)},
	})
	if c.err == nil {
		c.err = s.checkNames()
	}
	if jobs != s.jobsIn {
		c.fail("jobs by place %v, want %v", s.jobsIn, jobs)
	}
	for generation, l := range lives {
		if s.lives[generation] != l {
			c.fail("generation %d: %v, want %v", generation, s.lives[generation], l)
		}
	}
	return c.err
}

// checkNames checks that no two entries of a table have one name: the maps would
// hold one of them only. It is all that the maps and indexes can be wrong about
// after reindex has made them from tables that are right.
func (s *State) checkNames() error {
	c := &checker{State: s}
	held := 0
	each(&s.claims, func(_ uint32, l *claim) {
		if l.held {
			held++
		}
	})
	serials := make(map[uint64]bool, len(s.queueOf))
	each(&s.queues, func(_ uint32, q *queue) {
		if q.serial != 0 {
			serials[q.serial] = true
		}
	})
	c.checkSizes([]size{
		{"held keys", len(s.claimOf), held},
		{"queues", len(s.queueOf), int(s.queues.used)},
		{"serials", len(serials), int(s.queues.used)},
		{"groups", len(s.groupOf), int(s.groups.used)},
		{"reasons", len(s.reasonOf), int(s.reasons.used)},
		{"policies", len(s.policyOf), int(s.policies.used)},
		{"crons", len(s.cronOf), int(s.crons.used)},
		{"values", len(s.metaOf), int(s.metas.used)},
	})
	return c.err
}

type size struct {
	what      string
	got, want int
}

func (c *checker) checkSizes(all []size) {
	for _, n := range all {
		if n.got != n.want {
			c.fail("%d %s in the index, want %d", n.got, n.what, n.want)
		}
	}
}
