package state

// A group is a list of jobs of one queue, in order of becoming ready first, of
// which only the head can be delivered. The head is in no list of the group: it
// stands in the list of its place, as any job does. The others wait: they are
// ready, but linked here instead of in a list of ready jobs.
//
// A delayed job is no part of its group until it is due, unless it is a head
// that failed. The dead are no part of it either; both still refer to it.
type group struct {
	serial      uint64 // of the queue; 0 for a free entry
	key         Key
	refs        uint32 // jobs that name the group
	head        uint32
	first, last uint32 // jobs that wait behind the head
	prev, next  uint32 // the queue's groups with waiting jobs; free: next free entry
}

func (g *group) link() *uint32 { return &g.next }

// setGroup gives a job without one its group; the zero key is none.
func (s *State) setGroup(j *job, key Key) {
	if key == (Key{}) {
		return
	}
	k := queueText{s.queues.at(j.queue).serial, key}
	i := s.groupOf.find(k)
	if i == 0 {
		var g *group
		i, g = s.groups.alloc()
		g.serial, g.key = k.serial, key
		s.groupOf.add(k, i)
	}
	s.groups.edit(i).refs++
	s.editExtra(j).group = i
}

// dropGroup makes a job that has quit refer to none.
func (s *State) dropGroup(j *job) {
	if j.extra == 0 {
		return
	}
	x := s.extras.edit(j.extra)
	if x.group == 0 {
		return
	}
	g := s.groups.edit(x.group)
	if g.refs--; g.refs == 0 {
		s.groupOf.remove(queueText{g.serial, g.key})
		s.groups.release(x.group)
	}
	x.group = 0
}

// waits says that a job waits behind the head of its group.
func (s *State) waits(slot uint32, j *job) bool {
	return j.joined() && s.groups.at(s.extras.at(j.extra).group).head != slot
}

// join makes a job that has become ready deliverable, or lets it wait behind the
// head of its group. A head that comes back stays head.
func (s *State) join(slot uint32, j *job, q *queue, front bool) {
	i := s.extraOf(j).group
	if i == 0 || j.joined() {
		s.linkReady(slot, j, q, front)
		return
	}
	g := s.groups.edit(i)
	j.where |= inGroup
	if g.head == 0 {
		g.head = slot
		s.linkReady(slot, j, q, front)
		return
	}
	s.pushBack(slot, j, &g.first, &g.last)
	if g.first == g.last {
		s.linkGroup(i, g, q)
	}
}

// unwait takes a waiting job out of its group.
func (s *State) unwait(slot uint32, j *job, q *queue) {
	i := s.extras.at(j.extra).group
	g := s.groups.edit(i)
	s.unlink(j, &g.first, &g.last)
	j.where &^= inGroup
	if g.first == 0 {
		s.unlinkGroup(g, q)
	}
}

// quit takes a job that is in no place out of its group, if it is the head. The
// first of the waiting becomes head, and the group goes to the tail of its list.
func (s *State) quit(slot uint32, j *job) {
	if !j.joined() {
		return
	}
	j.where &^= inGroup
	q := s.queues.edit(j.queue)
	g := s.groups.edit(s.extras.at(j.extra).group)
	g.head = g.first
	if g.head == 0 {
		return
	}
	next := s.jobs.edit(g.head)
	s.unlink(next, &g.first, &g.last)
	if g.first == 0 {
		s.unlinkGroup(g, q)
	}
	s.linkReady(g.head, next, q, false)
}

func (s *State) linkGroup(i uint32, g *group, q *queue) {
	g.prev, g.next = q.groupLast, 0
	if g.prev != 0 {
		s.groups.edit(g.prev).next = i
	} else {
		q.groupFirst = i
	}
	q.groupLast = i
}

func (s *State) unlinkGroup(g *group, q *queue) {
	if g.prev != 0 {
		s.groups.edit(g.prev).next = g.next
	} else {
		q.groupFirst = g.next
	}
	if g.next != 0 {
		s.groups.edit(g.next).prev = g.prev
	} else {
		q.groupLast = g.prev
	}
	g.prev, g.next = 0, 0
}
