package resp

import (
	"pawl/engine"
	"pawl/state"
)

// look finds a job that the client may see. A job of another pool, or of a
// queue it has no right to, is none.
func (c *conn) look(id state.JobID) (view engine.JobView, found, ok bool) {
	get := engine.JobGet{ID: id}
	if !c.do(&get) {
		return engine.JobView{}, false, false
	}
	if !get.Found {
		return engine.JobView{}, false, true
	}
	if !c.ownsKey(get.Job.Queue) {
		c.forget(&get.Job)
		return engine.JobView{}, false, true
	}
	return get.Job, true, true
}

func (c *conn) forget(v *engine.JobView) { c.engine().ForgetView(v) }

// JOB GET id.
func cmdJobGet(c *conn, args [][]byte) {
	id, err := state.ParseJobID(args[2])
	if err != nil {
		c.b.out.null()
		return
	}
	view, found, ok := c.look(id)
	switch {
	case !ok:
	case !found:
		c.b.out.null()
	default:
		c.renderView(&view)
	}
}

// renderView writes all that is known of a job, in a map. A body that cannot
// be read is null.
func (c *conn) renderView(v *engine.JobView) {
	err := c.engine().LoadView(v)
	if err != nil {
		c.srv.log.Error("a job's body could not be read", "job", v.ID.String(), "error", err)
	}
	w := &c.b.out
	w.mapHeader(21)
	w.bulkString("id")
	w.jobID(v.ID)
	w.pairString("queue", state.DisplayName(v.Queue))
	w.pairString("state", v.Place.String())
	w.pair("priority", int64(v.Priority))
	w.pair("attempt", int64(v.Attempt))
	w.pair("failures", int64(v.Failures))
	w.pair("tries", int64(v.Tries))
	w.pair("backoff", int64(v.Backoff.Base))
	w.pair("backoff_max", int64(v.Backoff.Max))
	w.millis("enqueued_at", v.EnqueuedAt)
	w.millis("due_at", v.DueAt)
	w.millis("deadline", v.Deadline)
	w.millis("expires_at", v.ExpiresAt)
	w.millis("died_at", v.DiedAt)
	w.bulkString("lease_id")
	if v.Place == state.Leased {
		w.leaseID(v.Lease)
	} else {
		w.null()
	}
	w.pairString("reason", v.Reason)
	w.orNull("unique", v.Unique)
	w.orNull("group", v.Group)
	w.pair("bytes", int64(v.Bytes))
	w.bulkString("payload")
	if err != nil {
		w.null()
	} else {
		c.bulk(v.Payload)
	}
	w.bulkString("attrs")
	w.attrs(v.Attrs)
	c.spill()
}

func (w *writer) orNull(name string, value []byte) {
	w.bulkString(name)
	if value == nil {
		w.null()
		return
	}
	w.bulk(value)
}

// JOB DELETE id….
func cmdJobDelete(c *conn, args [][]byte) {
	var looks []engine.Command
	for _, arg := range args[2:] {
		if id, err := state.ParseJobID(arg); err == nil { // else no job has it
			looks = append(looks, &engine.JobGet{ID: id})
		}
	}
	d := &engine.JobDelete{}
	err := c.wait(c.submit(looks...))
	for _, look := range looks {
		get := look.(*engine.JobGet)
		if err == nil {
			err = get.Err()
		}
		if !get.Found {
			continue
		}
		c.forget(&get.Job)
		if c.ownsKey(get.Job.Queue) {
			d.IDs = append(d.IDs, get.ID)
		}
	}
	if err != nil {
		line, _ := replyError(err)
		c.fail(line)
		return
	}
	c.add(d, renderJobDelete, 0)
}

func renderJobDelete(c *conn, e *entry) {
	c.b.out.integer(int64(e.cmd.(*engine.JobDelete).Deleted))
}

// edit has the engine change one job that the client may see.
func (c *conn) edit(id []byte, e *engine.JobEdit) {
	var err error
	if e.ID, err = state.ParseJobID(id); err != nil {
		c.failNow(errJob)
		return
	}
	view, found, ok := c.look(e.ID)
	switch {
	case !ok:
		return
	case !found:
		c.failNow(errJob)
		return
	}
	c.forget(&view)
	if c.do(e) {
		c.b.out.ok()
	}
}

// JOB RUN id.
func cmdJobRun(c *conn, args [][]byte) { c.edit(args[2], &engine.JobEdit{Kind: engine.EditRun}) }

// JOB DELAY id ms.
func cmdJobDelay(c *conn, args [][]byte) {
	o := options{rest: args[3:]}
	e := engine.JobEdit{Kind: engine.EditDelay, Delay: o.span(0)}
	if o.refusal != "" {
		c.failNow(o.refusal)
		return
	}
	c.edit(args[2], &e)
}

// JOB PRIORITY id n.
func cmdJobPriority(c *conn, args [][]byte) {
	o := options{rest: args[3:]}
	e := engine.JobEdit{Kind: engine.EditPriority, Priority: int8(o.number(-128, 127))}
	if o.refusal != "" {
		c.failNow(o.refusal)
		return
	}
	c.edit(args[2], &e)
}

// JOB PAYLOAD id bytes.
func cmdJobPayload(c *conn, args [][]byte) {
	c.edit(args[2], &engine.JobEdit{Kind: engine.EditPayload, Payload: args[3]})
}

// JOB MOVE id queue.
func cmdJobMove(c *conn, args [][]byte) {
	key, refusal := c.queueKey(args[3])
	if refusal != "" {
		c.failNow(refusal)
		return
	}
	c.edit(args[2], &engine.JobEdit{Kind: engine.EditMove, Queue: key})
}
