package resp

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"pawl/acl"
)

// phase is what a connection's goroutine is doing, for the janitor.
type phase uint32

const (
	phaseHandshake phase = iota // TLS
	phaseIdle                   // reads, nothing received
	phasePartial                // reads the rest of a command
	phaseBusy                   // decides or waits for the disk
	phaseBlocked                // waits for a job
	phaseWriting                // writes a reply
)

// conn is one connection. Its goroutine owns every field that is not said to
// be anybody's.
type conn struct {
	srv     *Server
	nc      stream // nil while the poller has it; others than its owner read it under mu
	id      int64
	addr    string
	local   string
	tls     bool
	created time.Time

	in       input
	frame    framer
	lastFull bool  // the last read filled the input
	began    int64 // server clock when the command that is not complete began to come; -1 is none
	b        *batch
	resp3    bool
	reply    replyMode
	tx       *transaction // nil outside MULTI

	monitor     chan []byte   // nil without MONITOR
	monitorDone chan struct{} // closed when the last of its lines is written
	turn        sync.Mutex    // whose turn it is to write, under MONITOR: a line, or replies from the first byte to the last
	hasTurn     bool          // the connection's goroutine holds turn

	users *userTable // that user was taken from
	user  *acl.User  // nil before login

	refusals int // commands that were refused because nobody had logged in

	closing bool // close when the replies are written
	failed  bool // a write failed: nothing reaches the client any more
	eof     bool // the client has finished sending

	claim *claim // what it waits for; guarded by the ceiling's mu

	seat // in the poller

	watching bool            // a goroutine reads into in
	watch    chan readResult // gives what it read

	// Anybody's.
	phase     atomic.Uint32
	since     atomic.Int64 // server clock when the phase began, or made progress
	held      atomic.Int64 // bytes of buffers, part of the ceiling
	strange   atomic.Bool  // must log in and has not
	lastCmd   atomic.Pointer[command]
	condemned atomic.Pointer[string] // why the socket was closed under it
	blocked   atomic.Bool
	unblock   chan bool // true is with an error

	mu         sync.Mutex
	fd         int // the socket while the poller has it, or -1; guarded by mu, as all below
	name       string
	libName    string
	libVer     string
	login      string
	token      string // key of the token of the HTTP API it is logged in with
	triedToken string // key of the one it tries
	proto      int
	queued     int // commands in MULTI, -1 outside
}

// replyMode is CLIENT REPLY.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // the next command's reply is dropped
	replySkip     // this command's reply is dropped
)

func newConn(s *Server, nc net.Conn, id int64) *conn {
	c := &conn{
		srv: s, nc: nc, id: id,
		addr: addrText(nc.RemoteAddr(), nc.LocalAddr()), local: addrText(nc.LocalAddr(), nil),
		tls:     isTLS(nc),
		created: time.Now(),
		watch:   make(chan readResult, 1),
		unblock: make(chan bool, 1),
		began:   -1, proto: 2, queued: -1, fd: -1, seat: seat{enough: s.enough},
	}
	c.in.buf = c.in.small[:]
	limits := s.limits
	c.frame.bulkBytes = int64(limits.PayloadBytes)
	c.frame.keepBytes = int64(limits.PayloadBytes) + 1<<20
	c.frame.droppedBytes = max(minDroppedBytes, 8*int64(limits.PayloadBytes))
	c.enter(phaseHandshake)
	c.takeUsers(s.users.Load())
	return c
}

// addrText is how clients are told apart: host:port, or path:0 for a Unix
// socket, whose clients have no address of their own.
func addrText(a, other net.Addr) string {
	if a == nil || a.String() == "" || a.String() == "@" {
		a = other
	}
	if a == nil {
		return "?:0"
	}
	if a.Network() == "unix" {
		return a.String() + ":0"
	}
	return a.String()
}

// rawConn is the connection below TLS.
func rawConn(nc stream) stream {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if g, ok := nc.(*gatedConn); ok {
		return g.Conn
	}
	return nc
}

func isTLS(nc stream) bool {
	_, ok := nc.(*tls.Conn)
	return ok
}

func (c *conn) enter(p phase) {
	c.since.Store(c.srv.clock.Load())
	c.phase.Store(uint32(p))
}

// enterPartial is enter for reading the rest of a command. Its time runs from
// the first byte of the command: bytes that trickle in do not help.
func (c *conn) enterPartial() {
	if c.began < 0 {
		c.began = c.srv.clock.Load()
	}
	c.since.Store(c.began)
	c.phase.Store(uint32(phasePartial))
}

// enterReading is enter for reading the next command or the rest of one.
func (c *conn) enterReading() {
	if c.in.start == c.in.end && !c.frame.inFrame {
		c.enter(phaseIdle)
	} else {
		c.enterPartial()
	}
}

// nudge wakes the goroutine out of a read. It goes on reading if there is
// nothing else to do.
func (c *conn) nudge() {
	c.mu.Lock()
	nc := c.nc
	c.mu.Unlock()
	if nc != nil {
		nc.SetReadDeadline(time.Unix(1, 0))
		return
	}
	c.poller.shrink(c)
}

// condemn closes the socket under the goroutine, which then ends; cause is
// counted. Only the first cause counts.
func (c *conn) condemn(cause closeCause) {
	name := string(cause)
	if c.condemned.CompareAndSwap(nil, &name) {
		c.srv.closes.add(cause)
		c.srv.noteClose(c, cause)
		c.srv.ceiling.withdraw(c)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.nc == nil {
			shutdownSocket(c.fd) // the poller sees its end, and closes it
			return
		}
		// Not the TLS connection: its Close wants to write.
		rawConn(c.nc).Close()
	}
}

// serve runs the connection to its end, or until the poller takes it.
func (c *conn) serve() {
	over := true
	defer func() {
		if over {
			c.finish()
			c.srv.running.Done()
		}
	}()
	defer func() {
		if v := recover(); v != nil {
			c.srv.recovered(c, v)
		}
	}()
	if t, ok := c.nc.(*tls.Conn); ok {
		ctx := c.srv.life
		if err := t.HandshakeContext(ctx); err != nil {
			return
		}
	}
	c.resume()
	for !c.closing && !c.failed {
		c.work()
		if c.closing || c.failed {
			return
		}
		if c.isCalm() && c.poller.take(c) {
			over = false
			return
		}
		if !c.fill() {
			return
		}
	}
}

// finish closes the socket and gives back what the connection held.
func (c *conn) finish() {
	if c.monitor != nil {
		c.srv.removeMonitor(c)
	}
	if c.closing && !c.failed && c.condemned.Load() == nil && !c.watching {
		c.linger()
	}
	rawConn(c.nc).Close()
	if c.watching {
		<-c.watch
	}
	c.dropTransaction()
	c.srv.release(c, c.held.Load())
	if c.in.pooled() > 0 {
		putBuffer(c.in.buf)
	}
	c.in.buf = nil
	c.srv.forget(c)
}

// linger lets the client read the last reply: a socket that is closed while
// bytes from the peer are unread is reset, and a reset may overtake the reply.
func (c *conn) linger() {
	for _, nc := range []stream{c.nc, rawConn(c.nc)} { // TLS says goodbye by itself
		half, ok := nc.(interface{ CloseWrite() error })
		if !ok || half.CloseWrite() != nil {
			return
		}
	}
	if c.eof {
		return
	}
	raw := rawConn(c.nc)
	raw.SetReadDeadline(time.Now().Add(lingerTime))
	// Whoever sends on and on does so for nothing: reading that is work.
	most := lingerBytes
	if c.strange.Load() {
		most = maxStrangerBytes
	}
	for dropped := 0; dropped < most; {
		n, err := raw.Read(c.in.buf)
		dropped += n
		if err != nil {
			return
		}
	}
}
