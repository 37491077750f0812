package engine

import (
	"pawl/state"
)

// leased is the job of a lease that holds.
func (e *Engine) leased(id state.LeaseID, o *overlay) (state.Job, error) {
	slot, ok := e.st.LookupLease(id, e.now)
	if !ok || o != nil && o.ended[slot] {
		return state.Job{}, ErrNoLease
	}
	j, _ := e.st.Job(slot)
	return j, nil
}

func (e *Engine) ack(c *Ack) error {
	c.Done = c.Done[:0]
	err := e.inParts(len(c.Leases), func(i int) bool {
		_, ok := e.st.LookupLease(c.Leases[i], e.now)
		return ok
	}, func(i int) bool {
		slot, ok := e.st.LookupLease(c.Leases[i], e.now)
		c.Done = append(c.Done, ok)
		if !ok {
			return false
		}
		if ran, ok := e.runs.ended(slot, e.now); ok {
			e.runTime.add(uint64(ran))
		}
		e.r = state.Record{Kind: state.KindAck, Slot: slot}
		e.endLease(slot)
		return true
	})
	if err == nil && len(c.Leases) == 1 && !c.Done[0] {
		return ErrNoLease
	}
	return err
}

// endLease records what e.r says of a leased job, and has the waiting look at
// its queue: MAXLEASED has room again, or the job is ready.
func (e *Engine) endLease(slot state.Slot) {
	if len(e.waiters.lines) == 0 {
		e.record(&e.r, nil)
		return
	}
	j, _ := e.st.Job(slot)
	e.record(&e.r, nil)
	e.touched(j.Queue)
}

func (e *Engine) nack(c *Nack) error {
	reason := cut(c.Reason)
	if err := e.room(recordRoom + len(reason)); err != nil {
		return err
	}
	j, err := e.leased(c.Lease, nil)
	if err != nil {
		return err
	}
	e.fail(&j, state.CauseNack, c.Delay, reason)
	return nil
}

// fail records the failure of a leased job and where it goes: to the dead
// letters when its tries are used up, to the end of its queue after the given
// delay or its backoff otherwise. There must be room.
func (e *Engine) fail(j *state.Job, cause state.Cause, delay Optional[state.Millis], reason []byte) {
	e.r = state.Record{Kind: state.KindFail, Slot: j.Slot, Cause: cause, Place: state.Ready, Text: reason}
	wait := e.backoff(j)
	if delay.Set {
		wait = clampSpan(delay.Value)
	}
	switch {
	case usedUp(j):
		e.r.Place = state.Dead
	case wait > 0:
		e.r.Place, e.r.At = state.Delayed, state.AddMillis(e.now, wait)
	}
	e.endLease(j.Slot)
}

// usedUp says that one more failure is one too many.
func usedUp(j *state.Job) bool { return j.Tries != 0 && j.Failures+1 >= uint32(j.Tries) }

// backoff is the wait after the next failure of j: base doubled for each failure
// before it, at most the maximum, and of that a random half to all, so that jobs
// that failed together do not come back together.
func (e *Engine) backoff(j *state.Job) state.Millis {
	if j.Backoff <= 0 {
		return 0
	}
	most := j.BackoffMax
	if most <= 0 {
		most = defaultBackoffMax
	}
	wait := j.Backoff
	for range j.Failures {
		if wait >= most {
			break
		}
		wait *= 2
	}
	wait = max(1, min(wait, most))
	half := (wait + 1) / 2
	return half + state.Millis(e.nonces.Uint64()%uint64(wait-half+1))
}

// defaultBackoffMax is an hour, in milliseconds.
const defaultBackoffMax state.Millis = 3_600_000

func (e *Engine) release(c *Release) error {
	if err := e.room(recordRoom); err != nil {
		return err
	}
	slot, ok := e.st.LookupLease(c.Lease, e.now)
	if !ok {
		return ErrNoLease
	}
	e.r = state.Record{Kind: state.KindRelease, Slot: slot}
	e.endLease(slot)
	return nil
}

func (e *Engine) bury(c *Bury) error {
	reason := cut(c.Reason)
	if err := e.room(recordRoom + len(reason)); err != nil {
		return err
	}
	slot, ok := e.st.LookupLease(c.Lease, e.now)
	if !ok {
		return ErrNoLease
	}
	e.r = state.Record{Kind: state.KindBury, Slot: slot, Cause: state.CauseBury, Text: reason}
	e.endLease(slot)
	return nil
}

func (e *Engine) extend(c *Extend) error {
	if err := e.room(recordRoom); err != nil {
		return err
	}
	slot, ok := e.st.LookupLease(c.Lease, e.now)
	switch {
	case !ok:
		return ErrNoLease
	case !validSpan(e.now, c.LeaseMs):
		return ErrTimeout
	}
	e.r = state.Record{Kind: state.KindExtend, Slot: slot, At: e.now + c.LeaseMs}
	e.record(&e.r, nil)
	c.Deadline = e.clock.wall(e.now + c.LeaseMs)
	return nil
}

// validSpan says whether a lease of so long from now has a deadline that can be
// written.
func validSpan(now, span state.Millis) bool {
	return span >= 0 && span <= state.MaxMillis && now+span <= state.MaxMillis
}

func cut(reason []byte) []byte { return reason[:min(len(reason), state.MaxReasonBytes)] }

// runs remembers when leases began, for the histogram of run times. It is a
// sample: a lease whose place another one has taken is not counted.
type runs [4096]struct {
	slot state.Slot
	at   state.Millis
}

func (r *runs) began(slot state.Slot, now state.Millis) {
	r[slot%state.Slot(len(r))].slot, r[slot%state.Slot(len(r))].at = slot, now
}

func (r *runs) ended(slot state.Slot, now state.Millis) (state.Millis, bool) {
	if run := &r[slot%state.Slot(len(r))]; run.slot == slot {
		run.slot = 0
		return max(0, now-run.at), true
	}
	return 0, false
}
