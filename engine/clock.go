package engine

import (
	"time"

	"pawl/state"
)

// stepMs is how far the wall clock may stray from the recorded offset before
// that is a step.
const stepMs = 1000

// clock turns the machine's two clocks into log time and wall time. Log time
// follows the monotonic clock, so it never goes back and no change of the wall
// clock moves a lease; wall time is log time plus an offset that stands in the
// log. Guarded by the engine's critical section.
type clock struct {
	start  time.Time    // with its monotonic reading
	base   state.Millis // log time at start
	last   state.Millis // newest reading, log time
	offset state.Millis // wall = log + offset
}

// newClock goes on from the newest group's log time: lastWall is the wall time
// that stood beside it, 0 for a new store. What has gone by on the wall since
// then is added, nothing if that is negative.
func newClock(lastLog, lastWall state.Millis) clock {
	now := time.Now()
	c := clock{start: now, base: lastLog}
	if gone := state.Millis(now.UnixMilli()) - lastWall; lastWall > 0 && gone > 0 {
		c.base += gone
	}
	if lastLog == 0 && lastWall == 0 {
		// A new store begins with both clocks equal; any origin would do.
		c.base = state.Millis(now.UnixMilli())
	}
	c.last = c.base
	c.offset = state.Millis(now.UnixMilli()) - c.base
	return c
}

// read gives the time as the machine has it, log time, and the offset that the
// wall clock has now if it has stepped away from the recorded one.
func (c *clock) read() (t time.Time, now, offset state.Millis, stepped bool) {
	t = time.Now()
	now = max(c.last, c.base+state.Millis(t.Sub(c.start)/time.Millisecond))
	c.last = now
	offset = state.Millis(t.UnixMilli()) - now
	d := offset - c.offset
	return t, now, offset, d > stepMs || d < -stepMs
}

// wall is the wall time of a log time by the present offset; 0 stays 0, which
// means none everywhere.
func (c *clock) wall(log state.Millis) state.Millis {
	if log == 0 {
		return 0
	}
	return log + c.offset
}
