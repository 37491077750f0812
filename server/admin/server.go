// Package admin serves what operators need on a listener of its own: metrics,
// health, lmstfy's admin API, a JSON API for everything the operator commands do
// (openapi.json describes it), and a dashboard made of it.
//
// It holds no job data. Whatever only looks, metrics and the overview, reads the
// engine's published numbers and never waits for it.
//
//	s, err := admin.New(admin.Options{Lmstfy: public, Accounts: accounts})
//	go s.HTTP().Serve(listener)  // live, but not ready
//	s.SetEngine(e)               // ready
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/state"
)

// Engine is what this package needs of *engine.Engine.
type Engine interface {
	lmstfy.Engine
	Forget(d *engine.Delivery)
	Snapshot(ctx context.Context) error
	JobHistory(ctx context.Context, id state.JobID, from engine.LSN) (engine.JobHistory, error)
	Numbers() engine.Numbers
	SomeQueues(n int) []engine.QueueView
	Histograms() engine.Histograms
	Failure() error
}

// Options of a Server.
type Options struct {
	// Lmstfy is the public edge, whose admin API is mounted here, whose tokens the
	// JSON API changes, and whose accounts log in to everything but metrics,
	// health and version. Required.
	Lmstfy *lmstfy.Server
	// Hosts are further names that a Host header may have, to begin with; IP
	// addresses and localhost always may. Others are refused, for a page of a
	// foreign name that resolves to this address could read everything.
	Hosts []string
	// Pprof serves Go's profiles below /debug/pprof/, behind the login.
	Pprof bool
	// MaxQueueSeries bounds the queues that have metrics of their own; 0 is
	// 1,000. The rest is summed.
	MaxQueueSeries int
	// Collectors are further metrics, such as those of the RESP edge.
	Collectors []prometheus.Collector
	// Resp is the RESP edge, whose connections and users are shown and changed;
	// nil is none.
	Resp RESP
	// Loading says how far the start is while there is no engine, in bytes of
	// snapshot and log; nil is unknown.
	Loading func() (done, total int64)
	// Version, Commit and BuildDate are what GET /version says.
	Version, Commit, BuildDate string
	// Log takes what operators do; nil is slog.Default.
	Log *slog.Logger
}

// Server is the handler of the admin listener.
type Server struct {
	options  Options
	engine   atomic.Pointer[Engine] // nil while loading
	handler  http.Handler
	registry *prometheus.Registry
	history  *history
	log      *slog.Logger
	started  time.Time
	hosts    atomic.Pointer[[]string]
	series   atomic.Int64 // how many queues may have metrics of their own
	queues   queueSeries
	draining atomic.Bool // Shutdown was called
	crowd    *lmstfy.Crowd
}

// New makes a server without an engine: live, not ready.
func New(o Options) (*Server, error) {
	if o.Lmstfy == nil {
		return nil, errors.New("admin: no public edge given")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Server{options: o, log: o.Log, started: time.Now(), history: newHistory(), crowd: lmstfy.NewCrowd(MaxClients)}
	s.SetHosts(o.Hosts)
	s.SetMaxQueueSeries(o.MaxQueueSeries)
	var err error
	if s.registry, err = s.newRegistry(); err != nil {
		return nil, fmt.Errorf("admin metrics: %w", err)
	}
	s.handler = s.guard(s.routes())
	return s, nil
}

// routes are all of the listener's. Whatever is not open needs a login where
// there are accounts.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	legacy := s.options.Lmstfy.Admin()
	for _, pattern := range lmstfy.AdminRoutes {
		mux.Handle(pattern, legacy) // it asks for a login by itself, where lmstfy does
	}
	mux.Handle("GET /version", legacy)
	mux.HandleFunc("GET /pools/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/pools", http.StatusMovedPermanently)
	})
	mux.Handle("GET /metrics", s.metricsHandler())
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	for i := range apiRoutes {
		route := &apiRoutes[i]
		mux.Handle(route.method+" "+route.path, s.login(s.api(route)))
	}
	mux.Handle("/api/v1/", s.login(http.HandlerFunc(apiNotFound)))
	if s.options.Pprof {
		mountPprof(mux, s.login)
	}
	mux.Handle("GET /{$}", s.login(dashboard()))
	mux.Handle("GET /assets/", s.login(dashboard()))
	mux.Handle("/", legacy) // its plain 404
	return mux
}

// login asks for one of the accounts, where there are any.
func (s *Server) login(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.options.Lmstfy.Accounts().Admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// mountPprof serves Go's profiles. The command line is left out, for it may hold
// secrets.
func mountPprof(mux *http.ServeMux, login func(http.Handler) http.Handler) {
	mux.Handle("GET /debug/pprof/profile", login(http.HandlerFunc(pprof.Profile)))
	mux.Handle("GET /debug/pprof/trace", login(http.HandlerFunc(pprof.Trace)))
	mux.Handle("GET /debug/pprof/cmdline", http.NotFoundHandler())
	mux.Handle("GET /debug/pprof/symbol", http.NotFoundHandler())
	mux.Handle("GET /debug/pprof/", login(http.HandlerFunc(pprof.Index)))
}

// SetHosts replaces the names of Options.Hosts.
func (s *Server) SetHosts(names []string) {
	names = slices.Clone(names)
	s.hosts.Store(&names)
}

// SetMaxQueueSeries replaces Options.MaxQueueSeries from the next scrape on.
func (s *Server) SetMaxQueueSeries(n int) {
	if n <= 0 {
		n = 1000
	}
	s.series.Store(int64(n))
}

// SetEngine ends the loading. It is called once.
func (s *Server) SetEngine(e Engine) {
	var g Engine = guarded{lmstfy.Guard(e), e}
	s.engine.Store(&g)
}

// currentEngine is nil while loading.
func (s *Server) currentEngine() Engine {
	if e := s.engine.Load(); e != nil {
		return *e
	}
	return nil
}

// Shutdown makes the server say that it is not ready, so that load balancers
// look elsewhere.
func (s *Server) Shutdown() { s.draining.Store(true) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// MaxClients is how many connections the listener has at a time. It is apart from
// those of the other ports: whoever fills them keeps no operator out.
const MaxClients = 256

// HTTP is a server for the listener with the limits that an open port needs.
func (s *Server) HTTP() *Front {
	return &Front{
		Server: &http.Server{
			Handler:           s,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       30 * time.Second,
			IdleTimeout:       60 * time.Second,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
			ConnState:         s.crowd.ConnState,
		},
		crowd: s.crowd,
	}
}

// Front is an http.Server for at most MaxClients connections.
type Front struct {
	*http.Server
	crowd *lmstfy.Crowd
}

// Serve is http.Server's.
func (f *Front) Serve(l net.Listener) error { return f.Server.Serve(f.crowd.Listener(l)) }
