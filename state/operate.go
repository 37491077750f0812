package state

// waitingJob is the job of a record that operators make, which leave leased
// jobs alone.
func (s *State) waitingJob(slot Slot) (j *job, why string) {
	switch j = s.job(slot); {
	case j == nil:
		return nil, noJob
	case j.place() == Leased:
		return nil, isLeased
	}
	return j, ""
}

// keyFits says whether a record may bring job j to life in q with or without
// its unique key: it loses the key where the key is taken, and only there.
func (s *State) keyFits(r *Record, q uint32) string {
	switch taken := s.KeyTaken(r.Slot, QueueID(q), s.now); {
	case taken && !r.DropKey:
		return keyTaken
	case !taken && r.DropKey:
		return keyFree
	}
	return ""
}

// applyRedrive gives a dead job a new life in any queue.
func (s *State) applyRedrive(r *Record) string {
	j := s.job(r.Slot)
	switch {
	case j == nil:
		return noJob
	case j.place() != Dead:
		return "job is not dead"
	case !s.hasQueue(r.Queue):
		return noQueue
	case !inTime(r.Expires):
		return badTime
	}
	if why := s.keyFits(r, uint32(r.Queue)); why != "" {
		return why
	}
	slot := uint32(r.Slot)
	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Redriven++ })
	s.take(slot, j)
	s.revive(j, uint32(r.Queue), r.DropKey)
	s.forgive(j)
	if j.queue != uint32(r.Queue) {
		s.changeQueue(j, uint32(r.Queue))
	}
	v := s.policyOfJob(j)
	if v.tries != r.Tries {
		s.dropPolicy(j)
		v.tries = r.Tries
		s.setPolicy(j, v)
	}
	j.setExpiry(r.Expires)
	s.put(slot, j, Ready, s.now, false)
	s.touch(j.queue)
	return ""
}

// forgive makes a job that was dead as good as new, but for its attempts.
func (s *State) forgive(j *job) {
	if j.extra != 0 {
		s.extras.edit(j.extra).failures = 0
		s.setReason(j, nil)
		s.tidy(j)
	}
}

// changeQueue takes a job in no place and in no group's list to another queue.
func (s *State) changeQueue(j *job, to uint32) {
	from := j.queue
	x := s.extraOf(j)
	var group Key
	if x.group != 0 {
		group = s.groups.at(x.group).key
		s.dropGroup(j)
	}
	j.queue = to
	if x.reason != 0 {
		s.editExtra(j).reason = s.reasonFor(to, []byte(s.reasons.at(x.reason).text))
		s.dropReason(x.reason)
	}
	s.setGroup(j, group)
	s.touch(from)
}

func (s *State) applyRun(r *Record) string {
	j, why := s.waitingJob(r.Slot)
	switch {
	case why != "":
		return why
	case j.place() == Ready:
		return "job is ready"
	case j.place() == Delayed && r.DropKey:
		return keyFree
	case j.place() == Dead:
		if why := s.keyFits(r, j.queue); why != "" {
			return why
		}
	}
	slot := uint32(r.Slot)
	dead := j.place() == Dead
	s.take(slot, j)
	if dead {
		s.revive(j, j.queue, r.DropKey)
		s.forgive(j)
	}
	s.put(slot, j, Ready, s.now, false)
	return ""
}

// applyDelay takes a ready or dead job out of its group until it is due. A head
// that failed, and waits for its backoff, stays head with the new time.
func (s *State) applyDelay(r *Record) string {
	j, why := s.waitingJob(r.Slot)
	switch {
	case why != "":
		return why
	case r.At == 0 || !inTime(r.At):
		return badTime
	case j.place() != Dead && r.DropKey:
		return keyFree
	case j.place() == Dead:
		if why := s.keyFits(r, j.queue); why != "" {
			return why
		}
	}
	slot := uint32(r.Slot)
	was := j.place()
	s.take(slot, j)
	switch was {
	case Ready:
		s.quit(slot, j)
	case Dead:
		s.revive(j, j.queue, r.DropKey)
		s.forgive(j)
	}
	if r.Wall {
		j.where |= dueWall
	}
	s.put(slot, j, Delayed, r.At, false)
	return ""
}

func (s *State) applyPriority(r *Record) string {
	j, why := s.waitingJob(r.Slot)
	if why != "" {
		return why
	}
	if j.place() == Ready && !s.waits(uint32(r.Slot), j) && j.priority != r.Priority {
		q := s.queues.edit(j.queue)
		s.unlinkReady(uint32(r.Slot), j, q)
		j.priority = r.Priority
		s.linkReady(uint32(r.Slot), j, q, false)
	}
	j.priority = r.Priority
	return ""
}

func (s *State) applyPayload(r *Record, body Body) string {
	j, why := s.waitingJob(r.Slot)
	switch {
	case why != "":
		return why
	case body.Length < uint32(r.Overhead):
		return badBody
	}
	old := j.size()
	s.dropBody(j)
	j.overhead = r.Overhead
	s.placeBody(j, body)
	if j.place() != Dead {
		q := s.queues.edit(j.queue)
		q.bytes += uint64(j.size()) - uint64(old)
		s.bytes += uint64(j.size()) - uint64(old)
	}
	return ""
}

// applyMove takes a job to another queue. There it joins at the end, as if it
// had become ready or had died now; a delayed one is due as before.
func (s *State) applyMove(r *Record) string {
	j, why := s.waitingJob(r.Slot)
	switch {
	case why != "":
		return why
	case !s.hasQueue(r.Queue):
		return noQueue
	case j.queue == uint32(r.Queue):
		return "job is in that queue"
	case s.KeyTaken(r.Slot, r.Queue, s.now):
		return keyTaken
	}
	slot := uint32(r.Slot)
	place, when, wall := j.place(), j.whenAt(), j.where&dueWall
	s.take(slot, j)
	s.quit(slot, j)
	s.moveClaim(j, uint32(r.Queue))
	s.changeQueue(j, uint32(r.Queue))
	j.where |= wall
	if place != Delayed {
		when = s.now
	}
	s.put(slot, j, place, when, false)
	s.touch(j.queue)
	return ""
}

// applyCarry changes where the same bytes lie, for a job in any place.
func (s *State) applyCarry(r *Record, body Body) string {
	j := s.job(r.Slot)
	switch {
	case j == nil:
		return noJob
	case body.Length != j.length || body.Checksum != j.checksum:
		return "body is another one"
	}
	s.dropBody(j)
	s.placeBody(j, body)
	return ""
}
