// Package client talks to a Pawl daemon: jobs in, jobs out, and a Worker that
// does what a good worker has to do (extend leases, stop cleanly, survive
// panics). It speaks RESP over sockets and needs nothing of the daemon's code.
//
//	c := client.New(client.Options{Addr: "127.0.0.1:6380"})
//	defer c.Close()
//	_, err := c.Enqueue(ctx, client.Job{Queue: "mail", Payload: []byte("hello")})
//
// # What an error says
//
// A nil error means that the daemon has it on disk. An *Error is the daemon's
// refusal: nothing has changed. An error that is ErrUnknown leaves it open
// whether the command had its effect: the connection broke between request and
// reply, or the daemon's storage failed. The client never sends such a command
// again by itself. To repeat an Enqueue safely, give the job a Unique key; to
// repeat an Ack, take ErrNoLease as "it had worked, or the lease had ended".
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// DefaultAddr is where a daemon listens if nobody says otherwise.
const DefaultAddr = "127.0.0.1:6380"

// Options of a Client. The zero value connects to DefaultAddr.
type Options struct {
	// Addr is host:port, or the path of a Unix socket (anything with a slash).
	Addr string
	// User and Password log in when Password is not empty; an empty User is
	// "default".
	User, Password string
	// TLS, when set, is used on every connection. The server name is taken from
	// Addr where it is empty.
	TLS *tls.Config
	// Name is shown by CLIENT LIST.
	Name string
	// MaxIdle is how many connections are kept for reuse; 0 is 16. There may be
	// as many connections as there are calls at the same time.
	MaxIdle int
	// DialTimeout bounds connecting and logging in; 0 is 5 s.
	DialTimeout time.Duration
	// Timeout bounds one call whose context has no deadline, on top of what the
	// call itself waits (FetchOptions.Wait); 0 is 30 s, below 0 is none.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	if o.User == "" {
		o.User = "default"
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = 16
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 5 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	return o
}

// Client is a pool of connections to one daemon. It may be used from any number
// of goroutines. It connects when it is first used.
type Client struct {
	opts Options

	mu     sync.Mutex
	idle   []*conn // guarded by mu, the last used last
	closed bool    // guarded by mu
}

// New makes a Client. It does not connect yet; Ping does.
func New(opts Options) *Client {
	return &Client{opts: opts.withDefaults()}
}

// Close closes the idle connections; those in use are closed when their call
// ends. Calls after Close give ErrClosed. Close may be called more than once.
func (c *Client) Close() error {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.closed = nil, true
	c.mu.Unlock()
	for _, cn := range idle {
		cn.close()
	}
	return nil
}

// Do sends one command and returns its reply. An error reply is an *Error.
// Arguments are taken as they are: strings, or bytes turned into strings.
func (c *Client) Do(ctx context.Context, args ...string) (Value, error) {
	return c.one(ctx, 0, appendCommand(nil, args...))
}

// one is exchange for a single command.
func (c *Client) one(ctx context.Context, wait time.Duration, request []byte) (Value, error) {
	replies, err := c.exchange(ctx, wait, request, 1)
	if err != nil {
		return Value{}, err
	}
	return replies[0], replies[0].Err()
}

// exchange writes a request of n commands and reads n replies; error replies
// are among them. wait is how long the daemon may take on top of Timeout.
func (c *Client) exchange(ctx context.Context, wait time.Duration, request []byte, n int) ([]Value, error) {
	if _, has := ctx.Deadline(); !has && c.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.Timeout+wait)
		defer cancel()
	}
	cn, err := c.get(ctx)
	if err != nil {
		return nil, err
	}
	replies, err := cn.exchange(ctx, request, n)
	if err != nil {
		cn.close()
		return nil, fmt.Errorf("pawl at %s: %w", c.opts.Addr, err)
	}
	c.put(cn)
	return replies, nil
}

// get takes an idle connection that still lives, or makes one.
func (c *Client) get(ctx context.Context) (*conn, error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, ErrClosed
		}
		var cn *conn
		if n := len(c.idle); n > 0 {
			cn = c.idle[n-1]
			c.idle = c.idle[:n-1]
		}
		c.mu.Unlock()
		if cn == nil {
			return c.dial(ctx)
		}
		// The daemon may have gone meanwhile. A command sent to a dead
		// connection would leave its outcome open for no reason.
		if cn.alive() {
			return cn, nil
		}
		cn.close()
	}
}

func (c *Client) put(cn *conn) {
	c.mu.Lock()
	if !c.closed && len(c.idle) < c.opts.MaxIdle {
		c.idle = append(c.idle, cn)
		cn = nil
	}
	c.mu.Unlock()
	if cn != nil {
		cn.close()
	}
}

// dial connects and logs in.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.DialTimeout)
	defer cancel()
	network := "tcp"
	if strings.Contains(c.opts.Addr, "/") {
		network = "unix"
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, network, c.opts.Addr)
	if err != nil {
		return nil, &ConnectError{c.opts.Addr, err}
	}
	if c.opts.TLS != nil {
		cfg := c.opts.TLS.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(c.opts.Addr)
		}
		secure := tls.Client(raw, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, &ConnectError{c.opts.Addr, err}
		}
		raw = secure
	}
	cn := newConn(raw)
	if err := c.greet(ctx, cn); err != nil {
		cn.close()
		var refused *Error
		if errors.As(err, &refused) {
			return nil, err
		}
		if open, ok := errors.AsType[*openError](err); ok {
			err = open.err // of a greeting, before any command: nothing is open
		}
		return nil, &ConnectError{c.opts.Addr, err}
	}
	return cn, nil
}

// greet chooses RESP3, logs in and names the connection, in one round trip.
func (c *Client) greet(ctx context.Context, cn *conn) error {
	hello := []string{"HELLO", "3"}
	if c.opts.Password != "" {
		hello = append(hello, "AUTH", c.opts.User, c.opts.Password)
	}
	if c.opts.Name != "" {
		hello = append(hello, "SETNAME", c.opts.Name)
	}
	replies, err := cn.exchange(ctx, appendCommand(nil, hello...), 1)
	if err != nil {
		return err
	}
	return replies[0].Err()
}

// conn is one connection, used by one call at a time.
type conn struct {
	net.Conn
	in *reader
}

func newConn(raw net.Conn) *conn {
	return &conn{Conn: raw, in: newReader(raw)}
}

func (cn *conn) close() { cn.Conn.Close() }

// exchange is one round trip. After an error the connection is out of step and
// must be closed. Every error after the first byte was sent is ErrUnknown.
func (cn *conn) exchange(ctx context.Context, request []byte, n int) ([]Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline() // zero is none
	cn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { cn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	open := func(err error) error {
		if cause := ctx.Err(); cause != nil {
			err = cause
		} else if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return &openError{err}
	}
	// A long pipeline is written beside the reading: a daemon that stops
	// reading until its replies are read must not be waited for.
	written := make(chan error, 1)
	if len(request) <= 64<<10 {
		_, err := cn.Write(request)
		if err != nil {
			return nil, open(err)
		}
		written <- nil
	} else {
		go func() {
			_, err := cn.Write(request)
			written <- err
		}()
	}
	replies := make([]Value, n)
	for i := range replies {
		v, err := cn.in.read()
		if err != nil {
			cn.close() // ends the writer too
			<-written
			return nil, open(err)
		}
		replies[i] = v
	}
	if err := <-written; err != nil {
		return nil, open(err)
	}
	if !stop() {
		// The context ended while the last reply came: the reply counts, but
		// the deadline set above may hit the next call.
		cn.SetDeadline(time.Time{})
	}
	return replies, nil
}
