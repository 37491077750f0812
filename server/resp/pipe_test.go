package resp_test

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeListener is a listener whose connections are made in memory.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// halfPipe is one end of a connection in memory whose two directions end on
// their own, as those of a socket do. Writes never wait.
type halfPipe struct {
	net.Conn // deadlines and addresses, unused
	in, out  *queue
}

func newHalfPipe() (client, server *halfPipe) {
	a, b := newQueue(), newQueue()
	return &halfPipe{in: a, out: b}, &halfPipe{in: b, out: a}
}

func (p *halfPipe) Read(b []byte) (int, error)  { return p.in.read(b) }
func (p *halfPipe) Write(b []byte) (int, error) { return p.out.write(b) }
func (p *halfPipe) CloseWrite() error           { p.out.finish(); return nil }
func (p *halfPipe) Close() error {
	p.in.finish()
	p.out.finish()
	return nil
}
func (p *halfPipe) LocalAddr() net.Addr  { return pipeAddr{} }
func (p *halfPipe) RemoteAddr() net.Addr { return pipeAddr{} }

func (p *halfPipe) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }
func (p *halfPipe) SetReadDeadline(t time.Time) error {
	p.in.expire(!t.IsZero() && t.Before(time.Now()))
	return nil
}
func (p *halfPipe) SetWriteDeadline(time.Time) error { return nil }

// queue is one direction.
type queue struct {
	mu      sync.Mutex
	some    sync.Cond
	bytes   []byte
	ended   bool
	expired bool
}

func newQueue() *queue {
	q := &queue{}
	q.some.L = &q.mu
	return q
}

func (q *queue) read(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.bytes) == 0 && !q.ended && !q.expired {
		q.some.Wait()
	}
	switch {
	case q.expired:
		return 0, os.ErrDeadlineExceeded
	case len(q.bytes) == 0:
		return 0, io.EOF
	}
	n := copy(b, q.bytes)
	q.bytes = q.bytes[n:]
	return n, nil
}

func (q *queue) write(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return 0, net.ErrClosed
	}
	q.bytes = append(q.bytes, b...)
	q.some.Broadcast()
	return len(b), nil
}

func (q *queue) finish() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.some.Broadcast()
}

func (q *queue) expire(now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expired = now
	q.some.Broadcast()
}
