// Package lmstfy serves lmstfy's HTTP contract from the engine, so that its
// existing clients need only another address.
//
// It parses, asks the engine, waits until the answer is durable and replies; it
// holds no job data. Jobs are the same ones that Redis clients see: the queue Q
// of namespace NS in pool P has the key P/NS/Q. What differs from the original
// on purpose is listed in docs/lmstfy.md.
//
//	s, err := lmstfy.New(lmstfy.Options{Pools: []string{"default"}})
//	go s.HTTP().Serve(listener)   // answers 503 until there is an engine
//	err = s.SetEngine(e)          // tokens and limiters are read from it
//	...
//	s.Shutdown()                  // long polls end with 503; then Front.Shutdown
package lmstfy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pawl/engine"
	"pawl/state"
)

// Engine is what this package needs of *engine.Engine.
type Engine interface {
	Submit(cmds ...engine.Command) engine.LSN
	Wait(lsn engine.LSN) error
	Await(f *engine.Fetch) (*engine.Waiter, engine.LSN)
	Cancel(w *engine.Waiter) bool
	Load(d *engine.Delivery) error
	Undeliver(jobs []engine.Delivery) engine.LSN
	Abandon(cmds ...engine.Command)
	LoadView(v *engine.JobView) error
	ForgetView(v *engine.JobView)
	Purge(ctx context.Context, p *engine.QueuePurge) error
	Redrive(ctx context.Context, r *engine.QueueRedrive) error
	Census() *engine.Census
	Arrived() engine.Arrival
	Answered(a engine.Arrival, lsn engine.LSN, n int)
}

// Options of a Server. The zero value is lmstfy's defaults with the one pool
// "default".
type Options struct {
	// Pools are the pools that tokens may name; "default" is always one.
	Pools []string
	// MigrateTo gives for a pool the pool that its publishes go to, while its
	// consumes still prefer the old one. Both must be in Pools.
	MigrateTo map[string]string
	// Accounts are user and password for the protected part of the admin API, to
	// begin with. Empty means it is open to whoever reaches the listener.
	Accounts map[string]string
	// FixedTokens hold beside those in the log and cannot be deleted.
	FixedTokens []FixedToken
	// TokenDeleted, if not nil, is told of every token whose deletion is durable,
	// before the deletion is answered: it may be in use elsewhere. It must not
	// call back.
	TokenDeleted func(pool, namespace, token string)
	// Defaults stand for parameters that a request leaves out.
	Defaults Defaults
	// SkipTokens is lmstfy's development mode: any token, or none, is good.
	SkipTokens bool
	// MaxPayload bounds one body in bytes; 0 is 1 MiB. It must not be over the
	// engine's own limit.
	MaxPayload int
	// MaxClients bounds the connections of a Front that are open at a time; 0 is
	// 10,000.
	MaxClients int
	// MaxBuffers bounds what requests and replies of all connections hold together,
	// in bytes; 0 is 256 MiB. It is to be three times MaxPayload at least.
	MaxBuffers int64
	// MaxQueueSeries bounds the queues that have metrics of their own; 0 is
	// 1,000. The rest is summed under the name OtherQueues.
	MaxQueueSeries int
	// Version, Commit and BuildDate are what GET /version of the admin API says.
	Version, Commit, BuildDate string
	// AccessLog takes a line a request while the access log is on; nil is none.
	AccessLog io.Writer
	// AccessLogJSON chooses JSON lines instead of text.
	AccessLogJSON bool
	// AccessLogOn is whether it is on at the start; the admin API switches it.
	AccessLogOn bool
	// Log takes what an operator must know; nil is slog.Default.
	Log *slog.Logger
}

// Defaults are lmstfy's defaults of parameters. A nil field is lmstfy's own.
type Defaults struct {
	TTLSeconds     *uint32 // 86,400; 0 is for ever
	DelaySeconds   *uint32 // 0
	Tries          *uint16 // 1
	TTRSeconds     *uint32 // 120
	TimeoutSeconds *uint32 // 0
}

// FixedToken is a token from the configuration.
type FixedToken struct{ Pool, Namespace, Token, Description string }

// DefaultMaxPayload is lmstfy's limit of a job's body in bytes.
const DefaultMaxPayload = 1 << 20

// Server answers the public API (ServeHTTP) and lmstfy's admin API (Admin).
type Server struct {
	options  Options
	defaults defaults
	engine   atomic.Pointer[Engine] // nil while loading
	tokens   *Tokens
	accounts *Accounts
	metrics  *metrics
	access   *accessLog
	crowd    *Crowd
	room     *room
	log      *slog.Logger
	now      func() time.Time

	closeOnce sync.Once
	closing   chan struct{} // closed by Shutdown
}

// defaults are Options.Defaults with every value filled in.
type defaults struct {
	ttl, delay, ttr, timeout uint32
	tries                    uint16
}

// New makes a server without an engine: until SetEngine every request that
// needs one is answered with 503. It refuses options that contradict each
// other.
func New(o Options) (*Server, error) {
	if !slices.Contains(o.Pools, state.DefaultPool) {
		o.Pools = append([]string{state.DefaultPool}, o.Pools...)
	}
	for _, pool := range o.Pools {
		if !validPool(pool) {
			return nil, fmt.Errorf("pool name %q: want 1 to %d bytes without slash, colon, comma or control characters", pool, state.MaxNameBytes)
		}
	}
	for from, to := range o.MigrateTo {
		if !slices.Contains(o.Pools, from) || !slices.Contains(o.Pools, to) {
			return nil, fmt.Errorf("pool %q migrates to %q: both must exist", from, to)
		}
		if from == to {
			return nil, fmt.Errorf("pool %q migrates to itself", from)
		}
	}
	for _, t := range o.FixedTokens {
		if t.Pool != "" && !slices.Contains(o.Pools, t.Pool) {
			return nil, fmt.Errorf("fixed token of namespace %q is of the unknown pool %q", t.Namespace, t.Pool)
		}
		if !goodToken(t.Token) || !plainName(t.Namespace, false) || t.Namespace == "" {
			return nil, fmt.Errorf("fixed token of namespace %q: forbidden characters", t.Namespace)
		}
	}
	if o.MaxPayload <= 0 {
		o.MaxPayload = DefaultMaxPayload
	}
	if o.MaxQueueSeries <= 0 {
		o.MaxQueueSeries = defaultQueueSeries
	}
	if o.MaxClients <= 0 {
		o.MaxClients = defaultClients
	}
	if o.MaxBuffers <= 0 {
		o.MaxBuffers = defaultBuffers
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Server{
		options:  o,
		defaults: o.Defaults.filled(),
		log:      o.Log,
		now:      time.Now,
		closing:  make(chan struct{}),
		crowd:    NewCrowd(o.MaxClients),
		room:     newRoom(o.MaxBuffers),
		access:   newAccessLog(o.AccessLog, o.AccessLogJSON, o.AccessLogOn),
	}
	if s.defaults.tries == 0 {
		return nil, errors.New("the default of tries must not be zero")
	}
	s.accounts = newAccounts(o.Accounts, o.Log, s.now)
	s.tokens = newTokens(o.Pools, o.FixedTokens, s.currentEngine)
	s.tokens.deleted = o.TokenDeleted
	s.metrics = newMetrics(o.MaxQueueSeries, s.tokens, s.currentEngine)
	s.tokens.unlimited, s.tokens.emptied = s.metrics.unlimited, s.metrics.emptied
	return s, nil
}

// Accounts are the logins of the admin API, for whoever serves more behind them
// or changes them.
func (s *Server) Accounts() *Accounts { return s.accounts }

func (d Defaults) filled() defaults {
	f := defaults{ttl: 86400, ttr: 120, tries: 1}
	set(&f.ttl, d.TTLSeconds)
	set(&f.delay, d.DelaySeconds)
	set(&f.ttr, d.TTRSeconds)
	set(&f.timeout, d.TimeoutSeconds)
	set(&f.tries, d.Tries)
	return f
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// SetEngine ends the loading: tokens and limiters are read from e, then
// requests are served from it. It is called once.
func (s *Server) SetEngine(e Engine) error {
	if err := s.tokens.load(e); err != nil {
		return fmt.Errorf("read tokens and limiters: %w", err)
	}
	s.metrics.pools.begin(e)
	g := Guard(e)
	s.engine.Store(&g)
	return nil
}

const (
	defaultQueueSeries = 1000
	defaultClients     = 10_000
)

// SetMaxQueueSeries replaces Options.MaxQueueSeries. The series of queues beyond
// it go at once.
func (s *Server) SetMaxQueueSeries(n int) {
	if n <= 0 {
		n = defaultQueueSeries
	}
	s.metrics.setMaxQueues(n)
}

// SetMaxClients replaces Options.MaxClients. Nobody is cut off by a lower limit.
func (s *Server) SetMaxClients(n int) {
	if n <= 0 {
		n = defaultClients
	}
	s.crowd.SetLimit(n)
}

// SetMaxBuffers replaces Options.MaxBuffers for what comes.
func (s *Server) SetMaxBuffers(bytes int64) {
	if bytes <= 0 {
		bytes = defaultBuffers
	}
	s.room.setLimit(bytes)
}

// Buffers are the bytes that Options.MaxBuffers bounds, and how many requests were
// refused or cut off for want of them.
func (s *Server) Buffers() (bytes int64, refused uint64) {
	return s.room.used.Load(), s.room.refused.Load()
}

// Connections are those of its Front.
func (s *Server) Connections() CrowdNumbers { return s.crowd.Numbers() }

// currentEngine is nil while loading.
func (s *Server) currentEngine() Engine {
	if e := s.engine.Load(); e != nil {
		return *e
	}
	return nil
}

// Tokens are the tokens and limiters that the server checks. Whoever changes
// them changes them here, so that the change counts at once.
func (s *Server) Tokens() *Tokens { return s.tokens }

// Shutdown ends waiting consumes with 503 and refuses what comes after. It does
// not wait: that is what Front.Shutdown does.
func (s *Server) Shutdown() { s.closeOnce.Do(func() { close(s.closing) }) }

// validPool: a pool is part of a queue key and of a token's text.
func validPool(name string) bool {
	if name == "" || len(name) > state.MaxNameBytes {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f || c == '/' || c == ':' || c == ',' {
			return false
		}
	}
	return true
}
