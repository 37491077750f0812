package lmstfy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits of an open port.
const (
	headTimeout = 5 * time.Second  // for the head of a request
	readTimeout = 30 * time.Second // for a request
	idleTimeout = 60 * time.Second // between two
	maxHead     = 16 << 10         // bytes
)

// Front serves the public API. Nearly all requests have one simple form, and a
// conn of ours serves those in one read and one write; the first one of another
// form moves its connection to net/http, for good (plain.go says what is plain).
// Connections with TLS are net/http's from the beginning.
//
// Its methods are those of http.Server.
type Front struct {
	server   *Server
	standard *http.Server
	over     *handover // what standard serves
	begin    sync.Once // starts standard
	stopped  atomic.Bool

	mu        sync.Mutex
	listeners []net.Listener     // guarded by mu
	conns     map[*conn]struct{} // guarded by mu
	drained   chan struct{}      // guarded by mu; closed when stopped and conns is empty
}

// HTTP is a server for the public API with the limits that an open port needs:
// 5 s for headers of at most 16 KiB, 30 s for a request, 60 to 65 s idle. A
// waiting consume is free of them.
func (s *Server) HTTP() *Front {
	return &Front{
		server: s,
		standard: &http.Server{
			Handler:           s,
			ReadHeaderTimeout: headTimeout,
			ReadTimeout:       readTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHead,
			ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
			ConnState:         s.crowd.ConnState,
		},
		over:  newHandover(),
		conns: make(map[*conn]struct{}),
	}
}

// Serve accepts connections until Shutdown or Close, after which it returns
// http.ErrServerClosed, or until the listener fails. It closes l.
func (f *Front) Serve(l net.Listener) error {
	defer l.Close()
	if !f.listen(l) {
		return http.ErrServerClosed
	}
	f.begin.Do(func() { go f.standard.Serve(f.over) }) // ends with over
	var pause time.Duration
	for {
		nc, err := l.Accept()
		if err != nil {
			if f.stopped.Load() {
				return http.ErrServerClosed
			}
			if passing(err) {
				pause = min(max(2*pause, 5*time.Millisecond), time.Second)
				f.server.log.Warn("cannot accept a connection", "err", err, "again in", pause)
				time.Sleep(pause)
				continue
			}
			return err
		}
		pause = 0
		if !f.server.crowd.Enter(nc) {
			continue
		}
		if _, ok := nc.(*tls.Conn); ok {
			f.handOver(nc)
			continue
		}
		c := newConn(f, nc)
		if !f.track(c) {
			nc.Close()
			f.server.crowd.Leave()
			return http.ErrServerClosed
		}
		go c.serve()
	}
}

// handOver gives net/http a connection for good.
func (f *Front) handOver(nc net.Conn) {
	if !f.over.give(nc) {
		f.server.crowd.Leave()
	}
}

// passing says that accepting may work again later: what ran out may come back,
// and a connection that ended before it was taken is only one connection.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// listen is false after the end.
func (f *Front) listen(l net.Listener) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, l)
	return !f.stopped.Load()
}

func (f *Front) track(c *conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped.Load() {
		return false
	}
	f.conns[c] = struct{}{}
	return true
}

func (f *Front) forget(c *conn) {
	if !c.handed {
		f.server.crowd.Leave()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
	if len(f.conns) == 0 && f.drained != nil {
		close(f.drained)
		f.drained = nil
	}
}

// stop closes the listeners. It returns the connections that there are, and a
// channel that is closed when they are gone.
func (f *Front) stop() (conns []*conn, drained <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped.Store(true)
	for _, l := range f.listeners {
		l.Close()
	}
	f.listeners = nil
	done := f.drained
	if done == nil {
		done = make(chan struct{})
		if len(f.conns) == 0 {
			close(done)
		} else {
			f.drained = done
		}
	}
	for c := range f.conns {
		conns = append(conns, c)
	}
	return conns, done
}

// Shutdown stops accepting, closes idle connections and waits until the requests
// under way have their replies, or ctx ends.
func (f *Front) Shutdown(ctx context.Context) error {
	conns, drained := f.stop()
	for _, c := range conns {
		c.nudge()
	}
	select {
	case <-drained:
	case <-ctx.Done():
		return ctx.Err()
	}
	// After the others, for they may still give it a connection.
	return f.standard.Shutdown(ctx)
}

// Close closes everything at once.
func (f *Front) Close() error {
	conns, _ := f.stop()
	for _, c := range conns {
		c.nc.Close()
	}
	f.over.Close()
	return f.standard.Close()
}

// handover is a net.Listener of connections that conns have given up.
type handover struct {
	conns chan net.Conn
	done  chan struct{} // closed by Close
	once  sync.Once
}

func newHandover() *handover {
	return &handover{conns: make(chan net.Conn), done: make(chan struct{})}
}

// give hands nc to Accept; after Close it closes nc, and is false.
func (h *handover) give(nc net.Conn) bool {
	select {
	case h.conns <- nc:
		return true
	case <-h.done:
		nc.Close()
		return false
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case nc := <-h.conns:
		return nc, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener.
func (h *handover) Addr() net.Addr { return handoverAddr{} }

type handoverAddr struct{}

func (handoverAddr) Network() string { return "handover" }
func (handoverAddr) String() string  { return "handover" }

// begunConn is a connection of which something has been read already.
type begunConn struct {
	net.Conn
	read []byte // owned by whoever reads
}

// Read implements net.Conn.
func (b *begunConn) Read(p []byte) (int, error) {
	if len(b.read) > 0 {
		n := copy(p, b.read)
		if b.read = b.read[n:]; len(b.read) == 0 {
			b.read = nil
		}
		return n, nil
	}
	return b.Conn.Read(p)
}

// CloseWrite lets net/http end a connection so that the last reply arrives.
func (b *begunConn) CloseWrite() error {
	if half, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
