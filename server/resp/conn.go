package resp

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"pawl/acl"
	"pawl/engine"
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

type readResult struct {
	n   int
	err error
}

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

// fill reads once. False ends the connection: the client is gone, the server
// stops, or there is no room.
func (c *conn) fill() bool {
	for {
		if c.eof {
			c.endOfStream()
			return false
		}
		if c.srv.stopped.Load() {
			c.closing = true
			return false
		}
		if !c.watching && !c.makeRoom() {
			return false
		}
		c.enterReading()
		n, err := c.read()
		if n > 0 {
			return c.received(n, err)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !c.awoken() {
				return false
			}
		case errors.Is(err, io.EOF):
			c.eof = true
		default:
			return false
		}
	}
}

// received counts n bytes that read has put into the input; err came with them.
func (c *conn) received(n int, err error) bool {
	c.srv.stats.bytesIn.Add(uint64(n))
	c.fresh = false
	switch {
	case errors.Is(err, io.EOF):
		c.eof = true
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.awoken()
	case err != nil:
		return false
	}
	return true
}

// read takes what the watching goroutine read, or reads itself.
func (c *conn) read() (int, error) {
	if c.watching {
		r := <-c.watch
		c.watched(r)
		return r.n, r.err
	}
	space := c.in.free()
	var n int
	var err error
	if c.frame.inFrame {
		n, err = c.srv.lane.readPiece(c.nc, space)
	} else {
		n, err = c.nc.Read(space)
	}
	c.in.end += n
	c.lastFull = n == len(space)
	return n, err
}

// startWatch has a goroutine read once into the free space of the input.
func (c *conn) startWatch() {
	if c.watching || c.eof || len(c.in.bytes()) >= maxReadBytes || !c.makeRoom() {
		return
	}
	c.watching, c.in.pinned = true, true
	space := c.in.free()
	go func() {
		n, err := c.nc.Read(space)
		c.watch <- readResult{n, err}
	}()
}

// watched takes the result of the watching goroutine.
func (c *conn) watched(r readResult) {
	c.watching, c.in.pinned = false, false
	c.lastFull = r.n == len(c.in.free())
	c.in.end += r.n
}

// awoken handles a nudge; false ends the connection.
func (c *conn) awoken() bool {
	c.nc.SetReadDeadline(time.Time{})
	// In this order: Shutdown says stopped before it nudges.
	if c.srv.stopped.Load() && len(c.in.bytes()) == 0 {
		c.closing = true
		return false
	}
	if c.condemned.Load() != nil {
		return false
	}
	if !c.watching && len(c.in.bytes()) == 0 {
		c.resize(len(c.in.small))
	}
	return true
}

// makeRoom sees to it that there is space to read into; false ends the
// connection.
func (c *conn) makeRoom() bool {
	in := &c.in
	empty := in.start == in.end
	if empty {
		in.start, in.end = 0, 0
	}
	switch {
	case empty && len(in.buf) > maxReadBytes:
		// A large command is over; its buffer is not kept for the next one.
		return c.resize(flushBytes)
	case c.lastFull && len(in.buf) < c.readBytes() && !c.strange.Load():
		// More than fits came at once: read more at once, or a pipeline is cut
		// into batches of the small array, each with a commit of its own. No need
		// to wait for room, though.
		if size := int64(in.nextSize()); c.srv.admit(c, size-in.pooled()) {
			c.swap(int(size))
			return true
		}
		if empty {
			return true
		}
	}
	switch {
	case len(in.free()) > 0 && (len(in.free()) >= len(in.buf)/4 || !in.canCompact()):
		return true
	case in.start > len(in.buf)/2:
		in.compact()
		return true
	}
	return c.resize(in.nextSize())
}

// readBytes is how large an input is made for a client that sends much at once.
func (c *conn) readBytes() int {
	if c.polled {
		return polledBytes
	}
	return maxReadBytes
}

// resize continues in a buffer of size bytes.
func (c *conn) resize(size int) bool {
	before := c.in.pooled()
	after := int64(size)
	if size <= len(c.in.small) {
		after = 0
	}
	if after > before && !c.allow(after-before, size) {
		return false
	}
	c.swap(size)
	if after < before {
		c.srv.release(c, before-after)
	}
	return true
}

// swap moves the input to a buffer of size bytes, a large one or one for the rest
// of a command in the lane.
func (c *conn) swap(size int) {
	if !c.polled && (size > flushBytes || c.frame.inFrame) {
		c.srv.lane.enter()
		defer c.srv.lane.leave()
	}
	c.in.swap(size)
}

// allow admits n more bytes for an input of size bytes. In the poller it does
// not wait, and sends long commands to a goroutine.
func (c *conn) allow(n int64, size int) bool {
	if !c.polled {
		return c.srv.reserve(c, n)
	}
	return size <= polledBytes && c.srv.admit(c, n)
}

// endOfStream answers a stream that ended inside a command.
func (c *conn) endOfStream() {
	text := c.frame.end(c.in.bytes())
	if text == "" {
		c.closing = true
		return
	}
	c.b = takeBatch(c)
	c.failNow(text)
	c.flush()
	c.dropBatch()
	c.closing = true
}

// work does all complete commands of the input and writes their replies.
func (c *conn) work() {
	c.enter(phaseBusy)
	c.b = takeBatch(c)
	for !c.closing && !c.failed && c.step() {
		if c.b.full() || c.strange.Load() && len(c.b.out.buf) > minPooled {
			c.settle()
			c.flush()
		}
	}
	c.settle()
	c.flush()
	c.dropBatch()
	c.endPass()
}

// step does the next command of the input; false when there is none.
func (c *conn) step() bool {
	c.frame.stranger = c.user == nil
	n, v, text := c.judge()
	packet := c.in.bytes()[:n]
	if v == isCommand || v == isInline {
		return c.stepCommand(packet, v == isInline)
	}
	c.in.take(n)
	if v != needMore {
		c.began = -1
	}
	switch v {
	case isForeign:
		c.srv.closes.add(closedForeign)
		c.closing = true
	case isFatal:
		c.protocolError(text)
	case isRefused:
		c.refuseQueued()
		c.fail(text)
		return true
	}
	return false
}

// judge is the framer's verdict; on the rest of a command, which may be long, it
// is given in the lane.
func (c *conn) judge() (n int, v verdict, text string) {
	if c.frame.inFrame && !c.polled {
		c.srv.lane.enter()
		defer c.srv.lane.leave()
	}
	return c.frame.next(c.in.bytes())
}

// stepCommand does the command that is in packet, the front of the input.
func (c *conn) stepCommand(packet []byte, inline bool) bool {
	args, err := splitCommand(packet, c.b.args)
	c.b.args = args[:0]
	if err != nil {
		c.in.take(len(packet))
		text := errMalformedText
		if inline {
			text = errQuotes
		}
		c.protocolError(text)
		return false
	}
	if len(args) == 0 { // an empty line is nothing, as in Redis
		c.in.take(len(packet))
		c.began = -1
		return true
	}
	cmd, unknownSub := find(args)
	if c.polled && cmd != nil && !unknownSub && !cmd.is(flagPipeline) {
		c.odd = true // its input is not touched: it is the first that the goroutine will do
		return false
	}
	c.in.take(len(packet))
	c.began = -1
	c.b.bytes += len(packet)
	c.did++
	c.dispatch(cmd, unknownSub, args, inline)
	return !c.odd || !c.polled
}

const errMalformedText = "ERR malformed RESP value: invalid command"

func (c *conn) protocolError(text string) {
	c.srv.closes.add(closedProtocol)
	c.fail(text)
	c.closing = true
}

// engine is nil while the log is replayed.
func (c *conn) engine() Engine {
	if e := c.srv.engine.Load(); e != nil {
		return *e
	}
	return nil
}

// submit and wait are the engine's.
func (c *conn) submit(cmds ...engine.Command) engine.LSN { return c.engine().Submit(cmds...) }

func (c *conn) wait(lsn engine.LSN) error { return c.engine().Wait(lsn) }

// flush is push where whole replies stand in the output: a line of MONITOR may
// follow.
func (c *conn) flush() {
	c.push()
	if c.b.came != (engine.Arrival{}) {
		c.b.noteAnswered(c.engine())
	}
	c.endTurn()
}

// abandon is the engine's: after wait has failed.
func (c *conn) abandon(cmds ...engine.Command) { c.engine().Abandon(cmds...) }

// push writes the replies that are ready, or the part of one that is. Deliveries whose reply did not get
// out are given back.
func (c *conn) push() {
	b := c.b
	if len(b.out.buf) > b.sent {
		b.sent += c.write(b.out.buf[b.sent:])
		if c.polled && !c.failed && b.sent < len(b.out.buf) {
			return // the socket is full: what is left is a goroutine's
		}
		for _, s := range b.shipped {
			if s.end > b.sent {
				c.b.lost = append(c.b.lost, *s.job)
			}
		}
		b.shipped = b.shipped[:0]
		c.srv.stats.errors.Add(uint64(b.out.errs))
		b.out.buf, b.out.errs, b.sent = b.out.buf[:0], 0, 0
	}
	if len(b.lost) > 0 {
		c.engine().Undeliver(b.lost)
		clear(b.lost)
		b.lost = b.lost[:0]
	}
}

// write writes p, in pieces so that progress can be seen, and returns how much
// of it went out. Less than all sets failed.
func (c *conn) write(p []byte) (n int) {
	if c.failed {
		return 0
	}
	if c.polled {
		return c.writeNow(p)
	}
	size := int64(len(p))
	if !c.srv.reserve(c, size) {
		c.failed = true
		return 0
	}
	before := phase(c.phase.Load())
	c.enter(phaseWriting)
	c.takeTurn()
	for n < len(p) {
		c.enter(phaseWriting)
		var m int
		var err error
		if piece := p[n:min(len(p), n+flushBytes)]; len(p) > flushBytes {
			m, err = c.srv.lane.writePiece(c.nc, piece)
		} else {
			m, err = c.nc.Write(piece)
		}
		n += m
		if err != nil {
			c.failed = true
			break
		}
	}
	c.enter(before)
	c.srv.release(c, size)
	c.srv.stats.bytesOut.Add(uint64(n))
	return n
}
