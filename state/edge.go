package state

// An edge is the right edge, from the root down, of a treap of delayed jobs that
// come in order. A job that comes has its place there: it takes all of lower rank
// below it to its left. So a treap is made, or followed, in one pass.
type edge []edgeNode

type edgeNode struct {
	rank uint64
	slot uint32
	next uint32 // to its right
}

// pop takes what is of lower rank, or all, off the edge, and returns its root.
// right says that each of them was to the right of the one before it.
func (e *edge) pop(rank uint64, all bool) (root uint32, right bool) {
	nodes := *e
	right = true
	for n := len(nodes); n > 0 && (all || nodes[n-1].rank < rank); n-- {
		right = right && nodes[n-1].next == root
		root = nodes[n-1].slot
		nodes = nodes[:n-1]
	}
	*e = nodes
	return root, right
}

// grow adds the next job to a treap that is made.
func (s *State) grow(e *edge, slot uint32) {
	j, rank := s.jobs.edit(slot), s.rank(slot)
	j.prev, _ = e.pop(rank, false)
	j.next = 0
	if n := len(*e); n > 0 {
		s.jobs.edit((*e)[n-1].slot).next = slot
	}
	*e = append(*e, edgeNode{rank: rank, slot: slot})
}

// root is that of the treap.
func (e edge) root() uint32 {
	if len(e) == 0 {
		return 0
	}
	return e[0].slot
}

// plantAll puts delayed jobs, in order of due time, into the trees of their
// queues, those by log time or those by wall time.
//
// Blelloch and Reid-Miller, "Fast Set Operations Using Treaps", SPAA 1998.
func (s *State) plantAll(sorted []mark, wall bool) {
	var edges []edge
	var queues []uint32        // of the edges
	edgeOf := map[uint32]int{} // by queue
	queue, at := uint32(0), 0  // of the job before: neighbours are mostly of one queue
	for _, m := range sorted {
		if q := s.jobs.at(m.id).queue; q != queue {
			i, met := edgeOf[q]
			if !met {
				i = len(edges)
				edgeOf[q] = i
				edges, queues = append(edges, nil), append(queues, q)
			}
			queue, at = q, i
		}
		s.grow(&edges[at], m.id)
	}
	for i, e := range edges {
		root := s.queues.edit(queues[i]).tree(wall)
		*root = s.unite(*root, e.root())
	}
}

// unite makes one tree of two. For m jobs and n more it takes
// O(m log(n/m + 1)) steps.
func (s *State) unite(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return a | b
	}
	if s.rank(a) < s.rank(b) {
		a, b = b, a
	}
	j := s.jobs.edit(a)
	below, above := s.split(b, mark{j.whenAt(), a})
	j.prev = s.unite(j.prev, below)
	j.next = s.unite(j.next, above)
	return a
}

// replant makes the trees of all queues anew from the index, which has all of
// their jobs: for many new ones that is sooner done than plantAll.
func (s *State) replant(wall bool) {
	edges := make([]edge, uint64(s.queues.last)+1)
	var strays []mark
	if !wall {
		each(&s.jobs, func(i uint32, j *job) {
			if j.strays() {
				strays = append(strays, mark{j.whenAt(), i})
			}
		})
		sortMarks(strays)
	}
	s.eachDue(wall, strays, func(j dueJob) bool {
		s.grow(&edges[j.queue], j.slot)
		return true
	})
	for i := uint32(1); i != 0 && i <= s.queues.last; i++ {
		if root := edges[i].root(); root != *s.queues.at(i).tree(wall) {
			*s.queues.edit(i).tree(wall) = root
		}
	}
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

// dueJob is what eachDue says of a job.
type dueJob struct{ slot, queue, prev, next uint32 }

// eachDue calls f for all jobs that are delayed by log time or by wall time, in
// order of due time and slot, until it returns false. The indexes must be right.
// strays are the jobs that stray, in that order.
func (s *State) eachDue(wall bool, strays []mark, f func(dueJob) bool) {
	x := s.deadlines
	if wall {
		x = s.walls
	}
	var some [leafMarks]dueJob
	x.root.eachLeaf(func(l *leaf) bool {
		// Neighbours lie anywhere in memory: a loop that does nothing but read
		// them waits for many at a time.
		for i := range int(l.n) {
			id := l.id[i]
			j := s.jobs.at(id)
			some[i] = dueJob{queue: j.queue, prev: j.prev, next: j.next}
			if wall || j.place() == Delayed && !j.isWall() && j.whenAt() == l.at[i] {
				some[i].slot = id
			}
		}
		for i := range int(l.n) {
			for len(strays) > 0 && strays[0].less(l.mark(i)) {
				if !f(s.dueJob(strays[0].id)) {
					return false
				}
				strays = strays[1:]
			}
			if some[i].slot != 0 && !f(some[i]) {
				return false
			}
		}
		return true
	})
	for _, m := range strays {
		if !f(s.dueJob(m.id)) {
			return
		}
	}
}

func (s *State) dueJob(slot uint32) dueJob {
	j := s.jobs.at(slot)
	return dueJob{slot, j.queue, j.prev, j.next}
}
