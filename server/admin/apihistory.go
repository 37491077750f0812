package admin

import (
	"pawl/engine"
	"pawl/state"
)

// eventJSON is one thing that happened to a job. Times are Unix milliseconds, 0
// is none.
type eventJSON struct {
	LSN      uint64 `json:"lsn" doc:"group of the log"`
	Index    int    `json:"index" doc:"of the record in its group"`
	At       int64  `json:"at"`
	What     string `json:"what" doc:"enqueue, lease, extend, ack, nack, expire, release, due, lapse, bury, damage, redrive, run, delay, priority, payload, move, delete, purge, deadmax, deadfor or gap (the log is damaged from there on, and goes on behind it)"`
	State    string `json:"state" doc:"from then on; empty is gone, or not known"`
	Attempt  uint32 `json:"attempt" doc:"deliveries so far; 0 is none, or not known"`
	Until    int64  `json:"until" doc:"end of the lease, or when the delayed job is due"`
	Lease    string `json:"lease"`
	Priority int8   `json:"priority" doc:"of enqueue and priority"`
	Reason   string `json:"reason"`
	Queue    string `json:"queue" doc:"of enqueue, move and redrive; empty is as before, or not known any more"`
}

type historyReply struct {
	Events   []eventJSON `json:"events" doc:"oldest first, at most about 1,000"`
	Complete bool        `json:"complete" doc:"the events begin with the enqueue; otherwise that part of the log has gone or stood in a reply before"`
	Next     uint64      `json:"next" doc:"for the parameter from; 0 is the end"`
	Bytes    int64       `json:"bytes" doc:"of log that were read"`
}

// jobHistory tells what the log says of a job.
func (c *apiCall) jobHistory() (any, error) {
	id, err := parseID(c.query.Get("id"))
	if err != nil {
		return nil, err
	}
	from := c.integer("from", 0)
	if from < 0 {
		return nil, invalid("from is negative")
	}
	h, err := c.engine.JobHistory(c.r.Context(), id, engine.LSN(from))
	if err != nil {
		return nil, err
	}
	reply := historyReply{Events: []eventJSON{}, Complete: h.Complete, Next: uint64(h.Next), Bytes: h.Bytes}
	for i := range h.Events {
		e := &h.Events[i]
		j := eventJSON{
			LSN: uint64(e.LSN), Index: e.Index, At: int64(e.At), What: e.What, Attempt: e.Attempt, Until: int64(e.Until),
			Priority: e.Priority, Reason: shown(e.Reason),
		}
		if e.Queue != "" {
			j.Queue = shown(state.DisplayName(e.Queue))
		}
		if e.Place != 0 {
			j.State = e.Place.String()
		}
		if e.Lease != (state.LeaseID{}) {
			j.Lease = e.Lease.String()
		}
		reply.Events = append(reply.Events, j)
	}
	return reply, nil
}
