package state

// applyRange does what is due in State.deadlines up to (At, Slot): delays that
// are over make a job ready, TTLs that are over end it. It covers no lease.
func (s *State) applyRange(r *Record) string {
	if r.At > s.now {
		return "range lies ahead of the time"
	}
	s.orderLate()
	upTo := mark{r.At, uint32(r.Slot)}
	s.marks = s.marks[:0]
	leased := false
	s.deadlines.upTo(upTo, func(m mark) bool {
		j := s.jobs.at(m.id)
		leased = j.place() == Leased && !j.lapses()
		s.marks = append(s.marks, m)
		return !leased && len(s.marks) <= MaxRange
	})
	switch {
	case leased:
		return "range covers a lease"
	case len(s.marks) == 0 || uint64(len(s.marks)) != uint64(r.Count) || s.marks[len(s.marks)-1] != upTo:
		return "range covers other jobs"
	}
	for _, m := range s.marks {
		if j := s.jobs.edit(m.id); j.lapses() {
			s.lapse(m.id, j)
		} else {
			s.ripen(m.id, j)
		}
	}
	return ""
}

// applyWallRange makes the jobs ready that are due in State.walls up to (At, Slot).
func (s *State) applyWallRange(r *Record) string {
	if r.At > s.Wall(s.now) {
		return "range lies ahead of the time"
	}
	s.orderLate()
	if why := s.collect(s.walls, r); why != "" {
		return why
	}
	for _, m := range s.marks {
		s.ripen(m.id, s.jobs.edit(m.id))
	}
	return ""
}

// applyKeyRange lets go of the claims in State.windows up to (At, Slot).
func (s *State) applyKeyRange(r *Record) string {
	if r.At > s.now {
		return "range lies ahead of the time"
	}
	if why := s.collect(s.windows, r); why != "" {
		return why
	}
	for _, m := range s.marks {
		c := s.claims.edit(m.id)
		q, serial := c.queue, c.serial
		s.windows.remove(m.at, m.id)
		s.letGo(m.id, c)
		if s.queues.at(q).serial == serial {
			s.touch(q)
		}
	}
	return ""
}

// collect brings what a range covers into s.marks.
func (s *State) collect(x index, r *Record) string {
	upTo := mark{r.At, uint32(r.Slot)}
	s.marks = s.marks[:0]
	x.upTo(upTo, func(m mark) bool {
		s.marks = append(s.marks, m)
		return len(s.marks) <= MaxRange
	})
	if len(s.marks) == 0 || uint64(len(s.marks)) != uint64(r.Count) || s.marks[len(s.marks)-1] != upTo {
		return "range covers others"
	}
	return ""
}

// ripen makes a delayed job ready.
func (s *State) ripen(slot uint32, j *job) {
	s.take(slot, j)
	s.put(slot, j, Ready, s.now, false)
}

// lapse ends a job whose TTL is over.
func (s *State) lapse(slot uint32, j *job) {
	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Lapsed++ })
	s.remove(slot, j)
}

func (s *State) applyLapse(r *Record) string {
	j := s.job(r.Slot)
	switch {
	case j == nil:
		return noJob
	case j.expiresAt() == 0 || j.expiresAt() > s.now:
		return "TTL is not over"
	}
	s.lapse(uint32(r.Slot), j)
	return ""
}

// Earliest is the log time at which Due has something to say; false is never.
func (s *State) Earliest() (Millis, bool) {
	kind, at, _ := s.next()
	if later, when, _ := s.nextTidying(); later != DueNothing && (kind == DueNothing || when < at) {
		kind, at = later, when
	}
	return at, kind != DueNothing
}

// soonest keeps the earliest of what it is shown, of several at one time the
// first.
type soonest struct {
	kind DueKind
	at   Millis // log time
	mark mark
}

func (d *soonest) consider(kind DueKind, at Millis, m mark, ok bool) {
	if ok && (d.kind == DueNothing || at < d.at) {
		*d = soonest{kind, at, m}
	}
}

// next is what comes due next, whenever that is, of what somebody waits for.
func (s *State) next() (DueKind, Millis, mark) {
	var d soonest
	m, ok := s.deadlines.first()
	d.consider(DueRange, m.at, m, ok)
	m, ok = s.walls.first()
	d.consider(DueWallRange, s.Log(m.at), m, ok)
	m, ok = s.pauses.first()
	d.consider(DuePause, m.at, m, ok)
	m, ok = s.fires.first()
	d.consider(DueCron, s.Log(m.at), m, ok)
	return d.kind, d.at, d.mark
}

// nextTidying is the same of what only frees memory. A smaller DEADMAX can make
// millions of jobs due at once, and no lease may wait for them.
func (s *State) nextTidying() (DueKind, Millis, mark) {
	var d soonest
	m, ok := s.windows.first()
	d.consider(DueKeys, m.at, m, ok)
	m, ok = s.graves.first()
	d.consider(DueDead, m.at, m, ok)
	if i := s.idleFirst; i != 0 {
		m = mark{AddMillis(s.queues.at(i).usedAt, IdleFor), i}
		d.consider(DueIdle, m.at, m, true)
	}
	return d.kind, d.at, d.mark
}

// Due is the next thing whose time has come at now: the earliest, but what only
// frees memory (dead jobs, keys, queues) comes last. The record that does away
// with it must be applied before Due is asked again.
func (s *State) Due(now Millis) Due {
	kind, at, m := s.next()
	if kind == DueNothing || at > now {
		kind, at, m = s.nextTidying()
	}
	if kind == DueNothing || at > now {
		return Due{}
	}
	switch kind {
	case DueRange:
		if j := s.jobs.at(m.id); j.place() == Leased && !j.lapses() {
			return Due{Kind: DueLease, Slot: Slot(m.id), Queue: QueueID(j.queue), At: m.at}
		}
		return s.span(kind, s.deadlines, at, now)
	case DueWallRange:
		return s.span(kind, s.walls, at, s.Wall(now))
	case DueKeys:
		return s.span(kind, s.windows, at, now)
	case DueDead:
		q := s.queues.at(m.id)
		d := Due{Kind: kind, Cause: CauseDeadFor, Slot: Slot(q.deadFirst), Queue: QueueID(m.id), At: m.at}
		if t := s.settingsOf(q); t.DeadMax > 0 && uint64(q.dead) > t.DeadMax {
			d.Cause = CauseDeadMax
		}
		return d
	case DueCron:
		return Due{Kind: kind, At: m.at, Cron: &s.crons.at(m.id).Cron}
	default:
		return Due{Kind: kind, Queue: QueueID(m.id), At: m.at}
	}
}

// Ending calls visit for the queue of each job that d covers, a range of delays,
// times to live or AT times that Due has said since the last record. A queue may
// come more than once.
func (s *State) Ending(d *Due, visit func(QueueID)) {
	x := s.deadlines
	if d.Kind == DueWallRange {
		x = s.walls
	}
	x.upTo(mark{d.At, uint32(d.Slot)}, func(m mark) bool {
		visit(QueueID(s.jobs.at(m.id).queue))
		return true
	})
}

// spanJobs is how many a range covers that Due proposes: few enough that nobody
// waits long for one record, enough that the record is nothing beside them.
const spanJobs = 128

// span is the longest range of x that one record shall cover at time now; since
// is when its first was due, in log time.
func (s *State) span(kind DueKind, x index, since, now Millis) Due {
	d := Due{Kind: kind, Since: since}
	x.upTo(mark{now, maxUint32}, func(m mark) bool {
		if kind == DueRange {
			if j := s.jobs.at(m.id); j.place() == Leased && !j.lapses() {
				return false
			}
		}
		d.At, d.Slot = m.at, Slot(m.id)
		d.Count++
		return d.Count < spanJobs
	})
	return d
}
