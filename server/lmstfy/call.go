package lmstfy

import (
	"errors"
	"io"
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
	w       http.ResponseWriter
	r       *http.Request
	engine  Engine
	route   route
	arrived time.Time

	pool, namespace, queue, job string
	token                       string // without the pool part
	known                       bool   // pool and namespace may be metric labels

	status int
	limit  *window // of the token; nil when there is none
	ticket ticket  // what limit counted
	side   side

	key    []byte // scratch for queue keys
	body   []byte // scratch for the request's body
	reply  []byte // scratch for the reply's body
	attrs  []engine.Attr
	enq    engine.Enqueue
	fetch  engine.Fetch
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

// ServeHTTP implements the public API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call)
	c.w, c.r, c.arrived = w, r, s.now()
	id := requestID(c.arrived)
	w.Header()["X-Request-Id"] = []string{id}
	s.serve(c)
	elapsed := s.now().Sub(c.arrived)
	s.metrics.observe(c, elapsed)
	s.access.write(c, id, elapsed)
	c.free()
}

// serve checks in lmstfy's order: names, pool, token, rate limit; then the
// handler.
func (s *Server) serve(c *call) {
	r := c.r
	c.route, c.namespace, c.queue, c.job = match(r.Method, r.URL.Path)
	if c.route == routeNone {
		c.error(http.StatusNotFound, "api not found")
		return
	}
	info := &routes[c.route]
	if refusal := badName(c.route, c.namespace, c.queue); refusal != "" {
		c.error(http.StatusBadRequest, refusal)
		return
	}
	text := r.Header.Get("X-Token")
	if text == "" {
		text, _ = queryValue(r.URL.RawQuery, "token")
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

// requestID is a ULID: the time and 80 random bits.
func requestID(now time.Time) string {
	var id state.JobID
	ms := uint64(now.UnixMilli())
	a, b := rand.Uint64(), rand.Uint64()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	for i := range 8 {
		id[6+i] = byte(a >> (8 * i))
	}
	id[14], id[15] = byte(b), byte(b>>8)
	var text [state.JobIDLen]byte
	return string(id.AppendText(text[:0]))
}

// readBody reads at most limit bytes of the body into c.body. large: there were
// more; some of the rest is read too, so that most clients get to see the reply.
func (c *call) readBody(limit int) (large bool, err error) {
	c.body = c.body[:0]
	announced := c.r.ContentLength
	if announced == 0 {
		return false, nil
	}
	if announced > int64(limit) {
		io.CopyN(io.Discard, c.r.Body, int64(limit))
		return true, nil
	}
	// Memory follows what has come, not what was announced.
	if want := min(int(announced)+1, maxPooledBytes); cap(c.body) < want {
		c.body = make([]byte, 0, max(want, 512))
	}
	for {
		if len(c.body) == cap(c.body) {
			c.body = append(c.body, 0)[:len(c.body)]
		}
		n, err := c.r.Body.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		if len(c.body) > limit {
			io.CopyN(io.Discard, c.r.Body, int64(limit))
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// dropBody reads what a client sends along with a request that has no body by
// contract, so that its going away is noticed while it waits.
func (c *call) dropBody() {
	if c.r.ContentLength != 0 {
		io.CopyN(io.Discard, c.r.Body, maxPooledBytes)
	}
}

// do submits cmds and waits for them. When it returns false the storage, not the
// command, is at fault, and the reply has been made.
func (c *call) do(cmds ...engine.Command) bool {
	if err := c.engine.Wait(c.engine.Submit(cmds...)); err != nil {
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
	default: // engine.ErrUnknown: the outcome is open
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
