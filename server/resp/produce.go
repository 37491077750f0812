package resp

import (
	"pawl/engine"
	"pawl/state"
)

// ENQUEUE queue payload [options].
func cmdEnqueue(c *conn, args [][]byte) {
	e := c.b.enqueues.next()
	*e = engine.Enqueue{Attrs: e.Attrs[:0]}
	key, refusal := c.queueKey(args[1])
	if refusal == "" {
		e.Queue, e.Payload = key, args[2]
		refusal = parseEnqueue(e, args[3:])
	}
	if refusal != "" {
		c.fail(refusal)
		return
	}
	f := form(0)
	if e.Unique != nil {
		f = formUnique
	}
	if c.b.came == (engine.Arrival{}) {
		c.b.came = c.engine().Arrived()
	}
	c.add(e, renderEnqueue, f)
}

// parseEnqueue reads the options of ENQUEUE into e.
func parseEnqueue(e *engine.Enqueue, args [][]byte) (refusal string) {
	const (
		delay = iota
		ttl
		priority
		tries
		backoff
		unique
		group
	)
	o := options{rest: args}
	for word, ok := o.next(); ok; word, ok = o.next() {
		switch {
		case equalFold(word, "DELAY") && o.once(delay):
			e.Delay = o.span(0)
		case equalFold(word, "AT") && o.once(delay):
			e.At = engine.Some(state.Millis(o.number(-maxWall, maxWall)))
		case equalFold(word, "TTL") && o.once(ttl):
			e.TTL = engine.Some(o.span(0))
		case equalFold(word, "PRIORITY") && o.once(priority):
			e.Priority = int8(o.number(-128, 127))
		case equalFold(word, "TRIES") && o.once(tries):
			e.Tries = engine.Some(uint16(o.number(0, 65535)))
		case equalFold(word, "BACKOFF") && o.once(backoff):
			e.Backoff = engine.Some(o.backoff())
		case equalFold(word, "UNIQUE") && o.once(unique):
			e.Unique = o.key()
			if o.takes("FOR") {
				e.For = o.span(1)
			}
		case equalFold(word, "GROUP") && o.once(group):
			e.Group = o.key()
		case equalFold(word, "ATTR"):
			a := engine.Attr{Name: o.value(), Value: o.value()}
			if len(e.Attrs) == maxAttrs || len(a.Name) == 0 || len(a.Name) > maxAttrBytes || len(a.Value) > maxAttrBytes {
				o.fail("ERR too many or too long attributes")
			}
			e.Attrs = append(e.Attrs, a)
		default:
			o.fail(errSyntax)
		}
	}
	return o.refusal
}

func renderEnqueue(c *conn, e *entry) {
	w, cmd := &c.b.out, e.cmd.(*engine.Enqueue)
	if e.form&formUnique != 0 {
		w.array(4)
	} else {
		w.array(2)
	}
	w.bulkString("task_id")
	w.jobID(cmd.ID)
	if e.form&formUnique != 0 {
		w.bulkString("duplicate")
		w.flag(cmd.Duplicate)
	}
}

// jobID is a bulk string without a string of its own.
func (w *writer) jobID(id state.JobID) {
	w.buf = append(w.buf, "$26\r\n"...)
	w.buf = append(id.AppendText(w.buf), '\r', '\n')
}

func (w *writer) leaseID(id state.LeaseID) {
	w.buf = append(w.buf, "$23\r\n"...)
	w.buf = append(id.AppendText(w.buf), '\r', '\n')
}

// flag is the integer 1 or 0, in RESP3 too.
func (w *writer) flag(b bool) {
	if b {
		w.integer(1)
		return
	}
	w.integer(0)
}
