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
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/engine"
	"pawl/server/lmstfy"
)

// Engine is what this package needs of *engine.Engine.
type Engine interface {
	lmstfy.Engine
	Snapshot(ctx context.Context) error
	Numbers() engine.Numbers
	Failure() error
}

// Options of a Server.
type Options struct {
	// Lmstfy is the public edge, whose admin API is mounted here and whose
	// tokens the JSON API changes. Required.
	Lmstfy *lmstfy.Server
	// Accounts are user and password for everything but metrics, health and
	// version. Empty means open to whoever reaches the listener.
	Accounts map[string]string
	// Hosts are further names that a Host header may have; IP addresses and
	// localhost always may. Others are refused, for a page of a foreign name
	// that resolves to this address could read everything.
	Hosts []string
	// Pprof serves Go's profiles below /debug/pprof/, behind the login.
	Pprof bool
	// MaxQueueSeries bounds the queues that have metrics of their own; 0 is
	// 1,000. The rest is summed.
	MaxQueueSeries int
	// Collectors are further metrics, such as those of the RESP edge.
	Collectors []prometheus.Collector
	// Loading says how far the start is, while there is no engine; nil is unknown.
	Loading func() Progress
	// Version, Commit and BuildDate are what GET /version says.
	Version, Commit, BuildDate string
	// Log takes what operators do; nil is slog.Default.
	Log *slog.Logger
}

// Progress of a start.
type Progress struct {
	Done, Total int64 // bytes of log and snapshot; a Total of 0 is unknown
}

// Server is the handler of the admin listener.
type Server struct {
	options  Options
	engine   atomic.Pointer[Engine] // nil while loading
	handler  http.Handler
	registry *prometheus.Registry
	log      *slog.Logger
	started  time.Time
	draining atomic.Bool // Shutdown was called
}

// New makes a server without an engine: live, not ready.
func New(o Options) (*Server, error) {
	if o.Lmstfy == nil {
		return nil, errors.New("admin: no public edge given")
	}
	if o.MaxQueueSeries <= 0 {
		o.MaxQueueSeries = 1000
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Server{options: o, log: o.Log, started: time.Now()}
	s.handler = o.Lmstfy.Admin()
	return s, nil
}

// SetEngine ends the loading. It is called once.
func (s *Server) SetEngine(e Engine) { s.engine.Store(&e) }

// Shutdown makes the server say that it is not ready, so that load balancers
// look elsewhere.
func (s *Server) Shutdown() { s.draining.Store(true) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// HTTP is a server for the listener with the limits that an open port needs.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
