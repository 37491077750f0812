package state

// checkFree follows the lists of free entries.
func (c *checker) checkFree() (ok bool) {
	if c.free.jobs, ok = freeEntries(c, "jobs", &c.jobs); !ok {
		return false
	}
	if c.free.queues, ok = freeEntries(c, "queues", &c.queues.slab); !ok {
		return false
	}
	if c.free.extras, ok = freeEntries(c, "extras", &c.extras); !ok {
		return false
	}
	if c.free.levels, ok = freeEntries(c, "levels", &c.levels); !ok {
		return false
	}
	if c.free.groups, ok = freeEntries(c, "groups", &c.groups); !ok {
		return false
	}
	if c.free.claims, ok = freeEntries(c, "claims", &c.claims); !ok {
		return false
	}
	if c.free.reasons, ok = freeEntries(c, "reasons", &c.reasons); !ok {
		return false
	}
	if c.free.policies, ok = freeEntries(c, "policies", &c.policies); !ok {
		return false
	}
	if c.free.settings, ok = freeEntries(c, "settings", &c.settings); !ok {
		return false
	}
	return true
}

// freeEntries says which entries of a table are free. A free entry is zero but
// for its link, and for what a job's slot remembers.
func freeEntries[T comparable, P entry[T]](c *checker, name string, s *slab[T, P]) (free []bool, ok bool) {
	free = make([]bool, uint64(s.last)+1)
	n := uint32(0)
	e := new(T) // one for all: it escapes
	for i, next := s.free, uint32(0); i != 0; i = next {
		if !s.has(i) || free[i] {
			return nil, c.fail("%s: free list leads to %d", name, i)
		}
		free[i] = true
		n++
		s.read(i, e)
		next = *P(e).link()
		if _, isJob := any(*e).(job); isJob {
			continue
		}
		*P(e).link() = 0
		if *e != *new(T) {
			return nil, c.fail("%s: entry %d is free and not empty", name, i)
		}
	}
	if n != s.last-s.used {
		return nil, c.fail("%s: %d free entries, want %d", name, n, s.last-s.used)
	}
	if c.loads {
		s.unpackUsed(free)
	}
	return free, true
}

// checkFreeJob checks a job that is free, by the list of those or by itself.
func (c *checker) checkFreeJob(i uint32, j *job, free bool) bool {
	switch {
	case free != (j.where == 0):
		return c.fail("job %d: free %v, place %d", i, free, j.where)
	case *j != (job{born: uint64(j.reuse()), next: j.next}):
		return c.fail("job %d is free and not empty", i)
	}
	return true
}

// inUse reports whether i is an entry that is not free.
func inUse(free []bool, i uint32) bool {
	return i != 0 && uint64(i) < uint64(len(free)) && !free[i]
}

// checkCrons checks crons and metas, whose free entries have no name.
func (c *checker) checkCrons() bool {
	crons, metas := uint32(0), uint32(0)
	each(&c.crons, func(i uint32, e *cron) {
		if e.Name != "" && e.Namespace != "" && e.next == 0 {
			crons++
		}
	})
	each(&c.metas, func(i uint32, e *meta) {
		if e.key != "" && e.next == 0 {
			metas++
		}
	})
	return c.checkNamed("crons", crons, c.crons.used, c.crons.last, c.crons.free, func(i uint32) (uint32, bool) {
		var e cron
		c.crons.read(i, &e)
		return e.next, e.Name == ""
	}) && c.checkNamed("metas", metas, c.metas.used, c.metas.last, c.metas.free, func(i uint32) (uint32, bool) {
		var e meta
		c.metas.read(i, &e)
		return e.next, e.key == ""
	})
}

func (c *checker) checkNamed(name string, named, used, last, free uint32, link func(uint32) (next uint32, empty bool)) bool {
	n := uint32(0)
	for i := free; i != 0; n++ {
		if i > last || n >= last {
			return c.fail("%s: free list leads to %d", name, i)
		}
		next, empty := link(i)
		if !empty {
			return c.fail("%s: entry %d is free and not empty", name, i)
		}
		i = next
	}
	return named == used && used+n == last || c.fail("%s: %d and %d free, want %d of %d", name, named, n, used, last)
}
