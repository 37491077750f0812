package resp

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ceiling keeps the buffers of all connections together under one limit. Bytes
// are admitted before they are allocated, against the number of that moment;
// when there is no room, growing waits a little for others to finish, first come
// first served, and then the connections that hold most are closed.
//
// The last part of the limit is for connections that hold little: those who fill
// the rest with what they do not read keep nobody from a short answer.
type ceiling struct {
	limit   atomic.Int64
	used    atomic.Int64
	waiting atomic.Int64 // claims that wait

	mu     sync.Mutex
	little []*claim // guarded by mu; of connections that hold little
	much   []*claim // guarded by mu; of others
}

// claim is a connection that waits for room.
type claim struct {
	c     *conn
	n     int64
	since time.Time
	over  chan struct{} // closed when it is granted or has ended

	// Guarded by ceiling.mu.
	granted bool
	ended   bool // nobody waits for it any more
}

const (
	ceilingPatience = 100 * time.Millisecond // before somebody is closed
	ceilingGiveUp   = 5 * time.Second
	littleBytes     = 16 << 10 // what counts as little, of one connection
	littleShare     = 8        // one part in so many of the limit is kept for those
	evictShare      = 16       // one part in so many of the limit is made free at a time
)

// admit counts n bytes for a connection that holds held already, when they fit.
func (c *ceiling) admit(held, n int64) bool {
	limit := c.limit.Load()
	if held+n > littleBytes {
		limit -= limit / littleShare
	}
	for {
		used := c.used.Load()
		if used+n > limit {
			return false
		}
		if c.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// admit counts n more bytes for c when they fit, and nobody else has waited
// longer for them.
func (s *Server) admit(c *conn, n int64) bool {
	held := c.held.Load()
	if held+n > littleBytes && s.ceiling.waiting.Load() > 0 || !s.ceiling.admit(held, n) {
		return false
	}
	c.held.Add(n)
	return true
}

// reserve admits n more bytes for c. It may wait; false means that c is to be
// closed, because it holds most or because nobody gave way.
func (s *Server) reserve(c *conn, n int64) bool {
	if s.admit(c, n) {
		return true
	}
	w := &claim{c: c, n: n, since: time.Now(), over: make(chan struct{})}
	s.ceiling.add(w)
	s.ceiling.grant() // what was released meanwhile
	giveUp := time.NewTimer(ceilingGiveUp)
	defer giveUp.Stop()
	select {
	case <-w.over:
	case <-s.stop:
	case <-giveUp.C:
	}
	if s.ceiling.end(w) {
		return true
	}
	if !s.stopped.Load() {
		c.condemn(closedBuffers)
	}
	return false
}

func (c *ceiling) add(w *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.c.condemned.Load() != nil { // after this, withdraw finds it
		w.ended = true
		close(w.over)
		return
	}
	w.c.claim = w
	c.waiting.Add(1)
	if w.c.held.Load()+w.n > littleBytes {
		c.much = append(c.much, w)
	} else {
		c.little = append(c.little, w)
	}
}

// end gives up what was not granted, and says whether it was.
func (c *ceiling) end(w *claim) (granted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.c.claim = nil
	c.endLocked(w)
	return w.granted
}

func (c *ceiling) endLocked(w *claim) {
	if !w.ended {
		w.ended = true
		c.waiting.Add(-1)
		close(w.over)
	}
}

// withdraw ends the claim of a connection that is to be closed: it is to let go
// of what it holds.
func (c *ceiling) withdraw(of *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of.claim != nil {
		c.endLocked(of.claim)
	}
}

// grant admits those who wait, as far as there is room.
func (c *ceiling) grant() {
	if c.waiting.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, queue := range []*[]*claim{&c.little, &c.much} {
		for len(*queue) > 0 {
			w := (*queue)[0]
			if !w.ended {
				if !c.admit(w.c.held.Load(), w.n) {
					break
				}
				w.c.held.Add(w.n)
				w.granted = true
				c.endLocked(w)
			}
			(*queue)[0] = nil
			*queue = (*queue)[1:]
		}
	}
}

// release gives n bytes of c back.
func (s *Server) release(c *conn, n int64) {
	if n != 0 {
		c.held.Add(-n)
		s.ceiling.used.Add(-n)
		s.ceiling.grant()
	}
}

// overdue is how much room those need who have waited for too long, as far as
// it is made at a time.
func (c *ceiling) overdue(now time.Time) (n int64) {
	if c.waiting.Load() == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, queue := range [][]*claim{c.little, c.much} {
		for _, w := range queue {
			if w.ended {
				continue
			}
			if n > c.limit.Load()/evictShare || now.Sub(w.since) < ceilingPatience {
				break
			}
			n += w.n
		}
	}
	return n
}

// makeRoom sees to those who wait for room: first idle connections are asked for
// the buffers they do not use, then those that hold most are closed. The janitor
// calls it, so that it is done once however many wait.
func (s *Server) makeRoom(now time.Time) {
	if s.ceiling.waiting.Load() == 0 {
		return
	}
	s.shrinkIdle()
	if n := s.ceiling.overdue(now); n > 0 {
		s.closeLargest(n)
	}
}

// closeLargest closes connections, the one that holds most first, until n bytes
// fit once those that are closed already have let go.
func (s *Server) closeLargest(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	leaving := int64(0)
	var holders []holder
	for c := range s.conns {
		held := c.held.Load()
		switch {
		case c.condemned.Load() != nil:
			leaving += held
		case held > 0:
			holders = append(holders, holder{c, held})
		}
	}
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(b.held, a.held) })
	limit := s.ceiling.limit.Load()
	for _, h := range holders {
		if s.ceiling.used.Load()-leaving+n <= limit-limit/littleShare {
			return
		}
		leaving += h.held
		h.c.condemn(closedBuffers)
	}
}

// holder is a connection and what it held at one moment.
type holder struct {
	c    *conn
	held int64
}
