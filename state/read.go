package state

import (
	"cmp"
	"math/bits"
	"slices"
)

// Job is a copy of what the state knows of one job. Times are log time unless
// said otherwise; 0 is none.
type Job struct {
	ID         JobID
	Slot       Slot
	Queue      QueueID
	Place      Place
	Priority   int8
	Tries      uint16 // failures until dead; 0 is no limit
	Attempt    uint32 // leases so far
	Failures   uint32 // NACKs and leases that ran out, since the enqueue or the last redrive
	Backoff    Millis
	BackoffMax Millis
	Since      Millis // ready, dead: since when
	Due        Millis // delayed: becomes ready; wall time where DueWall
	DueWall    bool
	Deadline   Millis // leased: the lease ends
	Expires    Millis // end of the TTL; a dead job has none
	Lease      LeaseID
	Reason     string // of the last failure
	Unique     Key
	Group      Key
	Blocked    bool // ready, but behind the head of its group
	Size       uint32
	Body       Body
}

// Queue is a copy of what the state knows of one queue.
type Queue struct {
	ID                           QueueID
	Serial                       uint64 // never used again, unlike ID and Key; a queue made later has a higher one
	Key                          string
	Ready, Delayed, Leased, Dead uint32
	Bytes                        uint64 // payload bytes of ready, delayed and leased jobs
	PausedUntil                  Millis // log time; Forever without an end, 0 when not paused
	OldestReady                  Millis // when the job at the front of its priority became ready, the earliest of them; 0 is none
	NextDue                      Millis // log time; when the next delayed job becomes due, 0 is none
	Totals                       Totals
	Settings                     Settings
}

// Why says why a queue hands nothing out.
type Why uint8

// The reasons. NotBlocked with slot 0 is an empty queue, or one whose ready
// jobs all wait behind the heads of their groups.
const (
	NotBlocked Why = iota
	BlockedPaused
	BlockedRate
	BlockedMaxLeased
)

// Block is why a queue hands nothing out, and until when (log time); Until is 0
// where no time ends it: MaxLeased ends with a lease. Forever is a pause
// without an end. Nobody but the reader wakes at Until.
type Block struct {
	Why   Why
	Until Millis
}

// DueKind is what is to be done about a Due.
type DueKind uint8

// The kinds, each with the record that does away with it.
const (
	DueNothing   DueKind = iota
	DueRange             // KindRange{At, Slot, Count}
	DueWallRange         // KindWallRange{At, Slot, Count}
	DueKeys              // KindKeyRange{At, Slot, Count}
	DueLease             // Slot's lease ran out: KindFail with CauseExpire
	DueDead              // Slot is dead for too long or one too many: KindDelete with Cause
	DuePause             // Queue's pause is over: KindResume, then wake its waiters
	DueIdle              // Queue is empty and unused for IdleFor: KindForget, or KindTouch where fetchers wait
	DueCron              // Cron's Next has come: KindCronFired and the KindEnqueues it makes
)

// Due is something whose time has come.
type Due struct {
	Kind  DueKind
	Cause Cause
	Slot  Slot
	Queue QueueID
	At    Millis
	Since Millis // of a range, when the earliest of it was due, in log time
	Count uint32
	Cron  *Cron // belongs to the state, not to be changed
}

// IdleFor is how long an empty queue without settings and pause is kept after
// its last use.
const IdleFor Millis = 3_600_000

// Live is what the jobs of one generation of the log still need of it.
type Live struct {
	Generation uint32
	Jobs       uint64
	Bytes      uint64 // of bodies
}

// Counts are sizes of the whole state.
type Counts struct {
	Jobs   [5]uint64 // by Place
	Queues uint64
	Groups uint64
	Keys   uint64 // unique keys that are held or remembered
	Crons  uint64
	Metas  uint64
	Bytes  uint64 // payload bytes of jobs that are not dead
	Memory uint64 // bytes of memory, estimated
}

// NextSlot is the slot the next KindEnqueue must name, and how often it has been
// used before, for the job's ID. It changes with every enqueue and every job
// that goes. Slot 0: no more fit.
func (s *State) NextSlot() (Slot, uint16) {
	next := s.jobs.next()
	if s.jobs.has(next) {
		return Slot(next), s.reuse(next)
	}
	return Slot(next), 0
}

// LastReuse is the reuse counter of the job that is in a slot, or was the last
// one there. False for a slot that never had one.
func (s *State) LastReuse(slot Slot) (uint16, bool) {
	i := uint32(slot)
	if !s.jobs.has(i) {
		return 0, false
	}
	if s.jobs.at(i).where == 0 {
		return s.reuse(i) - 1, true
	}
	return s.reuse(i), true
}

// reuse is how often a slot was used before the job that is in it, or is to come.
func (s *State) reuse(i uint32) uint16 {
	if r := s.jobs.rest(i); r != nil {
		return r.traceOf(i)
	}
	return s.jobs.at(i).reuse()
}

// NextQueue is the ID the next KindQueue must name. 0: no more fit.
func (s *State) NextQueue() QueueID { return QueueID(s.queues.next()) }

// QueueByKey finds a queue. It does not allocate.
func (s *State) QueueByKey(key []byte) (QueueID, bool) {
	i := s.queueOf.find(key)
	return QueueID(i), i != 0
}

// QueueExists says whether there is a queue of this number now.
func (s *State) QueueExists(q QueueID) bool {
	return q != 0 && uint32(q) <= s.queues.last && s.queues.at(uint32(q)).serial != 0
}

// QueueKey is a queue's key; it must exist.
func (s *State) QueueKey(q QueueID) string { return s.queues.at(uint32(q)).key }

// Settings are those of a queue; it must exist. A RateCount comes with a
// RatePer.
func (s *State) Settings(q QueueID) Settings { return s.settingsOf(s.queues.at(uint32(q))) }

// Queue is a copy of one queue; it must exist.
func (s *State) Queue(id QueueID) Queue {
	q := s.queues.at(uint32(id))
	v := Queue{
		ID: id, Serial: q.serial, Key: q.key,
		Ready: q.ready, Delayed: q.delayed, Leased: q.leased, Dead: q.dead,
		Bytes: q.bytes, PausedUntil: q.pausedUntil,
		Totals: q.totals, Settings: s.settingsOf(q),
	}
	for i := q.level; i != 0; i = s.levels.at(i).next {
		since := s.jobs.at(s.levels.at(i).first).whenAt()
		if v.OldestReady == 0 || since < v.OldestReady {
			v.OldestReady = since
		}
	}
	_, v.NextDue = s.FirstDelayed(id)
	return v
}

// FirstDelayed is the delayed job of a queue that becomes due first, and when,
// in log time; zeros for none. O(log n).
func (s *State) FirstDelayed(id QueueID) (Slot, Millis) {
	slot := s.nextDelayed(s.queues.at(uint32(id)), 0)
	if slot == 0 {
		return 0, 0
	}
	return Slot(slot), s.dueMark(slot).at
}

// Queues calls yield for each queue in order of ID until it returns false.
func (s *State) Queues(yield func(QueueID) bool) {
	for i := uint32(1); i <= s.queues.last; i++ {
		if s.queues.at(i).serial != 0 && !yield(QueueID(i)) {
			return
		}
	}
}

// QueuesFrom calls visit for the queues among the n IDs from first on, free ones
// included, and gives the ID to go on with, 0 at the end. It is for those who look
// at very many in pieces.
func (s *State) QueuesFrom(first QueueID, n int, visit func(QueueID)) (next QueueID) {
	i, end, more := piece(uint32(first), n, s.queues.last)
	for ; i < end; i++ {
		if s.queues.at(i).serial != 0 {
			visit(QueueID(i))
		}
	}
	return QueueID(more)
}

// piece is the n numbers of a table from first on: those below end, and what
// follows them, 0 for nothing.
func piece(first uint32, n int, last uint32) (from, end, next uint32) {
	from = max(first, 1)
	if n > int(last)-int(from) {
		return from, last + 1, 0
	}
	return from, from + uint32(n), from + uint32(n)
}

// QueueCount is how many queues there are.
func (s *State) QueueCount() int { return int(s.queues.used) }

// Idlest is the queue that has been empty, without settings and out of use for
// longest, and since when; ok is false when there is none.
func (s *State) Idlest() (q QueueID, since Millis, ok bool) {
	if s.idleFirst == 0 {
		return 0, 0, false
	}
	return QueueID(s.idleFirst), s.queues.at(s.idleFirst).usedAt, true
}

// GroupJobs is how many jobs of q name the group, in any place.
func (s *State) GroupJobs(q QueueID, group Key) uint32 {
	i := s.groupOf.find(queueText{s.queues.at(uint32(q)).serial, group})
	if i == 0 {
		return 0
	}
	return s.groups.at(i).refs
}

// KeyUntil is until when the job at slot, which lives, holds its unique key in
// any case, whatever becomes of the job; 0 for a job without a key.
func (s *State) KeyUntil(slot Slot) Millis {
	i := s.extraOf(s.jobs.at(uint32(slot))).claim
	if i == 0 {
		return 0
	}
	return s.claims.at(i).until
}

// Counts are sizes of the whole state.
func (s *State) Counts() Counts {
	c := Counts{
		Jobs:   s.jobsIn,
		Queues: uint64(s.queues.used),
		Groups: uint64(s.groups.used),
		Keys:   uint64(s.claimOf.count),
		Crons:  uint64(s.crons.used),
		Metas:  uint64(s.metas.used),
		Bytes:  s.bytes,
	}
	c.Memory = s.memory()
	return c
}

// memory estimates, from what entries of each kind were measured to cost with
// the maps and trees that lead to them.
func (s *State) memory() uint64 {
	n := func(used uint32, each uint64) uint64 { return uint64(used) * each }
	marks := s.deadlines.len() + s.walls.len() + s.windows.len() + s.pauses.len() + s.graves.len()
	return s.jobs.bytes(64) + s.extras.bytes(48) + n(s.queues.used, 464) + s.queues.bytes(16) + s.levels.bytes(16) +
		s.groups.bytes(48) + n(s.groups.used, 92) + s.claims.bytes(72) + n(s.claims.used, 68) +
		s.reasons.bytes(32) + n(s.reasons.used, 168) + s.policies.bytes(80) +
		s.settings.bytes(96) + n(s.crons.used, 500) + n(s.metas.used, 200) + uint64(marks)*18
}

// Job is a copy of the job at slot; ok is false when there is none.
func (s *State) Job(slot Slot) (v Job, ok bool) {
	i := uint32(slot)
	if !s.jobs.has(i) || s.jobs.at(i).where == 0 {
		return Job{}, false
	}
	j := s.jobs.at(i)
	x, p := s.extraOf(j), s.policyOfJob(j)
	v = Job{
		ID: j.id(i), Slot: slot, Queue: QueueID(j.queue), Place: j.place(), Priority: j.priority,
		Tries: p.tries, Backoff: p.backoff, BackoffMax: p.backoffMax,
		Attempt: uint32(x.attemptHigh)<<16 | uint32(uint16(j.when)), Failures: uint32(x.failures),
		Expires: j.expiresAt(), Size: j.size(), Body: j.body(),
	}
	switch v.Place {
	case Ready:
		v.Since = j.whenAt()
		v.Blocked = s.waits(i, j)
	case Delayed:
		v.Due, v.DueWall = j.whenAt(), j.isWall()
	case Leased:
		v.Deadline = j.whenAt()
		v.Lease = LeaseID{slot, x.nonce}
	case Dead:
		v.Since = j.whenAt()
	}
	if x.reason != 0 {
		v.Reason = s.reasons.at(x.reason).text
	}
	if x.claim != 0 {
		v.Unique = s.claims.at(x.claim).key
	}
	if x.group != 0 {
		v.Group = s.groups.at(x.group).key
	}
	return v, true
}

// Lookup finds a job by its ID.
func (s *State) Lookup(id JobID) (Slot, bool) {
	i := uint32(id.Slot())
	if !s.jobs.has(i) {
		return 0, false
	}
	j := s.jobs.at(i)
	return Slot(i), j.where != 0 && j.id(i) == id
}

// LookupLease finds the leased job of a lease that holds: now is before its end
// and before the end of the job's TTL.
func (s *State) LookupLease(id LeaseID, now Millis) (Slot, bool) {
	i := uint32(id.Slot)
	if !s.jobs.has(i) {
		return 0, false
	}
	j := s.jobs.at(i)
	if j.place() != Leased || s.extraOf(j).nonce != id.Nonce {
		return 0, false
	}
	end, _ := j.deadline()
	return id.Slot, now < end
}

// Unique is the job ID that holds key in q, or did within its window, at now.
func (s *State) Unique(q QueueID, key Key, now Millis) (JobID, bool) {
	i := s.holder(uint32(q), key, now)
	if i == 0 {
		return JobID{}, false
	}
	return s.claims.at(i).id, true
}

// KeyTaken reports whether the job at slot cannot have its unique key in queue
// q at now, because another job has it: KindMove is refused then, and
// KindRedrive, KindRun and KindDelay of a dead job need DropKey. False for a
// job without a key.
func (s *State) KeyTaken(slot Slot, q QueueID, now Millis) bool {
	own := s.extraOf(s.jobs.at(uint32(slot))).claim
	if own == 0 {
		return false
	}
	holder := s.holder(uint32(q), s.claims.at(own).key, now)
	return holder != 0 && holder != own
}

// NextReady is the job that q delivers next, 0 when there is none to deliver. It
// may be past its TTL: then KindLapse it and ask again.
func (s *State) NextReady(id QueueID, now Millis) (Slot, Block) {
	q := s.queues.at(uint32(id))
	if q.level == 0 {
		return 0, Block{}
	}
	if now < q.pausedUntil {
		return 0, Block{BlockedPaused, q.pausedUntil}
	}
	if q.settings != 0 {
		t := s.settings.at(q.settings)
		if t.MaxLeased > 0 && q.leased >= t.MaxLeased {
			return 0, Block{BlockedMaxLeased, 0}
		}
		if t.RateCount > 0 {
			if until := q.rateUntil(&t.Settings); now < until {
				return 0, Block{BlockedRate, until}
			}
		}
	}
	return Slot(s.levels.at(q.level).first), Block{}
}

// rateUntil is when the queue may hand out the next job: the n-th of a period's
// deliveries is due n parts of it after the first, so that they come evenly and
// not all at once. A queue that has been quiet for a period begins a new one.
func (q *queue) rateUntil(t *Settings) Millis {
	if q.rateUsed == 0 {
		return 0
	}
	// In 128 bits: a period can have 48 and a count 32.
	hi, lo := bits.Mul64(uint64(min(q.rateUsed, t.RateCount)), uint64(t.RatePer))
	part, _ := bits.Div64(hi, lo, uint64(t.RateCount))
	return AddMillis(q.rateFrom, Millis(part))
}

// Live says what is still needed of a generation.
func (s *State) Live(generation uint32) Live {
	l := s.lives[generation]
	l.Generation = generation
	return l
}

// Lives are all generations that hold a body of a job, ascending.
func (s *State) Lives() []Live {
	all := make([]Live, 0, len(s.lives))
	for _, l := range s.lives {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b Live) int { return cmp.Compare(a.Generation, b.Generation) })
	return all
}

// Bodies calls yield for every job that has a body, in order of slot, until it
// returns false. BodiesIn is for one generation, in steps.
func (s *State) Bodies(yield func(Slot, Body) bool) {
	for i := uint32(1); i <= s.jobs.last && i != 0; i++ {
		if j := s.jobs.at(i); j.where != 0 && j.generation != 0 {
			if !yield(Slot(i), Body{j.generation, j.offset, j.length, j.checksum}) {
				return
			}
		}
	}
}

// BodiesIn appends to dst up to max slots, from the given one on, whose body
// lies in generation, looking at no more than 64 × max slots, and returns where
// to go on, 0 at the end.
func (s *State) BodiesIn(dst []Slot, generation uint32, from Slot, max int) ([]Slot, Slot) {
	i := uint64(from)
	if i == 0 {
		i = 1
	}
	for looks := pageItems * max; looks > 0 && max > 0; looks-- {
		if i > uint64(s.jobs.last) {
			return dst, 0
		}
		if j := s.jobs.at(uint32(i)); j.where != 0 && j.generation == generation {
			dst = append(dst, Slot(i))
			max--
		}
		i++
	}
	if i > uint64(s.jobs.last) {
		return dst, 0
	}
	return dst, Slot(i)
}
