package resp

import (
	"errors"
	"time"

	"pawl/engine"
	"pawl/state"
)

const (
	maxCount       = 1024 // of FETCH COUNT
	maxFetchQueues = 1024
	maxDamaged     = 64 // damaged jobs that one FETCH passes
)

// FETCH queue timeout_ms [COUNT n] [WAIT ms] [META] [OR queue…].
func cmdFetch(c *conn, args [][]byte) {
	f := c.b.fetches.next()
	clear(f.Jobs)
	*f = engine.Fetch{Queues: f.Queues[:0], Jobs: f.Jobs[:0]}
	wait, form, refusal := c.parseFetch(f, args)
	if refusal != "" {
		c.fail(refusal)
		return
	}
	if c.muted() {
		return // a job that is not shown is not taken
	}
	if wait == 0 || c.srv.stopped.Load() {
		c.add(f, renderFetch, form)
		return
	}
	if c.polled {
		// There may be a job at once; if not, a goroutine waits for it.
		c.odd, c.rest.wait = true, wait
		c.add(f, renderFetch, form)
		return
	}
	blocked := lasting(f) // the batch goes back to the pool while it waits
	c.settle()
	c.block(&blocked, wait, form)
}

// lasting is a copy of f, not carried out, that needs no batch.
func lasting(f *engine.Fetch) engine.Fetch {
	again := engine.Fetch{LeaseMs: f.LeaseMs, Count: f.Count}
	for _, q := range f.Queues {
		again.Queues = append(again.Queues, append([]byte(nil), q...))
	}
	return again
}

// parseFetch checks in Moxy's order: timeout, queue name, timeout's sign.
func (c *conn) parseFetch(f *engine.Fetch, args [][]byte) (wait time.Duration, fm form, refusal string) {
	timeout, ok := parseInt(args[2])
	if !ok {
		return 0, 0, errTimeout
	}
	key, refusal := c.queueKey(args[1])
	if refusal != "" {
		return 0, 0, refusal
	}
	if refusal := checkLease(timeout); refusal != "" {
		return 0, 0, refusal
	}
	f.Queues, f.LeaseMs = append(f.Queues, key), state.Millis(timeout)

	const (
		count = iota
		waits
		meta
	)
	o := options{rest: args[3:]}
	for word, ok := o.next(); ok; word, ok = o.next() {
		switch {
		case equalFold(word, "COUNT") && o.once(count):
			f.Count = int(o.number(1, maxCount))
			fm |= formCount
		case equalFold(word, "WAIT") && o.once(waits):
			wait = time.Duration(o.number(0, maxWait)) * time.Millisecond
		case equalFold(word, "META") && o.once(meta):
			fm |= formMeta
		case equalFold(word, "OR"):
			if len(o.rest) == 0 || len(o.rest) >= maxFetchQueues {
				return 0, 0, errSyntax
			}
			for _, name := range o.rest {
				key, refusal := c.queueKey(name)
				if refusal != "" {
					return 0, 0, refusal
				}
				f.Queues = append(f.Queues, key)
			}
			o.rest = nil
		default:
			o.fail(errSyntax)
		}
	}
	return wait, fm, o.refusal
}

// checkLease refuses lease times that mean nothing: Moxy's text for those that
// are not positive, ours for those whose end cannot be represented.
func checkLease(ms int64) (refusal string) {
	switch {
	case ms <= 0:
		return "ERR lease timeout must be positive"
	case ms > maxSpan:
		return "ERR " + engine.ErrTimeout.Error()
	}
	return ""
}

// renderFetch reads the bodies and writes the jobs. What the client cannot get
// is kept in lost, to be given back.
func renderFetch(c *conn, e *entry) {
	c.renderJobs(e.cmd.(*engine.Fetch), e.form)
}

func (c *conn) renderJobs(f *engine.Fetch, fm form) {
	// The number of jobs stands first, so all bodies are looked at before.
	jobs, ok := c.load(f)
	if !ok {
		c.unread = true
		return
	}
	w := &c.b.out
	if fm&formCount != 0 {
		w.array(len(jobs))
	} else if len(jobs) == 0 {
		w.null()
	}
	for i := range jobs {
		d := &jobs[i]
		if c.failed {
			c.b.lost = append(c.b.lost, *d)
			continue
		}
		c.renderJob(d, fm)
		if c.failed {
			c.b.lost = append(c.b.lost, *d)
			continue
		}
		c.b.shipped = append(c.b.shipped, shipment{job: d, end: len(c.b.out.buf)})
		if cap(d.Payload) > cap(c.b.payload) && cap(d.Payload) <= flushBytes {
			c.b.payload = d.Payload[:0]
		}
		d.Payload = nil
		c.spill()
	}
}

// load reads the bodies of f's jobs. A job whose body is rotten has been buried;
// the next one is fetched in its place. One that could not be read at the moment
// is back at the head of its queue: fetched now, it would fail again. False, in the
// poller only: there is one that a goroutine has to read.
func (c *conn) load(f *engine.Fetch) (jobs []engine.Delivery, ok bool) {
	switch {
	case c.failed:
		return f.Jobs, true
	case c.polled:
		return f.Jobs, c.tryAll(f.Jobs)
	}
	good, rotten := c.loadAll(f.Jobs[:0], f.Jobs)
	for tries := 0; rotten > 0 && tries < maxDamaged; tries++ {
		again := engine.Fetch{Queues: f.Queues, LeaseMs: f.LeaseMs, Count: rotten}
		if c.wait(c.submit(&again)) != nil {
			c.abandon(&again)
			break
		}
		if again.Err() != nil || len(again.Jobs) == 0 {
			break
		}
		good, rotten = c.loadAll(good, again.Jobs)
	}
	return good, true
}

// tryAll reads the bodies of jobs, as long as that takes no wait.
func (c *conn) tryAll(jobs []engine.Delivery) bool {
	for i := range jobs {
		d := &jobs[i]
		d.Payload = c.takeSpace()
		if !c.engine().TryLoad(d) {
			c.b.payload, d.Payload = d.Payload, nil
			return false
		}
	}
	return true
}

// takeSpace is the batch's own space for a body, which is for the first of a reply.
func (c *conn) takeSpace() (space []byte) {
	space, c.b.payload = c.b.payload[:0], nil
	return space
}

// loadAll reads the bodies of jobs, appends those that can be read to good, and
// counts those that are rotten.
func (c *conn) loadAll(good, jobs []engine.Delivery) (_ []engine.Delivery, rotten int) {
	for i := range jobs {
		switch err := c.loadOne(&jobs[i]); {
		case err == nil:
			good = append(good, jobs[i])
		case errors.Is(err, engine.ErrDamaged):
			rotten++
		}
	}
	return good, rotten
}

// loadOne reads one body, unless the poller has. Any other failure than rot is of the
// moment, and the engine has given the job back.
func (c *conn) loadOne(d *engine.Delivery) error {
	if d.Payload == nil {
		d.Payload = c.takeSpace()
	}
	err := c.engine().Load(d)
	if err == nil {
		return nil
	}
	text := "a job's body could not be read"
	if errors.Is(err, engine.ErrDamaged) {
		text = "a damaged job was buried"
	}
	c.srv.log.Error(text, "job", d.ID.String(), "error", err)
	c.b.payload = d.Payload[:0]
	return err
}

// renderJob writes one delivery.
func (c *conn) renderJob(d *engine.Delivery, fm form) {
	w := &c.b.out
	if fm&formMeta != 0 {
		w.array(6 + 16)
	} else {
		w.array(6)
	}
	w.bulkString("lease_id")
	w.leaseID(d.Lease)
	w.bulkString("task_id")
	w.jobID(d.ID)
	w.bulkString("payload")
	c.bulk(d.Payload)
	if fm&formMeta == 0 {
		return
	}
	w.pairString("queue", state.DisplayName(d.Queue))
	w.pair("attempt", int64(d.Attempt))
	w.pair("failures", int64(d.Failures))
	w.pair("tries", int64(d.Tries))
	w.pair("priority", int64(d.Priority))
	w.pair("enqueued_at", int64(d.EnqueuedAt))
	w.pair("deadline", int64(d.Deadline))
	w.bulkString("attrs")
	w.attrs(d.Attrs)
}

func (w *writer) attrs(attrs []engine.Attr) {
	w.array(2 * len(attrs))
	for _, a := range attrs {
		w.bulk(a.Name)
		w.bulk(a.Value)
	}
}

// bulk writes a payload; a large one goes from where it is to the socket.
func (c *conn) bulk(p []byte) {
	w := &c.b.out
	if len(p) < directBytes || c.muted() || c.polled {
		w.bulk(p)
		return
	}
	w.header('$', len(p))
	c.push()
	c.write(p)
	w.buf = append(w.buf, '\r', '\n')
}
