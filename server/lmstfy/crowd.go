package lmstfy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Crowd bounds the connections of an HTTP port that are open at a time. Who comes
// when it is full is told so, with a 503, and closed. It must be made by NewCrowd.
type Crowd struct {
	limit    atomic.Int64
	open     atomic.Int64
	accepted atomic.Uint64
	refused  atomic.Uint64
	leaving  atomic.Int64 // refused ones that may still read why
}

// CrowdNumbers are what a Crowd has counted.
type CrowdNumbers struct {
	Open              int64
	Accepted, Refused uint64 // since the start
}

// NewCrowd makes one for at most limit connections.
func NewCrowd(limit int) *Crowd {
	c := new(Crowd)
	c.SetLimit(limit)
	return c
}

// SetLimit replaces the limit. Nobody is cut off by a lower one.
func (c *Crowd) SetLimit(limit int) { c.limit.Store(int64(limit)) }

// Numbers may be called at any time.
func (c *Crowd) Numbers() CrowdNumbers {
	return CrowdNumbers{c.open.Load(), c.accepted.Load(), c.refused.Load()}
}

// Enter counts a connection that was accepted, or refuses and closes it, without
// waiting for its client. One goroutine at a time may call it.
func (c *Crowd) Enter(nc net.Conn) bool {
	if c.open.Load() >= c.limit.Load() {
		c.refused.Add(1)
		c.refuse(nc)
		return false
	}
	c.open.Add(1)
	c.accepted.Add(1)
	return true
}

// Leave is to be called once for each connection that has entered, at its end.
func (c *Crowd) Leave() { c.open.Add(-1) }

// ConnState is the hook of an http.Server that serves connections which have
// entered: it calls Leave.
func (c *Crowd) ConnState(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		c.Leave()
	}
}

// Listener gives those connections of l that may enter.
func (c *Crowd) Listener(l net.Listener) net.Listener { return crowded{l, c} }

type crowded struct {
	net.Listener
	crowd *Crowd
}

// Accept implements net.Listener.
func (l crowded) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil || l.crowd.Enter(nc) {
			return nc, err
		}
	}
}

const (
	// maxLeaving is how many refused clients are waited for at a time; the others
	// are told, and closed at once.
	maxLeaving = 64
	// leaveTime and leaveBytes are what such a client may take.
	leaveTime  = 500 * time.Millisecond
	leaveBytes = 64 << 10
)

var (
	crowdedReply = lastReply("too many connections")
	fullReply    = lastReply(errNoRoom.Error())
)

// lastReply is a 503 after which the connection is closed.
func lastReply(text string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: %d\r\nContent-Type: %s\r\nRetry-After: %s\r\nConnection: close\r\n\r\n{\"error\":\"%s\"}",
		len(`{"error":""}`)+len(text), jsonType[0], retryAfter, text)
}

// refuse closes nc. Its client is told why once it has asked for something, for a
// client may not expect words before that. With TLS there are none: they would
// take a handshake, which is work.
func (c *Crowd) refuse(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		t.NetConn().Close()
		return
	}
	if c.leaving.Add(1) > maxLeaving {
		c.leaving.Add(-1)
		nc.SetDeadline(time.Now().Add(10 * time.Millisecond)) // a fresh socket takes it at once
		nc.Write(crowdedReply)
		nc.Close()
		return
	}
	go func() { // ends by itself, after leaveTime
		defer c.leaving.Add(-1)
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(leaveTime))
		if n, _ := nc.Read(make([]byte, 1<<10)); n > 0 {
			sayGoodbye(nc, crowdedReply)
		}
	}()
}

// sayGoodbye writes the last reply of a connection that is to be closed then, and
// lets the client read it: a socket that is closed while bytes from the peer are
// unread is reset, and a reset may overtake the reply. The deadline of nc bounds it.
func sayGoodbye(nc net.Conn, reply []byte) {
	if _, err := nc.Write(reply); err != nil {
		return
	}
	if half, ok := nc.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	// An error: the client has gone, or its time is over.
	_, _ = io.CopyN(io.Discard, nc, leaveBytes)
}
