package resp

import (
	"time"
)

// janitorTick is how exact the server's clock is, and with it every limit of
// time: connections read it and never ask the system for the time.
const janitorTick = 100 * time.Millisecond

// shrinkAfter is how long a connection may keep a buffer it does not use.
const shrinkAfter = time.Second

// runJanitor keeps the clock and the limits of time until the server stops.
func (s *Server) runJanitor() {
	ticker := time.NewTicker(janitorTick)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			// Replies may go on until Shutdown's own end.
			return
		case <-ticker.C:
			s.clock.Store(time.Since(s.started).Milliseconds())
			s.sweep()
			s.makeRoom(time.Now())
			for _, p := range s.pollers {
				p.relieve()
			}
		}
	}
}

// sweep closes the connections that have used up a limit of time, and wakes
// idle ones that still hold a buffer.
func (s *Server) sweep() {
	now := s.clock.Load()
	l, idle := s.limits, time.Duration(s.idleTime.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		spent := time.Duration(now-c.since.Load()) * time.Millisecond
		p := phase(c.phase.Load())
		switch {
		case p == phaseHandshake && spent > l.LoginTime,
			p != phaseBusy && c.strange.Load() && time.Since(c.created) > l.LoginTime:
			c.condemn(closedLogin)
		case p == phasePartial && spent > l.CommandTime:
			c.condemn(closedSlow)
		case p == phaseWriting && spent > l.WriteTime:
			c.condemn(closedWrite)
		case p == phaseIdle && idle > 0 && spent > idle && s.monitors[c] == nil:
			c.condemn(closedIdle)
		case p == phaseIdle && spent > shrinkAfter && c.held.Load() > 0:
			c.nudge()
		}
	}
}

// shrinkIdle asks all idle connections for the buffers they do not use.
func (s *Server) shrinkIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if phase(c.phase.Load()) == phaseIdle && c.held.Load() > 0 {
			c.nudge()
		}
	}
}
