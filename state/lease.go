package state

func (s *State) applyLease(r *Record) string {
	j := s.job(r.Slot)
	slot := uint32(r.Slot)
	switch {
	case j == nil:
		return noJob
	case j.place() != Ready || s.waits(slot, j):
		return "job cannot be delivered"
	case !inTime(r.At):
		return badTime
	}
	s.take(slot, j)
	s.countAttempt(j)
	s.editExtra(j).nonce = r.Nonce
	s.tidy(j) // a nonce of zeros needs no extra
	s.put(slot, j, Leased, r.At, false)
	q := s.queues.edit(j.queue)
	if per := s.settingsOf(q).RatePer; per != 0 {
		if s.now >= AddMillis(q.rateFrom, per) || q.rateUsed == 0 {
			q.rateFrom, q.rateUsed = s.now, 0
		}
		if q.rateUsed < maxUint32 {
			q.rateUsed++
		}
	}
	s.count(q, func(t *Totals) { t.Delivered++ })
	return ""
}

// leasedJob is the job of a record that ends or changes a lease.
func (s *State) leasedJob(slot Slot) (j *job, why string) {
	switch j = s.job(slot); {
	case j == nil:
		return nil, noJob
	case j.place() != Leased:
		return nil, notLeased
	}
	return j, ""
}

// endLease takes a leased job out of its place and its lease away.
func (s *State) endLease(slot uint32, j *job) {
	s.take(slot, j)
	s.dropNonce(j)
}

func (s *State) dropNonce(j *job) {
	if j.extra != 0 {
		s.extras.edit(j.extra).nonce = Nonce{}
		s.tidy(j)
	}
}

func (s *State) applyAck(r *Record) string {
	j, why := s.leasedJob(r.Slot)
	if why != "" {
		return why
	}
	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Acked++ })
	s.remove(uint32(r.Slot), j)
	return ""
}

func (s *State) applyFail(r *Record) string {
	j, why := s.leasedJob(r.Slot)
	switch {
	case why != "":
		return why
	case r.Cause != CauseNack && r.Cause != CauseExpire:
		return "bad cause"
	case r.Cause == CauseExpire && j.whenAt() > s.now:
		return "lease has not run out"
	case r.Place != Ready && r.Place != Delayed && r.Place != Dead:
		return "bad place"
	case (r.Place == Delayed) != (r.At != 0) || !inTime(r.At):
		return badTime
	case len(r.Text) > MaxReasonBytes:
		return "reason is too long"
	}
	slot := uint32(r.Slot)
	q := s.queues.edit(j.queue)
	if r.Cause == CauseNack {
		s.count(q, func(t *Totals) { t.Nacked++ })
	} else {
		s.count(q, func(t *Totals) { t.Expired++ })
	}
	if x := s.editExtra(j); x.failures < maxUint16 {
		x.failures++
	}
	s.setReason(j, r.Text)
	switch r.Place {
	case Ready:
		s.endLease(slot, j)
		s.put(slot, j, Ready, s.now, false)
	case Delayed:
		s.endLease(slot, j)
		s.put(slot, j, Delayed, r.At, false)
	case Dead:
		s.count(q, func(t *Totals) { t.Dead++ })
		s.kill(slot, j)
		s.dropNonce(j)
	}
	return ""
}

func (s *State) applyRelease(r *Record) string {
	j, why := s.leasedJob(r.Slot)
	if why != "" {
		return why
	}
	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Released++ })
	s.endLease(uint32(r.Slot), j)
	s.put(uint32(r.Slot), j, Ready, s.now, true)
	return ""
}

func (s *State) applyExtend(r *Record) string {
	j, why := s.leasedJob(r.Slot)
	switch {
	case why != "":
		return why
	case !inTime(r.At):
		return badTime
	}
	old, _ := j.deadline()
	j.setWhen(r.At)
	if at, _ := j.deadline(); at != old {
		s.deadlines.remove(old, uint32(r.Slot))
		s.deadlines.add(at, uint32(r.Slot))
	}
	return ""
}

// applyBury sends any job that is not dead to the dead letters.
func (s *State) applyBury(r *Record) string {
	j := s.job(r.Slot)
	switch {
	case j == nil:
		return noJob
	case j.place() == Dead:
		return "job is dead"
	case r.Cause != CauseBury && r.Cause != CauseDamage:
		return "bad cause"
	case len(r.Text) > MaxReasonBytes:
		return "reason is too long"
	}
	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Buried++; t.Dead++ })
	s.setReason(j, r.Text)
	s.kill(uint32(r.Slot), j)
	s.dropNonce(j)
	return ""
}

func (s *State) applyDelete(r *Record) string {
	j := s.job(r.Slot)
	switch {
	case j == nil:
		return noJob
	case r.Cause < CauseDelete || r.Cause > CauseDeadFor:
		return "bad cause"
	case r.Cause > CausePurge && j.place() != Dead:
		return "job is not dead"
	}
	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Deleted++ })
	s.remove(uint32(r.Slot), j)
	return ""
}
