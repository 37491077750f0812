package engine

import (
	"testing"
	"time"

	"pawl/state"
)

// machine has two clocks, and a process that may stand still between looking at
// the one and at the other: stops are how long it does so at each look, 0 where
// there are no more.
type machine struct {
	now   time.Duration // true time
	set   time.Duration // what somebody has added to the wall clock
	stops []time.Duration
}

func (m *machine) look() reading {
	wall := m.now + m.set
	if len(m.stops) > 0 {
		m.now += m.stops[0]
		m.stops = m.stops[1:]
	}
	return reading{wall: wall, mono: m.now}
}

// era is some moment that is no whole millisecond.
const era = 1_795_900_000*time.Second + 123_456*time.Nanosecond

// What one process writes beside its log time, the next one goes on from: a
// lease ends when its time is over, not by a process's standing still between
// two looks at its clocks earlier.
func TestClockGoesOnThroughRestarts(t *testing.T) {
	slow := 16 * time.Millisecond
	for name, stops := range map[string][]time.Duration{
		"at once":            nil,
		"slow at first":      {slow, slow},
		"slow now and then":  {0, slow, slow, 0},
		"slow, then quicker": {slow, slow / 2, slow / 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{now: era}
			c := newClock(m.look, 0, 0)
			origin := c.base - state.Millis(m.now/time.Millisecond) // log time less true time
			for start := range 100 {
				m.now += 3_700_300 * time.Nanosecond
				_, log, _, stepped := c.read()
				if stepped {
					t.Fatalf("start %d: a step, and nobody has set the clock", start)
				}
				want := state.Millis(m.now/time.Millisecond) + origin
				if log != want {
					t.Fatalf("start %d: log time got %d, want %d (%+d)", start, log, want, log-want)
				}
				header := c.wall(log)
				m.now += 50 * time.Millisecond
				m.stops = append([]time.Duration(nil), stops...)
				c = newClock(m.look, log, header)
				m.stops = nil
			}
		})
	}
}

// A process that is stopped between its two looks has seen no step.
func TestClockStoppedBetweenTwoLooks(t *testing.T) {
	m := &machine{now: era}
	c := newClock(m.look, 0, 0)
	m.stops = []time.Duration{5 * time.Second}
	if _, log, offset, stepped := c.read(); stepped || offset != c.offset || log != c.base+5000 {
		t.Errorf("log time, offset, stepped: got %d, %d, %v, want %d, %d, false", log, offset, stepped, c.base+5000, c.offset)
	}
}

// A step of the wall clock moves no lease, neither at once nor over a restart.
func TestClockStepBeforeARestart(t *testing.T) {
	for _, step := range []time.Duration{11 * time.Millisecond, 300 * time.Millisecond, -300 * time.Millisecond, time.Hour, -time.Hour} {
		m := &machine{now: era}
		c := newClock(m.look, 0, 0)
		m.set = step
		_, log, offset, stepped := c.read()
		if want := state.Millis(step / time.Millisecond); !stepped || offset != want || log != c.base {
			t.Errorf("set by %v: log time, offset, stepped: got %d, %d, %v, want %d, %d, true", step, log, offset, stepped, c.base, want)
		}
		c.offset = offset // as the engine does, with a record
		header := c.wall(log)
		m.now += time.Second
		if next := newClock(m.look, log, header); next.base != log+1000 {
			t.Errorf("set by %v: a second later log time got %d, want %d", step, next.base, log+1000)
		}
	}
}

// A look that takes its time is repeated, but not for ever.
func TestClockNeverQuick(t *testing.T) {
	m := &machine{now: era}
	for range 1000 {
		m.stops = append(m.stops, time.Millisecond)
	}
	if _, apart := together(m.look); apart != time.Millisecond || len(m.stops) != 1000-looks-1 {
		t.Errorf("got %v apart with %d looks, want %v with %d", apart, 1000-len(m.stops), time.Millisecond, looks+1)
	}
}
