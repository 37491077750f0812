package state

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
