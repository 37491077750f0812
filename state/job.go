package state

// job is one entry of the slab of jobs: 64 bytes without a pointer, so that the
// collector never looks at it and a page is 4 KiB. Times have 48 bits, which
// leaves 16 beside each for something small.
//
// What most waiting jobs do not have lies aside, in an extra.
type job struct {
	born    uint64 // wall time of the enqueue, and how often the slot was used before
	when    uint64 // Since, Due or Deadline, by place; and the low bits of attempt
	expires uint64 // end of the TTL, 0 for none; and the policy

	delay      uint32 // seconds, for the ID
	queue      uint32
	prev, next uint32 // list of the place; delayed: left and right in the heap tree
	generation uint32
	offset     uint32
	length     uint32
	checksum   uint32
	extra      uint32

	overhead uint16 // bytes of the body that are not payload
	where    uint8  // Place, 0 for a free slot; and the bits below
	priority int8
}

const (
	placeBits = 7
	inGroup   = 1 << 3 // the job is head of its group, or waits behind it
	dueWall   = 1 << 4 // delayed: due is wall time
)

func (j *job) link() *uint32 { return &j.next }

func (j *job) place() Place       { return Place(j.where & placeBits) }
func (j *job) bornAt() Millis     { return Millis(j.born >> 16) }
func (j *job) reuse() uint16      { return uint16(j.born) }
func (j *job) whenAt() Millis     { return Millis(j.when >> 16) }
func (j *job) expiresAt() Millis  { return Millis(j.expires >> 16) }
func (j *job) policy() uint16     { return uint16(j.expires) }
func (j *job) setWhen(t Millis)   { j.when = uint64(t)<<16 | j.when&0xffff }
func (j *job) setExpiry(t Millis) { j.expires = uint64(t)<<16 | j.expires&0xffff }
func (j *job) setPolicy(p uint16) { j.expires = j.expires&^0xffff | uint64(p) }
func (j *job) size() uint32       { return j.length - uint32(j.overhead) }
func (j *job) isWall() bool       { return j.where&dueWall != 0 }
func (j *job) joined() bool       { return j.where&inGroup != 0 }
func (j *job) body() Body         { return Body{j.generation, j.offset, j.length, j.checksum} }

func (j *job) id(slot uint32) JobID {
	return NewJobID(j.bornAt(), Slot(slot), j.reuse(), j.delay)
}

// deadline is the earliest log time at which something happens to the job by
// itself: the one place under which it stands in State.deadlines.
func (j *job) deadline() (at Millis, ok bool) {
	expires := j.expiresAt()
	switch {
	case j.place() == Leased, j.place() == Delayed && !j.isWall():
		if expires == 0 || j.whenAt() < expires {
			return j.whenAt(), true
		}
	}
	return expires, expires != 0
}

// lapses says that the deadline is the end of the TTL. Where a TTL ends with a
// lease or a delay, the TTL counts.
func (j *job) lapses() bool {
	at, ok := j.deadline()
	return ok && at == j.expiresAt()
}

// extra is what few jobs have: a lease, failures, a unique key, a group. The
// zero extra is not kept.
type extra struct {
	nonce       Nonce  // leased
	failures    uint16 // stays at its maximum
	attemptHigh uint16 // attempts beyond 16 bits
	tries       uint16 // own policy, when the table of policies is full
	reason      uint32
	claim       uint32
	group       uint32
	backoff     Millis // own policy
	backoffMax  Millis // own policy
}

func (x *extra) link() *uint32 { return &x.claim }

// extra is a job's extra to read; a zero one where it has none.
func (s *State) extraOf(j *job) extra {
	if j.extra == 0 {
		return extra{}
	}
	return *s.extras.at(j.extra)
}

// editExtra is a job's extra to write. tidy must follow what takes away from it.
func (s *State) editExtra(j *job) *extra {
	if j.extra == 0 {
		i, x := s.extras.alloc()
		j.extra = i
		return x
	}
	return s.extras.edit(j.extra)
}

// tidy frees an extra that says nothing any more.
func (s *State) tidy(j *job) {
	if j.extra != 0 && *s.extras.at(j.extra) == (extra{}) {
		s.extras.release(j.extra)
		j.extra = 0
	}
}

func (s *State) attempt(j *job) uint32 {
	return uint32(s.extraOf(j).attemptHigh)<<16 | uint32(uint16(j.when))
}

// countAttempt never falls: it stays at its maximum.
func (s *State) countAttempt(j *job) {
	n := s.attempt(j)
	if n == maxUint32 {
		return
	}
	n++
	j.when = j.when&^0xffff | uint64(n&0xffff)
	if n > maxUint16 {
		s.editExtra(j).attemptHigh = uint16(n >> 16)
	}
}

// begin makes a job that is in no place yet.
func (s *State) begin(r *Record, b Body) (uint32, *job) {
	slot, j := s.jobs.alloc()
	j.born = uint64(r.Born)<<16 | uint64(j.reuse())
	j.delay = r.Delay
	j.queue = uint32(r.Queue)
	j.priority = r.Priority
	j.overhead = r.Overhead
	j.setExpiry(r.Expires)
	s.setPolicy(j, policyValue{r.Tries, r.Backoff, r.BackoffMax})
	s.placeBody(j, b)
	return slot, j
}

// end frees a job that has been taken from its place and group.
func (s *State) end(slot uint32, j *job) {
	s.dropBody(j)
	s.dropPolicy(j)
	if j.extra != 0 {
		if reason := s.extras.at(j.extra).reason; reason != 0 {
			s.dropReason(reason)
		}
		s.dropGroup(j)
		s.settle(j)
		s.extras.release(j.extra)
	}
	reuse := j.reuse() + 1
	s.jobs.release(slot).born = uint64(reuse)
}

func (s *State) placeBody(j *job, b Body) {
	j.generation, j.offset, j.length, j.checksum = b.Generation, b.Offset, b.Length, b.Checksum
	s.addLive(Live{Generation: b.Generation, Jobs: 1, Bytes: uint64(b.Length)})
}

// addLive counts jobs whose bodies lie in one generation.
func (s *State) addLive(more Live) {
	if more.Jobs == 0 {
		return
	}
	l := s.lives[more.Generation]
	s.lives[more.Generation] = Live{more.Generation, l.Jobs + more.Jobs, l.Bytes + more.Bytes}
}

func (s *State) dropBody(j *job) {
	l := s.lives[j.generation]
	l.Jobs--
	l.Bytes -= uint64(j.length)
	if l.Jobs == 0 {
		delete(s.lives, j.generation)
		return
	}
	s.lives[j.generation] = l
}
