package state

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
		if free := c.free.jobs[i]; free || j.where == 0 {
			if !c.checkFreeJob(i, j, free) {
				return false
			}
			continue
		}
		if !c.checkJob(i, j) {
			return false
		}
		if c.loads {
			c.learn(i, j)
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
