package lmstfy

import (
	"errors"
	"net/http"

	"pawl/engine"
	"pawl/state"
)

// deleteJob acknowledges or cancels a job wherever it is: no lease is needed,
// and one that there is ends. It always says 204.
func (s *Server) deleteJob(c *call) {
	if id, ok := parseJobID(c.job); ok {
		ids := [1]state.JobID{id}
		for _, pool := range s.searchPools(c.pool) {
			c.key = appendKey(c.key[:0], pool, c.namespace, c.queue)
			del := engine.JobDelete{IDs: ids[:], Queue: c.key}
			if !c.do(&del) {
				return
			}
			if err := del.Err(); err != nil {
				c.refused(err)
				return
			}
			if del.Deleted > 0 {
				s.metrics.deleted(c.key, elapsedMillis(id, s.now()))
				break
			}
		}
	}
	c.send(http.StatusNoContent)
}

// peek shows the next ready job and leaves it there.
func (s *Server) peek(c *call) {
	for _, pool := range s.searchPools(c.pool) {
		view, ok, replied := s.head(c, pool, state.Ready)
		if replied {
			return
		}
		if ok {
			c.showJob(s, view, triesLeft(view.Tries, view.Failures))
			return
		}
	}
	c.error(http.StatusNotFound, "the queue is empty")
}

// head reads the first job of a place. replied: it could not be looked at.
func (s *Server) head(c *call, pool string, place state.Place) (view engine.JobView, ok, replied bool) {
	c.key = appendKey(c.key[:0], pool, c.namespace, c.queue)
	for {
		peek := engine.QueuePeek{Queue: c.key, Place: place, Count: 1}
		if !c.do(&peek) {
			return view, false, true
		}
		switch err := peek.Err(); {
		case err != nil && !errors.Is(err, engine.ErrNameTooLong): // such a queue there is none
			c.refused(err)
			return view, false, true
		case len(peek.Jobs) == 0:
			return view, false, false
		}
		view = peek.Jobs[0]
		if !c.roomFor(view.Bytes) {
			c.engine.ForgetView(&view)
			return view, false, true
		}
		switch err := c.engine.LoadView(&view); {
		case err == nil:
			return view, true, false
		case errors.Is(err, engine.ErrDamaged):
			if place == state.Dead {
				return view, true, false // shown by its ID only
			}
			// It has been buried: the next one is the head now.
		default:
			c.storage(err)
			return view, false, true
		}
	}
}

// peekJob shows a job in any place.
func (s *Server) peekJob(c *call) {
	id, ok := parseJobID(c.job)
	if !ok {
		c.error(http.StatusNotFound, "job not found")
		return
	}
	for _, pool := range s.searchPools(c.pool) {
		c.key = appendKey(c.key[:0], pool, c.namespace, c.queue)
		get := engine.JobGet{ID: id, Queue: c.key}
		if !c.do(&get) {
			return
		}
		if err := get.Err(); err != nil {
			c.refused(err)
			return
		}
		if !get.Found {
			continue
		}
		if !c.roomFor(get.Job.Bytes) {
			c.engine.ForgetView(&get.Job)
			return
		}
		switch err := c.engine.LoadView(&get.Job); {
		case err == nil:
			c.showJob(s, get.Job, 0) // lmstfy does not know the tries here
		case errors.Is(err, engine.ErrDamaged):
			c.error(http.StatusInternalServerError, "internal error")
		default:
			c.storage(err)
		}
		return
	}
	c.error(http.StatusNotFound, "job not found")
}

// showJob replies with a job as peek shows it.
func (c *call) showJob(s *Server, v engine.JobView, remainTries uint16) {
	now := s.now()
	var ttl state.Millis
	if v.ExpiresAt > 0 {
		ttl = max(0, v.ExpiresAt-state.Millis(now.UnixMilli()))
	}
	shown := shownJob{
		id: v.ID, namespace: c.namespace, queue: c.queue,
		payload: v.Payload, attrs: v.Attrs,
		remainTries: remainTries,
		ttlLeft:     ttl,
		elapsed:     elapsedMillis(v.ID, now),
	}
	c.reply = shown.append(c.reply[:0])
	c.send(http.StatusOK)
}

// stats adds up what stands in the queue's places over the pools it may be in.
func (s *Server) stats(c *call) (ready, dead int64, ok bool) {
	for _, pool := range s.searchPools(c.pool) {
		c.key = appendKey(c.key[:0], pool, c.namespace, c.queue)
		stats := engine.Stats{Queue: c.key}
		if !c.do(&stats) {
			return 0, 0, false
		}
		if err := stats.Err(); err != nil {
			c.refused(err)
			return 0, 0, false
		}
		ready += stats.Ready
		dead += stats.Dead
	}
	return ready, dead, true
}

func (s *Server) size(c *call) {
	if ready, _, ok := s.stats(c); ok {
		c.sizeReply(ready)
	}
}

// destroy removes the ready jobs; delayed, leased and dead ones stay.
func (s *Server) destroy(c *call) {
	if s.purge(c, state.Ready, 0) {
		c.send(http.StatusNoContent)
	}
}

// purge removes jobs of one place, at most limit over all pools; 0 is all.
func (s *Server) purge(c *call, place state.Place, limit int64) bool {
	ctx, stop := c.peer.watch()
	defer stop()
	left, removed := limit, int64(0)
	for _, pool := range s.searchPools(c.pool) {
		purge := engine.QueuePurge{
			Queue:  appendKey(nil, pool, c.namespace, c.queue),
			Places: []state.Place{place},
			Limit:  left,
		}
		if err := c.engine.Purge(ctx, &purge); err != nil {
			c.storage(partly(removed > 0, err))
			return false
		}
		if err := purge.Err(); err != nil && removed == 0 {
			c.refused(err)
			return false
		}
		removed += purge.Removed
		if limit > 0 {
			if left -= purge.Removed; left <= 0 {
				break
			}
		}
	}
	return true
}

// partly is the error of a request that met err after it had done a part.
func partly(done bool, err error) error {
	if done {
		return engine.ErrPartly
	}
	return err
}
