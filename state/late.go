package state

// A replay of a long log enqueues jobs by the hundred thousand, and each delayed
// one of them would look for its place in a tree and in an index of all that wait:
// some thirty steps through memory. So a state that replays lets such jobs be late,
// in no tree and in no index of times, until something asks for the order, and
// then brings all of them in at once, sorted. What comes out is the same.

// late is a bit of job.where that no snapshot has: the job is in State.late, and
// in nothing that is ordered by time.
const late = 1 << 5

// lateMost bounds how many jobs are late at a time, and the memory to sort them.
// Tests make it small.
var lateMost = 1 << 20

// BeginReplay says that many records will be applied before anything is asked
// for but Counts. EndReplay must follow.
func (s *State) BeginReplay() { s.replaying = true }

// EndReplay says that from now on all may be asked for again. After BeginReplay,
// some records and EndReplay the state is what it would be with the records alone.
func (s *State) EndReplay() {
	s.orderLate()
	s.late, s.replaying = nil, false
}

// putOff says that a job, which has just been brought to its place, is late: its
// due time and its deadline are seen to by orderLate.
func (s *State) putOff(slot uint32, j *job) bool {
	if !s.replaying {
		return false
	}
	switch j.place() {
	case Delayed:
	case Ready:
		if _, ok := j.deadline(); !ok {
			return false
		}
	default:
		return false
	}
	if len(s.late) == lateMost {
		s.orderLate()
	}
	j.where |= late
	s.late = append(s.late, slot)
	return true
}

// orderLate brings all late jobs to where they belong.
func (s *State) orderLate() {
	if len(s.late) == 0 {
		return
	}
	var logs, walls, ends []mark // due by log time, by wall time; deadlines that are not such due times
	lapses := false
	for _, slot := range s.late {
		// A job that left its place is late no more; one that came back may stand
		// here twice.
		if s.jobs.at(slot).where&late == 0 {
			continue
		}
		j := s.jobs.edit(slot)
		j.where &^= late
		at, timed := j.deadline()
		isDue := false
		switch {
		case j.place() != Delayed:
		case j.isWall():
			walls = append(walls, mark{j.whenAt(), slot})
		default:
			logs = append(logs, mark{j.whenAt(), slot})
			isDue = at == j.whenAt()
			lapses = lapses || !isDue
		}
		if timed && !isDue {
			ends = append(ends, mark{at, slot})
		}
	}
	s.late = s.late[:0]
	sortMarks(logs)
	sortMarks(walls)
	sortMarks(ends)
	s.plantAll(logs, false)
	s.plantAll(walls, true)
	s.walls.addAll(walls)
	s.deadlines.addAll(ends)
	if lapses {
		due := logs[:0]
		for _, m := range logs {
			if at, _ := s.jobs.at(m.id).deadline(); at == m.at {
				due = append(due, m)
			}
		}
		logs = due
	}
	s.deadlines.addAll(logs)
}

// plantAll puts delayed jobs, in order of due time, into the trees of their
// queues, those by log time or those by wall time. From the sorted jobs of a queue
// a treap is made in one pass, along its right edge; it is then united with the
// one that is there.
//
// Blelloch and Reid-Miller, "Fast Set Operations Using Treaps", SPAA 1998.
func (s *State) plantAll(sorted []mark, wall bool) {
	var edges []edge           // of each queue met
	edgeOf := map[uint32]int{} // by queue
	queue, at := uint32(0), 0  // of the job before: neighbours are mostly of one queue
	for _, m := range sorted {
		j := s.jobs.edit(m.id)
		if j.queue != queue {
			i, met := edgeOf[j.queue]
			if !met {
				i = len(edges)
				edgeOf[j.queue] = i
				edges = append(edges, edge{queue: j.queue})
			}
			queue, at = j.queue, i
		}
		e := &edges[at]
		below := uint32(0)
		rank := s.rank(m.id)
		for n := len(e.nodes); n > 0 && e.nodes[n-1].rank < rank; n-- {
			below = e.nodes[n-1].slot
			e.nodes = e.nodes[:n-1]
		}
		j.prev, j.next = below, 0
		if n := len(e.nodes); n > 0 {
			s.jobs.edit(e.nodes[n-1].slot).next = m.id
		}
		e.nodes = append(e.nodes, edgeNode{m.id, rank})
	}
	for _, e := range edges {
		q := s.queues.edit(e.queue)
		root := &q.due
		if wall {
			root = &q.dueWall
		}
		*root = s.unite(*root, e.nodes[0].slot)
	}
}

// edge is the right edge of a treap that is being made of sorted jobs, from its
// root down.
type edge struct {
	queue uint32
	nodes []edgeNode
}

type edgeNode struct {
	slot uint32
	rank uint64
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
