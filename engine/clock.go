package engine

import (
	"time"

	"pawl/state"
)

// stepMs is how far the wall clock may stray from the recorded offset before
// that is a step. It is also how much earlier or later leases may end over a
// restart for a step that was not noticed: what goes by between two processes is
// measured on the wall clock.
const stepMs = 10

// warnMs is the step that is worth a line in the log.
const warnMs = 1000

// reading is one look at both clocks of the machine. Nobody looks at two things
// at once: the process may lose the processor in between, so that wall is as
// much older than mono.
type reading struct {
	at   time.Time
	wall time.Duration // since 1970
	mono time.Duration // since the look that began the clock
}

// looker gives a function that looks at the machine's clocks.
func looker() func() reading {
	start := time.Now()
	return func() reading {
		t := time.Now()
		return reading{t, time.Duration(t.UnixNano()), t.Sub(start)}
	}
}

// Looking more than looks times, for a reading whose parts are no more than
// near apart, is not worth the time.
const (
	looks = 100
	near  = 200 * time.Microsecond
)

// together looks until wall and mono are of the same moment, or nearly: apart is
// a bound on what lies between them. A wall clock is read after the mono of the
// look before and before its own.
func together(look func() reading) (best reading, apart time.Duration) {
	before := look()
	for n := range looks {
		r := look()
		if gap := r.mono - before.mono; n == 0 || gap < apart {
			best, apart = r, gap
		}
		if apart <= near {
			break
		}
		before = r
	}
	return best, apart
}

// clock turns the machine's two clocks into log time and wall time. Log time
// follows the monotonic clock, so it never goes back and no change of the wall
// clock moves a lease; wall time is log time plus an offset that stands in the
// log. Guarded by the engine's critical section.
type clock struct {
	look   func() reading
	start  time.Time     // of this process
	from   time.Duration // where base begins, on the monotonic clock
	base   state.Millis  // log time at start
	last   state.Millis  // newest reading, log time
	offset state.Millis  // wall = log + offset
	// elapsed stands in for time.Since where a test says how time goes; nil is not.
	elapsed func(t time.Time) time.Duration
}

// newClock goes on from the newest group's log time: lastWall is the wall time
// that stood beside it, 0 for a new store. What has gone by on the wall since
// then is added, nothing if that is negative.
//
// The two readings it begins with must be of one moment. If the monotonic one
// were later, all wall times of this process would be behind, and the next start
// would take that for time gone by and end leases early.
func newClock(look func() reading, lastLog, lastWall state.Millis) clock {
	r, _ := together(look)
	// A millisecond of log time begins with one of the wall clock, so that
	// nothing is lost or won by rounding from start to start.
	wall, part := state.Millis(r.wall/time.Millisecond), r.wall%time.Millisecond
	c := clock{look: look, start: r.at, from: r.mono - part, base: lastLog}
	if gone := wall - lastWall; lastWall > 0 && gone > 0 {
		c.base += gone
	}
	if lastLog == 0 && lastWall == 0 {
		// A new store begins with both clocks equal; any origin would do.
		c.base = wall
	}
	c.last = c.base
	c.offset = wall - c.base
	return c
}

// read gives the time as the machine has it, log time, and the offset that the
// wall clock has now if it has stepped away from the recorded one.
func (c *clock) read() (t time.Time, now, offset state.Millis, stepped bool) {
	r := c.look()
	now, offset = c.take(r)
	if !c.strayed(offset, 0) {
		return r.at, now, offset, false
	}
	// Somebody has set the clock, or this process stood still between the two.
	r, apart := together(c.look)
	now, offset = c.take(r)
	return r.at, now, offset, c.strayed(offset, apart)
}

// take makes log time and offset of a reading.
func (c *clock) take(r reading) (now, offset state.Millis) {
	now = max(c.last, c.base+state.Millis((r.mono-c.from)/time.Millisecond))
	c.last = now
	return now, state.Millis(r.wall/time.Millisecond) - now
}

// strayed says that an offset that may be too small by apart is another than
// the recorded one.
func (c *clock) strayed(offset state.Millis, apart time.Duration) bool {
	d := offset - c.offset
	return d > stepMs || d+state.Millis(apart/time.Millisecond) < -stepMs
}

// since is how long ago t was, which read gave.
func (c *clock) since(t time.Time) time.Duration {
	if c.elapsed != nil {
		return c.elapsed(t)
	}
	return time.Since(t)
}

// moment is when log time begins to be log, which is not above a hundred years
// from now.
func (c *clock) moment(log state.Millis) time.Time {
	return c.start.Add(time.Duration(min(log-c.base, maxSpan)) * time.Millisecond)
}

// wall is the wall time of a log time by the present offset; 0 stays 0, which
// means none everywhere.
func (c *clock) wall(log state.Millis) state.Millis {
	if log == 0 {
		return 0
	}
	return log + c.offset
}
