package state

// put brings a job that is in no place into one. It and take are the only ways
// between places: each keeps all lists, trees, indexes and counts at once.
//
// when is since when a job is ready or dead, when a delayed one is due, or when
// a lease ends. front is for ready only.
func (s *State) put(slot uint32, j *job, p Place, when Millis, front bool) {
	q := s.queues.edit(j.queue)
	j.where = j.where&^placeBits | uint8(p)
	j.setWhen(when)
	later := s.putOff(slot, j)
	switch p {
	case Ready:
		q.ready++
		s.join(slot, j, q, front)
	case Delayed:
		q.delayed++
		if later {
			break
		}
		s.plant(q, slot, j)
		if j.isWall() {
			s.walls.add(when, slot)
		}
	case Leased:
		q.leased++
		s.pushBack(slot, j, &q.leasedFirst, &q.leasedLast)
	case Dead:
		q.dead++
		s.pushBack(slot, j, &q.deadFirst, &q.deadLast)
		s.regrave(j.queue, q)
	}
	if p != Dead {
		q.bytes += uint64(j.size())
		s.bytes += uint64(j.size())
	}
	s.jobsIn[p]++
	if at, ok := j.deadline(); ok && !later {
		s.deadlines.add(at, slot)
	}
}

// take takes a job out of its place. A head stays head of its group until quit.
func (s *State) take(slot uint32, j *job) {
	q := s.queues.edit(j.queue)
	isLate := j.where&late != 0
	if at, ok := j.deadline(); ok && !isLate {
		s.deadlines.remove(at, slot)
	}
	p := j.place()
	switch p {
	case Ready:
		q.ready--
		if s.waits(slot, j) {
			s.unwait(slot, j, q)
		} else {
			s.unlinkReady(slot, j, q)
		}
	case Delayed:
		q.delayed--
		if !isLate {
			s.uproot(q, slot, j)
			if j.isWall() {
				s.walls.remove(j.whenAt(), slot)
			}
		}
		j.where &^= dueWall
	case Leased:
		q.leased--
		s.unlink(j, &q.leasedFirst, &q.leasedLast)
	case Dead:
		q.dead--
		s.unlink(j, &q.deadFirst, &q.deadLast)
		s.regrave(j.queue, q)
	}
	if p != Dead {
		q.bytes -= uint64(j.size())
		s.bytes -= uint64(j.size())
	}
	s.jobsIn[p]--
	j.where &^= placeBits | late
}

// remove ends a job in any place.
func (s *State) remove(slot uint32, j *job) {
	q := j.queue
	s.take(slot, j)
	s.quit(slot, j)
	s.end(slot, j)
	s.touch(q)
}

// kill brings a job in any place but Dead to the dead letters. The dead have no
// TTL and are in no group.
func (s *State) kill(slot uint32, j *job) {
	s.take(slot, j)
	s.quit(slot, j)
	j.setExpiry(0)
	s.put(slot, j, Dead, s.now, false)
	s.settle(j)
}
