package state

import "pawl/internal/hugepage"

// A plan is what the links of delayed jobs must be, by slot: eight bytes for each
// where a job itself takes 64. Jobs in order of time lie anywhere in memory. So
// where all trees are to be made or compared, they are drawn in a plan first, and
// the jobs are visited afterwards, in the order in which they lie.
type plan []twig

// twig is what a job's prev and next must be. Before its tree is drawn it is the
// job's queue, and which of that queue's two trees.
type twig struct{ left, right uint32 }

func (s *State) newPlan() plan {
	p := make(plan, uint64(s.jobs.last)+1)
	if s.jobs.last >= manyEntries {
		hugepage.Slice(p)
	}
	return p
}

// enter must be called for all jobs of a tree before it is drawn, but for those
// that stray.
func (p plan) enter(slot uint32, j *job) {
	p[slot].left = j.queue
	if j.isWall() {
		p[slot].right = 1
	}
}

// draw makes the trees of the jobs that are delayed by log time, or behind those
// the trees of those by wall time, and returns their roots by queue. The indexes
// must be right. strays are the jobs that stray, by due time. A nil plan is that
// of a state without delayed jobs.
func (s *State) draw(p plan, wall bool, strays []mark) (roots []uint32) {
	roots = make([]uint32, uint64(s.queues.last)+1)
	if p == nil {
		return roots
	}
	edges := make([]edge, len(roots))
	grow := func(slot, queue uint32) {
		e, rank := &edges[queue], s.rank(slot)
		p[slot] = twig{left: e.pop(rank)}
		if n := len(*e); n > 0 {
			p[(*e)[n-1].slot].right = slot
		}
		*e = append(*e, edgeNode{rank, slot})
	}
	stray := func() {
		grow(strays[0].id, s.jobs.at(strays[0].id).queue)
		strays = strays[1:]
	}
	x := s.deadlines
	if wall {
		x = s.walls
	}
	var queues [leafMarks]uint32 // of the jobs of a leaf, 0 for those that are in no such tree
	x.root.eachLeaf(func(l *leaf) bool {
		// A loop that does nothing but read waits for many places at a time.
		for i := range int(l.n) {
			t := p[l.id[i]]
			queues[i] = t.left
			if !wall && t.right != 0 {
				queues[i] = 0
			}
		}
		for i := range int(l.n) {
			for len(strays) > 0 && strays[0].less(l.mark(i)) {
				stray()
			}
			if queues[i] != 0 {
				grow(l.id[i], queues[i])
			}
		}
		return true
	})
	for len(strays) > 0 {
		stray()
	}
	for i := range edges {
		roots[i] = edges[i].root()
	}
	return roots
}

// replant makes the trees of all queues anew from the index, which has all of
// their jobs: for many new ones that is sooner done than plantAll.
func (s *State) replant(wall bool) {
	p := s.newPlan()
	var strays []mark
	each(&s.jobs, func(i uint32, j *job) {
		switch {
		case j.place() != Delayed || j.isWall() != wall:
		case j.strays():
			strays = append(strays, mark{j.whenAt(), i})
		default:
			p.enter(i, j)
		}
	})
	sortMarks(strays)
	for i, root := range s.draw(p, wall, strays) {
		if i > 0 && root != *s.queues.at(uint32(i)).tree(wall) {
			*s.queues.edit(uint32(i)).tree(wall) = root
		}
	}
	each(&s.jobs, func(i uint32, j *job) {
		if j.place() == Delayed && j.isWall() == wall && p[i] != (twig{j.prev, j.next}) {
			j = s.jobs.edit(i)
			j.prev, j.next = p[i].left, p[i].right
		}
	})
}

// strays says that a job that is delayed by log time stands in State.deadlines
// by something else than its due time.
func (j *job) strays() bool {
	if j.place() != Delayed || j.isWall() {
		return false
	}
	at, _ := j.deadline()
	return at != j.whenAt()
}
