package resp

import (
	"pawl/engine"
	"pawl/state"
)

// parseLease reads a lease ID. A text that is none leads to no lease, which is
// the engine's to say, in its turn.
func parseLease(text []byte) state.LeaseID {
	id, err := state.ParseLeaseID(text)
	if err != nil {
		return state.LeaseID{}
	}
	return id
}

// ACK lease [lease…].
func cmdAck(c *conn, args [][]byte) {
	a := c.b.acks.next()
	*a = engine.Ack{Leases: a.Leases[:0], Done: a.Done[:0]}
	for _, arg := range args[1:] {
		a.Leases = append(a.Leases, parseLease(arg))
	}
	c.add(a, renderAck, 0)
}

func renderAck(c *conn, e *entry) {
	w, a := &c.b.out, e.cmd.(*engine.Ack)
	if len(a.Leases) == 1 {
		w.ok()
		return
	}
	w.array(len(a.Done))
	for _, done := range a.Done {
		w.flag(done)
	}
}

// NACK lease [DELAY ms] [REASON text].
func cmdNack(c *conn, args [][]byte) {
	n := c.b.nacks.next()
	*n = engine.Nack{Lease: parseLease(args[1])}
	o := options{rest: args[2:]}
	for word, ok := o.next(); ok; word, ok = o.next() {
		switch {
		case equalFold(word, "DELAY") && o.once(0):
			n.Delay = engine.Some(o.span(0))
		case equalFold(word, "REASON") && o.once(1):
			n.Reason = clipReason(o.value())
		default:
			o.fail(errSyntax)
		}
	}
	if o.refusal != "" {
		c.fail(o.refusal)
		return
	}
	c.add(n, renderOK, 0)
}

// RELEASE lease.
func cmdRelease(c *conn, args [][]byte) {
	r := c.b.releases.next()
	*r = engine.Release{Lease: parseLease(args[1])}
	c.add(r, renderOK, 0)
}

// BURY lease [REASON text].
func cmdBury(c *conn, args [][]byte) {
	b := c.b.buries.next()
	*b = engine.Bury{Lease: parseLease(args[1])}
	if len(args) > 2 {
		if len(args) != 4 || !equalFold(args[2], "REASON") {
			c.fail(errSyntax)
			return
		}
		b.Reason = clipReason(args[3])
	}
	c.add(b, renderOK, 0)
}

// EXTEND lease timeout_ms.
func cmdExtend(c *conn, args [][]byte) {
	timeout, ok := parseInt(args[2])
	if !ok {
		c.fail(errTimeout)
		return
	}
	if refusal := checkLease(timeout); refusal != "" {
		c.fail(refusal)
		return
	}
	e := c.b.extends.next()
	*e = engine.Extend{Lease: parseLease(args[1]), LeaseMs: state.Millis(timeout)}
	c.add(e, renderExtend, 0)
}

func renderExtend(c *conn, e *entry) {
	c.b.out.integer(int64(e.cmd.(*engine.Extend).Deadline))
}

func renderOK(c *conn, _ *entry) { c.b.out.ok() }

// maxReasonBytes is how much of a reason is kept.
const maxReasonBytes = 255

func clipReason(reason []byte) []byte { return reason[:min(len(reason), maxReasonBytes)] }

// STATS queue. A name that cannot be a queue's has zeros, as in Moxy.
func cmdStats(c *conn, args [][]byte) {
	s := c.b.stats.next()
	*s = engine.Stats{}
	key, refusal := c.queueKey(args[1])
	switch refusal {
	case "":
		s.Queue = key
		c.add(s, renderStats, 0)
	case errName, errLong:
		c.begin().queueStats(s)
		c.end()
	default:
		c.fail(refusal)
	}
}

func renderStats(c *conn, e *entry) { c.b.out.queueStats(e.cmd.(*engine.Stats)) }

// queueStats is Moxy's answer. What is being processed has exactly one lease,
// and exactly one deadline.
func (w *writer) queueStats(s *engine.Stats) {
	w.array(10)
	w.pair("ready", s.Ready)
	w.pair("processing", s.Leased)
	w.pair("dead", s.Dead)
	w.pair("active_leases", s.Leased)
	w.pair("heap", s.Leased)
}
