package engine

import (
	"time"

	"pawl/state"
)

const (
	// maxTurn bounds a stay in the critical section for the sake of time alone: it
	// ends with the first piece of work behind it. A piece is at most 128 jobs,
	// which take from 50 µs to, each on a page to be copied beside a snapshot,
	// some 400.
	maxTurn = 500 * time.Microsecond
	// maxStay bounds what the commands of one Submit do together.
	maxStay = time.Millisecond
	// clockEvery is for how many jobs nobody looks at the clock.
	clockEvery = 16
	// restShare is how many times as long as a turn that left work behind the
	// next one waits: mass endings take at most 30 % of the time.
	restShare = 2.4
	// maxUnwritten is how many bytes of records may wait for the disk before masses
	// wait for it too. A range of 128 jobs takes 16 of them.
	maxUnwritten = 1 << 20
	// noRoomRest is how long time stands still when the log has no room.
	noRoomRest = 200 * time.Millisecond
)

// Wake receives when the next turn is due earlier than the last one said.
func (e *Engine) Wake() <-chan struct{} { return e.wake }

// Turn ends what time has ended by now, for half a millisecond: leases,
// delays, times to live, pauses, windows of unique keys, slots of crons. It says
// how long until there is more to do, [longestSleep] at most, or never; a turn that
// left work behind says how long to rest. Only one goroutine may take turns.
func (e *Engine) Turn() (next time.Duration, never bool) {
	if !e.enter() {
		return 0, true
	}
	began := e.entered
	more, err := e.endDue()
	if e.down.Load() != 0 {
		e.leave()
		return 0, true
	}
	switch {
	case err != nil:
		next, e.promise = noRoomRest, 0
	case more:
		next, e.promise = restAfter(time.Since(began)), 0
	default:
		e.promise = e.nextDue()
		never = e.promise == state.Forever
		next = min(time.Until(e.clock.moment(e.promise)), longestSleep)
	}
	lsn := e.leave()
	if more && e.pending.Load() > maxUnwritten {
		// What ends in masses must not pile up before a slow disk.
		waiting := time.Now()
		if e.Wait(lsn) == nil {
			next -= time.Since(waiting)
		}
	}
	return max(next, 0), never
}

// restAfter is how long a turn of masses rests that took so long. What the system
// had taken away of a turn is no reason to rest.
func restAfter(took time.Duration) time.Duration {
	return time.Duration(restShare * float64(min(took, 2*maxTurn)))
}

// longestSleep is how long it can take until a quiet daemon notices that the wall
// clock was set. Nothing tells it, and deadlines are of log time: until then a job
// with AT would wait for the old time, and were the process to end meanwhile, the
// next one would take the step for time gone by and end leases so much early.
const longestSleep = time.Second

// endDue ends what is due, one thing after another, until nothing is or the turn
// is over. It may have let go of the critical section.
func (e *Engine) endDue() (more bool, err error) {
	began := e.entered
	for n := uint32(0); ; {
		if n >= clockEvery {
			if n = 0; e.clock.since(began) > maxTurn {
				return true, nil
			}
		}
		if err := e.room(recordRoom); err != nil {
			return false, err
		}
		due := e.due(e.now)
		if due.Kind == state.DueNothing {
			return false, nil
		}
		if err := e.end(&due); err != nil {
			return false, err
		}
		if e.down.Load() != 0 {
			return false, nil
		}
		n += max(due.Count, 1)
	}
}

// Reply queues that live for one answer must use up neither memory nor the limit
// of queues in the hour that an idle queue is kept. So beyond so many queues, or
// half of the limit, idle ones go sooner, and beyond four times as many, or three
// quarters of it, at once nearly.
const (
	manyQueues                  = 50_000
	crowdedIdleFor state.Millis = 10_000
	floodedIdleFor state.Millis = 1000
)

// crowded is when the idlest queue goes before its hour is over; false is never.
func (e *Engine) crowded() (state.QueueID, state.Millis, bool) {
	n, idle := e.st.QueueCount(), crowdedIdleFor
	switch {
	case n <= min(e.opt.MaxQueues/2, manyQueues):
		return 0, 0, false
	case n > min(e.opt.MaxQueues/4*3, 4*manyQueues):
		idle = floodedIdleFor
	}
	q, since, ok := e.st.Idlest()
	return q, since + idle, ok
}

// due is the next thing whose time has come.
func (e *Engine) due(now state.Millis) state.Due {
	due := e.st.Due(now)
	if due.Kind == state.DueNothing {
		if q, at, ok := e.crowded(); ok && at <= now {
			return state.Due{Kind: state.DueIdle, Queue: q, At: at}
		}
	}
	return due
}

// end records one thing whose time has come. There is room for a record.
func (e *Engine) end(due *state.Due) error {
	switch due.Kind {
	case state.DueRange:
		e.endRange(state.KindRange, due)
		e.late(due.Since, due.Count)
	case state.DueWallRange:
		e.endRange(state.KindWallRange, due)
		e.late(due.Since, due.Count)
	case state.DueKeys:
		e.endRange(state.KindKeyRange, due)
	case state.DueLease:
		j, _ := e.st.Job(due.Slot)
		e.fail(&j, state.CauseExpire, Optional[state.Millis]{}, nil)
		e.late(due.At, 1)
	case state.DueDead:
		e.record(&state.Record{Kind: state.KindDelete, Slot: due.Slot, Cause: due.Cause}, nil)
	case state.DuePause:
		e.record(&state.Record{Kind: state.KindResume, Queue: due.Queue}, nil)
		e.touched(due.Queue)
	case state.DueIdle:
		kind := state.KindForget
		if e.waiters.length(e.st.QueueKey(due.Queue)) > 0 {
			kind = state.KindTouch
		}
		e.record(&state.Record{Kind: kind, Queue: due.Queue}, nil)
	case state.DueCron:
		return e.fireCron(due.Cron)
	}
	return nil
}

// late notes how long after its time something ended that a client can see.
// The clocks say in nanoseconds what the state counts in milliseconds.
func (e *Engine) late(at state.Millis, n uint32) {
	after := max(time.Since(e.clock.moment(at)), 0)
	e.lateTime.addMany(uint64(after/time.Microsecond), uint64(n))
}

func (e *Engine) endRange(kind state.Kind, due *state.Due) {
	if len(e.waiters.lines) > 0 && kind != state.KindKeyRange {
		last := state.QueueID(0)
		e.st.Ending(due, func(q state.QueueID) {
			if q != last {
				e.touched(q)
			}
			last = q
		})
	}
	e.record(&state.Record{Kind: kind, At: due.At, Slot: due.Slot, Count: due.Count}, nil)
}

// nextDue is when Turn has something to do, in log time.
func (e *Engine) nextDue() state.Millis {
	next := e.waiters.next(e.now)
	if at, ok := e.st.Earliest(); ok {
		next = min(next, at)
	}
	if _, at, ok := e.crowded(); ok {
		next = min(next, at)
	}
	return next
}

// announce wakes the reaper if something is due earlier than it was told.
func (e *Engine) announce() {
	if e.promise == 0 {
		return // it comes by itself, or is called once the group is taken
	}
	if next := e.nextDue(); next < e.promise {
		e.promise = next
		e.rouse()
	}
}

// rouse has the reaper take a turn at once.
func (e *Engine) rouse() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
