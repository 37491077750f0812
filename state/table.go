package state

import (
	"encoding/binary"
	"math"
)

// How the entries of the tables look in a snapshot. Of free entries the link is
// written as well (bare.go): the order in which they are handed out again is part of
// the state.

func (r *root) walk(c *coder) {
	num(c, "now", &r.now, 0, maxMillis)
	signed(c, "offset", &r.offset)
	boolean(c, "draining", &r.draining)
	boolean(c, "has secret", &r.hasSecret)
	raw(c, "secret", r.secret[:])
	num(c, "serial", &r.serial, 0, math.MaxUint64)
	r.totals.walk(c)
	numbers(c, &r.idleFirst, &r.idleLast)
}

// jobBytes is how many bytes walk writes of a job.
const jobBytes = 64

// walk takes no step for each field: a snapshot has millions of jobs.
func (j *job) walk(c *coder) {
	switch {
	case c.mode == writing:
		c.buf = j.append(c.buf)
	case len(c.buf) < jobBytes:
		c.fail("job")
	default:
		j.read(c.buf)
		c.buf = c.buf[jobBytes:]
	}
}

func (j *job) append(b []byte) []byte {
	le := binary.LittleEndian
	for _, v := range [...]uint64{j.born, j.when, j.expires} {
		b = le.AppendUint64(b, v)
	}
	for _, v := range [...]uint32{j.delay, j.queue, j.prev, j.next, j.generation, j.offset, j.length, j.checksum, j.extra} {
		b = le.AppendUint32(b, v)
	}
	return append(le.AppendUint16(b, j.overhead), j.where, uint8(j.priority))
}

func (j *job) read(b []byte) {
	le := binary.LittleEndian
	_ = b[jobBytes-1]
	j.born, j.when, j.expires = le.Uint64(b[0:]), le.Uint64(b[8:]), le.Uint64(b[16:])
	j.delay, j.queue, j.prev, j.next = le.Uint32(b[24:]), le.Uint32(b[28:]), le.Uint32(b[32:]), le.Uint32(b[36:])
	j.generation, j.offset, j.length, j.checksum = le.Uint32(b[40:]), le.Uint32(b[44:]), le.Uint32(b[48:]), le.Uint32(b[52:])
	j.extra = le.Uint32(b[56:])
	j.overhead, j.where, j.priority = le.Uint16(b[60:]), b[62], int8(b[63])
}

func (x *extra) walk(c *coder) {
	raw(c, "nonce", x.nonce[:])
	num(c, "failures", &x.failures, 0, maxUint16)
	num(c, "attempts", &x.attemptHigh, 0, maxUint16)
	num(c, "tries", &x.tries, 0, maxUint16)
	numbers(c, &x.reason, &x.claim, &x.group)
	num(c, "backoff", &x.backoff, 0, maxMillis)
	num(c, "backoffmax", &x.backoffMax, 0, maxMillis)
}

func (p *policy) walk(c *coder) {
	num(c, "tries", &p.tries, 0, maxUint16)
	num(c, "backoff", &p.backoff, 0, maxMillis)
	num(c, "backoffmax", &p.backoffMax, 0, maxMillis)
	numbers(c, &p.refs, &p.next)
}

// walk writes next for q.idleNext. Writing changes nothing: a view is read by others
// beside its owner.
func (q *queue) walk(c *coder, next *uint32) {
	str(c, "key", &q.key, MaxQueueKeyBytes)
	num(c, "serial", &q.serial, 0, math.MaxUint64)
	q.totals.walk(c)
	num(c, "bytes", &q.bytes, 0, math.MaxUint64)
	numbers(c, &q.ready, &q.delayed, &q.leased, &q.dead, &q.level, &q.due, &q.dueWall,
		&q.leasedFirst, &q.leasedLast, &q.deadFirst, &q.deadLast, &q.groupFirst, &q.groupLast,
		&q.reasons, &q.claims, &q.settings, &q.rateUsed, &q.idlePrev, next)
	num(c, "paused", &q.pausedUntil, 0, maxMillis)
	num(c, "grave", &q.graveAt, 0, maxMillis)
	num(c, "rate", &q.rateFrom, 0, maxMillis)
	num(c, "used", &q.usedAt, 0, maxMillis)
	boolean(c, "idle", &q.idle)
}

func (l *level) walk(c *coder) {
	priority := uint8(l.priority)
	num(c, "priority", &priority, 0, math.MaxUint8)
	l.priority = int8(priority)
	numbers(c, &l.first, &l.last, &l.next)
}

func (g *group) walk(c *coder) {
	num(c, "serial", &g.serial, 0, math.MaxUint64)
	raw(c, "key", g.key[:])
	numbers(c, &g.refs, &g.head, &g.first, &g.last, &g.prev, &g.next)
}

func (l *claim) walk(c *coder) {
	num(c, "serial", &l.serial, 0, math.MaxUint64)
	raw(c, "key", l.key[:])
	raw(c, "id", l.id[:])
	num(c, "until", &l.until, 0, maxMillis)
	numbers(c, &l.queue, &l.slot, &l.next)
	boolean(c, "held", &l.held)
}

func (r *reason) walk(c *coder) {
	str(c, "text", &r.text, MaxReasonBytes)
	numbers(c, &r.queue, &r.refs, &r.next)
}

func (t *settings) walk(c *coder) {
	t.Settings.walk(c)
	numbers(c, &t.next)
}

func (t *cron) walk(c *coder) {
	t.Cron.walk(c)
	numbers(c, &t.next)
}

func (m *meta) walk(c *coder) {
	str(c, "key", &m.key, MaxTextBytes)
	copied(c, "value", &m.value, MaxDataBytes)
	numbers(c, &m.next)
}

func (t *Totals) walk(c *coder) {
	for _, n := range []*uint64{&t.Enqueued, &t.Delivered, &t.Acked, &t.Nacked, &t.Released,
		&t.Expired, &t.Buried, &t.Dead, &t.Deleted, &t.Lapsed, &t.Redriven} {
		num(c, "total", n, 0, math.MaxUint64)
	}
}

func numbers(c *coder, all ...*uint32) {
	for _, n := range all {
		num(c, "number", n, 0, maxUint32)
	}
}

func boolean(c *coder, name string, v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	num(c, name, &n, 0, 1)
	if c.mode == reading {
		*v = n == 1
	}
}

// An entry is bare when nothing of it stands but its link, and its trace. These say
// so of those of a sound state and of those that were just read, free or not.

func (j *job) bare() bool        { return j.where == 0 }
func (x *extra) bare() bool      { return *x == extra{claim: x.claim} }
func (p *policy) bare() bool     { return p.refs == 0 }
func (e *queueEntry) bare() bool { return e.queue == nil }
func (l *level) bare() bool      { return l.first == 0 }
func (g *group) bare() bool      { return g.serial == 0 }
func (l *claim) bare() bool      { return l.serial == 0 }
func (r *reason) bare() bool     { return r.refs == 0 }
func (t *settings) bare() bool   { return t.Settings == Settings{} }
func (t *cron) bare() bool       { return t.Name == "" }
func (m *meta) bare() bool       { return m.key == "" }
