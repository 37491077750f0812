package resp

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/engine"
)

// poller serves many connections in one goroutine, as long as they send plain
// commands: it reads from all that have sent something, has the engine decide
// all their commands in one Submit, leads the commit itself, and writes each its
// replies. So a group holds everybody, and a command costs one read, one write
// and its share of a wait, where a goroutine per connection also costs a read
// that finds nothing and two wake-ups.
//
// It never waits for a client. What might wait, or takes long, is left to a
// goroutine, in which a connection also begins; leave and take are the two ways.
// Where the poller itself has to wait, for a disk that hangs, the janitor gives
// its connections to goroutines as well.
//
// The sockets are its own descriptors, in an epoll set of its own, edge
// triggered: the runtime's poller knows nothing of them while they are here.
type poller struct {
	s      *Server
	epfd   int
	wakeup int // eventfd in the set, for close

	// passing is the server clock, plus one, when the present pass began; 0
	// between passes.
	passing atomic.Int64

	mu      sync.Mutex
	conns   map[int32]*conn // by descriptor; guarded by mu, as all below
	closed  bool
	standIn bool // the stand-in runs
	// waiting says that the commands of the present pass are decided and wait for
	// lsn: its connections may be taken away.
	waiting bool
	lsn     engine.LSN
	began   time.Time

	// Owned by run, and by relieve while waiting.
	b     *batch
	turns []turn
	next  []*conn // to look at in the next pass, whatever the set says
	burnt bool    // commands of b are in use elsewhere: it cannot be reset

	// Owned by run.
	cold coldness // bodies that are, goroutines read
}

// turn is what one connection has in the present pass.
type turn struct {
	c        *conn
	from, to int  // its entries of the batch
	cmds     int  // commands among them
	skipped  bool // the batch was full before
	done     bool // it is not in this pass any more
}

// When the poller is in the way.
const (
	// stuckAfter is the age of a pass, in milliseconds, from which on others look after
	// its connections. The clock moves in ticks of 100: a pass that has seen one may
	// have begun just before it, one that has seen two is older than a tick.
	stuckAfter = 150

	// yieldEvery is how often the poller lets the scheduler see it. One that is not
	// seen for 10 ms is taken for one that hangs in a system call: its processor is
	// taken away in the middle of each, again and again, and given to another thread.
	yieldEvery = 5 * time.Millisecond

	standInMillis = 10 // how often the stand-in looks whether the pass is over
)

// newPollers makes what loop asks for: one poller for two processors. With
// several a connection stays with one, and each is to the engine what a client
// with a long pipeline is.
func newPollers(s *Server, loop Loop) (all []*poller, err error) {
	if loop == LoopPortable {
		return nil, nil
	}
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		p, err := newPoller(s)
		if err != nil {
			for _, p := range all {
				p.free()
			}
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func newPoller(s *Server) (*poller, error) {
	p := &poller{s: s, epfd: -1, wakeup: -1, conns: make(map[int32]*conn), b: new(batch)}
	var err error
	if p.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make an epoll set: %w", err)
	}
	if p.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		p.free()
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	if err = p.watch(p.wakeup); err != nil {
		p.free()
		return nil, fmt.Errorf("watch an eventfd: %w", err)
	}
	return p, nil
}

func (p *poller) free() {
	for _, fd := range []int{p.epfd, p.wakeup} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// watch adds fd to the set. What has come before is news as well.
func (p *poller) watch(fd int) error {
	return unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd),
	})
}

// take makes the poller the owner of c, whose goroutine then ends. False leaves
// it with the caller: it is no plain socket, or cannot be had.
func (p *poller) take(c *conn) bool {
	switch c.nc.(type) {
	case *net.TCPConn, *net.UnixConn, *fileStream:
	default:
		return false
	}
	p.mu.Lock()
	takesNone := p.closed || p.standIn
	p.mu.Unlock()
	if takesNone {
		return false
	}
	// A descriptor of our own: closing the old one takes the socket out of the
	// runtime's poller, and there is no other way.
	raw, err := c.nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	fd, dupErr := -1, error(nil)
	err = raw.Control(func(old uintptr) { fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil || dupErr != nil {
		return false
	}
	c.mu.Lock()
	if c.condemned.Load() != nil {
		c.mu.Unlock()
		unix.Close(fd)
		return false
	}
	c.nc.Close()
	c.nc, c.fd = nil, fd
	c.mu.Unlock()
	c.polled, c.stay = true, 0
	c.enterReading()

	p.mu.Lock()
	c.taken, c.busy, c.again, c.ended = true, false, false, false
	p.conns[int32(fd)] = c
	// close looks for connections once.
	refused := p.closed || p.watch(fd) != nil
	c.busy = refused
	p.mu.Unlock()
	if refused {
		p.leave(c)
	}
	return true
}

// leave gives c, which is busy, to a goroutine of its own. c.rest says what is
// to be done first.
func (p *poller) leave(c *conn) {
	p.mu.Lock()
	unix.EpollCtl(p.epfd, unix.EPOLL_CTL_DEL, c.fd, nil)
	delete(p.conns, int32(c.fd))
	c.taken, c.busy, c.again = false, false, false
	closed := p.closed
	p.mu.Unlock()
	if closed {
		// The call to end may have come while c was busy and is used up: it is
		// edge-triggered. The last to leave must not leave run asleep.
		p.wake()
	}
	c.mu.Lock()
	c.nc = &fileStream{os.NewFile(uintptr(c.fd), "client")}
	c.fd = -1
	c.mu.Unlock()
	if c.odd {
		// Whoever comes and goes all the time stays out for longer.
		if c.stay >= 32*c.enough {
			c.enough = p.s.enough
		} else {
			c.enough = min(2*c.enough, maxEnough)
		}
	}
	c.polled, c.fresh, c.did, c.odd, c.calm = false, true, 0, false, 0
	go c.serve()
}

// run polls until close was called and all connections are with goroutines.
func (p *poller) run() {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free()
		p.epfd, p.wakeup = -1, -1
	}()
	events := make([]unix.EpollEvent, 1024)
	var yielded time.Time
	for {
		forever := -1
		if len(p.next) > 0 {
			forever = 0
		}
		n, err := unix.EpollWait(p.epfd, events, forever)
		if err != nil && err != unix.EINTR {
			panic(fmt.Sprintf("resp: epoll_wait: %v", err)) // a bug: the set is ours alone
		}
		p.passing.Store(p.s.clock.Load() + 1)
		if !p.gather(events[:max(n, 0)]) {
			return
		}
		p.pass(events)
		p.passing.Store(0)
		if now := time.Now(); now.Sub(yielded) >= yieldEvery {
			runtime.Gosched()
			yielded = now
		}
	}
}

// gather makes the turns of a pass. False: there is nothing left to do, ever.
func (p *poller) gather(events []unix.EpollEvent) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.next {
		p.turns = append(p.turns, turn{c: c})
	}
	clear(p.next)
	p.next = p.next[:0]
	p.join(events)
	if p.closed && len(p.conns) == 0 && !p.standIn {
		p.passing.Store(0) // here, under mu: no stand-in may begin on a set that is gone
		return false
	}
	return true
}

// join makes a turn for each connection that events are about and that has no
// owner yet. The caller holds mu.
func (p *poller) join(events []unix.EpollEvent) {
	for i := range events {
		if c := p.news(&events[i]); c != nil {
			p.turns = append(p.turns, turn{c: c})
		}
	}
}

// latecomers makes turns for those whose commands have come since the pass began,
// so that they need not wait for its sync; how many. A pass has no more turns than
// there are connections: who is answered without a sync may come again and again.
func (p *poller) latecomers(events []unix.EpollEvent) int {
	before := len(p.turns)
	p.mu.Lock()
	more := before < len(p.conns)
	p.mu.Unlock()
	if !more || p.b.full() {
		return 0
	}
	n, err := unix.EpollWait(p.epfd, events, 0)
	if err != nil && err != unix.EINTR {
		panic(fmt.Sprintf("resp: epoll_wait: %v", err)) // a bug: the set is ours alone
	}
	if n > 0 {
		p.mu.Lock()
		p.join(events[:n])
		p.mu.Unlock()
	}
	return len(p.turns) - before
}

// news gives the connection that an event is about, busy from now on; nil when
// it has an owner, who is told. The caller holds mu.
func (p *poller) news(e *unix.EpollEvent) *conn {
	c := p.conns[e.Fd]
	if c == nil {
		return nil // it left after the event, or the event is close's
	}
	if e.Events&^unix.EPOLLIN != 0 {
		c.ended = true // this is told once, and much may stand before the end
	}
	if c.busy {
		c.again = true
		return nil
	}
	c.busy = true
	return c
}

// pass does one command or more of each turn. events is space.
func (p *poller) pass(events []unix.EpollEvent) {
	b := p.b
	for i := 0; i < len(p.turns) || i > 0 && p.latecomers(events) > 0; i++ {
		t := &p.turns[i]
		t.from, t.to = len(b.entries), len(b.entries)
		if b.full() {
			t.skipped = true
			continue
		}
		cmds := len(b.cmds)
		if !p.guard(t.c, p.read) {
			b.entries, b.cmds = b.entries[:t.from], b.cmds[:cmds]
		}
		t.to, t.cmds = len(b.entries), len(b.cmds)-cmds
		if t.cmds == 0 {
			p.finish(t, nil) // whatever the disk does
		}
	}
	for i := range p.turns {
		if t := &p.turns[i]; t.skipped { // they come first the next time
			t.done = true
			p.next = append(p.next, t.c)
		}
	}
	if len(b.cmds) > 0 {
		p.commit()
	}
	clear(p.turns)
	p.turns = p.turns[:0]
	b = p.b
	if p.burnt || cap(b.out.buf) > 4*flushBytes || cap(b.side.buf) > 4*flushBytes || cap(b.keys) > 4*flushBytes {
		p.b, p.burnt = new(batch), false
		return
	}
	b.reset()
}

// guard calls f for c, and marks c as failed if f panics.
func (p *poller) guard(c *conn, f func(*conn)) (ok bool) {
	defer func() {
		if !ok {
			c.srv.recovered(c, recover())
			c.failed = true
		}
	}()
	f(c)
	return true
}

// read reads once from c and puts its commands into the batch.
func (p *poller) read(c *conn) {
	c.b = p.b
	c.b.out.resp3, c.b.side.resp3 = c.resp3, c.resp3
	c.stay++
	c.enter(phaseBusy)
	if c.condemned.Load() != nil {
		c.failed = true
		return
	}
	if !c.makeRoom() {
		c.odd = true // a goroutine may wait for room
		return
	}
	space := c.in.free()
	n, err := unix.Read(c.fd, space)
	switch {
	case n > 0:
		c.in.end += n
		c.srv.stats.bytesIn.Add(uint64(n))
	case n == 0 && err == nil:
		c.eof = true
	case err != unix.EAGAIN && err != unix.EINTR:
		c.failed = true
		return
	}
	c.lastFull = n == len(space)
	for !c.closing && c.step() && !c.b.full() {
	}
	// A FETCH that may wait ends the pass; if it need not, the rest is for the next.
	if c.lastFull || c.b.full() || err == unix.EINTR || c.rest.wait > 0 {
		p.mu.Lock()
		c.again = true
		p.mu.Unlock()
	}
}

// commit has the commands of the pass decided and made durable, and writes the
// replies.
func (p *poller) commit() {
	e := *p.s.engine.Load()
	began := p.s.slow.begin()
	lsn, ok := e.TrySubmit(p.b.cmds...)
	if !ok {
		// A goroutine can be left waiting; the poller cannot.
		for i := range p.turns {
			if t := &p.turns[i]; !t.done {
				p.burnt = true
				p.hand(p.b, t, remainder{stage: stageParsed})
			}
		}
		return
	}
	p.b.lsn = lsn
	p.mu.Lock()
	p.waiting, p.lsn, p.began = true, lsn, began
	p.mu.Unlock()
	err := e.Wait(lsn)
	p.mu.Lock()
	relieved := !p.waiting
	p.waiting = false
	p.mu.Unlock()
	if relieved {
		return
	}
	for i := range p.turns {
		t := &p.turns[i]
		if !t.done {
			t.c.noteSlow(began, t.cmds)
			p.finish(t, err)
		}
	}
	p.b.noteAnswered(e)
}

// finish writes the replies of a turn, and lets its connection wait for the next
// command.
func (p *poller) finish(t *turn, err error) {
	c := t.c
	t.done = true
	if t.to > t.from && !c.failed && !p.answer(t, err) {
		return
	}
	c.b = nil
	if c.did >= deepPipeline {
		c.odd = true
	}
	if c.odd || c.eof || c.closing || c.failed {
		p.leave(c)
		return
	}
	c.did = 0
	c.enterReading()
	p.mu.Lock()
	closed := p.closed
	switch {
	case closed:
	case c.again || c.ended:
		c.again = false
		p.next = append(p.next, c)
	default:
		c.busy = false
	}
	p.mu.Unlock()
	if closed {
		p.leave(c)
	}
}

// answer writes the replies of a turn. False: a goroutine has to.
func (p *poller) answer(t *turn, err error) bool {
	c, b := t.c, p.b
	c.b = b
	b.out.resp3, b.side.resp3 = c.resp3, c.resp3
	entries := b.entries[t.from:t.to]
	if c.rest.wait > 0 {
		if c.mustWait(c.rest.wait, entries, err) > 0 {
			p.burnt = true
			p.hand(b, t, remainder{stage: stageWaited, err: err})
			return false
		}
		c.rest.wait, c.odd = 0, false
	}
	bodies := 0
	for i := range entries {
		if f, ok := entries[i].cmd.(*engine.Fetch); ok {
			for j := range f.Jobs {
				bodies += f.Jobs[j].Bytes()
			}
		}
	}
	var began time.Time
	if bodies > 0 {
		began = time.Now()
		if bodies > flushBytes || p.cold.is(began) {
			p.burnt = true
			p.hand(b, t, remainder{stage: stageWaited, err: err})
			return false
		}
	}
	p.guard(c, func(c *conn) {
		c.conclude(entries, err)
		if bodies > 0 {
			now := time.Now()
			p.cold.note(now, now.Sub(began))
		}
		c.push()
	})
	if len(b.out.buf) == 0 || c.failed {
		b.out.buf, b.out.errs, b.sent = b.out.buf[:0], 0, 0
		b.shipped, b.lost = b.shipped[:0], b.lost[:0] // after a panic
		return true
	}
	own := new(batch) // the socket takes no more
	own.out, own.sent, own.shipped = b.out, b.sent, b.shipped
	b.out, b.sent, b.shipped = writer{}, 0, nil
	p.burnt = true
	c.b, c.rest = own, remainder{stage: stageWriting}
	p.leave(c)
	return false
}

// hand leaves the connection of a turn to a goroutine, with its part of the
// batch, which is burnt.
func (p *poller) hand(b *batch, t *turn, r remainder) {
	t.done = true
	c := t.c
	b.out.resp3 = c.resp3
	c.b = b.split(b.entries[t.from:t.to])
	r.wait = c.rest.wait
	c.rest = r
	p.leave(c)
}

// isStuck says whether a pass takes too long, of which passing says when it began.
func isStuck(passing, now int64) bool { return passing != 0 && now+1-passing >= stuckAfter }

// relieve gives connections to goroutines while a pass takes too long: those of
// the pass, if all they wait for is the disk, and those that send something
// until it is over.
func (p *poller) relieve() {
	passing := p.passing.Load()
	if !isStuck(passing, p.s.clock.Load()) {
		return
	}
	p.mu.Lock()
	if p.passing.Load() != passing {
		p.mu.Unlock()
		return
	}
	var turns []turn
	var next []*conn
	b, r := p.b, remainder{stage: stageWaiting, began: p.began, lsn: p.lsn}
	if p.waiting {
		turns, next = p.turns, p.next
		p.waiting, p.turns, p.next, p.b, p.burnt = false, nil, nil, new(batch), false
	}
	if !p.standIn {
		p.standIn = true
		p.s.running.Go(func() { p.lookAfter(passing) })
	}
	p.mu.Unlock()
	for i := range turns {
		if t := &turns[i]; !t.done {
			p.hand(b, t, r)
		}
	}
	for _, c := range next {
		p.leave(c)
	}
}

// lookAfter gives all that send something to goroutines, until the pass that
// began at passing is over.
func (p *poller) lookAfter(passing int64) {
	events := make([]unix.EpollEvent, 64)
	for p.passing.Load() == passing {
		n, err := unix.EpollWait(p.epfd, events, standInMillis)
		if err != nil && err != unix.EINTR {
			panic(fmt.Sprintf("resp: epoll_wait: %v", err)) // a bug: the set is ours alone
		}
		for i := range max(n, 0) {
			p.mu.Lock()
			c := p.news(&events[i])
			p.mu.Unlock()
			if c != nil {
				p.leave(c)
			}
		}
	}
	p.mu.Lock()
	p.standIn = false
	p.mu.Unlock()
	p.wake() // run may have found nothing left but this
}

// count says how many connections are here.
func (p *poller) count() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.conns))
}

// shrink takes the buffer of an idle connection.
func (p *poller) shrink(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.taken && !c.busy && len(c.in.bytes()) == 0 {
		c.resize(len(c.in.small))
	}
}

// close gives all connections to goroutines, and has run end.
func (p *poller) close() {
	p.mu.Lock()
	p.closed = true
	var idle []*conn
	for _, c := range p.conns {
		if !c.busy {
			c.busy = true
			idle = append(idle, c)
		}
	}
	p.mu.Unlock()
	for _, c := range idle {
		p.leave(c)
	}
	p.wake()
}

// wake has run look whether it is to end.
func (p *poller) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wakeup >= 0 {
		unix.Write(p.wakeup, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // the counter of eventfd(2)
	}
}

// writeNow writes what the socket takes at once.
func (c *conn) writeNow(b []byte) int {
	n, err := unix.Write(c.fd, b)
	if err != nil {
		n = 0
		c.failed = err != unix.EAGAIN && err != unix.EINTR
	}
	c.srv.stats.bytesOut.Add(uint64(n))
	return n
}

// shutdownSocket ends both directions: whoever reads hears of it.
func shutdownSocket(fd int) { unix.Shutdown(fd, unix.SHUT_RDWR) }

// CloseWrite is net.TCPConn's.
func (f *fileStream) CloseWrite() error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) }); cerr != nil {
		return cerr
	}
	return err
}
