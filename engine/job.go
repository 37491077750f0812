package engine

import (
	"errors"

	"pawl/state"
	"pawl/wal"
)

// view is a job as operators see it, with a hold on its body.
func (e *Engine) view(j *state.Job) JobView {
	v := JobView{
		ID: j.ID, Queue: e.st.QueueKey(j.Queue), Place: j.Place, Priority: j.Priority,
		Attempt: j.Attempt, Failures: j.Failures, Tries: j.Tries, Backoff: Backoff{j.Backoff, j.BackoffMax},
		EnqueuedAt: j.ID.Wall(), ExpiresAt: e.clock.wall(j.Expires), Reason: j.Reason, Bytes: int(j.Size),
		body: e.holdBody(j), keyless: j.Unique == (state.Key{}),
	}
	switch j.Place {
	case state.Delayed:
		v.DueAt = j.Due
		if !j.DueWall {
			v.DueAt = e.clock.wall(j.Due)
		}
	case state.Leased:
		v.Deadline, v.Lease = e.clock.wall(j.Deadline), j.Lease
	case state.Dead:
		v.DiedAt = e.clock.wall(j.Since)
	}
	return v
}

// ownedBy finds a job; where queue is given it must be that one's.
func (e *Engine) ownedBy(id state.JobID, queue []byte) (state.Job, bool) {
	slot, ok := e.st.Lookup(id)
	if !ok {
		return state.Job{}, false
	}
	j, _ := e.st.Job(slot)
	if queue != nil && e.st.QueueKey(j.Queue) != string(queue) {
		return state.Job{}, false
	}
	return j, true
}

func (e *Engine) jobGet(c *JobGet) error {
	c.Found, c.Job = false, JobView{}
	if j, ok := e.ownedBy(c.ID, c.Queue); ok {
		c.Found, c.Job = true, e.view(&j)
	}
	return nil
}

func (e *Engine) jobDelete(c *JobDelete) error {
	c.Deleted = 0
	return e.inParts(len(c.IDs), func(i int) bool {
		_, ok := e.ownedBy(c.IDs[i], c.Queue)
		return ok
	}, func(i int) bool {
		j, ok := e.ownedBy(c.IDs[i], c.Queue)
		if !ok {
			return false
		}
		e.record(&state.Record{Kind: state.KindDelete, Slot: j.Slot, Cause: state.CauseDelete}, nil)
		e.touched(j.Queue) // the next of its group, or MAXLEASED, may be free
		c.Deleted++
		return true
	})
}

// prepareEdit reads what stands before the payload in the present body, which
// the new one keeps. What it finds is checked again in the critical section.
func (e *Engine) prepareEdit(c *JobEdit) {
	c.prefix, c.of = nil, state.Body{}
	get := &JobGet{ID: c.ID}
	if !e.enter() {
		return
	}
	get.refuse(e.jobGet(get))
	lsn := e.leave()
	if !get.Found {
		return
	}
	b := &get.Job.body
	defer e.dropBody(b)
	c.of = state.Body(b.pos)
	if b.overhead == 0 || e.Wait(lsn) != nil {
		return
	}
	raw, err := e.log.Read(b.pos, nil)
	if err == nil {
		c.prefix = raw[:b.overhead]
	}
	if _, rotten := errors.AsType[*wal.CorruptError](err); rotten {
		e.buryDamaged(*b, err)
	}
}

func (e *Engine) jobEdit(c *JobEdit) error {
	n := queueRoom(c.Queue) + wal.RecordBytes(160, len(c.prefix)+len(c.Payload))
	if err := e.room(n); err != nil {
		return err
	}
	slot, ok := e.st.Lookup(c.ID)
	if !ok {
		return ErrNoJob
	}
	j, _ := e.st.Job(slot)
	if j.Place == state.Leased {
		return ErrBusyJob
	}
	switch c.Kind {
	case EditRun:
		return e.editRun(&j)
	case EditDelay:
		return e.editDelay(c, &j)
	case EditPriority:
		e.record(&state.Record{Kind: state.KindPriority, Slot: slot, Priority: c.Priority}, nil)
		e.touched(j.Queue)
		return nil
	case EditPayload:
		return e.editPayload(c, &j)
	case EditMove:
		return e.editMove(c, &j)
	}
	return ErrNoJob
}

// revives says whether a dead job may count for its queue again.
func (e *Engine) revives(j *state.Job, q state.QueueID) error {
	if j.Place != state.Dead {
		return nil
	}
	settings := e.st.Settings(q)
	return e.fits(q, nil, &settings, 1, int64(j.Size), nil)
}

func (e *Engine) editRun(j *state.Job) error {
	if j.Place == state.Ready {
		return nil
	}
	if err := e.revives(j, j.Queue); err != nil {
		return err
	}
	e.record(&state.Record{Kind: state.KindRun, Slot: j.Slot, DropKey: e.losesKey(j)}, nil)
	e.touched(j.Queue)
	return nil
}

// losesKey says that a dead job comes back without its unique key, because
// another one has it by now.
func (e *Engine) losesKey(j *state.Job) bool {
	return j.Place == state.Dead && e.st.KeyTaken(j.Slot, j.Queue, e.now)
}

func (e *Engine) editDelay(c *JobEdit, j *state.Job) error {
	if c.Delay <= 0 {
		return e.editRun(j)
	}
	delay := clampSpan(c.Delay)
	if j.Expires != 0 && e.now+delay >= j.Expires {
		return ErrTTLShorter
	}
	if err := e.revives(j, j.Queue); err != nil {
		return err
	}
	e.record(&state.Record{Kind: state.KindDelay, Slot: j.Slot, At: state.AddMillis(e.now, delay), DropKey: e.losesKey(j)}, nil)
	e.touched(j.Queue) // the next of its group may be free
	return nil
}

func (e *Engine) editPayload(c *JobEdit, j *state.Job) error {
	switch {
	case len(c.Payload) > e.opt.MaxPayload:
		return ErrTooLarge
	case int(j.Body.Length-j.Size) != len(c.prefix), len(c.prefix) > 0 && j.Body != c.of:
		// Its body is another one by now, or could not be read.
		return ErrBusyJob
	case e.full.Load():
		return ErrNoSpace
	}
	if j.Place != state.Dead {
		settings := e.st.Settings(j.Queue)
		if more := int64(len(c.Payload)) - int64(j.Size); more > 0 {
			if settings.MaxLen = 0; e.fits(j.Queue, nil, &settings, 0, more, nil) != nil {
				return ErrQueueFull
			}
		}
	}
	e.body = append(append(e.body[:0], c.prefix...), c.Payload...)
	e.record(&state.Record{Kind: state.KindPayload, Slot: j.Slot, Overhead: uint16(len(c.prefix))}, e.body)
	return nil
}

func (e *Engine) editMove(c *JobEdit, j *state.Job) error {
	if err := checkQueueKey(c.Queue); err != nil {
		return err
	}
	if q, ok := e.st.QueueByKey(c.Queue); ok {
		if q == j.Queue {
			return nil
		}
		if e.st.KeyTaken(j.Slot, q, e.now) {
			return ErrUniqueTaken
		}
		if j.Place != state.Dead {
			settings := e.st.Settings(q)
			if err := e.fits(q, nil, &settings, 1, int64(j.Size), nil); err != nil {
				return err
			}
		}
	}
	q, err := e.needQueue(c.Queue)
	if err != nil {
		return err
	}
	e.record(&state.Record{Kind: state.KindMove, Slot: j.Slot, Queue: q}, nil)
	e.touched(q)
	e.touched(j.Queue)
	return nil
}
