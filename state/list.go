package state

// Lists of jobs are doubly linked through the jobs themselves. A list is its
// two ends; both are 0 when it is empty.

func (s *State) pushBack(slot uint32, j *job, first, last *uint32) {
	j.prev, j.next = *last, 0
	if j.prev != 0 {
		s.jobs.edit(j.prev).next = slot
	} else {
		*first = slot
	}
	*last = slot
}

func (s *State) pushFront(slot uint32, j *job, first, last *uint32) {
	j.prev, j.next = 0, *first
	if j.next != 0 {
		s.jobs.edit(j.next).prev = slot
	} else {
		*last = slot
	}
	*first = slot
}

func (s *State) unlink(j *job, first, last *uint32) {
	if j.prev != 0 {
		s.jobs.edit(j.prev).next = j.next
	} else {
		*first = j.next
	}
	if j.next != 0 {
		s.jobs.edit(j.next).prev = j.prev
	} else {
		*last = j.prev
	}
	j.prev, j.next = 0, 0
}
