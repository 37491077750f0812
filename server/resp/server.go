// Package resp is the RESP edge: it parses what Redis clients send, submits it
// to the engine, waits until it is durable, and replies. It holds no job data.
//
// A connection is served by one goroutine that reads, submits, waits (and may
// lead the commit) and replies; a whole pipeline enters the engine at once. A
// second goroutine reads on only while a FETCH waits for a job, so that a
// client that goes away is noticed. On Linux many connections that send plain
// commands share one goroutine, their poller, until they want more. The wire format is redcon's, under a framer
// of our own that judges every length before anything is kept.
//
// What a client can make the server hold is bounded everywhere: see Limits.
package resp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pawl/acl"
	"pawl/engine"
	"pawl/state"
)

// Engine is what the server needs of the one writer; *engine.Engine is one.
// What the methods promise is said there.
type Engine interface {
	Submit(cmds ...engine.Command) engine.LSN
	TrySubmit(cmds ...engine.Command) (lsn engine.LSN, decided int)
	Wait(lsn engine.LSN) error
	Await(f *engine.Fetch) (*engine.Waiter, engine.LSN)
	Cancel(w *engine.Waiter) bool
	Load(d *engine.Delivery) error
	TryLoad(d *engine.Delivery) bool
	Undeliver(jobs []engine.Delivery) engine.LSN
	Abandon(cmds ...engine.Command)
	LoadView(v *engine.JobView) error
	ForgetView(v *engine.JobView)
	Purge(ctx context.Context, p *engine.QueuePurge) error
	Redrive(ctx context.Context, r *engine.QueueRedrive) error
	Snapshot(ctx context.Context) error
	Backup(ctx context.Context, dir string) error
	JobHistory(ctx context.Context, id state.JobID, from engine.LSN) (engine.JobHistory, error)
	Numbers() engine.Numbers
	Failed() <-chan struct{}
	Arrived() engine.Arrival
	Answered(a engine.Arrival, lsn engine.LSN, n int)
}

// Options of a Server. The zero value serves anybody who can connect, with the
// default limits.
type Options struct {
	// Version is shown by INFO and HELLO; empty is "dev".
	Version string
	// Users are those of the configuration; ACL SETUSER adds others, which are
	// kept in the log and cannot take their names. Without any, and without
	// Password, the default user has all rights and no password.
	Users []acl.User
	// Password, when set, is what the default user must send with AUTH.
	Password string
	// Limits bound what clients can make the server hold.
	Limits Limits
	// BackupDir is where BACKUP writes; empty refuses it.
	BackupDir string
	// SyncMode is what INFO and CONFIG GET say: "always", the default, "never"
	// or an interval.
	SyncMode string
	// Ephemeral says that nothing is kept: INFO and CONFIG GET tell.
	Ephemeral bool
	// Settings are the daemon's values that CONFIG GET shows, beside the
	// server's own.
	Settings []Setting
	// Progress tells how far the start is while there is no engine, as bytes
	// replayed and bytes to replay; nil is unknown.
	Progress func() (done, total int64)
	// Loop is how connections are served.
	Loop Loop
	// Log gets one line for what an operator should know; nil discards.
	Log *slog.Logger
}

// Setting is one value of CONFIG GET.
type Setting struct {
	Name string
	// Get gives the present value as text.
	Get func() string
	// Set changes it while the daemon runs; nil is refused.
	Set func(value string) error
}

// Server serves any number of listeners. Its methods may be called from any
// goroutine.
type Server struct {
	opt      Options
	enough   int // of new connections, see seat; 1, other in tests
	limits   Limits
	log      *slog.Logger
	started  time.Time
	runID    string // 40 hex digits, as Redis's
	settings []Setting

	engine atomic.Pointer[Engine] // nil while LOADING
	users  atomic.Pointer[userTable]
	aclMu  sync.Mutex // one change of users at a time

	ceiling     ceiling
	lane        lane
	clientLimit atomic.Int64
	idleTime    atomic.Int64 // nanoseconds

	counts   []atomic.Uint64 // per command of the table
	stats    counters
	closes   closeCounts
	slow     slowLog
	failures failureLimiter

	clock   atomic.Int64 // milliseconds since started, set by the janitor
	stopped atomic.Bool  // Shutdown was called
	stop    chan struct{}
	life    context.Context // ends with stop
	cut     context.CancelFunc

	mu        sync.Mutex
	conns     map[*conn]struct{}    // guarded by mu
	listeners map[net.Listener]bool // guarded by mu
	monitors  map[*conn]chan []byte // guarded by mu
	connected atomic.Int64          // len(conns)
	watched   atomic.Int64          // len(monitors)
	nextID    int64                 // guarded by mu
	janitor   bool                  // guarded by mu; it runs, and the pollers do
	pollers   []*poller             // set once, before the first connection
	running   sync.WaitGroup        // connections, the janitor, background saves
	saving    atomic.Bool           // a BGSAVE runs
}

// ErrShutdown is Shutdown's when connections had to be cut off.
var ErrShutdown = errors.New("connections were cut off")

// New makes a server that answers LOADING until SetEngine.
func New(opt Options) *Server {
	opt.Version = cmp.Or(opt.Version, "dev")
	opt.SyncMode = cmp.Or(opt.SyncMode, "always")
	s := &Server{
		opt:       opt,
		enough:    1,
		limits:    opt.Limits.withDefaults(),
		log:       opt.Log,
		started:   time.Now(),
		stop:      make(chan struct{}),
		lane:      newLane(),
		conns:     make(map[*conn]struct{}),
		listeners: make(map[net.Listener]bool),
		monitors:  make(map[*conn]chan []byte),
		counts:    make([]atomic.Uint64, len(commands)),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.SetLimits(opt.Limits)
	s.life, s.cut = context.WithCancel(context.Background())
	var id [20]byte
	rand.Read(id[:])
	s.runID = hex.EncodeToString(id[:])
	s.slow.setDefaults()
	s.settings = s.ownSettings()
	for _, setting := range opt.Settings {
		same := func(own Setting) bool { return own.Name == setting.Name }
		if !slices.ContainsFunc(s.settings, same) { // its own values are what the server really does
			s.settings = append(s.settings, setting)
		}
	}
	s.users.Store(newUserTable(configuredUsers(opt.Users, opt.Password), nil))
	return s
}

// SetEngine gives the server its engine, once, when recovery is over. It reads
// the users that are kept in the log.
func (s *Server) SetEngine(e Engine) error {
	e = guarded{e}
	if err := s.loadUsers(e); err != nil {
		return fmt.Errorf("read users: %w", err)
	}
	s.engine.Store(&e)
	return nil
}

// Serve accepts connections from l until ctx ends, l fails or Shutdown is
// called, and closes l. It returns nil after ctx or Shutdown; the connections
// live on until Shutdown.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.addListener(l) {
		return l.Close()
	}
	defer s.removeListener(l)
	unhook := context.AfterFunc(ctx, func() { l.Close() })
	defer unhook()
	backOff := acceptBackOff{}
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			backOff = acceptBackOff{}
			s.accept(nc)
		case ctx.Err() != nil || s.stopped.Load():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept on %s: %w", l.Addr(), err)
		default:
			// Most likely there are no descriptors left; those who are connected
			// are not to suffer from a loop.
			pause := backOff.next()
			s.log.Warn("cannot accept connections", "addr", l.Addr().String(), "error", err, "pause", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			case <-s.stop:
			}
		}
	}
}

// acceptBackOff doubles from 5 ms to 1 s.
type acceptBackOff struct{ pause time.Duration }

func (b *acceptBackOff) next() time.Duration {
	b.pause = min(max(2*b.pause, 5*time.Millisecond), time.Second)
	return b.pause
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Load() {
		return false
	}
	s.listeners[l] = true
	if !s.janitor {
		s.janitor = true
		s.startPollers()
		s.running.Go(s.runJanitor)
	}
	return true
}

// startPollers starts what Options.Loop asks for. The caller holds mu.
func (s *Server) startPollers() {
	pollers, err := newPollers(s, s.opt.Loop)
	if err != nil {
		s.log.Warn("there is no poller, every connection has a goroutine", "error", err)
	}
	s.pollers = pollers
	for _, p := range pollers {
		s.running.Go(p.run)
	}
}

func (s *Server) removeListener(l net.Listener) {
	l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// accept begins to serve nc, or refuses it.
func (s *Server) accept(nc net.Conn) {
	setKeepAlive(nc)
	s.mu.Lock()
	refusal := ""
	switch {
	case s.stopped.Load():
		refusal = engine.ErrClosed.Error()
	case int64(len(s.conns)) >= s.clientLimit.Load():
		refusal = "max number of clients reached"
		s.stats.refused.Add(1)
	}
	if refusal != "" {
		s.mu.Unlock()
		// Never wait for a client here: a fresh socket takes this line at once.
		if !isTLS(nc) {
			nc.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			nc.Write([]byte("-ERR " + refusal + "\r\n"))
		}
		rawConn(nc).Close()
		return
	}
	s.nextID++
	c := newConn(s, nc, s.nextID)
	if n := int64(len(s.pollers)); n > 0 {
		c.poller = s.pollers[s.nextID%n]
	}
	s.conns[c] = struct{}{}
	s.connected.Store(int64(len(s.conns)))
	s.running.Add(1)
	s.mu.Unlock()
	s.stats.accepted.Add(1)
	go c.serve()
}

// forget takes a connection that has ended off the books.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.connected.Store(int64(len(s.conns)))
}

// setKeepAlive finds peers that vanished within half a minute: nothing else
// tells that a worker that waits for a job has lost its power.
func setKeepAlive(nc net.Conn) {
	if tcp, ok := rawConn(nc).(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: 10 * time.Second, Interval: 10 * time.Second, Count: 3,
		})
	}
}

// Shutdown stops accepting, answers what was received, wakes the blocked and
// closes all connections. When ctx ends first, or after five seconds, what is
// left is cut off and the error is ErrShutdown; in any case it returns only
// when no connection is left, so call it before Engine.Close.
func (s *Server) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	s.mu.Lock()
	if !s.stopped.Swap(true) {
		close(s.stop)
		s.cut()
	}
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.nudge()
	}
	s.mu.Unlock()
	for _, p := range s.pollers {
		p.close()
	}

	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		c.condemn(closedShutdown)
	}
	s.mu.Unlock()
	<-done
	return ErrShutdown
}

// recovered handles a panic in the goroutine of c: a bug in this package costs
// the connection.
func (s *Server) recovered(c *conn, v any) {
	s.stats.panics.Add(1)
	s.log.Error("bug: a connection ended in a panic", "client", c.id, "addr", c.addr, "panic", v, "stack", string(debug.Stack()))
}
