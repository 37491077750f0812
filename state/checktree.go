package state

// checkPlanted compares all trees of delayed jobs with what they must be: with the
// jobs in order there is but one treap for each of them.
func (c *checker) checkPlanted() bool {
	sortMarks(c.strays)
	logs, walls := c.draw(c.plan, false, c.strays), c.draw(c.plan, true, nil)
	for i := uint32(1); i != 0 && i <= c.queues.last; i++ {
		if q := c.queues.at(i); q.due != logs[i] || q.dueWall != walls[i] {
			return false
		}
	}
	for i, want := range c.plan {
		if j := c.jobs.at(uint32(i)); j.place() == Delayed {
			if want != (twig{j.prev, j.next}) {
				return false
			}
			c.listed[i] = true
		}
	}
	return true
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
