package resp

import (
	"sync"
	"sync/atomic"
	"time"
)

// ceiling keeps the buffers of all connections together under one limit. Bytes
// are admitted before they are allocated, against the number of that moment;
// when there is no room, growing waits a little for others to finish, and then
// the connection that holds most is closed.
type ceiling struct {
	limit atomic.Int64
	used  atomic.Int64
	evict sync.Mutex // one at a time looks for an offender
}

// Waiting for room.
const (
	ceilingPatience = 100 * time.Millisecond // before somebody is closed
	ceilingRetry    = 2 * time.Millisecond
	ceilingGiveUp   = 5 * time.Second
)

// admit counts n bytes when they fit.
func (c *ceiling) admit(n int64) bool {
	for {
		used := c.used.Load()
		if used+n > c.limit.Load() {
			return false
		}
		if c.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// reserve admits n more bytes for c. It may wait; false means that c is to be
// closed, because it holds most or because nobody gave way.
func (s *Server) reserve(c *conn, n int64) bool {
	if s.ceiling.admit(n) {
		c.held.Add(n)
		return true
	}
	s.shrinkIdle()
	// Polled: this is the emergency, and whoever frees should not have to
	// look for those who wait.
	for began := time.Now(); time.Since(began) < ceilingGiveUp; {
		if c.condemned.Load() != nil || s.stopped.Load() {
			return false
		}
		time.Sleep(ceilingRetry)
		if s.ceiling.admit(n) {
			c.held.Add(n)
			return true
		}
		if time.Since(began) >= ceilingPatience {
			s.closeLargest(n)
		}
	}
	c.condemn(closedBuffers)
	return false
}

// release gives n bytes of c back.
func (s *Server) release(c *conn, n int64) {
	if n != 0 {
		c.held.Add(-n)
		s.ceiling.used.Add(-n)
	}
}

// closeLargest closes connections, the one that holds most first, until n bytes
// fit once those that are closed already have let go.
func (s *Server) closeLargest(n int64) {
	s.ceiling.evict.Lock()
	defer s.ceiling.evict.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	leaving := int64(0)
	for c := range s.conns {
		if c.condemned.Load() != nil {
			leaving += c.held.Load()
		}
	}
	for s.ceiling.used.Load()-leaving+n > s.ceiling.limit.Load() {
		var largest *conn
		for c := range s.conns {
			if c.condemned.Load() == nil && (largest == nil || c.held.Load() > largest.held.Load()) {
				largest = c
			}
		}
		if largest == nil || largest.held.Load() == 0 {
			return
		}
		leaving += largest.held.Load()
		largest.condemn(closedBuffers)
	}
}
