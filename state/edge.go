package state

// An edge is the right edge, from the root down, of a treap of delayed jobs that
// come in order. A job that comes has its place there: it takes all of lower rank
// below it to its left. So a treap is made, or followed, in one pass.
type edge []edgeNode

type edgeNode struct {
	rank uint64
	slot uint32
}

// pop takes what is of lower rank off the edge, and returns its root.
func (e *edge) pop(rank uint64) (root uint32) {
	nodes := *e
	for n := len(nodes); n > 0 && nodes[n-1].rank < rank; n-- {
		root = nodes[n-1].slot
		nodes = nodes[:n-1]
	}
	*e = nodes
	return root
}

// grow adds the next job to a treap that is made.
func (s *State) grow(e *edge, slot uint32) {
	j, rank := s.jobs.edit(slot), s.rank(slot)
	j.prev = e.pop(rank)
	j.next = 0
	if n := len(*e); n > 0 {
		s.jobs.edit((*e)[n-1].slot).next = slot
	}
	*e = append(*e, edgeNode{rank, slot})
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
