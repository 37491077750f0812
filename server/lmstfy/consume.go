package lmstfy

import (
	"context"
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
	o, refusal := consumeQuery(c.query, s.defaults)
	if refusal != "" {
		c.error(http.StatusBadRequest, refusal)
		return
	}
	queues, ok := s.consumeKeys(c)
	if !ok {
		c.error(http.StatusBadRequest, "invalid queue name(s)")
		return
	}
	w := waiting{call: c}
	defer w.close()
	if o.timeout > 0 {
		w.deadline = c.arrived.Add(time.Duration(o.timeout) * time.Second)
	}
	if len(queues) == 0 { // names too long to exist
		s.noJob(c, w.wait(s, nil))
		return
	}
	for {
		c.fetch = engine.Fetch{Queues: queues, LeaseMs: millis(o.ttr), Count: o.count}
		end, err := s.fetch(&w)
		if err != nil {
			c.engine.Abandon(&c.fetch)
			c.storage(err)
			return
		}
		if end != endJob {
			s.noJob(c, end)
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
		if w.close() {
			// Nobody is there to read it: the jobs stay where they were.
			c.giveBack(c.fetch.Jobs)
			c.status = statusHungUp
			return
		}
		bytes := 0
		for i := range c.fetch.Jobs {
			bytes += c.fetch.Jobs[i].Bytes()
		}
		if !c.roomFor(bytes) {
			c.giveBack(c.fetch.Jobs)
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

// ending is why a consume waits no longer.
type ending uint8

const (
	endJob  ending = iota // there is an answer of the engine
	endTime               // the time is over
	endGone               // the client went away
	endStop               // the process stops
)

// noJob replies to a consume that ended without a job.
func (s *Server) noJob(c *call, end ending) {
	switch end {
	case endGone:
		c.status = statusHungUp
	case endStop:
		c.unavailable("shutting down")
	default:
		c.message(http.StatusNotFound, "no job available")
	}
}

// waiting is a consume that may have to wait. Its client is watched only from
// when there turned out to be no job.
type waiting struct {
	*call
	deadline time.Time // zero: it must not wait
	timer    *time.Timer
	gone     context.Context // ends when the client goes away; nil while nobody watches
	stop     func()          // ends the watching
}

// close ends the watching, if there is any. It reports whether the client was
// seen going away.
func (w *waiting) close() (gone bool) {
	if w.gone == nil {
		return false
	}
	gone = w.gone.Err() != nil
	w.timer.Stop()
	w.stop()
	w.gone = nil
	return gone
}

// fetch runs the call's Fetch. After endJob the result is in it; what was
// decided is durable. An error is the storage's.
func (s *Server) fetch(w *waiting) (ending, error) {
	e, f := w.engine, &w.call.fetch
	if w.deadline.IsZero() {
		err := e.Wait(e.Submit(f))
		if err == nil && f.Err() == nil && len(f.Jobs) == 0 {
			return endTime, nil
		}
		return endJob, err
	}
	// The waiter may outlive this call's turn in the pool for no longer than
	// Cancel takes, so the Fetch in the call can be lent to it.
	waiter, lsn := e.Await(f)
	if waiter == nil {
		return endJob, e.Wait(lsn)
	}
	end := w.wait(s, waiter.C)
	if end != endJob && !e.Cancel(waiter) {
		<-waiter.C // a job came first; if the client went away, it goes back
		end = endJob
	}
	// Without a job too: that there is none may rest on what is not durable yet.
	return end, e.Wait(waiter.LSN)
}

// wait waits for a job, the deadline, the client or the end of the process. From
// a nil channel no job comes.
func (w *waiting) wait(s *Server, job <-chan struct{}) ending {
	if w.deadline.IsZero() {
		return endTime
	}
	waiting := s.metrics.waiting[w.pool]
	waiting.Add(1)
	defer waiting.Add(-1)
	if w.gone == nil {
		w.gone, w.stop = w.peer.watch()
		w.timer = time.NewTimer(w.deadline.Sub(s.now()))
	}
	select {
	case <-job:
		return endJob
	case <-w.timer.C:
		return endTime
	case <-w.gone.Done():
		return endGone
	case <-s.closing:
		return endStop
	}
}

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
	c.delivers = true
	if err := c.send(http.StatusOK); err != nil {
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
