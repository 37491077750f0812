package lmstfy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"
)

// conn is a connection whose requests have been plain so far. Its goroutine owns
// all of it, save that watch lends the free part of in to another one. It is the
// peer of its calls.
type conn struct {
	front  *Front
	nc     net.Conn
	remote string

	buf        []byte // buf[start:end] has been received and not been used
	start, end int
	request    plainRequest
	target     string // path and query of the last request: often the next one's too
	token      string // likewise
	out        []byte // scratch for replies

	began   time.Time // when the request that is not complete began to come; zero is none
	renewed time.Time // when the idle timeout was set; zero when another one is
	watched bool      // a watch has lifted the limits of time
	over    bool      // to be closed after the reply
	handed  bool      // it is net/http's now
	spoken  bool      // there has been a request

	share  share              // of the room: buf but for minBuffer, and out while it is idle
	cancel context.CancelFunc // ends what is watched; nil while nothing is
}

const (
	// minBuffer is what a connection begins with, in bytes.
	minBuffer = 2 << 10
	// keptBuffer is the most that it holds while it is idle.
	keptBuffer = 16 << 10
	// watchBytes are for what follows a request that waits, where there is no room
	// for more.
	watchBytes = 512
	// renewAfter is how much later than said the idle timeout may come: setting
	// one is dear.
	renewAfter = 5 * time.Second
)

func newConn(f *Front, nc net.Conn) *conn {
	c := &conn{front: f, nc: nc, remote: nc.RemoteAddr().String(), buf: make([]byte, minBuffer)}
	c.share.room, c.share.owner = f.server.room, c
	return c
}

// serve runs the connection to its end, or until it is net/http's.
func (c *conn) serve() {
	defer c.front.forget(c)
	defer c.share.end()
	defer func() {
		if v := recover(); v != nil {
			c.front.server.log.Error("bug: a connection ended in a panic", "remote", c.remote, "panic", v, "stack", string(debug.Stack()))
			c.nc.Close()
		}
	}()
	for c.step() {
	}
	if !c.handed {
		c.nc.Close()
	}
}

// step does what is next; false ends the goroutine.
func (c *conn) step() bool {
	v := plainMore
	if c.start < c.end {
		v = c.request.parse(c.buf[c.start:c.end])
	}
	switch v {
	case plainWhole:
		c.do()
		return !c.over
	case plainOther:
		c.handOver()
		return false
	}
	return c.fill()
}

// handOver gives the connection to net/http, with what has been read.
func (c *conn) handOver() {
	c.nc.SetDeadline(time.Time{})
	c.handed = true
	c.front.handOver(&begunConn{Conn: c.nc, read: c.buf[c.start:c.end]})
}

// fill reads once. False ends the connection.
func (c *conn) fill() bool {
	if c.start == c.end {
		c.rest()
	} else if c.began.IsZero() {
		c.began, c.renewed = time.Now(), time.Time{}
		c.nc.SetReadDeadline(c.limit())
	} else if c.request.size > 0 {
		c.nc.SetReadDeadline(c.limit()) // the head is complete: it has the longer one
	}
	if !c.makeRoom() {
		c.refuse()
		return false
	}
	c.share.begin(theClient)
	for {
		// After the deadline was set, for Shutdown says stopped before it nudges.
		if c.start == c.end && c.front.stopped.Load() {
			return false
		}
		if c.share.must() { // likewise
			c.share.over()
			c.refuse()
			return false
		}
		n, err := c.nc.Read(c.buf[c.end:])
		c.end += n
		if n > 0 || err == nil {
			if !c.share.over() {
				c.refuse()
				return false
			}
			return true
		}
		if c.share.must() {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || !c.front.stopped.Load() || c.began.IsZero() || !time.Now().Before(c.limit()) {
			return false
		}
		c.nc.SetReadDeadline(c.limit()) // a nudge, but the request may still come
	}
}

// limit is when the rest of the request must have come.
func (c *conn) limit() time.Time {
	if c.request.size == 0 {
		return c.began.Add(headTimeout)
	}
	return c.began.Add(readTimeout)
}

// rest sees to the buffer and the deadline of a connection that waits for a
// request.
func (c *conn) rest() {
	c.start, c.end, c.began = 0, 0, time.Time{}
	scarce := c.share.room.scarce()
	if len(c.buf) > keptBuffer || scarce && len(c.buf) > minBuffer {
		c.buf = make([]byte, minBuffer)
	}
	if scarce {
		c.out = nil
	}
	c.share.set(int64(len(c.buf) - minBuffer + cap(c.out)))
	if c.spoken {
		c.renew()
		return
	}
	c.nc.SetDeadline(time.Now().Add(headTimeout)) // who connects has something to say
}

// renew sets the idle timeout, of reading and of writing, unless it is fresh.
func (c *conn) renew() {
	if now := time.Now(); now.Sub(c.renewed) >= renewAfter {
		c.nc.SetDeadline(now.Add(idleTimeout + renewAfter))
		c.renewed = now
	}
}

// makeRoom sees to it that there is room to read into. Memory follows what has
// come, not what was announced. False means that the server has none.
func (c *conn) makeRoom() bool {
	if c.end < len(c.buf) && c.start == 0 {
		return true
	}
	to := c.buf
	if c.end-c.start > len(c.buf)/2 {
		size := min(2*len(c.buf), maxPlainHead+maxPlainBody)
		if !c.share.grow(int64(size - len(c.buf))) {
			return false
		}
		to = make([]byte, size)
	}
	c.end = copy(to, c.buf[c.start:c.end])
	c.buf, c.start = to, 0
	return true
}

// refuse lets go of everything, and tells a client that is in the middle of a request.
func (c *conn) refuse() {
	asked := c.start < c.end
	c.buf, c.out, c.start, c.end = nil, nil, 0, 0
	c.share.end()
	if asked {
		c.nc.SetDeadline(time.Now().Add(leaveTime))
		sayGoodbye(c.nc, fullReply)
	}
}

// interrupt implements peer.
func (c *conn) interrupt(what waitingFor) {
	if what == theReader {
		c.nc.SetWriteDeadline(time.Unix(1, 0))
		return
	}
	if c.cancel != nil {
		c.cancel()
	}
	c.nudge()
}

// nudge wakes the goroutine out of a read, so that it sees that the front stops.
func (c *conn) nudge() { c.nc.SetReadDeadline(time.Unix(1, 0)) }

// do answers the plain request at the beginning of the buffer.
func (c *conn) do() {
	p := &c.request
	c.spoken = true
	c.renew() // a client that keeps the buffer filled never rests
	if string(p.target) != c.target {
		c.target = string(p.target)
	}
	if string(p.token) != c.token {
		c.token = string(p.token)
	}
	k := calls.Get().(*call)
	k.peer, k.method, k.path, k.text, k.header, k.remote = c, p.method, c.target[:p.path], c.token, p.header, c.remote
	if p.path < len(c.target) {
		k.query = c.target[p.path+1:]
	}
	c.watched = false
	c.front.server.answer(k)
	c.flush(nil) // an error ends the connection
	c.start += p.size
	c.began = time.Time{}
	if c.watched {
		c.renewed = time.Time{}
		c.over = c.over || c.share.must()
	}
}

// readBody implements peer.
func (c *conn) readBody(_ *call, limit int) (body []byte, large bool, err error) {
	if len(c.request.body) > limit {
		return nil, true, nil
	}
	return c.request.body, false, nil
}

// watch implements peer: another goroutine reads what follows the request, as
// far as there is room, to notice the end. A client that has only finished
// sending counts as gone: it will not acknowledge what it is given.
func (c *conn) watch() (ctx context.Context, stop func()) {
	c.watched = true
	c.nc.SetDeadline(time.Time{})
	if c.end == len(c.buf) {
		// The request stays where it is.
		size := 2 * len(c.buf)
		if !c.share.try(int64(len(c.buf))) {
			size = len(c.buf) + watchBytes
			c.share.set(c.share.held.Load() + watchBytes)
		}
		c.buf = append(make([]byte, 0, size), c.buf...)[:size]
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.share.begin(theClient)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c.end < len(c.buf) {
			n, err := c.nc.Read(c.buf[c.end:])
			c.end += n
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					cancel()
				}
				return
			}
		}
	}()
	return ctx, func() {
		c.nudge()
		<-done
		c.share.over()
		c.cancel = nil
		cancel()
	}
}

// reply implements peer: head and body in one write. Without a job in it that
// write comes when the call is over, so that whoever has read it finds it counted.
func (c *conn) reply(k *call) error {
	b := append(c.out[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(k.status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(k.status)...)
	if k.status != http.StatusNoContent {
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(k.reply)), 10)
		b = append(b, "\r\nContent-Type: "...)
		b = append(b, jsonType[0]...)
	}
	if k.retryAfter {
		b = append(b, "\r\nRetry-After: "+retryAfter...)
	}
	b = append(b, "\r\nX-Request-Id: "...)
	b = append(b, k.id[:]...)
	b = append(b, "\r\nDate: "...)
	b = append(b, date(time.Now())...)
	if c.front.stopped.Load() {
		c.over = true
		b = append(b, "\r\nConnection: close"...)
	}
	b = append(b, "\r\n\r\n"...)
	if k.status == http.StatusNoContent {
		c.out = b
		return nil
	}
	if len(k.reply) <= maxPooledBytes {
		c.out = append(b, k.reply...)
		if !k.delivers && k.share.held.Load() == 0 {
			return nil
		}
		return c.flush(&k.share)
	}
	c.out = b[:0]
	c.boundWrite()
	k.share.begin(theReader)
	_, err := (&net.Buffers{b, k.reply}).WriteTo(c.nc)
	k.share.over()
	if err != nil {
		c.over = true
	}
	return err
}

// flush writes what reply has left in out, which may be interrupted for s, if that is
// not nil.
func (c *conn) flush(s *share) error {
	if len(c.out) == 0 {
		return nil
	}
	if c.watched || len(c.out) > unboundedReply {
		c.boundWrite()
	}
	if s != nil {
		s.begin(theReader)
		defer s.over()
	}
	_, err := c.nc.Write(c.out)
	if err != nil {
		c.over = true
	}
	if c.out = c.out[:0]; cap(c.out) > keptBuffer {
		c.out = nil
	}
	return err
}

// boundWrite gives a client that reads slowly a time of its own.
func (c *conn) boundWrite() {
	c.nc.SetWriteDeadline(time.Now().Add(writeTimeout))
	c.renewed = time.Time{}
}

// date is the text of the header Date.
func date(now time.Time) []byte {
	second := now.Unix()
	if d := lastDate.Load(); d != nil && d.second == second {
		return d.text
	}
	d := &dateText{second, now.UTC().AppendFormat(nil, http.TimeFormat)}
	lastDate.Store(d)
	return d.text
}

type dateText struct {
	second int64
	text   []byte
}

var lastDate atomic.Pointer[dateText]
