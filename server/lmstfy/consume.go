package lmstfy

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"pawl/engine"
	"pawl/state"
)

// maxConsumeQueues bounds the list of a consume: what the engine takes.
const maxConsumeQueues = 1024

// consume takes jobs, at once or within the timeout. The one deadline counts
// from the request's arrival and never fires early.
func (s *Server) consume(c *call) {
	o, refusal := consumeQuery(c.r.URL.RawQuery, s.defaults)
	if refusal != "" {
		c.error(http.StatusBadRequest, refusal)
		return
	}
	queues, ok := s.consumeKeys(c)
	if !ok {
		c.error(http.StatusBadRequest, "invalid queue name(s)")
		return
	}
	c.dropBody()
	var deadline <-chan time.Time
	if o.timeout > 0 {
		timer := time.NewTimer(c.arrived.Add(time.Duration(o.timeout) * time.Second).Sub(s.now()))
		defer timer.Stop()
		deadline = timer.C
		// The server's read timeout is for requests, not for waiting.
		http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	}
	if len(queues) == 0 { // names too long to exist
		s.wait(c, nil, deadline)
		return
	}
	for {
		c.fetch = engine.Fetch{Queues: queues, LeaseMs: millis(o.ttr), Count: o.count}
		switch done, err := s.fetch(c, deadline); {
		case err != nil:
			c.storage(err)
			return
		case done:
			return
		}
		if c.fetch.Err() != nil {
			c.refused(c.fetch.Err())
			return
		}
		if len(c.fetch.Jobs) == 0 { // only an engine that closes ends a wait so
			c.unavailable("shutting down")
			return
		}
		if c.r.Context().Err() != nil {
			// Nobody is there to read it: the jobs stay where they were.
			c.giveBack(c.fetch.Jobs)
			c.status = statusHungUp
			return
		}
		jobs, err := c.load()
		if err != nil {
			s.log.Error("job bodies could not be read", "queue", string(queues[0]), "err", err)
			c.unavailable("storage failed")
			return
		}
		if len(jobs) > 0 {
			c.deliver(s, jobs, o.count > 1)
			return
		}
		// All of them were damaged, and have been buried: take others.
	}
}

// statusHungUp stands in logs and metrics for a request whose client went away
// before there was a reply.
const statusHungUp = 499

// consumeKeys are the keys of the queues named in the path, in order, each once;
// in a pool that migrates, the old pool's queue comes before the new one's. ok is
// false when no name was given or there are too many.
func (s *Server) consumeKeys(c *call) (keys [][]byte, ok bool) {
	keys = c.queues[:0]
	c.key = c.key[:0]
	named := false
	pools := s.searchPools(c.pool)
	for rest := c.queue; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, ",")
		if name == "" {
			continue
		}
		named = true
		if len(name) > maxNameBytes || len(c.namespace) > maxNameBytes {
			continue
		}
		for _, pool := range pools {
			from := len(c.key)
			c.key = appendKey(c.key, pool, c.namespace, name)
			key := c.key[from:len(c.key):len(c.key)]
			if !slices.ContainsFunc(keys, func(k []byte) bool { return string(k) == string(key) }) {
				keys = append(keys, key)
			}
			if len(keys) > maxConsumeQueues {
				return nil, false
			}
		}
	}
	c.queues = keys
	return keys, named
}

// searchPools are the pools where a job of pool may be.
func (s *Server) searchPools(pool string) []string {
	if to, ok := s.options.MigrateTo[pool]; ok {
		return []string{pool, to}
	}
	return []string{pool}
}

// fetch runs c.fetch. done: the reply has been made, there was no job in time.
// An error is the storage's.
func (s *Server) fetch(c *call, deadline <-chan time.Time) (done bool, err error) {
	e := c.engine
	if deadline == nil {
		if err := e.Wait(e.Submit(&c.fetch)); err != nil {
			return false, err
		}
		if c.fetch.Err() == nil && len(c.fetch.Jobs) == 0 {
			c.noJob()
			return true, nil
		}
		return false, nil
	}
	// The waiter may outlive this call's turn in the pool for no longer than
	// Cancel takes, so the Fetch in the call can be lent to it.
	w, lsn := e.Await(&c.fetch)
	if w == nil {
		return false, e.Wait(lsn)
	}
	if s.wait(c, w, deadline) {
		return true, nil
	}
	return false, e.Wait(w.LSN)
}

// wait waits for w's job, the deadline, the client or the end of the process.
// It is false when there is a job; else the reply has been made and w waits no
// more. A nil w gets none.
func (s *Server) wait(c *call, w *engine.Waiter, deadline <-chan time.Time) (over bool) {
	var job chan struct{}
	if w != nil {
		job = w.C
	}
	if deadline == nil {
		c.noJob()
		return true
	}
	var end func()
	select {
	case <-job:
		return false
	case <-deadline:
		end = c.noJob
	case <-c.r.Context().Done():
		end = func() { c.status = statusHungUp }
	case <-s.closing:
		end = func() { c.unavailable("shutting down") }
	}
	if w != nil && !c.engine.Cancel(w) {
		<-w.C // a job came first; who hung up gives it back before the reply
		return false
	}
	end()
	return true
}

func (c *call) noJob() { c.message(http.StatusNotFound, "no job available") }

// giveBack returns jobs to the heads of their queues, untouched.
func (c *call) giveBack(jobs []engine.Delivery) {
	// An error means that the storage is gone; recovery ends the leases.
	_ = c.engine.Wait(c.engine.Undeliver(jobs))
}

// load reads the bodies of c.fetch.Jobs and leaves out those that turn out to
// be damaged. After an error all of the jobs are back in their queues.
func (c *call) load() ([]engine.Delivery, error) {
	jobs := c.fetch.Jobs[:0]
	for i := range c.fetch.Jobs {
		d := c.fetch.Jobs[i]
		if len(c.fetch.Jobs) == 1 {
			d.Payload = c.body[:0] // the buffer of the call serves again
		}
		switch err := c.engine.Load(&d); {
		case err == nil:
			jobs = append(jobs, d)
		case errors.Is(err, engine.ErrDamaged): // it has been buried
		default:
			// The engine has given this one back; the others go too.
			c.giveBack(c.fetch.Jobs[i+1:])
			c.giveBack(jobs)
			return nil, err
		}
	}
	if len(jobs) == 1 {
		c.body = jobs[0].Payload
	}
	return jobs, nil
}

// deliver replies with jobs, as an array if many were asked for. What cannot be
// written goes back.
func (c *call) deliver(s *Server, jobs []engine.Delivery, array bool) {
	now := s.now()
	b := c.reply[:0]
	if array {
		b = append(b, '[')
	}
	for i := range jobs {
		d := &jobs[i]
		_, namespace, queue := state.SplitQueueKey(d.Queue)
		shown := shownJob{
			id: d.ID, namespace: namespace, queue: queue,
			payload: d.Payload, attrs: d.Attrs,
			remainTries: triesLeft(d.Tries, d.Failures+1),
			ttlLeft:     d.TTLLeft,
			msg:         true,
			elapsed:     elapsedMillis(d.ID, now),
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = shown.append(b)
		s.metrics.consumed(d.Queue, shown.elapsed)
	}
	if array {
		b = append(b, ']')
	}
	c.reply = b
	rc := http.NewResponseController(c.w)
	if len(b) > unboundedReply {
		rc.SetWriteDeadline(now.Add(writeTimeout))
		defer rc.SetWriteDeadline(time.Time{})
	}
	err := c.send(http.StatusOK)
	if err == nil {
		// Now, while the jobs can still go back; it is the only write.
		err = rc.Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		c.giveBack(jobs)
		c.status = statusHungUp
	}
}

const (
	// unboundedReply is a reply that any socket buffer takes, in bytes.
	unboundedReply = 2 << 10
	// writeTimeout is for a client that reads its jobs slowly.
	writeTimeout = 30 * time.Second
)
