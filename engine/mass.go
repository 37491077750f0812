package engine

import (
	"context"
	"time"

	"pawl/state"
)

// Purge runs a QueuePurge in turns and returns when its last record is durable.
// What came into the queue after it began stays. A context that ends stops it
// between two turns; Removed says how far it came.
func (e *Engine) Purge(ctx context.Context, p *QueuePurge) error {
	p.Removed = 0
	p.refuse(checkQueueKey(p.Queue))
	if p.Err() != nil {
		return nil
	}
	places := p.Places
	if len(places) == 0 {
		places = []state.Place{state.Ready, state.Delayed}
	}
	m := mass{e: e, queue: p.Queue, limit: p.Limit, done: &p.Removed}
	for _, place := range places {
		err := m.run(ctx, place, func(j *state.Job) error {
			e.record(&state.Record{Kind: state.KindDelete, Slot: j.Slot, Cause: state.CausePurge}, nil)
			e.touched(j.Queue)
			return nil
		})
		if err != nil {
			return m.end(&p.Outcome, err)
		}
	}
	return m.end(&p.Outcome, nil)
}

// Redrive runs a QueueRedrive like Purge. It stops at the first job that a limit
// of the target refuses, and jobs whose unique key is taken in another target
// stay dead; if no job moved at all that is ErrQueueFull or ErrUniqueTaken.
func (e *Engine) Redrive(ctx context.Context, r *QueueRedrive) error {
	r.Moved = 0
	to := r.To
	if to == nil {
		to = r.Queue
	}
	if err := checkQueueKey(r.Queue); err != nil {
		r.refuse(err)
		return nil
	}
	r.refuse(checkQueueKey(to))
	if r.Err() != nil {
		return nil
	}
	m := mass{e: e, queue: r.Queue, limit: r.Count, done: &r.Moved, reserve: queueRoom(to)}
	taken := false
	err := m.run(ctx, state.Dead, func(j *state.Job) error {
		moved, err := e.redrive(r, j, to)
		taken = taken || err == nil && !moved
		if err == nil && !moved {
			return errSkip
		}
		return err
	})
	if err == nil && taken {
		err = ErrUniqueTaken
	}
	return m.end(&r.Outcome, err)
}

// redrive brings one dead job back to life in the queue to. moved is false when
// its unique key is taken there.
func (e *Engine) redrive(r *QueueRedrive, j *state.Job, to []byte) (moved bool, err error) {
	if q, ok := e.st.QueueByKey(to); ok {
		settings := e.st.Settings(q)
		if err := e.fits(q, to, &settings, 1, int64(j.Size), nil); err != nil {
			return false, err
		}
	}
	q, err := e.needQueue(to)
	if err != nil {
		return false, err
	}
	rec := state.Record{Kind: state.KindRedrive, Slot: j.Slot, Queue: q, Tries: j.Tries}
	if e.st.KeyTaken(j.Slot, q, e.now) {
		if q != j.Queue {
			return false, nil
		}
		rec.DropKey = true
	}
	if r.Tries.Set {
		rec.Tries = r.Tries.Value
	}
	if r.TTL.Set && r.TTL.Value > 0 {
		rec.Expires = state.AddMillis(e.now, clampSpan(r.TTL.Value))
	}
	e.record(&rec, nil)
	e.touched(q)
	return true, nil
}

// mass does one thing to many jobs of a queue, in turns.
type mass struct {
	e       *Engine
	queue   []byte
	limit   int64 // of all places together; 0 is none
	done    *int64
	reserve int // bytes of records for one job beyond one record
	lsn     LSN
	wall    state.Millis // when it began
}

// errSkip says that a job stays where it is.
var errSkip = skipError{}

type skipError struct{}

func (skipError) Error() string { return "skipped" }

// run does what each does to the jobs in place that were in the queue when run
// was first called. A refusal of each ends it.
func (m *mass) run(ctx context.Context, place state.Place, each func(*state.Job) error) error {
	var after state.Slot // the last job that was skipped
	var left int64 = -1
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if !m.e.enter() {
			return m.e.refusal()
		}
		if m.wall == 0 {
			m.wall = m.e.clock.wall(m.e.now)
		}
		if left < 0 {
			left = m.e.placeCount(m.queue, place)
		}
		more, err := m.turn(place, &after, &left, each)
		m.lsn = m.e.leave()
		if err != nil || !more {
			return err
		}
		if err := m.e.Wait(m.lsn); err != nil {
			return err
		}
		rest := time.NewTimer(restAfter(time.Since(began)))
		select {
		case <-rest.C:
		case <-ctx.Done():
		}
		rest.Stop()
	}
}

// turn is one stay in the critical section; more says that there is more to do.
func (m *mass) turn(place state.Place, after *state.Slot, left *int64, each func(*state.Job) error) (more bool, err error) {
	e := m.e
	for {
		if err := e.room(recordRoom + m.reserve); err != nil {
			return false, err
		}
		q, ok := e.st.QueueByKey(m.queue)
		if !ok || *left <= 0 {
			return false, nil
		}
		if j, ok := e.st.Job(*after); *after != 0 && (!ok || j.Queue != q || j.Place != place) {
			*after = 0 // it went elsewhere: begin again, what was skipped is skipped again
		}
		e.slots = e.st.Page(e.slots[:0], q, place, *after, 16)
		if len(e.slots) == 0 {
			return false, nil
		}
		for _, slot := range e.slots {
			if m.limit > 0 && *m.done >= m.limit || *left <= 0 {
				return false, nil
			}
			if !e.roomNow(recordRoom + m.reserve) {
				return true, nil
			}
			j, _ := e.st.Job(slot)
			err := error(errSkip)
			if j.ID.Wall() <= m.wall {
				*left--
				err = each(&j)
			}
			switch err {
			case nil:
				*m.done++
			case errSkip:
				*after = slot
			default:
				return false, err
			}
		}
		if e.stayed() > maxTurn {
			return true, nil
		}
	}
}

// placeCount is how many jobs of a queue are in place.
func (e *Engine) placeCount(queue []byte, place state.Place) int64 {
	q, ok := e.st.QueueByKey(queue)
	if !ok {
		return 0
	}
	s := e.st.Queue(q)
	switch place {
	case state.Ready:
		return int64(s.Ready)
	case state.Delayed:
		return int64(s.Delayed)
	case state.Leased:
		return int64(s.Leased)
	case state.Dead:
		return int64(s.Dead)
	}
	return 0
}

// end waits for what was done; a refusal goes into the command, a stop to the
// caller. Where something was done there is no refusal, which would say that
// nothing was: the count says how far it came, and a stop is an ErrPartly.
func (m *mass) end(o *Outcome, err error) error {
	if waiting := m.e.Wait(m.lsn); waiting != nil {
		return waiting
	}
	switch err {
	case ErrQueueFull, ErrUniqueTaken, ErrTooMany, ErrNoSpace:
		if *m.done == 0 {
			o.refuse(err)
		}
		return nil
	}
	return partly(*m.done > 0, err)
}

// partly is the error of a command in turns that met err, with some turns done.
func partly(done bool, err error) error {
	if done && err != nil {
		return ErrPartly
	}
	return err
}
