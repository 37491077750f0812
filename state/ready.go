package state

// The ready jobs of a queue that can be delivered stand in a list for each
// priority; the lists of a queue form a chain, the highest priority first. Of a
// group only the head stands there.

// level is one such list. It goes when it is empty.
type level struct {
	first, last uint32
	next        uint32 // the next lower priority of the queue
	priority    int8
}

func (l *level) link() *uint32 { return &l.next }

// levelFor finds or makes the list of a priority.
func (s *State) levelFor(q *queue, priority int8) *level {
	link := &q.level
	for *link != 0 {
		l := s.levels.edit(*link)
		if l.priority == priority {
			return l
		}
		if l.priority < priority {
			break
		}
		link = &l.next
	}
	lower := *link
	i, l := s.levels.alloc()
	l.priority, l.next = priority, lower
	*link = i
	return l
}

func (s *State) dropLevel(q *queue, priority int8) {
	link := &q.level
	for {
		i := *link
		l := s.levels.edit(i)
		if l.priority == priority {
			*link = l.next
			s.levels.release(i)
			return
		}
		link = &l.next
	}
}

// linkReady puts a job that can be delivered to an end of its list. At the front
// it is taken to have been ready as long as the one behind it, so that the first
// of a list has always been ready longest.
func (s *State) linkReady(slot uint32, j *job, q *queue, front bool) {
	l := s.levelFor(q, j.priority)
	if !front {
		s.pushBack(slot, j, &l.first, &l.last)
		return
	}
	if l.first != 0 {
		j.setWhen(min(j.whenAt(), s.jobs.at(l.first).whenAt()))
	}
	s.pushFront(slot, j, &l.first, &l.last)
}

func (s *State) unlinkReady(slot uint32, j *job, q *queue) {
	l := s.levelFor(q, j.priority)
	s.unlink(j, &l.first, &l.last)
	if l.first == 0 {
		s.dropLevel(q, j.priority)
	}
}
