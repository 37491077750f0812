package engine

import (
	"sync/atomic"
	"time"
)

// Arrival is when enqueues came in, for Answered. The zero value is none.
type Arrival struct {
	at    time.Duration // since the engine's clock began, and 1: never 0
	quiet time.Duration // of that, when no group was being written
}

// Arrived is now.
func (e *Engine) Arrived() Arrival {
	at := time.Since(e.clock.start)
	return Arrival{at + 1, e.commits.quiet.at(at)}
}

// Answered notes how long n enqueues took that came in together and were answered
// just now, after Wait for lsn: once less what the write and sync of that group
// took, once less all the writes and syncs under way meanwhile, in which they may
// have had to wait for another group first.
func (e *Engine) Answered(a Arrival, lsn LSN, n int) {
	if a == (Arrival{}) || n <= 0 {
		return
	}
	now := e.Arrived()
	own := now.at - a.at - e.commits.took(lsn)
	e.lessOwn.addMany(uint64(max(0, own)), uint64(n))
	e.lessAll.addMany(uint64(max(0, now.quiet-a.quiet)), uint64(n))
}

// quietClock counts the time in which no group is being written. It is one word,
// so that whoever looks sees a write either under way or counted: the time at
// which the clock stands, or, while it goes, how much of all time it has missed,
// as a negative number less one.
type quietClock struct{ word atomic.Int64 }

func (q *quietClock) init() { q.word.Store(-1) }

// at is the clock at now, by the engine's.
func (q *quietClock) at(now time.Duration) time.Duration {
	w := q.word.Load()
	if w >= 0 {
		return time.Duration(w)
	}
	return now + time.Duration(w+1)
}

// stop and goOn are the leader's.
func (q *quietClock) stop(now time.Duration) { q.word.Store(int64(max(0, q.at(now)))) }
func (q *quietClock) goOn(now time.Duration) { q.word.Store(q.word.Load() - int64(now) - 1) }

// recentGroups is for how many groups the engine remembers how long the write
// took: whoever waits for one asks soon.
const recentGroups = 256

// recentWrites is how long the writes of the last groups took, by LSN.
type recentWrites [recentGroups]atomic.Int64

func (r *recentWrites) note(lsn LSN, took time.Duration) {
	r[lsn%recentGroups].Store(int64(took))
}

// took is how long the write and sync of a group took that is safe.
func (c *commits) took(lsn LSN) time.Duration {
	if lsn == lsnNothing || lsn > LSN(c.safe.Load()) {
		return 0
	}
	return time.Duration(c.writes[lsn%recentGroups].Load())
}
