package resp

import (
	"bytes"
	"math"

	"pawl/acl"
	"pawl/engine"
	"pawl/state"
)

// maxSpan bounds every span of time a client can name, in milliseconds: 136
// years, what fits into the delay of a job ID. maxWall bounds points in time:
// the year 2248.
const (
	maxSpan = math.MaxUint32 * 1000
	maxWall = 1 << 43
	maxWait = 3_600_000
)

// Bounds of parts of a job.
const (
	maxAttrs     = 16
	maxAttrBytes = 255
	maxKeyBytes  = 255 // of UNIQUE and GROUP
)

// options reads the arguments behind the positional ones. The first thing
// wrong stays in refusal; what is read after that is zero.
type options struct {
	rest    [][]byte
	seen    uint32 // a bit for each option that was given
	refusal string
}

// next gives the next word that names an option.
func (o *options) next() (word []byte, ok bool) {
	if len(o.rest) == 0 || o.refusal != "" {
		return nil, false
	}
	word, o.rest = o.rest[0], o.rest[1:]
	return word, true
}

// once says whether the option numbered bit is given for the first time.
func (o *options) once(bit uint) bool {
	if o.seen&(1<<bit) != 0 {
		o.fail(errSyntax)
		return false
	}
	o.seen |= 1 << bit
	return true
}

func (o *options) fail(text string) {
	if o.refusal == "" {
		o.refusal = text
	}
}

// value takes one argument.
func (o *options) value() []byte {
	if len(o.rest) == 0 {
		o.fail(errSyntax)
		return nil
	}
	v := o.rest[0]
	o.rest = o.rest[1:]
	return v
}

// number takes an integer from low to high.
func (o *options) number(low, high int64) int64 {
	v := o.value()
	if o.refusal != "" {
		return 0
	}
	n, ok := parseInt(v)
	if !ok || n < low || n > high {
		o.fail(errNumber)
		return 0
	}
	return n
}

// span takes a span of time of at least low milliseconds.
func (o *options) span(low int64) state.Millis { return state.Millis(o.number(low, maxSpan)) }

// key takes a text of 1 to 255 bytes.
func (o *options) key() []byte {
	v := o.value()
	if o.refusal == "" && (len(v) == 0 || len(v) > maxKeyBytes) {
		o.fail("ERR a key must be 1 to 255 bytes")
	}
	return v
}

// peekIs says whether the next word is word, and takes it.
func (o *options) takes(word string) bool {
	if o.refusal != "" || len(o.rest) == 0 || !equalFold(o.rest[0], word) {
		return false
	}
	o.rest = o.rest[1:]
	return true
}

// backoff takes ms [MAX ms].
func (o *options) backoff() (b engine.Backoff) {
	b.Base = o.span(0)
	if o.takes("MAX") {
		b.Max = o.span(1)
	}
	return b
}

// checkName refuses what cannot be a queue's name.
func checkName(name []byte) (refusal string) {
	if len(bytes.TrimSpace(name)) == 0 {
		return errName
	}
	namespace, queue, ok := bytes.Cut(name, []byte{'/'})
	if ok && (len(namespace) == 0 || len(queue) == 0) {
		return errName
	}
	if len(namespace) > state.MaxNameBytes || len(queue) > state.MaxNameBytes {
		return errLong
	}
	return ""
}

// pool is the first part of the queues the client means.
func (c *conn) pool() string { return poolOf(c.user) }

func poolOf(u *acl.User) string {
	if u == nil || u.Pool == "" {
		return state.DefaultPool
	}
	return u.Pool
}

// queueKey gives the key of the queue that the client calls name. It stands in
// the batch.
func (c *conn) queueKey(name []byte) (key []byte, refusal string) {
	if refusal = checkName(name); refusal != "" {
		return nil, refusal
	}
	b, pool := c.b, c.pool()
	from := len(b.keys)
	b.keys = state.AppendQueueKey(b.keys, pool, name)
	key = b.keys[from:len(b.keys):len(b.keys)]
	if !c.sees(key) {
		return nil, c.deny()
	}
	return key, ""
}

// sees says whether the client's patterns allow the queue of a key of its pool.
func (c *conn) sees(key []byte) bool { return c.seesName(key[len(c.pool())+1:]) }

// seesName says whether the client's patterns allow a queue of its pool, as
// namespace/queue. A pattern may leave out the default namespace as clients do.
func (c *conn) seesName(name []byte) bool {
	if c.user.SeesAll() || c.user.Sees(name) {
		return true
	}
	short, ok := bytes.CutPrefix(name, []byte(state.DefaultNamespace+"/"))
	return ok && bytes.IndexByte(short, '/') < 0 && c.user.Sees(short)
}

// ownsKey says whether the queue with this key is the client's to see.
func (c *conn) ownsKey(key string) bool {
	pool, _, _ := state.SplitQueueKey(key)
	return pool == c.pool() && c.seesName([]byte(key[len(pool)+1:]))
}

func (c *conn) deny() string {
	c.srv.stats.denied.Add(1)
	return errNoPerm
}
