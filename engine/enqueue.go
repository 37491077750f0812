package engine

import (
	"bytes"
	"math"

	"pawl/state"
	"pawl/wal"
)

// enqueue adds one job.
func (e *Engine) enqueue(c *Enqueue) error {
	if err := e.room(enqueueRoom(c)); err != nil {
		return err
	}
	p, err := e.planEnqueue(c, nil)
	if err != nil {
		return err
	}
	e.doEnqueue(c, &p)
	return nil
}

// enqueueRoom is what the records of c take at most, its queue's too.
func enqueueRoom(c *Enqueue) int {
	return recordRoom + wal.RecordBytes(160, len(c.prefix)+len(c.Payload)) + wal.RecordBytes(160+len(c.Queue), 0)
}

// enqueuePlan is what is decided about an Enqueue that is not refused.
type enqueuePlan struct {
	queue     state.QueueID // 0: it must be made
	unique    state.Key
	group     state.Key
	due       state.Millis // 0 is at once
	wall      bool         // due is wall time
	delay     state.Millis
	expires   state.Millis
	tries     uint16
	backoff   Backoff
	duplicate bool
	of        state.JobID
}

// planEnqueue checks c against the state, and within a Multi against what the
// commands before it will do.
func (e *Engine) planEnqueue(c *Enqueue, o *overlay) (p enqueuePlan, err error) {
	if err := checkQueueKey(c.Queue); err != nil {
		return p, err
	}
	switch {
	case len(c.Payload) > e.opt.MaxPayload:
		return p, ErrTooLarge
	case !validAttrs(c.Attrs), len(c.Unique) > MaxUniqueBytes, len(c.Group) > MaxGroupBytes:
		return p, ErrAttrs
	}
	var settings state.Settings
	var known bool
	if p.queue, known = e.st.QueueByKey(c.Queue); known {
		settings = e.st.Settings(p.queue)
	}
	if err := e.planTimes(c, &p, &settings); err != nil {
		return p, err
	}
	if c.Unique != nil {
		p.unique = e.st.Hash(c.Unique)
		if p.of, p.duplicate = e.duplicateOf(&p, o, c.Queue); p.duplicate {
			return p, nil
		}
	}
	if c.Group != nil {
		p.group = e.st.Hash(c.Group)
	}
	if err := e.mayGrow(c, &p, &settings, o); err != nil {
		return p, err
	}
	o.enqueued(e, c, &p)
	return p, nil
}

// planTimes puts together what the request says and what the queue's settings
// say where it is silent.
func (e *Engine) planTimes(c *Enqueue, p *enqueuePlan, settings *state.Settings) error {
	p.tries = settings.Tries
	if c.Tries.Set {
		p.tries = c.Tries.Value
	}
	p.backoff = Backoff{settings.Backoff, settings.BackoffMax}
	if c.Backoff.Set {
		p.backoff = c.Backoff.Value
	}
	p.backoff.Base = clampSpan(p.backoff.Base)
	p.backoff.Max = clampSpan(p.backoff.Max)
	ttl := settings.TTL
	if c.TTL.Set {
		ttl = c.TTL.Value
	}
	ttl = clampSpan(ttl)
	if c.At.Set {
		p.delay = c.At.Value - e.clock.wall(e.now)
		if p.delay > 0 {
			p.due, p.wall = min(c.At.Value, state.MaxMillis), true
			p.delay = clampSpan(p.delay)
		} else {
			p.delay = 0
		}
	} else if c.Delay > 0 {
		p.delay = clampSpan(c.Delay)
		p.due = state.AddMillis(e.now, p.delay)
	}
	if ttl > 0 {
		if p.due != 0 && ttl <= p.delay {
			return ErrTTLShorter
		}
		p.expires = state.AddMillis(e.now, ttl)
	}
	return nil
}

// maxSpan is the longest delay, time to live or wait, in milliseconds: a hundred
// years. Longer ones are cut to it, which nobody will notice.
const maxSpan state.Millis = 100 * 366 * 24 * 3600 * 1000

func clampSpan(ms state.Millis) state.Millis { return max(0, min(ms, maxSpan)) }

// duplicateOf is the job that holds p's unique key.
func (e *Engine) duplicateOf(p *enqueuePlan, o *overlay, queue []byte) (state.JobID, bool) {
	if held, known := o.key(queue, p.unique); known {
		return state.JobID{}, held
	}
	if p.queue == 0 {
		return state.JobID{}, false
	}
	return e.st.Unique(p.queue, p.unique, e.now)
}

// mayGrow says whether one more job is welcome: in the store, and in its queue.
func (e *Engine) mayGrow(c *Enqueue, p *enqueuePlan, settings *state.Settings, o *overlay) error {
	switch {
	case e.whole:
		// A part of a transaction that was checked as a whole. What others change
		// beside the critical section, such as the space on the disk, and what is
		// only estimated, must not stop it half way.
		return nil
	case c.bySchedule: // it comes once and cannot come again
	case e.st.Draining():
		return ErrDraining
	case e.full.Load():
		return ErrNoSpace
	}
	if slot, _ := e.st.NextSlot(); slot == 0 {
		return ErrNoMemory
	}
	if most := e.limits.memory.Load(); most > 0 && e.st.Counts().Memory+o.memory() >= uint64(most) {
		return ErrNoMemory
	}
	if p.queue == 0 && !o.makes(c.Queue) {
		if e.st.NextQueue() == 0 || e.st.Counts().Queues+o.queueCount() >= uint64(e.opt.MaxQueues) {
			return ErrTooMany
		}
	}
	if c.Group != nil && int64(e.st.Counts().Groups)+o.groupCount() >= int64(e.opt.MaxGroups) &&
		o.groupJobs(e, queueText{string(c.Queue), p.group}, p.queue) == 0 {
		return ErrTooMany
	}
	return e.fits(p.queue, c.Queue, settings, 1, int64(len(c.Payload)), o)
}

// fits says whether a queue takes so many jobs and payload bytes more.
func (e *Engine) fits(q state.QueueID, key []byte, settings *state.Settings, jobs, payload int64, o *overlay) error {
	if q == 0 || settings.MaxLen == 0 && settings.MaxBytes == 0 {
		return nil
	}
	now := e.st.Queue(q)
	grown := o.growth(key)
	jobs += int64(now.Ready) + int64(now.Delayed) + int64(now.Leased) + grown.jobs
	payload += int64(now.Bytes) + grown.payload
	if settings.MaxLen != 0 && uint64(max(jobs, 0)) > settings.MaxLen {
		return ErrQueueFull
	}
	if settings.MaxBytes != 0 && uint64(max(payload, 0)) > settings.MaxBytes {
		return ErrQueueFull
	}
	return nil
}

// doEnqueue does what was planned. It cannot fail.
func (e *Engine) doEnqueue(c *Enqueue, p *enqueuePlan) {
	c.Duplicate = p.duplicate
	if p.duplicate {
		c.ID = p.of
		e.tally.duplicates++
		return
	}
	q := p.queue
	if q == 0 {
		q = e.makeQueue(c.Queue)
	}
	slot, reuse := e.st.NextSlot()
	wall := e.clock.wall(e.now)
	seconds := uint32(min(p.delay/1000, math.MaxUint32))
	c.ID = state.NewJobID(wall, slot, reuse, seconds)
	window := c.For
	if window <= 0 {
		window = defaultWindow
	}
	e.r = state.Record{
		Kind: state.KindEnqueue, Slot: slot, Queue: q, Priority: c.Priority,
		Born: wall, Delay: seconds, At: p.due, Wall: p.wall, Expires: p.expires,
		Tries: p.tries, Backoff: p.backoff.Base, BackoffMax: p.backoff.Max,
		Unique: p.unique, Group: p.group, Overhead: uint16(len(c.prefix)),
	}
	if c.Unique != nil {
		e.r.Window = state.AddMillis(e.now, clampSpan(window))
	}
	body := c.Payload
	if len(c.prefix) > 0 {
		e.body = append(append(e.body[:0], c.prefix...), c.Payload...)
		body = e.body
	}
	e.record(&e.r, body)
	if p.due == 0 {
		e.touched(q)
	}
}

// defaultWindow is how long a unique key is held at least, in milliseconds.
const defaultWindow state.Millis = 60_000

// makeQueue begins a queue that does not exist. There must be room for its
// record, and for one more queue.
func (e *Engine) makeQueue(key []byte) state.QueueID {
	q := e.st.NextQueue()
	e.record(&state.Record{Kind: state.KindQueue, Queue: q, Text: key}, nil)
	return q
}

// needQueue finds a queue or makes it. There must be room.
func (e *Engine) needQueue(key []byte) (state.QueueID, error) {
	if err := checkQueueKey(key); err != nil {
		return 0, err
	}
	if q, ok := e.st.QueueByKey(key); ok {
		return q, nil
	}
	if e.st.NextQueue() == 0 || e.st.Counts().Queues >= uint64(e.opt.MaxQueues) {
		return 0, ErrTooMany
	}
	return e.makeQueue(key), nil
}

// queueRoom is what the record of a new queue and one more take.
func queueRoom(key []byte) int { return recordRoom + wal.RecordBytes(160+len(key), 0) }

// checkQueueKey says whether a key has three parts of a legal length, of which
// the name is not only white space.
func checkQueueKey(key []byte) error {
	pool := bytes.IndexByte(key, '/')
	if pool < 0 {
		return ErrEmptyName
	}
	namespace := bytes.IndexByte(key[pool+1:], '/')
	if namespace < 0 {
		return ErrEmptyName
	}
	name := key[pool+1+namespace+1:]
	switch {
	case pool == 0, namespace == 0, len(bytes.TrimSpace(name)) == 0:
		return ErrEmptyName
	case pool > state.MaxNameBytes, namespace > state.MaxNameBytes, len(name) > state.MaxNameBytes:
		return ErrNameTooLong
	}
	return nil
}

func validAttrs(attrs []Attr) bool {
	if len(attrs) > MaxAttrs {
		return false
	}
	for _, a := range attrs {
		if len(a.Name) > MaxAttrBytes || len(a.Value) > MaxAttrBytes {
			return false
		}
	}
	return true
}
