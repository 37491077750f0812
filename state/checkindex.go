package state

// checkIndexes checks that maps, indexes and sums say what the tables say, which
// are right.
func (s *State) checkIndexes() error {
	c := &checker{State: s}
	var jobs [5]uint64
	var bytes uint64
	var deadlines, walls, windows, pauses, graves, fires int
	lives := map[uint32]Live{}
	has := func(x index, n *int, what string, at Millis, i uint32) {
		*n++
		if !x.has(at, i) {
			c.fail("%s %d at %d is not in its index", what, i, at)
		}
	}
	each(&s.jobs, func(i uint32, j *job) {
		if j.where == 0 {
			return
		}
		jobs[j.place()]++
		if j.place() != Dead {
			bytes += uint64(j.size())
		}
		l := lives[j.generation]
		lives[j.generation] = Live{j.generation, l.Jobs + 1, l.Bytes + uint64(j.length)}
		if at, ok := j.deadline(); ok {
			has(s.deadlines, &deadlines, "job", at, i)
		}
		if j.isWall() {
			has(s.walls, &walls, "job", j.whenAt(), i)
		}
	})
	each(&s.claims, func(i uint32, l *claim) {
		if l.serial == 0 || !l.held {
			return
		}
		if s.claimOf.find(l.name()) != i {
			c.fail("claim %d is not the one of its key", i)
		}
		if !s.alive(l) {
			has(s.windows, &windows, "claim", l.until, i)
		}
	})
	s.queues.each(func(i uint32, q *queue) {
		if s.queueOf.find([]byte(q.key)) != i {
			c.fail("queue %d is not the one of its key", i)
		}
		if q.pausedUntil != 0 && q.pausedUntil != Forever {
			has(s.pauses, &pauses, "queue", q.pausedUntil, i)
		}
		if q.graveAt != 0 {
			has(s.graves, &graves, "queue", q.graveAt, i)
		}
	})
	each(&s.groups, func(i uint32, g *group) {
		if g.serial != 0 && s.groupOf.find(queueText{g.serial, g.key}) != i {
			c.fail("group %d is not the one of its key", i)
		}
	})
	each(&s.reasons, func(i uint32, r *reason) {
		if r.refs != 0 && s.reasonOf.find(r.queue, []byte(r.text)) != i {
			c.fail("reason %d is not the one of its text", i)
		}
	})
	each(&s.policies, func(i uint32, p *policy) {
		if p.refs != 0 && s.policyOf[p.policyValue] != i {
			c.fail("policy %d is not the one of its values", i)
		}
	})
	each(&s.crons, func(i uint32, e *cron) {
		if e.Name == "" {
			return
		}
		if s.cronOf[e.key()] != i {
			c.fail("cron %d is not the one of its name", i)
		}
		if e.Next != 0 {
			has(s.fires, &fires, "cron", e.Next, i)
		}
	})
	each(&s.metas, func(i uint32, m *meta) {
		if m.key != "" && s.metaOf[m.key] != i {
			c.fail("value %d is not the one of its key", i)
		}
	})
	c.checkSizes([]size{
		{"deadlines", s.deadlines.len(), deadlines},
		{"due wall times", s.walls.len(), walls},
		{"windows", s.windows.len(), windows},
		{"pauses", s.pauses.len(), pauses},
		{"graves", s.graves.len(), graves},
		{"crons that fire", s.fires.len(), fires},
		{"generations", len(s.lives), len(lives)},
		{"payload bytes", int(s.bytes), int(bytes)},
	})
	if c.err == nil {
		c.err = s.checkNames()
	}
	if jobs != s.jobsIn {
		c.fail("jobs by place %v, want %v", s.jobsIn, jobs)
	}
	for generation, l := range lives {
		if s.lives[generation] != l {
			c.fail("generation %d: %v, want %v", generation, s.lives[generation], l)
		}
	}
	return c.err
}

// checkNames checks that no two entries of a table have one name: the maps would
// hold one of them only. It is all that the maps and indexes can be wrong about
// after reindex has made them from tables that are right.
func (s *State) checkNames() error {
	c := &checker{State: s}
	held := 0
	each(&s.claims, func(_ uint32, l *claim) {
		if l.held {
			held++
		}
	})
	serials := make(map[uint64]bool, s.queueOf.count)
	s.queues.each(func(_ uint32, q *queue) { serials[q.serial] = true })
	c.checkSizes([]size{
		{"held keys", s.claimOf.count, held},
		{"queues", s.queueOf.count, int(s.queues.used)},
		{"serials", len(serials), int(s.queues.used)},
		{"groups", s.groupOf.count, int(s.groups.used)},
		{"reasons", s.reasonOf.count, int(s.reasons.used)},
		{"policies", len(s.policyOf), int(s.policies.used)},
		{"crons", len(s.cronOf), int(s.crons.used)},
		{"values", len(s.metaOf), int(s.metas.used)},
	})
	return c.err
}

type size struct {
	what      string
	got, want int
}

func (c *checker) checkSizes(all []size) {
	for _, n := range all {
		if n.got != n.want {
			c.fail("%d %s in the index, want %d", n.got, n.what, n.want)
		}
	}
}
