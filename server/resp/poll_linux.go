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
// Where the poller itself has to wait, for a disk that hangs in a sync or a read, the
// janitor gives its connections to goroutines as well.
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
	// waiting says that the commands of the present pass are decided, and that the poller
	// waits for the disk: for lsn, or for the bodies of a reply. The connections of the
	// others that are not done may be taken away.
	waiting bool

	// Owned by run, and by relieve while waiting.
	lsn   engine.LSN
	began time.Time
	b     *batch
	turns []turn
	next  []*conn // to look at in the next pass, whatever the set says
	burnt bool    // commands of b are in use elsewhere: it cannot be reset

	// Owned by run.
	cold coldness // bodies that are, goroutines read
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
