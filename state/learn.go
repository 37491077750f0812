package state

// loading is what a checker gathers for a state that is loaded, while it looks at
// each job.
type loading struct {
	ends, dues span   // of what is to stand in State.deadlines and State.walls
	run        Live   // of neighbours whose bodies lie in one generation
	plan       plan   // of the trees of delayed jobs, nil where there are none
	strays     []mark // jobs that stray, by due time
}

// loadTables checks tables that were just read, as Check does, and counts and
// indexes their jobs on the way: so each of millions is visited a few times only.
func (s *State) loadTables() error {
	c := &checker{State: s, loads: true}
	return c.checkTables()
}

// learn is told of each job, in order of slots, after it was checked by itself.
func (c *checker) learn(slot uint32, j *job) {
	if j.generation != c.run.Generation {
		c.addLive(c.run)
		c.run = Live{Generation: j.generation}
	}
	c.run.Jobs++
	c.run.Bytes += uint64(j.length)
	if at, ok := j.deadline(); ok {
		c.ends.add(at)
	}
	if j.place() != Delayed {
		return
	}
	if c.plan == nil {
		c.plan = c.newPlan()
	}
	switch {
	case j.isWall():
		c.dues.add(j.whenAt())
		c.plan.enter(slot, j)
	case j.strays():
		c.strays = append(c.strays, mark{j.whenAt(), slot})
	default:
		c.plan.enter(slot, j)
	}
}

// load gives a state that is loaded what was learned of its jobs, and compares
// the trees of delayed jobs. Where they are not right, checkTree is to say what is
// wrong.
func (c *checker) load() bool {
	if !c.loads {
		return true
	}
	c.addLive(c.run)
	for i := range c.sums {
		for p, n := range c.sums[i].in {
			c.jobsIn[p] += uint64(n)
		}
		c.bytes += c.sums[i].bytes
	}
	c.fillTimes(c.ends, c.dues)
	c.planted = c.checkPlanted()
	if !c.planted {
		clear(c.listed)
	}
	return true
}
