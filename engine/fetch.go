package engine

import (
	"pawl/state"
)

const (
	// MaxFetchQueues bounds the queues of one Fetch.
	MaxFetchQueues = 1024
	// maxBatchBytes ends a batch: bodies of jobs, in bytes.
	maxBatchBytes = 4 << 20
	// maxLapses is how many jobs past their time to live a Fetch ends before it
	// lets others in; likewise jobs that come due behind the heads of groups.
	maxLapses = 64
)

// fetch takes leases, without waiting.
func (e *Engine) fetch(c *Fetch) error {
	c.Jobs = c.Jobs[:0]
	if len(c.Queues) > MaxFetchQueues {
		return ErrTooMany
	}
	for _, key := range c.Queues {
		if err := checkQueueKey(key); err != nil {
			return err
		}
	}
	if !validSpan(e.now, c.LeaseMs) {
		return ErrTimeout
	}
	var work workDone
	for {
		var err error
		took := e.take(c, c.Queues, func(key []byte) (t took) {
			if e.longEnough(&work, 1) {
				return timeOver
			}
			t, err = e.mayTake(key)
			return t
		})
		switch {
		case took == timeOver, took == metMany && len(c.Jobs) == 0:
		case len(c.Jobs) > 0:
			return nil
		default:
			return err
		}
		if e.pause(); e.down.Load() != 0 {
			if len(c.Jobs) > 0 {
				return nil // they are decided, and Wait says what became of them
			}
			return e.refusal()
		}
	}
}

// mayTake sees to it that there is room for a record, and that what is in the queue
// is not for somebody who waits for it: none passes those who came before, even
// where serve has run out of time. tookAll: there is nothing for who comes now.
func (e *Engine) mayTake(key []byte) (took, error) {
	for {
		if err := e.room(recordRoom); err != nil {
			return noRoom, err
		}
		l := e.waiters.lines[string(key)]
		switch {
		case l == nil:
			return goOn, nil
		case !e.serveLine(l):
			return timeOver, nil
		case l.first != nil:
			return tookAll, nil
		case e.roomNow(recordRoom): // the line may have used it up
			return goOn, nil
		}
	}
}

// took is why take ended.
type took uint8

const (
	goOn       took = iota // it has not ended
	tookEnough             // the batch is full
	tookAll                // there is no more
	metMany                // there may be more behind jobs past their time to live
	noRoom
	timeOver // the stay has been long enough
)

// take leases the next jobs of queues for c, as many as it wants and there are. It
// asks may before each: goOn where there is room for a record, tookAll where the
// queue has nothing for it, or why to end.
func (e *Engine) take(c *Fetch, queues [][]byte, may func(key []byte) took) took {
	want, lapsed, ripened, size := max(c.Count, 1), 0, 0, 0
	for i := range c.Jobs {
		size += c.Jobs[i].Bytes() // of the stays before
	}
	for _, key := range queues {
		for len(c.Jobs) < want {
			// Room comes first: where it has to wait, all may have changed.
			if why := may(key); why == tookAll {
				break
			} else if why != goOn {
				return why
			}
			q, ok := e.st.QueueByKey(key)
			if !ok {
				break
			}
			slot, block := e.st.NextReady(q, e.now)
			if slot == 0 {
				due, isDue := e.overdue(q, block)
				if !isDue {
					break
				}
				if ripened++; ripened > len(c.Jobs)+maxLapses {
					return metMany // they are ready, but behind the heads of their groups
				}
				e.ripen(due)
				continue
			}
			j, _ := e.st.Job(slot)
			if j.Expires != 0 && j.Expires <= e.now {
				if lapsed++; lapsed > maxLapses {
					return metMany
				}
				e.r = state.Record{Kind: state.KindLapse, Slot: slot}
				e.record(&e.r, nil)
				continue
			}
			if size += int(j.Body.Length); size > maxBatchBytes && len(c.Jobs) > 0 {
				return tookEnough
			}
			c.Jobs = append(c.Jobs, e.lease(&j, c.LeaseMs))
		}
		if len(c.Jobs) == want {
			return tookEnough
		}
	}
	return tookAll
}

// overdue is the first job of q whose delay is over, where q has nothing else to
// hand out: it has come due in a mass that the reaper has not got through, and
// whoever fetches shall not notice.
func (e *Engine) overdue(q state.QueueID, block state.Block) (due state.Due, ok bool) {
	if at, any := e.st.Earliest(); block != (state.Block{}) || !any || at > e.now {
		return state.Due{}, false
	}
	slot, at := e.st.FirstDelayed(q)
	return state.Due{Slot: slot, Queue: q, At: at}, slot != 0 && at <= e.now
}

// ripen makes an overdue job ready. There is room for a record.
func (e *Engine) ripen(due state.Due) {
	e.r = state.Record{Kind: state.KindRun, Slot: due.Slot}
	e.record(&e.r, nil)
	e.late(due.At, 1)
}

// lease gives the job at the front of its queue to a worker.
func (e *Engine) lease(j *state.Job, span state.Millis) Delivery {
	d := Delivery{
		Lease: state.LeaseID{Slot: j.Slot}, ID: j.ID, Queue: e.st.QueueKey(j.Queue),
		Attempt: j.Attempt + 1, Failures: j.Failures, Tries: j.Tries, Priority: j.Priority,
		EnqueuedAt: j.ID.Wall(), Deadline: e.clock.wall(e.now + span),
		body: e.holdBody(j),
	}
	if j.Expires != 0 {
		d.TTLLeft = j.Expires - e.now
	}
	e.nonces.Read(d.Lease.Nonce[:])
	e.r = state.Record{Kind: state.KindLease, Slot: j.Slot, Nonce: d.Lease.Nonce, At: e.now + span}
	e.record(&e.r, nil)
	if j.Attempt == 0 {
		e.waitTime.add(uint64(max(0, e.now-j.Since)))
	}
	e.runs.began(j.Slot, e.now)
	return d
}

// Undeliver gives jobs whose reply could not be written back to the heads of
// their queues, untouched, the last of them first, so that the order is kept.
// It counts as no failure. What cannot be given back, because its lease is over
// or the log is full, is not lost: its lease runs out.
func (e *Engine) Undeliver(jobs []Delivery) LSN { return e.giveBack(jobs, e.room) }

// giveBack is Undeliver with room made by room; its first refusal ends it.
func (e *Engine) giveBack(jobs []Delivery, room func(n int) error) LSN {
	for i := range jobs {
		e.dropBody(&jobs[i].body)
	}
	if !e.enter() {
		return LSN(e.down.Load())
	}
	for i := len(jobs) - 1; i >= 0 && room(recordRoom) == nil; i-- {
		_ = e.release(&Release{Lease: jobs[i].Lease}) // there is room, so its lease is over
	}
	return e.leave()
}
