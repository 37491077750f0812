package lmstfy

import (
	"encoding/json"
	"net/http"

	"pawl/engine"
	"pawl/state"
)

// maxSeconds bounds delay, ttl and ttr: beyond what anything waits for, within
// what the engine can represent. lmstfy takes up to 136 years.
const maxSeconds = 99 * 365 * 24 * 3600

// millis converts whole seconds.
func millis(seconds uint32) state.Millis { return state.Millis(min(seconds, maxSeconds)) * 1000 }

// jobTTL is the TTL of a publish for the engine, which wants it longer than the
// delay: lmstfy takes equal ones, for a job that is due and over at once.
func jobTTL(o publishOptions) state.Millis {
	if o.ttl == 0 {
		return 0
	}
	return max(millis(o.ttl), millis(o.delay)+1)
}

// newJob fills in an Enqueue of the queue that a publish goes to. key and
// payload must stay as they are until it has been submitted.
func newJob(e *engine.Enqueue, key, payload []byte, o publishOptions, attrs []engine.Attr) {
	*e = engine.Enqueue{
		Queue:   key,
		Payload: payload,
		Delay:   millis(o.delay),
		TTL:     engine.Some(jobTTL(o)),
		Tries:   engine.Some(o.tries),
		Attrs:   attrs,
	}
}

// publishKey is the key of the queue that a publish goes to, in c.key.
func (s *Server) publishKey(c *call) []byte {
	pool := c.pool
	if to, ok := s.options.MigrateTo[pool]; ok {
		pool = to
	}
	c.key = appendKey(c.key[:0], pool, c.namespace, c.queue)
	return c.key
}

func appendKey(b []byte, pool, namespace, queue string) []byte {
	b = append(append(b, pool...), '/')
	b = append(append(b, namespace...), '/')
	return append(b, queue...)
}

// readJob reads what a publish has besides its path into c.enq. When it returns
// false the reply has been made.
func (s *Server) readJob(c *call) bool {
	o, refusal := publishQuery(c.query, s.defaults)
	if refusal != "" {
		c.error(http.StatusBadRequest, refusal)
		return false
	}
	body, ok := c.receive(s.options.MaxPayload)
	if !ok {
		return false
	}
	attrs, ok := attributes(c.attrs, c.header)
	c.attrs = attrs
	if !ok {
		c.error(http.StatusBadRequest, tooManyAttributes)
		return false
	}
	newJob(&c.enq, s.publishKey(c), body, o, attrs)
	return true
}

func (s *Server) publish(c *call) {
	if !s.readJob(c) {
		return
	}
	came := c.engine.Arrived()
	if !c.do(&c.enq) {
		return
	}
	if err := c.enq.Err(); err != nil {
		c.refused(err)
		return
	}
	c.published()
	c.engine.Answered(came, c.lsn, 1)
}

// published replies with the ID of c.enq.
func (c *call) published() {
	b := append(c.reply[:0], `{"job_id":"`...)
	b = appendJobID(b, c.enq.ID, versioned(c.enq.Attrs))
	c.reply = append(b, `","msg":"published"}`...)
	c.send(http.StatusCreated)
}

// republish deletes a job and publishes another one, both or neither: a refusal
// destroys nothing. An unknown job is no error.
func (s *Server) republish(c *call) {
	if !s.readJob(c) {
		return
	}
	cmds := []engine.Command{}
	if id, ok := parseJobID(c.job); ok {
		for _, pool := range s.searchPools(c.pool) {
			cmds = append(cmds, &engine.JobDelete{
				IDs:   []state.JobID{id},
				Queue: appendKey(nil, pool, c.namespace, c.queue),
			})
		}
	}
	both := &engine.Multi{Commands: append(cmds, &c.enq)}
	if !c.do(both) {
		return
	}
	if err := both.Err(); err != nil {
		c.refused(err)
		return
	}
	c.published()
}

// maxBulkJobs bounds the array of a bulk publish.
const maxBulkJobs = 64

const (
	// maxBulkBytes bounds the elements of a bulk publish together, in bytes: what
	// 64 jobs of lmstfy's limit have. One job may be longer where --max-payload
	// says so.
	maxBulkBytes = maxBulkJobs * DefaultMaxPayload
	// bulkSlack is what a bulk publish may have between its elements, in bytes.
	bulkSlack = 1 << 20
)

// publishBulk makes one job of the raw text of each element of an array. It is
// one log entry, all or none, however large: the log takes four times as much.
func (s *Server) publishBulk(c *call) {
	o, refusal := publishQuery(c.query, s.defaults)
	if refusal != "" {
		c.error(http.StatusBadRequest, refusal)
		return
	}
	body, ok := c.receive(max(maxBulkBytes, s.options.MaxPayload) + bulkSlack)
	if !ok {
		return
	}
	if !c.share.grow(int64(len(body))) { // the elements are copies
		c.unavailable(errNoRoom.Error())
		return
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(body, &elements); err != nil {
		c.error(http.StatusBadRequest, "request body should be an array of objects")
		return
	}
	if len(elements) == 0 {
		c.error(http.StatusBadRequest, "no jobs")
		return
	}
	if len(elements) > maxBulkJobs {
		c.error(http.StatusBadRequest, "too many jobs")
		return
	}
	for _, e := range elements {
		if len(e) > s.options.MaxPayload {
			c.error(http.StatusRequestEntityTooLarge, "job too large")
			return
		}
	}
	attrs, ok := attributes(c.attrs, c.header)
	c.attrs = attrs
	if !ok {
		c.error(http.StatusBadRequest, tooManyAttributes)
		return
	}
	key := s.publishKey(c)
	jobs := make([]engine.Enqueue, len(elements))
	cmds := make([]engine.Command, len(elements))
	for i, e := range elements {
		newJob(&jobs[i], key, e, o, attrs)
		cmds[i] = &jobs[i]
	}
	all := &engine.Multi{Commands: cmds}
	if !c.do(all) {
		return
	}
	if err := all.Err(); err != nil {
		c.refused(err)
		return
	}
	b := append(c.reply[:0], `{"job_ids":`...)
	open := byte('[')
	for i := range jobs {
		b = append(b, open, '"')
		b = appendJobID(b, jobs[i].ID, versioned(attrs))
		b = append(b, '"')
		open = ','
	}
	c.reply = append(b, `],"msg":"published"}`...)
	c.send(http.StatusCreated)
}
