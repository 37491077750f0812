package resp

import (
	"errors"
	"io"
	"os"
	"time"
)

type readResult struct {
	n   int
	err error
}

// fill reads once. False ends the connection: the client is gone, the server
// stops, or there is no room.
func (c *conn) fill() bool {
	for {
		if c.eof {
			c.endOfStream()
			return false
		}
		if c.srv.stopped.Load() {
			c.closing = true
			return false
		}
		if !c.watching && !c.makeRoom() {
			return false
		}
		c.enterReading()
		n, err := c.read()
		if n > 0 {
			return c.received(n, err)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !c.awoken() {
				return false
			}
		case errors.Is(err, io.EOF):
			c.eof = true
		default:
			return false
		}
	}
}

// received counts n bytes that read has put into the input; err came with them.
func (c *conn) received(n int, err error) bool {
	c.srv.stats.bytesIn.Add(uint64(n))
	c.fresh = false
	switch {
	case errors.Is(err, io.EOF):
		c.eof = true
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.awoken()
	case err != nil:
		return false
	}
	return true
}

// read takes what the watching goroutine read, or reads itself.
func (c *conn) read() (int, error) {
	if c.watching {
		r := <-c.watch
		c.watched(r)
		return r.n, r.err
	}
	space := c.in.free()
	var n int
	var err error
	if c.frame.inFrame {
		n, err = c.srv.lane.readPiece(c.nc, space)
	} else {
		n, err = c.nc.Read(space)
	}
	c.in.end += n
	c.lastFull = n == len(space)
	return n, err
}

// startWatch has a goroutine read once into the free space of the input.
func (c *conn) startWatch() {
	if c.watching || c.eof || len(c.in.bytes()) >= maxReadBytes || !c.makeRoom() {
		return
	}
	c.watching, c.in.pinned = true, true
	space := c.in.free()
	go func() {
		n, err := c.nc.Read(space)
		c.watch <- readResult{n, err}
	}()
}

// watched takes the result of the watching goroutine.
func (c *conn) watched(r readResult) {
	c.watching, c.in.pinned = false, false
	c.lastFull = r.n == len(c.in.free())
	c.in.end += r.n
}

// awoken handles a nudge; false ends the connection.
func (c *conn) awoken() bool {
	c.nc.SetReadDeadline(time.Time{})
	// In this order: Shutdown says stopped before it nudges.
	if c.srv.stopped.Load() && len(c.in.bytes()) == 0 {
		c.closing = true
		return false
	}
	if c.condemned.Load() != nil {
		return false
	}
	if !c.watching && len(c.in.bytes()) == 0 {
		c.resize(len(c.in.small))
	}
	return true
}

// makeRoom sees to it that there is space to read into; false ends the
// connection.
func (c *conn) makeRoom() bool {
	in := &c.in
	empty := in.start == in.end
	if empty {
		in.start, in.end = 0, 0
	}
	switch {
	case empty && len(in.buf) > maxReadBytes:
		// A large command is over; its buffer is not kept for the next one.
		return c.resize(flushBytes)
	case c.lastFull && len(in.buf) < c.readBytes() && !c.strange.Load():
		// More than fits came at once: read more at once, or a pipeline is cut
		// into batches of the small array, each with a commit of its own. No need
		// to wait for room, though.
		if size := int64(in.nextSize()); c.srv.admit(c, size-in.pooled()) {
			c.swap(int(size))
			return true
		}
		if empty {
			return true
		}
	}
	switch {
	case len(in.free()) > 0 && (len(in.free()) >= len(in.buf)/4 || !in.canCompact()):
		return true
	case in.start > len(in.buf)/2:
		in.compact()
		return true
	}
	return c.resize(in.nextSize())
}

// readBytes is how large an input is made for a client that sends much at once.
func (c *conn) readBytes() int {
	if c.polled {
		return polledBytes
	}
	return maxReadBytes
}

// resize continues in a buffer of size bytes.
func (c *conn) resize(size int) bool {
	before := c.in.pooled()
	after := int64(size)
	if size <= len(c.in.small) {
		after = 0
	}
	if after > before && !c.allow(after-before, size) {
		return false
	}
	c.swap(size)
	if after < before {
		c.srv.release(c, before-after)
	}
	return true
}

// swap moves the input to a buffer of size bytes, a large one or one for the rest
// of a command in the lane.
func (c *conn) swap(size int) {
	if !c.polled && (size > flushBytes || c.frame.inFrame) {
		c.srv.lane.enter()
		defer c.srv.lane.leave()
	}
	c.in.swap(size)
}

// allow admits n more bytes for an input of size bytes. In the poller it does
// not wait, and sends long commands to a goroutine.
func (c *conn) allow(n int64, size int) bool {
	if !c.polled {
		return c.srv.reserve(c, n)
	}
	return size <= polledBytes && c.srv.admit(c, n)
}

// endOfStream answers a stream that ended inside a command.
func (c *conn) endOfStream() {
	text := c.frame.end(c.in.bytes())
	if text == "" {
		c.closing = true
		return
	}
	c.b = takeBatch(c)
	c.failNow(text)
	c.flush()
	c.dropBatch()
	c.closing = true
}
