package lmstfy

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"pawl/engine"
	"pawl/state"
)

// A call is one request on its way: what was parsed, and the reply being made.
// Calls are pooled; nothing in one outlives its request.
type call struct {
	peer   peer
	method string
	path   string      // percent-decoded
	query  string      // as it came
	text   string      // the header X-Token
	header http.Header // has at least the headers of attributes
	remote string      // the client's address

	engine  Engine
	route   route
	arrived time.Time
	id      [state.JobIDLen]byte // of the request

	pool, namespace, queue, job string
	token                       string // without the pool part
	known                       bool   // pool and namespace may be metric labels

	status     int
	retryAfter bool    // trying again later will help
	delivers   bool    // the reply hands out jobs: send must say whether it was written
	limit      *window // of the token; nil when there is none
	ticket     ticket  // what limit counted
	side       side

	key    []byte // scratch for queue keys
	body   []byte // scratch for a body read or loaded
	reply  []byte // scratch for the reply's body
	attrs  []engine.Attr
	enq    engine.Enqueue
	fetch  engine.Fetch
	lsn    engine.LSN // that do waited for
	share  share      // of the room, for its body and its reply
	queues [][]byte
}

var calls = sync.Pool{New: func() any { return new(call) }}

// maxPooledBytes keeps the buffers of rare large requests out of the pool.
const maxPooledBytes = 64 << 10

func (c *call) free() {
	key, body, reply, attrs, queues := c.key[:0], c.body[:0], c.reply[:0], c.attrs[:0], c.queues[:0]
	if cap(body) > maxPooledBytes {
		body = nil
	}
	if cap(reply) > maxPooledBytes {
		reply = nil
	}
	clear(attrs[:cap(attrs)])
	clear(queues[:cap(queues)])
	*c = call{key: key, body: body, reply: reply, attrs: attrs, queues: queues}
	calls.Put(c)
}

// A peer is the side of a request that knows the client: net/http (standard), or
// a connection of ours (conn).
type peer interface {
	// readBody gives the request's body, which may lie in c.body or belong to the
	// peer, and is good until the reply. large: it is longer than limit bytes. The
	// error may be errNoRoom.
	readBody(c *call, limit int) (body []byte, large bool, err error)
	// watch gives a context that ends when the client hangs up, for calls that may
	// take long: no limit of time holds until stop is called, once, before the
	// reply.
	watch() (ctx context.Context, stop func())
	// reply writes c.status and c.reply. Unless c.delivers, the result may be nil
	// before the reply has been written.
	reply(c *call) error
	// interrupt ends what the owner of a share waits for, which must let go.
	interrupt(what waitingFor)
}

// answer serves a call to its end, the reply included, and frees it.
func (s *Server) answer(c *call) {
	c.arrived = s.now()
	c.id = requestID(c.arrived)
	c.share.room, c.share.owner = s.room, c.peer
	s.serve(c)
	c.share.end()
	elapsed := s.now().Sub(c.arrived)
	s.metrics.observe(c, elapsed)
	s.access.write(c, elapsed)
	c.free()
}

// serve checks in lmstfy's order: names, pool, token, rate limit; then the
// handler.
func (s *Server) serve(c *call) {
	c.route, c.namespace, c.queue, c.job = match(c.method, c.path)
	if c.route == routeNone {
		c.error(http.StatusNotFound, "api not found")
		return
	}
	info := &routes[c.route]
	if refusal := badName(c.route, c.namespace, c.queue); refusal != "" {
		c.error(http.StatusBadRequest, refusal)
		return
	}
	text := c.text
	if text == "" {
		text, _ = queryValue(c.query, "token")
	}
	c.pool, c.token = SplitToken(text)
	if !s.tokens.hasPool(c.pool) {
		c.pool = ""
		c.error(http.StatusNotFound, "pool not found")
		return
	}
	if c.engine = s.currentEngine(); c.engine == nil {
		c.unavailable("loading")
		return
	}
	if info.token && !s.options.SkipTokens {
		if c.token == "" {
			c.error(http.StatusUnauthorized, "token not found")
			return
		}
		if !s.tokens.valid(c.pool, c.namespace, c.token) {
			c.error(http.StatusUnauthorized, "invalid token")
			return
		}
		c.known = true
	}
	if info.limit != neither {
		c.side = info.limit
		c.limit = s.tokens.window(c.pool, c.namespace, c.token)
		var ok bool
		if c.ticket, ok = c.limit.take(c.side, c.arrived); !ok {
			s.metrics.limited(c)
			c.tooMany()
			return
		}
	}
	info.handle(s, c)
	if c.status != http.StatusOK && c.status != http.StatusCreated {
		c.limit.giveBack(c.side, c.ticket)
	}
}

// requestID is a ULID of the time and 80 random bits, which need not be secret.
func requestID(now time.Time) (text [state.JobIDLen]byte) {
	var random [10]byte
	binary.LittleEndian.PutUint64(random[:], rand.Uint64())
	binary.LittleEndian.PutUint16(random[8:], uint16(rand.Uint64()))
	return ulid(now, random)
}

// ulid is the text of a time and what follows it.
func ulid(now time.Time, rest [10]byte) (text [state.JobIDLen]byte) {
	var id state.JobID
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	copy(id[6:], rest[:])
	id.AppendText(text[:0])
	return text
}

// receive reads the request's body. When it returns false the reply has been made.
func (c *call) receive(limit int) (body []byte, ok bool) {
	body, large, err := c.peer.readBody(c, limit)
	switch {
	case errors.Is(err, errNoRoom):
		c.unavailable(errNoRoom.Error())
	case err != nil:
		c.error(http.StatusBadRequest, "failed to read body")
	case large:
		c.error(http.StatusRequestEntityTooLarge, "body too large")
	default:
		return body, true
	}
	return nil, false
}

// roomFor counts what a reply with so many bytes of payload takes: they as they
// come, their base 64, and its copy where it goes out with the head. When it returns
// false the reply has been made.
func (c *call) roomFor(payload int) bool {
	if payload <= unboundedReply {
		return true
	}
	n := payload + payload/3*4
	if n <= 2*maxPooledBytes {
		n += payload / 3 * 4
	}
	if !c.share.grow(int64(n)) {
		c.unavailable(errNoRoom.Error())
		return false
	}
	return true
}

// do submits cmds and waits for them. When it returns false the storage, not the
// command, is at fault, and the reply has been made.
func (c *call) do(cmds ...engine.Command) bool {
	c.lsn = c.engine.Submit(cmds...)
	if err := c.engine.Wait(c.lsn); err != nil {
		c.engine.Abandon(cmds...)
		c.storage(err)
		return false
	}
	return true
}

// storage replies to what Engine.Wait says.
func (c *call) storage(err error) {
	switch {
	case errors.Is(err, engine.ErrFailed):
		c.unavailable("storage failed")
	case errors.Is(err, engine.ErrHung):
		c.unavailable("storage does not answer")
	case errors.Is(err, engine.ErrClosed):
		c.unavailable("shutting down")
	default: // engine.ErrUnknown, ErrUnanswered, ErrPartly: the outcome is open
		c.error(http.StatusInternalServerError, "internal error")
	}
}

// refused replies to a refusal of the engine.
func (c *call) refused(err error) {
	switch {
	case errors.Is(err, engine.ErrTooLarge):
		c.error(http.StatusRequestEntityTooLarge, "body too large")
	case errors.Is(err, engine.ErrAttrs):
		c.error(http.StatusBadRequest, tooManyAttributes)
	case errors.Is(err, engine.ErrNameTooLong), errors.Is(err, engine.ErrEmptyName):
		c.error(http.StatusBadRequest, "namespace or queue name too long")
	case errors.Is(err, engine.ErrQueueFull):
		c.unavailable("queue is full")
	case errors.Is(err, engine.ErrDraining):
		c.unavailable("draining")
	case errors.Is(err, engine.ErrNoMemory):
		c.unavailable("out of memory")
	case errors.Is(err, engine.ErrNoSpace):
		c.unavailable("disk full")
	case errors.Is(err, engine.ErrTooMany):
		c.unavailable("too many queues")
	case errors.Is(err, engine.ErrBusy):
		c.unavailable("too many waiting")
	case errors.Is(err, engine.ErrFailed), errors.Is(err, engine.ErrHung), errors.Is(err, engine.ErrClosed):
		c.storage(err)
	default:
		c.error(http.StatusInternalServerError, "internal error")
	}
}
