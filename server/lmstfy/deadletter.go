package lmstfy

import (
	"net/http"
	"strconv"

	"pawl/engine"
	"pawl/state"
)

func (s *Server) deadLetterSize(c *call) {
	if _, dead, ok := s.stats(c); ok {
		c.sizeReply(dead)
	}
}

// deadLetter shows the oldest dead job's ID and how many there are.
func (s *Server) deadLetter(c *call) {
	_, dead, ok := s.stats(c)
	if !ok {
		return
	}
	var head []byte
	for _, pool := range s.searchPools(c.pool) {
		view, ok, replied := s.head(c, pool, state.Dead)
		if replied {
			return
		}
		if ok {
			head = appendJobID(nil, view.ID, versioned(view.Attrs))
			break
		}
	}
	b := append(c.reply[:0], `{"deadletter_head":"`...)
	b = append(b, head...)
	b = append(b, `","deadletter_size":`...)
	b = strconv.AppendInt(b, dead, 10)
	b = append(b, `,"namespace":`...)
	b = appendString(b, c.namespace)
	b = append(b, `,"queue":`...)
	b = appendString(b, c.queue)
	c.reply = append(b, '}')
	c.send(http.StatusOK)
}

// defaultRespawnTTL is in seconds.
const defaultRespawnTTL = 86400

// respawn moves dead jobs to the tail of ready, oldest first, with one try.
func (s *Server) respawn(c *call) {
	q := query{raw: c.query}
	limit := q.limit()
	ttl := q.number("ttl", 63, defaultRespawnTTL)
	if q.refusal != "" {
		c.error(http.StatusBadRequest, q.refusal)
		return
	}
	ctx, stop := c.peer.watch()
	defer stop()
	var count int64
	for _, pool := range s.searchPools(c.pool) {
		redrive := engine.QueueRedrive{
			Queue: appendKey(nil, pool, c.namespace, c.queue),
			Count: limit - count,
			Tries: engine.Some(uint16(1)),
			TTL:   engine.Some(state.Millis(min(ttl, maxSeconds)) * 1000),
		}
		if err := c.engine.Redrive(ctx, &redrive); err != nil {
			c.storage(partly(count > 0, err))
			return
		}
		if err := redrive.Err(); err != nil && count == 0 {
			c.refused(err)
			return
		}
		if count += redrive.Moved; count >= limit {
			break
		}
	}
	c.reply = append(strconv.AppendInt(append(c.reply[:0], `{"count":`...), count, 10), `,"msg":"respawned"}`...)
	c.send(http.StatusOK)
}

func (s *Server) deleteDead(c *call) {
	q := query{raw: c.query}
	limit := q.limit()
	if q.refusal != "" {
		c.error(http.StatusBadRequest, q.refusal)
		return
	}
	if s.purge(c, state.Dead, limit) {
		c.send(http.StatusNoContent)
	}
}
