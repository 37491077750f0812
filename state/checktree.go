package state

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
