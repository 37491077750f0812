package resp

import (
	"slices"

	"pawl/engine"
)

// flush is push where whole replies stand in the output: a line of MONITOR may
// follow.
func (c *conn) flush() {
	c.push()
	if c.b.came != (engine.Arrival{}) {
		c.b.noteAnswered(c.engine())
	}
	c.endTurn()
}

// push writes the replies that are ready, or the part of one that is. Deliveries whose reply did not get
// out are given back.
func (c *conn) push() {
	b := c.b
	if len(b.out.buf) > b.sent {
		b.sent += c.write(b.out.buf[b.sent:])
		if c.polled && !c.failed && b.sent < len(b.out.buf) {
			return // the socket is full: what is left is a goroutine's
		}
		for _, s := range b.shipped {
			if s.end > b.sent {
				c.b.lost = append(c.b.lost, *s.job)
			}
		}
		b.shipped = b.shipped[:0]
		c.srv.stats.errors.Add(uint64(b.out.errs))
		b.out.buf, b.out.errs, b.sent = b.out.buf[:0], 0, 0
	}
	if len(b.lost) > 0 {
		c.giveBack(b.lost)
		clear(b.lost)
		b.lost = b.lost[:0]
	}
}

// giveBack gives jobs back whose reply did not get out. That may wait for room in the
// log, which the poller does not.
func (c *conn) giveBack(lost []engine.Delivery) {
	if !c.polled {
		c.engine().Undeliver(lost)
		return
	}
	lost = slices.Clone(lost)
	c.srv.running.Go(func() { c.engine().Undeliver(lost) })
}

// write writes p, in pieces so that progress can be seen, and returns how much
// of it went out. Less than all sets failed.
func (c *conn) write(p []byte) (n int) {
	if c.failed {
		return 0
	}
	if c.polled {
		return c.writeNow(p)
	}
	size := int64(len(p))
	if !c.srv.reserve(c, size) {
		c.failed = true
		return 0
	}
	before := phase(c.phase.Load())
	c.enter(phaseWriting)
	c.takeTurn()
	for n < len(p) {
		c.enter(phaseWriting)
		var m int
		var err error
		if piece := p[n:min(len(p), n+flushBytes)]; len(p) > flushBytes {
			m, err = c.srv.lane.writePiece(c.nc, piece)
		} else {
			m, err = c.nc.Write(piece)
		}
		n += m
		if err != nil {
			c.failed = true
			break
		}
	}
	c.enter(before)
	c.srv.release(c, size)
	c.srv.stats.bytesOut.Add(uint64(n))
	return n
}
