// Package resp is the RESP edge: it parses what Redis clients send, submits it
// to the engine, waits until it is durable, and replies. It holds no job data.
package resp

import (
	"context"
	"log/slog"
	"net"
	"time"

	"pawl/acl"
	"pawl/engine"
)

// Options of a Server. The zero value serves anybody who can connect, with the
// default limits.
type Options struct {
	// Version is shown by INFO and HELLO; empty is "dev".
	Version string
	// Users are those of the configuration; ACL SETUSER adds others, which are
	// kept in the log. Without any, and without Password, the default user has
	// all rights and no password.
	Users []acl.User
	// Password, when set, is what the default user must send with AUTH.
	Password string
	// Limits bound what clients can make the server hold.
	Limits Limits
	// BackupDir is where BACKUP writes; empty refuses it.
	BackupDir string
	// SyncMode is what INFO and CONFIG GET say: "always", "never" or an interval.
	SyncMode string
	// Ephemeral says that nothing is kept: INFO and CONFIG GET tell.
	Ephemeral bool
	// Settings are the daemon's values that CONFIG GET shows, beside the
	// server's own.
	Settings []Setting
	// Progress tells how far the start is while there is no engine, as bytes
	// replayed and bytes to replay; nil is unknown.
	Progress func() (done, total int64)
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

// Limits bound what clients can make the server hold. A zero field has the
// default that is said at it.
type Limits struct {
	PayloadBytes int           // one bulk string; 1 MiB
	Clients      int           // connections; 10,000
	BufferBytes  int64         // all buffers of all connections; 256 MiB
	CommandTime  time.Duration // to send one command; 30 s
	LoginTime    time.Duration // to log in where that is needed; 10 s
	WriteTime    time.Duration // without progress of a reply; 30 s
	IdleTime     time.Duration // between commands; 0 is for ever
}

// Server serves any number of listeners.
type Server struct{}

// New makes a server that answers LOADING until SetEngine.
func New(Options) *Server { return &Server{} }

// SetEngine gives the server its engine, once, when recovery is over.
func (s *Server) SetEngine(e *engine.Engine) { panic("not yet") }

// Serve accepts connections from l until ctx ends, l fails or Shutdown is
// called, and closes l. It returns nil after ctx or Shutdown.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { panic("not yet") }

// Shutdown stops accepting, answers what was received, wakes the blocked and
// closes all connections. When ctx ends first, or after ten seconds, what is
// left is cut off; it returns when no connection is left. Call it before
// Engine.Close.
func (s *Server) Shutdown(ctx context.Context) error { panic("not yet") }

// Numbers are counters since the server began and gauges of now.
type Numbers struct {
	Connected, Blocked, Monitors int64  // now
	BufferBytes                  int64  // now, of all connections
	Accepted, Refused            uint64 // connections; refused are those over the limit
	Commands, Errors             uint64 // commands done; error replies
	BytesIn, BytesOut            uint64
	AuthFailures, Denied         uint64 // wrong passwords; NOPERM
	Closed                       map[string]uint64
	PerCommand                   map[string]uint64
}

// Numbers reads them. It waits for nothing.
func (s *Server) Numbers() Numbers { panic("not yet") }

// Exposed says whether a listener at addr can be reached from other machines:
// every TCP address but loopback ones. Such a listener needs users or an
// explicit word of the operator.
func Exposed(addr net.Addr) bool { panic("not yet") }
