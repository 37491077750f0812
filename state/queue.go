package state

import "strings"

// queue is one entry of the table of queues.
type queue struct {
	key    string
	serial uint64
	totals Totals
	bytes  uint64 // payload bytes of jobs that are not dead

	ready, delayed, leased, dead uint32

	level                   uint32 // the highest priority that has a ready job
	due, dueWall            uint32 // roots of the delayed jobs, by log and by wall time
	leasedFirst, leasedLast uint32 // in the order of leasing
	deadFirst, deadLast     uint32 // oldest first
	groupFirst, groupLast   uint32 // groups in which jobs wait behind the head
	reasons                 uint32
	claims                  uint32 // unique keys that are held
	settings                uint32

	pausedUntil Millis // 0 for none
	graveAt     Millis // where it stands in State.graves, 0 for nowhere
	rateFrom    Millis // when the window of RATE began
	rateUsed    uint32 // deliveries in it

	idle               bool   // stands in the list of idle queues
	usedAt             Millis // idle: the last use
	idlePrev, idleNext uint32 // idle

	epoch uint32 // of queueTable: when it was made, or copied for the owner
}

func (q *queue) jobs() uint64 {
	return uint64(q.ready) + uint64(q.delayed) + uint64(q.leased) + uint64(q.dead)
}

// settings of a queue that has any.
type settings struct {
	Settings
	next uint32
}

func (t *settings) link() *uint32 { return &t.next }

func (s *State) settingsOf(q *queue) Settings {
	if q.settings == 0 {
		return Settings{}
	}
	return s.settings.at(q.settings).Settings
}

// touch keeps the list of idle queues right after any change to queue i, which
// counts as a use.
func (s *State) touch(i uint32) {
	q := s.queues.edit(i)
	if q.idle {
		if q.usedAt == s.now && s.idleLast == i && s.isIdle(q) {
			return
		}
		s.unlinkIdle(i, q)
	}
	if !s.isIdle(q) {
		return
	}
	q.idle, q.usedAt, q.idlePrev = true, s.now, s.idleLast
	if s.idleLast != 0 {
		s.queues.edit(s.idleLast).idleNext = i
	} else {
		s.idleFirst = i
	}
	s.idleLast = i
}

func (s *State) isIdle(q *queue) bool {
	return q.jobs() == 0 && q.settings == 0 && q.pausedUntil == 0 && q.claims == 0
}

func (s *State) unlinkIdle(i uint32, q *queue) {
	if q.idlePrev != 0 {
		s.queues.edit(q.idlePrev).idleNext = q.idleNext
	} else {
		s.idleFirst = q.idleNext
	}
	if q.idleNext != 0 {
		s.queues.edit(q.idleNext).idlePrev = q.idlePrev
	} else {
		s.idleLast = q.idlePrev
	}
	q.idle, q.usedAt, q.idlePrev, q.idleNext = false, 0, 0, 0
}

// atOnce is a place in State.graves that is due in any case.
const atOnce Millis = 1

// grave is when the oldest dead job of a queue is to go, 0 for never.
func (s *State) grave(q *queue) Millis {
	if q.settings == 0 || q.dead == 0 {
		return 0
	}
	t := s.settings.at(q.settings)
	switch {
	case t.DeadMax > 0 && uint64(q.dead) > t.DeadMax:
		return atOnce
	case t.DeadFor > 0:
		return max(atOnce, AddMillis(s.jobs.at(q.deadFirst).whenAt(), t.DeadFor))
	}
	return 0
}

// regrave keeps State.graves right after a change to a queue's dead jobs or settings.
func (s *State) regrave(i uint32, q *queue) {
	at := s.grave(q)
	if at == q.graveAt {
		return
	}
	if q.graveAt != 0 {
		s.graves.remove(q.graveAt, i)
	}
	if at != 0 {
		s.graves.add(at, i)
	}
	q.graveAt = at
}

func (s *State) setPause(i uint32, until Millis) {
	q := s.queues.edit(i)
	if q.pausedUntil != 0 && q.pausedUntil != Forever {
		s.pauses.remove(q.pausedUntil, i)
	}
	if until != 0 && until != Forever {
		s.pauses.add(until, i)
	}
	q.pausedUntil = until
	s.touch(i)
}

// remember keeps what a queue did that is forgotten.
func (s *State) remember(q *queue) {
	pool, _, _ := SplitQueueKey(q.key)
	t, known := s.ended[pool]
	t.add(q.totals)
	if !known {
		pool = strings.Clone(pool) // not the whole key
	}
	if s.ended == nil {
		s.ended = map[string]Totals{}
	}
	s.ended[pool] = t
}

// Ended are the totals of queues that were forgotten, by pool, since this State was
// made: they are in no snapshot. The map is the state's own.
func (s *State) Ended() map[string]Totals { return s.ended }

// count adds to a total of the queue and to that of the store.
func (s *State) count(q *queue, add func(*Totals)) {
	add(&q.totals)
	add(&s.totals)
}
