package state

// A reason is the text of failures of jobs in one queue. Failing jobs tend to
// fail alike, so each text is kept once per queue, at most MaxReasons of them.
type reason struct {
	text  string
	queue uint32
	refs  uint32
	next  uint32
}

func (r *reason) link() *uint32 { return &r.next }

type reasonText struct {
	queue uint32
	text  string
}

// otherReason stands for what does not fit a full queue any more.
const otherReason = "other"

// setReason replaces the reason of a job; empty is none.
func (s *State) setReason(j *job, text []byte) {
	old := s.extraOf(j).reason
	if old == 0 && len(text) == 0 {
		return
	}
	x := s.editExtra(j)
	// The new one first: it may be the old one.
	x.reason = s.reasonFor(j.queue, text)
	if old != 0 {
		s.dropReason(old)
	}
	s.tidy(j)
}

func (s *State) reasonFor(q uint32, text []byte) uint32 {
	if len(text) == 0 {
		return 0
	}
	i := s.reasonOf.find(q, text)
	if i == 0 && s.queues.at(q).reasons >= MaxReasons {
		text = []byte(otherReason)
		i = s.reasonOf.find(q, text)
	}
	if i != 0 {
		s.reasons.edit(i).refs++
		return i
	}
	i, r := s.reasons.alloc()
	r.text, r.queue, r.refs = string(text), q, 1
	s.reasonOf.add(reasonText{q, r.text}, i)
	s.queues.edit(q).reasons++
	return i
}

func (s *State) dropReason(i uint32) {
	r := s.reasons.edit(i)
	if r.refs--; r.refs > 0 {
		return
	}
	s.queues.edit(r.queue).reasons--
	s.reasonOf.remove(reasonText{r.queue, r.text})
	s.reasons.release(i)
}
