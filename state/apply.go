package state

// Apply makes the change that r tells, at log time now, which never goes back.
// body is where the record's body lies, zero for kinds without one. r and what
// it points to are not kept.
//
// An error is a *MisfitError: the record does not fit the state, so the log is
// damaged or there is a bug. All checks come before the first change: a record
// with an error has changed nothing.
func (s *State) Apply(r *Record, body Body, now Millis) error {
	if now < s.now || now > MaxMillis {
		return misfit(r, "log time goes back or is too large")
	}
	if len(s.late) >= lateMost {
		s.orderLate() // between records: all jobs are where they belong
	}
	// Nothing reads s.now before all checks are over but what is given now, so a
	// refused record must put it back.
	before := s.now
	s.now = now
	if why := s.apply(r, body); why != "" {
		s.now = before
		return misfit(r, why)
	}
	return nil
}

func misfit(r *Record, why string) error {
	return &MisfitError{Kind: r.Kind, Slot: r.Slot, Queue: r.Queue, Why: why}
}

// apply says why r does not fit, and is empty when it did.
func (s *State) apply(r *Record, body Body) (why string) {
	switch r.Kind {
	case KindEnqueue:
		return s.applyEnqueue(r, body)
	case KindLease:
		return s.applyLease(r)
	case KindAck:
		return s.applyAck(r)
	case KindFail:
		return s.applyFail(r)
	case KindRelease:
		return s.applyRelease(r)
	case KindExtend:
		return s.applyExtend(r)
	case KindRange:
		return s.applyRange(r)
	case KindWallRange:
		return s.applyWallRange(r)
	case KindLapse:
		return s.applyLapse(r)
	case KindDelete:
		return s.applyDelete(r)
	case KindBury:
		return s.applyBury(r)
	case KindRedrive:
		return s.applyRedrive(r)
	case KindRun:
		return s.applyRun(r)
	case KindDelay:
		return s.applyDelay(r)
	case KindPriority:
		return s.applyPriority(r)
	case KindPayload:
		return s.applyPayload(r, body)
	case KindMove:
		return s.applyMove(r)
	case KindCarry:
		return s.applyCarry(r, body)
	case KindQueue:
		return s.applyQueue(r)
	case KindTouch:
		return s.applyTouch(r)
	case KindForget:
		return s.applyForget(r)
	case KindSettings:
		return s.applySettings(r)
	case KindPause:
		return s.applyPause(r)
	case KindResume:
		return s.applyResume(r)
	case KindKeyRange:
		return s.applyKeyRange(r)
	case KindCron:
		return s.applyCron(r)
	case KindCronFired:
		return s.applyCronFired(r)
	case KindCronDelete:
		return s.applyCronDelete(r)
	case KindMeta:
		return s.applyMeta(r)
	case KindMetaDelete:
		return s.applyMetaDelete(r)
	case KindDrain:
		s.draining = r.On
	case KindClock:
		return s.applyClock(r)
	case KindTime:
		return s.applyTime(r)
	case KindSecret:
		return s.applySecret(r)
	default:
		return "unknown kind"
	}
	return ""
}

// What the checks say.
const (
	noJob     = "no such job"
	noQueue   = "no such queue"
	notLeased = "job is not leased"
	isLeased  = "job is leased"
	badTime   = "time out of bounds"
	badBody   = "body is shorter than its overhead"
	keyTaken  = "unique key is taken"
	keyFree   = "unique key is dropped without need"
)

// job is the job of a record, nil when there is none.
func (s *State) job(slot Slot) *job {
	if !s.jobs.has(uint32(slot)) || s.jobs.at(uint32(slot)).where == 0 {
		return nil
	}
	return s.jobs.edit(uint32(slot))
}

// hasQueue reports whether q is a queue.
func (s *State) hasQueue(q QueueID) bool {
	return s.queues.has(uint32(q)) && s.queues.at(uint32(q)).serial != 0
}

func inTime(times ...Millis) bool {
	for _, t := range times {
		if t < 0 || t > MaxMillis {
			return false
		}
	}
	return true
}

func (s *State) applyEnqueue(r *Record, body Body) string {
	switch next, _ := s.NextSlot(); {
	case r.Slot == 0 || r.Slot != next:
		return "slot is not the next free one"
	case !s.hasQueue(r.Queue):
		return noQueue
	case !inTime(r.Born, r.At, r.Expires, r.Backoff, r.BackoffMax, r.Window):
		return badTime
	case body.Length < uint32(r.Overhead):
		return badBody
	case r.Unique != Key{} && s.holder(uint32(r.Queue), r.Unique, s.now) != 0:
		return keyTaken
	}
	slot, j := s.begin(r, body)
	s.stake(slot, j, r.Unique, r.Window)
	s.setGroup(j, r.Group)
	if r.At == 0 {
		s.put(slot, j, Ready, s.now, false)
	} else {
		if r.Wall {
			j.where |= dueWall
		}
		s.put(slot, j, Delayed, r.At, false)
	}
	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Enqueued++ })
	s.touch(j.queue)
	return ""
}

func (s *State) applyQueue(r *Record) string {
	switch {
	case r.Queue == 0 || r.Queue != s.NextQueue():
		return "queue is not the next free one"
	case !ValidQueueKey(r.Text):
		return "bad queue key"
	case s.queueOf.find(r.Text) != 0:
		return "queue exists"
	}
	i, q := s.queues.alloc()
	s.serial++
	q.key, q.serial = string(r.Text), s.serial
	s.queueOf.add(q.key, i)
	s.touch(i)
	return ""
}

func (s *State) applyTouch(r *Record) string {
	if !s.hasQueue(r.Queue) {
		return noQueue
	}
	s.touch(uint32(r.Queue))
	return ""
}

func (s *State) applyForget(r *Record) string {
	i := uint32(r.Queue)
	switch {
	case !s.hasQueue(r.Queue):
		return noQueue
	case s.queues.at(i).jobs() != 0:
		return "queue has jobs"
	}
	s.dropSettings(i)
	s.setPause(i, 0)
	q := s.queues.edit(i)
	if q.idle {
		s.unlinkIdle(i, q)
	}
	s.remember(q)
	s.queueOf.remove(q.key)
	s.queues.release(i)
	return ""
}

func (s *State) dropSettings(i uint32) {
	if q := s.queues.edit(i); q.settings != 0 {
		s.settings.release(q.settings)
		q.settings = 0
		s.regrave(i, q)
	}
}

func (s *State) applySettings(r *Record) string {
	t := r.Settings
	switch {
	case !s.hasQueue(r.Queue):
		return noQueue
	case t == nil:
		return "no settings"
	case !inTime(t.TTL, t.Backoff, t.BackoffMax, t.RatePer, t.DeadFor):
		return badTime
	}
	i := uint32(r.Queue)
	s.dropSettings(i)
	q := s.queues.edit(i)
	if normal := t.normal(); normal != (Settings{}) {
		n, entry := s.settings.alloc()
		entry.Settings = normal
		q.settings = n
		s.regrave(i, q)
	}
	q.rateFrom, q.rateUsed = 0, 0
	s.touch(i)
	return ""
}

// normal writes out what is meant by a zero interval of RATE, so that nothing
// ever divides by it.
func (t Settings) normal() Settings {
	switch {
	case t.RateCount == 0:
		t.RatePer = 0
	case t.RatePer == 0:
		t.RatePer = 1000
	}
	return t
}

func (s *State) applyPause(r *Record) string {
	switch {
	case !s.hasQueue(r.Queue):
		return noQueue
	case r.At == 0 || !inTime(r.At):
		return badTime
	}
	s.setPause(uint32(r.Queue), r.At)
	return ""
}

func (s *State) applyResume(r *Record) string {
	switch {
	case !s.hasQueue(r.Queue):
		return noQueue
	case s.queues.at(uint32(r.Queue)).pausedUntil == 0:
		return "queue is not paused"
	}
	s.setPause(uint32(r.Queue), 0)
	return ""
}

func (s *State) applyClock(r *Record) string {
	if r.At < -MaxMillis || r.At > MaxMillis {
		return badTime
	}
	s.offset = r.At
	return ""
}

// applyTime moves the time on within a group, whose own date is that of its first
// record. What follows in the group is applied at Now.
func (s *State) applyTime(r *Record) string {
	if r.At < s.now || !inTime(r.At) {
		return badTime
	}
	s.now = r.At
	return ""
}

// applySecret comes before whatever depends on the secret.
func (s *State) applySecret(r *Record) string {
	switch {
	case s.hasSecret:
		return "there is a secret"
	case s.jobs.last != 0:
		return "there were jobs before"
	case len(r.Text) != len(s.secret):
		return "secret of a wrong length"
	}
	s.secret, s.hasSecret = Key(r.Text), true
	return ""
}
