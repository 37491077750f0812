package state

// A policy is what happens to a job that fails. Most jobs share one of a few, so
// each job holds only its number. policy 0 is none of anything.
type policy struct {
	policyValue
	refs uint32
	next uint32
}

type policyValue struct {
	tries      uint16
	backoff    Millis
	backoffMax Millis
}

func (p *policy) link() *uint32 { return &p.next }

// ownPolicy says that the policy lies in the job's extra: the table was full.
const ownPolicy = maxUint16

func (s *State) policyOfJob(j *job) policyValue {
	switch p := j.policy(); p {
	case 0:
		return policyValue{}
	case ownPolicy:
		x := s.extras.at(j.extra)
		return policyValue{x.tries, x.backoff, x.backoffMax}
	default:
		return s.policies.at(uint32(p)).policyValue
	}
}

// setPolicy gives a job without one its policy.
func (s *State) setPolicy(j *job, v policyValue) {
	if v == (policyValue{}) {
		return
	}
	if i, ok := s.policyOf[v]; ok {
		s.policies.edit(i).refs++
		j.setPolicy(uint16(i))
		return
	}
	if s.policies.next() >= ownPolicy {
		x := s.editExtra(j)
		x.tries, x.backoff, x.backoffMax = v.tries, v.backoff, v.backoffMax
		j.setPolicy(ownPolicy)
		return
	}
	i, p := s.policies.alloc()
	p.policyValue, p.refs = v, 1
	s.policyOf[v] = i
	j.setPolicy(uint16(i))
}

func (s *State) dropPolicy(j *job) {
	switch i := j.policy(); i {
	case 0:
	case ownPolicy:
		x := s.extras.edit(j.extra)
		x.tries, x.backoff, x.backoffMax = 0, 0, 0
		s.tidy(j)
	default:
		p := s.policies.edit(uint32(i))
		if p.refs--; p.refs == 0 {
			delete(s.policyOf, p.policyValue)
			s.policies.release(uint32(i))
		}
	}
	j.setPolicy(0)
}
