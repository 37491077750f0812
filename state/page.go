package state

// Page appends up to max slots of the jobs of q in place to dst, in the order
// in which they will be delivered, become due, were leased or died, beginning
// behind the job after, 0 for the first. after must be in that place of that
// queue. O(log n) for each delayed job, O(1) for each other; the ready jobs of a
// queue with many priorities cost a step for each priority more.
//
// The ready jobs that can be delivered come first, priority by priority, then
// those that wait behind a head, group by group.
func (s *State) Page(dst []Slot, id QueueID, place Place, after Slot, max int) []Slot {
	q := s.queues.at(uint32(id))
	var slot uint32
	switch place {
	case Ready:
		slot = s.nextReady(q, uint32(after))
	case Delayed:
		slot = s.nextDelayed(q, uint32(after))
	case Leased:
		slot = s.nextInList(q.leasedFirst, uint32(after))
	case Dead:
		slot = s.nextInList(q.deadFirst, uint32(after))
	}
	for ; slot != 0 && max > 0; max-- {
		dst = append(dst, Slot(slot))
		switch place {
		case Ready:
			slot = s.nextReady(q, slot)
		case Delayed:
			slot = s.nextDelayed(q, slot)
		default:
			slot = s.jobs.at(slot).next
		}
	}
	return dst
}

func (s *State) nextInList(first, after uint32) uint32 {
	if after == 0 {
		return first
	}
	return s.jobs.at(after).next
}

func (s *State) nextReady(q *queue, after uint32) uint32 {
	if after == 0 {
		if q.level != 0 {
			return s.levels.at(q.level).first
		}
		return s.firstWaiting(q.groupFirst)
	}
	j := s.jobs.at(after)
	if j.next != 0 {
		return j.next
	}
	if s.waits(after, j) {
		return s.firstWaiting(s.groups.at(s.extras.at(j.extra).group).next)
	}
	for i := q.level; i != 0; i = s.levels.at(i).next {
		if l := s.levels.at(i); l.priority < j.priority {
			return l.first
		}
	}
	return s.firstWaiting(q.groupFirst)
}

func (s *State) firstWaiting(group uint32) uint32 {
	if group == 0 {
		return 0
	}
	return s.groups.at(group).first
}

// nextDelayed merges the two trees by the present distance of the clocks.
func (s *State) nextDelayed(q *queue, after uint32) uint32 {
	from := mark{at: -2 * MaxMillis}
	if after != 0 {
		from = s.dueMark(after)
	}
	log := s.behind(q.due, from)
	wall := s.behind(q.dueWall, mark{from.at + s.offset, from.id})
	switch {
	case log == 0:
		return wall
	case wall == 0 || s.dueMark(log).less(s.dueMark(wall)):
		return log
	}
	return wall
}

// dueMark is where a delayed job stands on the line of log time.
func (s *State) dueMark(slot uint32) mark {
	j := s.jobs.at(slot)
	at := j.whenAt()
	if j.isWall() {
		at -= s.offset
	}
	return mark{at, slot}
}
