package state

import "slices"

// A replay of a long log enqueues jobs by the hundred thousand, and each delayed
// one of them would look for its place in a tree and in an index of all that wait:
// some thirty steps through memory. So a state that replays lets such jobs be late,
// in no tree and in no index of times, until something asks for the order, and
// then brings all of them in at once, sorted. What comes out is the same.

// late is a bit of job.where that no snapshot has: the job is in State.late, and
// in nothing that is ordered by time.
const late = 1 << 5

// lateMost bounds how many jobs are late between two records, and the memory to
// sort them. Tests make it small.
var lateMost = 1 << 20

// manyLate is for how many it pays at all to look at the whole state.
var manyLate = 1 << 12

// BeginReplay says that many records will be applied before anything is asked
// for but Counts. EndReplay must follow.
func (s *State) BeginReplay() { s.replaying = true }

// EndReplay says that from now on all may be asked for again. After BeginReplay,
// some records and EndReplay the state is what it would be with the records alone.
func (s *State) EndReplay() {
	s.orderLate()
	s.late, s.replaying = nil, false
}

// putOff says that a job, which has just been brought to its place, is late: its
// due time and its deadline are seen to by orderLate.
func (s *State) putOff(slot uint32, j *job) bool {
	if !s.replaying {
		return false
	}
	switch j.place() {
	case Delayed:
	case Ready:
		if _, ok := j.deadline(); !ok {
			return false
		}
	default:
		return false
	}
	j.where |= late
	s.late = append(s.late, slot)
	return true
}

// orderLate brings all late jobs to where they belong.
func (s *State) orderLate() {
	if len(s.late) == 0 {
		return
	}
	var logs, walls, ends []mark // due by log time, by wall time; deadlines that are not such due times
	lapses := false
	for _, slot := range s.late {
		// A job that left its place is late no more; one that came back may stand
		// here twice.
		if s.jobs.at(slot).where&late == 0 {
			continue
		}
		j := s.jobs.edit(slot)
		j.where &^= late
		at, timed := j.deadline()
		isDue := false
		switch {
		case j.place() != Delayed:
		case j.isWall():
			walls = append(walls, mark{j.whenAt(), slot})
		default:
			logs = append(logs, mark{j.whenAt(), slot})
			isDue = at == j.whenAt()
			lapses = lapses || !isDue
		}
		if timed && !isDue {
			ends = append(ends, mark{at, slot})
		}
	}
	s.late = s.late[:0]
	sortMarks(logs)
	sortMarks(walls)
	sortMarks(ends)
	s.walls.addAll(walls)
	s.deadlines.addAll(ends)
	due := logs
	if lapses {
		due = slices.DeleteFunc(slices.Clone(logs), func(m mark) bool {
			at, _ := s.jobs.at(m.id).deadline()
			return at != m.at
		})
	}
	s.deadlines.addAll(due)
	s.plantSorted(logs, false)
	s.plantSorted(walls, true)
}

// plantSorted brings delayed jobs into their trees. The index has them already.
func (s *State) plantSorted(sorted []mark, wall bool) {
	// By profile replanting costs 0.04 µs for each job of the state, as it is done
	// in order of memory; a union 4 µs for each that is new, one step after the other.
	if len(sorted) > manyLate && len(sorted) >= int(s.jobs.used)/80 {
		s.replant(wall)
		return
	}
	s.plantAll(sorted, wall)
}
