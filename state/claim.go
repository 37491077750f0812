package state

// A claim is what a job has on its unique key. While the claim is held, a repeat
// of the key in the queue is a duplicate. It is held while the job lives (ready,
// delayed or leased), and in any case until the end of its window, even when the
// job is dead or gone; such claims stand in State.windows. A dead job whose window
// is over keeps its claim but holds it no more: brought back to life it takes
// the key again, if it can.
type claim struct {
	serial uint64 // of the queue; 0 for a free entry
	key    Key
	id     JobID
	until  Millis // end of the window
	queue  uint32
	slot   uint32 // the job, 0 when it is gone
	next   uint32 // free: next free entry
	held   bool
}

func (c *claim) link() *uint32 { return &c.next }

func (c *claim) name() queueText { return queueText{c.serial, c.key} }

// alive says that the claim's job is neither dead nor gone.
func (s *State) alive(c *claim) bool {
	return c.slot != 0 && s.jobs.at(c.slot).place() != Dead
}

// holder is the claim that keeps key from being used in q at now, 0 for none.
func (s *State) holder(q uint32, key Key, now Millis) uint32 {
	i := s.claimOf.find(queueText{s.queues.at(q).serial, key})
	if i == 0 {
		return 0
	}
	if c := s.claims.at(i); !s.alive(c) && c.until <= now {
		return 0
	}
	return i
}

// stake gives a new job its unique key, which is free; the zero key is none.
func (s *State) stake(slot uint32, j *job, key Key, until Millis) {
	if key == (Key{}) {
		return
	}
	i, c := s.claims.alloc()
	c.key, c.id, c.until, c.slot = key, j.id(slot), until, slot
	s.editExtra(j).claim = i
	s.hold(i, c, j.queue)
}

// hold makes a claim held in q, in place of one that is over, if there is.
func (s *State) hold(i uint32, c *claim, q uint32) {
	c.queue, c.serial = q, s.queues.at(q).serial
	if stale := s.claimOf.find(c.name()); stale != 0 {
		old := s.claims.edit(stale)
		s.windows.remove(old.until, stale)
		s.letGo(stale, old)
	}
	c.held = true
	s.claimOf.add(c.name(), i)
	s.queues.edit(q).claims++
}

// letGo makes a claim not held. Without a job it is gone.
func (s *State) letGo(i uint32, c *claim) {
	s.claimOf.remove(c.name())
	c.held = false
	// The queue may have been forgotten with the claim still held.
	if s.queues.at(c.queue).serial == c.serial {
		s.queues.edit(c.queue).claims--
	}
	if c.slot == 0 {
		s.claims.release(i)
	}
}

// settle is for the claim of a job that is dead by now, or about to end.
func (s *State) settle(j *job) {
	i := s.extraOf(j).claim
	if i == 0 {
		return
	}
	c := s.claims.edit(i)
	wasDead := s.windows.has(c.until, i)
	if j.place() != Dead {
		c.slot = 0
	}
	switch {
	case !c.held:
		if c.slot == 0 {
			s.claims.release(i)
		}
	case c.until <= s.now:
		if wasDead {
			s.windows.remove(c.until, i)
		}
		s.letGo(i, c)
	case !wasDead:
		s.windows.add(c.until, i)
	}
}

// revive is for the claim of a dead job that is about to live again in queue q;
// drop lets the job go on without it.
func (s *State) revive(j *job, q uint32, drop bool) {
	i := s.extraOf(j).claim
	if i == 0 {
		return
	}
	c := s.claims.edit(i)
	if c.held {
		s.windows.remove(c.until, i)
		if c.queue == q && !drop {
			return
		}
		s.letGo(i, c)
	}
	if drop {
		s.editExtra(j).claim = 0
		s.claims.release(i)
		s.tidy(j)
		return
	}
	s.hold(i, c, q)
}

// moveClaim takes the claim of a job along to queue q, where the key is free.
func (s *State) moveClaim(j *job, q uint32) {
	i := s.extraOf(j).claim
	if i == 0 {
		return
	}
	c := s.claims.edit(i)
	if !c.held {
		c.queue, c.serial = q, s.queues.at(q).serial
		return
	}
	s.letGo(i, c)
	s.hold(i, c, q)
}
