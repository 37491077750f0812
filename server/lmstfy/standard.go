package lmstfy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// ServeHTTP implements the public API on net/http.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call)
	c.peer = standard{w, r}
	c.method, c.path, c.query = r.Method, r.URL.Path, r.URL.RawQuery
	c.text, c.header, c.remote = r.Header.Get("X-Token"), r.Header, r.RemoteAddr
	s.answer(c)
}

// standard is the peer of a request that net/http has read.
type standard struct {
	w http.ResponseWriter
	r *http.Request
}

// readBody implements peer. Of a body that is too large some of the rest is
// read too, so that most clients get to see the reply.
func (p standard) readBody(c *call, limit int) (body []byte, large bool, err error) {
	body = c.body[:0]
	announced := p.r.ContentLength
	if announced == 0 {
		return body, false, nil
	}
	if announced > int64(limit) {
		io.CopyN(io.Discard, p.r.Body, int64(limit))
		return body, true, nil
	}
	// Memory follows what has come, not what was announced.
	size := max(cap(body), min(int(announced)+1, maxPooledBytes), 512)
	if !c.share.grow(int64(size)) {
		return nil, false, errNoRoom
	}
	if cap(body) < size {
		body = make([]byte, 0, size)
	}
	for {
		if len(body) == size {
			more := max(1, min(size, limit+1-size))
			if !c.share.grow(int64(more)) {
				return nil, false, errNoRoom
			}
			size += more
			body = append(make([]byte, 0, size), body...)
		}
		c.share.begin(theClient)
		n, err := p.r.Body.Read(body[len(body):size])
		if !c.share.over() {
			return nil, false, errNoRoom
		}
		body = body[:len(body)+n]
		if len(body) > limit {
			io.CopyN(io.Discard, p.r.Body, int64(limit))
			return body, true, nil
		}
		if err == io.EOF {
			return body, false, nil
		}
		if err != nil {
			return body, false, err
		}
	}
}

// watch implements peer. What a client sends along with a request that has no
// body by contract is read first, for net/http looks for a hang-up behind it.
func (p standard) watch() (ctx context.Context, stop func()) {
	if p.r.ContentLength != 0 {
		io.CopyN(io.Discard, p.r.Body, maxPooledBytes)
	}
	// The server's read timeout is for requests, not for waiting.
	http.NewResponseController(p.w).SetReadDeadline(time.Time{})
	return p.r.Context(), func() {}
}

// reply implements peer.
func (p standard) reply(c *call) error {
	h := p.w.Header()
	h["X-Request-Id"] = []string{string(c.id[:])}
	if c.retryAfter {
		h["Retry-After"] = []string{retryAfter}
	}
	if c.status == http.StatusNoContent {
		p.w.WriteHeader(c.status)
		return nil
	}
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(c.reply))}
	rc := http.NewResponseController(p.w)
	bounded := len(c.reply) > unboundedReply
	if bounded {
		rc.SetWriteDeadline(time.Now().Add(writeTimeout))
		defer rc.SetWriteDeadline(time.Time{})
		c.share.begin(theReader)
		defer c.share.over()
	}
	p.w.WriteHeader(c.status)
	_, err := p.w.Write(c.reply)
	if err == nil && (c.delivers || bounded) {
		// Now, while the jobs can still go back and the time is bounded; it is the only
		// write.
		err = rc.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// interrupt implements peer.
func (p standard) interrupt(what waitingFor) {
	rc := http.NewResponseController(p.w)
	if what == theReader {
		rc.SetWriteDeadline(time.Unix(1, 0))
	} else {
		rc.SetReadDeadline(time.Unix(1, 0))
	}
}
