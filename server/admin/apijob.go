package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"pawl/engine"
	"pawl/state"
)

// jobJSON is a job in replies. Times are Unix milliseconds, 0 is none.
type jobJSON struct {
	ID           string     `json:"id"`
	QueueRef     string     `json:"queue_ref" doc:"for the parameter queue, percent-encoded"`
	Queue        string     `json:"queue" doc:"what RESP clients of the pool call it"`
	Pool         string     `json:"pool"`
	State        string     `json:"state"`
	Priority     int8       `json:"priority"`
	Attempt      uint32     `json:"attempt" doc:"deliveries so far"`
	Failures     uint32     `json:"failures"`
	Tries        uint16     `json:"tries" doc:"failures until dead; 0 is no limit"`
	BackoffMs    int64      `json:"backoff_ms"`
	BackoffMaxMs int64      `json:"backoff_max_ms"`
	EnqueuedAt   int64      `json:"enqueued_at"`
	DueAt        int64      `json:"due_at"`
	Deadline     int64      `json:"deadline" doc:"leased: when the lease ends"`
	ExpiresAt    int64      `json:"expires_at"`
	DiedAt       int64      `json:"died_at"`
	Lease        string     `json:"lease" doc:"leased: for ACK, NACK and the others"`
	Reason       string     `json:"reason" doc:"of the last failure"`
	Unique       string     `json:"unique"`
	Group        string     `json:"group"`
	Bytes        int        `json:"bytes" doc:"of the payload"`
	Attrs        []attrJSON `json:"attrs"`
	Payload      []byte     `json:"payload" doc:"base 64; null in lists"`
	Damaged      bool       `json:"damaged" doc:"the payload is rotten on disk"`
}

type attrJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func jobOf(v *engine.JobView) jobJSON {
	pool, _, _ := state.SplitQueueKey(v.Queue)
	j := jobJSON{
		ID: v.ID.String(), QueueRef: url.QueryEscape(v.Queue), Queue: shown(state.DisplayName(v.Queue)), Pool: shown(pool),
		State: v.Place.String(), Priority: v.Priority, Attempt: v.Attempt, Failures: v.Failures, Tries: v.Tries,
		BackoffMs: int64(v.Backoff.Base), BackoffMaxMs: int64(v.Backoff.Max),
		EnqueuedAt: int64(v.EnqueuedAt), DueAt: int64(v.DueAt), Deadline: int64(v.Deadline),
		ExpiresAt: int64(v.ExpiresAt), DiedAt: int64(v.DiedAt),
		Reason: shown(v.Reason), Unique: shown(string(v.Unique)), Group: shown(string(v.Group)),
		Bytes: v.Bytes, Attrs: []attrJSON{},
	}
	if v.Place == state.Leased {
		j.Lease = v.Lease.String()
	}
	return j
}

type jobsReply struct {
	Jobs []jobJSON `json:"jobs" doc:"in delivery order, without payloads"`
	Next string    `json:"next" doc:"for the parameter after; empty is the end"`

	Scanned int `json:"scanned" doc:"jobs that were looked at"`
}

// maxSearch bounds how many jobs one search looks at: each is read from the log.
const maxSearch = 2000

// listJobs gives one page of a queue's jobs in one state.
func (c *apiCall) listJobs() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	place, err := parseState(cmp.Or(c.query.Get("state"), state.Ready.String()))
	if err != nil {
		return nil, err
	}
	count := max(1, int(min(c.integer("count", 25), maxPage)))
	match := []byte(c.query.Get("match"))
	if len(match) > state.MaxNameBytes {
		return nil, invalid("match is over %d bytes", state.MaxNameBytes)
	}
	peek := &engine.QueuePeek{Queue: key, Place: place, Count: count}
	if after := c.query.Get("after"); after != "" {
		if peek.After, err = base64.RawURLEncoding.DecodeString(after); err != nil {
			return nil, invalid("after is not what a page before gave")
		}
	}
	if err := c.do(peek); err != nil {
		return nil, err
	}
	reply := jobsReply{Jobs: []jobJSON{}}
	for {
		for i := range peek.Jobs {
			v := &peek.Jobs[i]
			reply.Scanned++
			switch {
			case len(match) == 0:
				reply.Jobs = append(reply.Jobs, jobOf(v))
				c.engine.ForgetView(v)
			case c.matchesJob(v, match):
				reply.Jobs = append(reply.Jobs, jobOf(v))
			}
		}
		reply.Next = base64.RawURLEncoding.EncodeToString(peek.Next)
		if len(match) == 0 || peek.Next == nil || len(reply.Jobs) >= count || reply.Scanned >= maxSearch {
			return reply, c.r.Context().Err()
		}
		peek = &engine.QueuePeek{Queue: key, Place: place, Count: count, After: peek.Next}
		if err := c.do(peek); err != nil {
			if errors.Is(err, engine.ErrCursor) { // the job at the cursor has gone meanwhile
				reply.Next = ""
				return reply, nil
			}
			return nil, err
		}
	}
}

// matchesJob says whether text is part of what a job is known by, or of its
// payload. The view is done with.
func (c *apiCall) matchesJob(v *engine.JobView, text []byte) bool {
	for _, field := range [...]string{v.ID.String(), v.Reason, string(v.Unique), string(v.Group)} {
		if strings.Contains(field, string(text)) {
			c.engine.ForgetView(v)
			return true
		}
	}
	if c.engine.LoadView(v) != nil {
		return false // a payload that is rotten has nothing to be found by
	}
	for _, a := range v.Attrs {
		if bytes.Contains(a.Value, text) {
			return true
		}
	}
	return bytes.Contains(v.Payload, text)
}

// maxScan bounds how many jobs one request looks at.
const maxScan = 10_000

// scan pages through a queue's jobs in one state, at most maxScan of them, and
// says whether that was all.
func (c *apiCall) scan(ctx context.Context, key []byte, place state.Place, visit func(*engine.JobView)) (complete bool, err error) {
	var after []byte
	for seen := 0; seen < maxScan; {
		peek := &engine.QueuePeek{Queue: key, Place: place, Count: maxPage, After: after}
		if err := c.do(peek); err != nil {
			if errors.Is(err, engine.ErrCursor) { // the job at the cursor has gone
				return false, nil
			}
			return false, err
		}
		for i := range peek.Jobs {
			visit(&peek.Jobs[i])
			c.engine.ForgetView(&peek.Jobs[i])
		}
		seen += len(peek.Jobs)
		if after = peek.Next; after == nil {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	return false, nil
}

func parseState(name string) (state.Place, error) {
	place, ok := state.ParsePlace(name)
	if !ok {
		return 0, invalid("state %.32q is none of ready, delayed, leased, dead", name)
	}
	return place, nil
}

// getJob gives one job with its payload.
func (c *apiCall) getJob() (any, error) {
	id, err := parseID(c.query.Get("id"))
	if err != nil {
		return nil, err
	}
	get := &engine.JobGet{ID: id}
	if err := c.do(get); err != nil {
		return nil, err
	}
	if !get.Found {
		return nil, notFound("there is no job %s", id)
	}
	v := get.Job
	err = c.engine.LoadView(&v)
	j := jobOf(&v)
	switch {
	case errors.Is(err, engine.ErrDamaged):
		j.Damaged = true
	case err != nil:
		return nil, err
	default:
		j.Payload = v.Payload
		if j.Payload == nil {
			j.Payload = []byte{}
		}
		for _, a := range v.Attrs {
			j.Attrs = append(j.Attrs, attrJSON{shown(string(a.Name)), shown(string(a.Value))})
		}
	}
	return j, nil
}

func parseID(text string) (state.JobID, error) {
	if len(text) == state.JobIDLen+1 { // lmstfy's form, with a version in front
		text = text[1:]
	}
	id, err := state.ParseJobID([]byte(text))
	if err != nil {
		return id, invalid("%.40q is no job ID", text)
	}
	return id, nil
}
