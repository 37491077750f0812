//go:build linux

package main

// modelOf has the reference of the engine catch a rule that is broken, with a
// thirtieth of the commands that CI plays.
const modelOf = "model ./engine TestModel 30000"

// rules are breaks of what docs/commands.md and docs/concepts.md say about a
// job's life, one of each kind. The reference of the engine must notice each of
// them: they are what its teeth are measured by.
var rules = []plant{
	{
		"RELEASE counts as a failure", "state/lease.go",
		"	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Released++ })\n",
		"	s.count(s.queues.edit(j.queue), func(t *Totals) { t.Released++ })\n	s.editExtra(j).failures++\n",
		modelOf,
	},
	{
		"RELEASE puts the job at the tail", "state/lease.go",
		"	s.put(uint32(r.Slot), j, Ready, s.now, true)",
		"	s.put(uint32(r.Slot), j, Ready, s.now, false)",
		modelOf,
	},
	{
		"a job has one try more", "engine/lease.go",
		"return j.Tries != 0 && j.Failures+1 >= uint32(j.Tries)",
		"return j.Tries != 0 && j.Failures >= uint32(j.Tries)",
		modelOf,
	},
	{
		"the attempt is not raised after a redrive", "state/lease.go",
		"	s.countAttempt(j)\n",
		"	if s.extraOf(j).failures != 0 || uint16(j.when) == 0 {\n		s.countAttempt(j)\n	}\n",
		modelOf,
	},
	{
		"a lease holds at its deadline", "state/read.go",
		"	return id.Slot, now < end\n",
		"	return id.Slot, now <= end\n",
		modelOf,
	},
	{
		"a lease holds beyond the job's TTL", "state/read.go",
		"	end, _ := j.deadline()\n	return id.Slot, now < end",
		"	end := j.whenAt()\n	return id.Slot, now < end",
		modelOf,
	},
	{
		"the backoff is not doubled", "engine/lease.go",
		"		wait *= 2\n",
		"		wait *= 1\n",
		modelOf,
	},
	{
		"MAX of a backoff is not kept", "engine/lease.go",
		"	wait = max(1, min(wait, most))\n",
		"	wait = max(1, wait)\n",
		modelOf,
	},
	{
		"NACK DELAY 0 takes the backoff", "engine/lease.go",
		"	if delay.Set {\n",
		"	if delay.Set && delay.Value > 0 {\n",
		modelOf,
	},
	{
		"lower priority first", "state/ready.go",
		"		if l.priority < priority {\n			break",
		"		if l.priority > priority {\n			break",
		modelOf,
	},
	{
		"a head that comes back goes behind its group", "state/group.go",
		"	if i == 0 || j.joined() {\n",
		"	if i == 0 {\n",
		modelOf,
	},
	{
		"a group stays at the head of its queue", "state/group.go",
		"	s.linkReady(g.head, next, q, false)\n",
		"	s.linkReady(g.head, next, q, true)\n",
		modelOf,
	},
	{
		"a group is last in, first out", "state/group.go",
		"	s.pushBack(slot, j, &g.first, &g.last)\n	if g.first == g.last {",
		"	s.pushFront(slot, j, &g.first, &g.last)\n	if g.first == g.last {",
		modelOf,
	},
	{
		"a unique key is free as soon as its job is gone", "state/claim.go",
		"	case c.until <= s.now:\n		if wasDead {",
		"	case c.until <= s.now || c.slot == 0:\n		if wasDead {",
		modelOf,
	},
	{
		"a dead job holds its unique key", "state/claim.go",
		"	return c.slot != 0 && s.jobs.at(c.slot).place() != Dead\n",
		"	return c.slot != 0\n",
		modelOf,
	},
	{
		"a unique key is held a millisecond too long", "state/claim.go",
		"!s.alive(c) && c.until <= now {",
		"!s.alive(c) && c.until < now {",
		"model ./engine TestModel 300000", // it takes a command in that very millisecond, before the reaper
	},
	{
		"DEADMAX keeps one more", "state/queue.go",
		"	case t.DeadMax > 0 && uint64(q.dead) > t.DeadMax:\n		return atOnce",
		"	case t.DeadMax > 0 && uint64(q.dead) > t.DeadMax+1:\n		return atOnce",
		modelOf,
	},
	{
		"DEADFOR is not looked at", "state/queue.go",
		"	case t.DeadFor > 0:\n",
		"	case t.DeadFor > MaxMillis:\n",
		modelOf,
	},
	{
		"MAXLEN counts the dead", "engine/enqueue.go",
		"	jobs += int64(now.Ready) + int64(now.Delayed) + int64(now.Leased) + grown.jobs\n",
		"	jobs += int64(now.Ready) + int64(now.Delayed) + int64(now.Leased) + int64(now.Dead) + grown.jobs\n",
		modelOf,
	},
	{
		"MAXLEASED allows one more", "state/read.go",
		"		if t.MaxLeased > 0 && q.leased >= t.MaxLeased {",
		"		if t.MaxLeased > 0 && q.leased > t.MaxLeased {",
		modelOf,
	},
	{
		"RATE hands out a period's jobs at once", "state/read.go",
		"	hi, lo := bits.Mul64(uint64(min(q.rateUsed, t.RateCount)), uint64(t.RatePer))\n",
		"	hi, lo := bits.Mul64(uint64(q.rateUsed/t.RateCount*t.RateCount), uint64(t.RatePer))\n",
		modelOf,
	},
	{
		"a pause does not end", "engine/turn.go",
		"		e.record(&state.Record{Kind: state.KindResume, Queue: due.Queue}, nil)\n		e.touched(due.Queue)\n",
		"		e.record(&state.Record{Kind: state.KindPause, Queue: due.Queue, At: state.Forever}, nil)\n",
		modelOf,
	},
	{
		"a drain lets transactions through", "engine/enqueue.go",
		"	case e.st.Draining():\n",
		"	case e.st.Draining() && o == nil:\n",
		modelOf,
	},
	{
		"a transaction does not see its own jobs", "engine/multi.go",
		"	o.grow(queue, 1, int64(len(c.Payload)))\n",
		"",
		modelOf,
	},
	{
		"a redrive keeps the failures", "state/operate.go",
		"		s.extras.edit(j.extra).failures = 0\n",
		"",
		modelOf,
	},
	{
		"a redrive takes the youngest first", "engine/mass.go",
		"		e.slots = e.st.Page(e.slots[:0], q, place, *after, 16)\n",
		"		e.slots = e.st.Page(e.slots[:0], q, place, *after, 16)\n		if m.limit > 0 {\n			for i, k := 0, len(e.slots)-1; i < k; i, k = i+1, k-1 {\n				e.slots[i], e.slots[k] = e.slots[k], e.slots[i]\n			}\n		}\n",
		modelOf,
	},
	{
		"CATCHUP one fires for no missed slot", "engine/cron.go",
		"	default:\n		return slot, onTime, true",
		"	default:\n		return slot, onTime, false",
		modelOf,
	},
	{
		"a slot within the last minute counts as missed", "engine/cron.go",
		"	if slot > wall-onTimeMs {\n		return slot, nextSlot(s, slot), true\n	}\n	onTime := nextSlot(s, wall-onTimeMs)\n",
		"	onTime := nextSlot(s, wall)\n",
		modelOf,
	},
	{
		"a TTL counts from the redrive's job, not from now", "engine/mass.go",
		"		rec.Expires = state.AddMillis(e.now, clampSpan(r.TTL.Value))\n",
		"		rec.Expires = state.AddMillis(j.Since, clampSpan(r.TTL.Value))\n",
		modelOf,
	},
	{
		"attempts are lost with a power cut", "state/learn.go",
		"	c.run.Jobs++\n",
		"	j.when &^= 0xffff\n	c.run.Jobs++\n",
		modelOf,
	},
}
