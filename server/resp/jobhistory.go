package resp

import (
	"pawl/engine"
	"pawl/state"
)

// JOB HISTORY id [FROM lsn]. A job that was in a queue which is not the client's
// to see, or in one whose name is not known any more, has none.
func cmdJobHistory(c *conn, args [][]byte) {
	id, err := state.ParseJobID(args[2])
	o := options{rest: args[3:]}
	var from engine.LSN
	for word, ok := o.next(); ok; word, ok = o.next() {
		if !equalFold(word, "FROM") || !o.once(0) {
			o.fail(errSyntax)
			break
		}
		from = engine.LSN(o.number(0, 1<<62))
	}
	if o.refusal != "" {
		c.failNow(o.refusal)
		return
	}
	if err != nil {
		c.b.out.null()
		return
	}
	h, err := c.engine().JobHistory(c.srv.life, id, from)
	switch {
	case err != nil:
		c.storageError("look at the log", err)
	case !c.seesHistory(id, &h):
		c.b.out.null()
	default:
		c.renderHistory(&h)
	}
}

// seesHistory says whether there is something to tell, and all of it is about
// queues of the client.
func (c *conn) seesHistory(id state.JobID, h *engine.JobHistory) bool {
	if len(h.Events) == 0 {
		return false
	}
	named := false
	for i := range h.Events {
		e := &h.Events[i]
		if e.What != "enqueue" && e.What != "move" && (e.What != "redrive" || e.Queue == "") {
			continue
		}
		if e.Queue == "" || !c.ownsKey(e.Queue) {
			return false
		}
		named = true
	}
	if named {
		return true
	}
	_, found, ok := c.look(id) // no event names a queue: the job itself does
	return found && ok
}

func (c *conn) renderHistory(h *engine.JobHistory) {
	w := &c.b.out
	w.mapHeader(3)
	complete := int64(0)
	if h.Complete {
		complete = 1
	}
	w.pair("complete", complete)
	w.pair("next", int64(h.Next))
	w.bulkString("events")
	w.array(len(h.Events))
	for i := range h.Events {
		e := &h.Events[i]
		w.mapHeader(11)
		w.pair("lsn", int64(e.LSN))
		w.pair("index", int64(e.Index))
		w.pair("at", int64(e.At))
		w.pairString("what", e.What)
		w.bulkString("state")
		if e.Place == 0 {
			w.null()
		} else {
			w.bulkString(e.Place.String())
		}
		w.pair("attempt", int64(e.Attempt))
		w.millis("until", e.Until)
		w.bulkString("lease_id")
		if e.Lease == (state.LeaseID{}) {
			w.null()
		} else {
			w.leaseID(e.Lease)
		}
		w.pair("priority", int64(e.Priority))
		w.pairString("reason", e.Reason)
		w.bulkString("queue")
		if e.Queue == "" {
			w.null()
		} else {
			w.bulkString(state.DisplayName(e.Queue))
		}
	}
}
