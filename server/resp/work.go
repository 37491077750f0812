package resp

import "pawl/engine"

// work does all complete commands of the input and writes their replies.
func (c *conn) work() {
	c.enter(phaseBusy)
	c.b = takeBatch(c)
	for !c.closing && !c.failed && c.step() {
		if c.b.full() || c.strange.Load() && len(c.b.out.buf) > minPooled {
			c.settle()
			c.flush()
		}
	}
	c.settle()
	c.flush()
	c.dropBatch()
	c.endPass()
}

// step does the next command of the input; false when there is none.
func (c *conn) step() bool {
	c.frame.stranger = c.user == nil
	n, v, text := c.judge()
	packet := c.in.bytes()[:n]
	if v == isCommand || v == isInline {
		return c.stepCommand(packet, v == isInline)
	}
	c.in.take(n)
	if v != needMore {
		c.began = -1
	}
	switch v {
	case isForeign:
		c.srv.closes.add(closedForeign)
		c.closing = true
	case isFatal:
		c.protocolError(text)
	case isRefused:
		c.refuseQueued()
		c.fail(text)
		return true
	}
	return false
}

// judge is the framer's verdict; on the rest of a command, which may be long, it
// is given in the lane.
func (c *conn) judge() (n int, v verdict, text string) {
	if c.frame.inFrame && !c.polled {
		c.srv.lane.enter()
		defer c.srv.lane.leave()
	}
	return c.frame.next(c.in.bytes())
}

// stepCommand does the command that is in packet, the front of the input.
func (c *conn) stepCommand(packet []byte, inline bool) bool {
	args, err := splitCommand(packet, c.b.args)
	c.b.args = args[:0]
	if err != nil {
		c.in.take(len(packet))
		text := errMalformedText
		if inline {
			text = errQuotes
		}
		c.protocolError(text)
		return false
	}
	if len(args) == 0 { // an empty line is nothing, as in Redis
		c.in.take(len(packet))
		c.began = -1
		return true
	}
	cmd, unknownSub := find(args)
	if c.polled && cmd != nil && !unknownSub && !cmd.is(flagPipeline) {
		c.odd = true // its input is not touched: it is the first that the goroutine will do
		return false
	}
	c.in.take(len(packet))
	c.began = -1
	c.b.bytes += len(packet)
	c.did++
	c.dispatch(cmd, unknownSub, args, inline)
	return !c.odd || !c.polled
}

const errMalformedText = "ERR malformed RESP value: invalid command"

func (c *conn) protocolError(text string) {
	c.srv.closes.add(closedProtocol)
	c.fail(text)
	c.closing = true
}

// engine is nil while the log is replayed.
func (c *conn) engine() Engine {
	if e := c.srv.engine.Load(); e != nil {
		return *e
	}
	return nil
}

// submit and wait are the engine's.
func (c *conn) submit(cmds ...engine.Command) engine.LSN { return c.engine().Submit(cmds...) }

func (c *conn) wait(lsn engine.LSN) error { return c.engine().Wait(lsn) }

// abandon is the engine's: after wait has failed.
func (c *conn) abandon(cmds ...engine.Command) { c.engine().Abandon(cmds...) }
