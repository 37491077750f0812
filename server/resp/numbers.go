package resp

import (
	"sync"
	"sync/atomic"
)

// counters of a server since it was made, and gauges of now.
type counters struct {
	accepted, refused, commands, errors atomic.Uint64
	bytesIn, bytesOut                   atomic.Uint64
	authFailures, denied, panics        atomic.Uint64
	blocked                             atomic.Int64
}

// closeCause is why the server closed a connection.
type closeCause string

const (
	closedLogin       closeCause = "login"        // did not log in, or ended no handshake, in time
	closedSlow        closeCause = "slow_command" // one command took too long to arrive
	closedWrite       closeCause = "slow_reader"  // a reply made no progress
	closedIdle        closeCause = "idle"
	closedBuffers     closeCause = "buffers" // held most when the buffers were full
	closedKilled      closeCause = "killed"  // CLIENT KILL, ACL DELUSER
	closedShutdown    closeCause = "shutdown"
	closedProtocol    closeCause = "protocol" // the stream could not be followed
	closedForeign     closeCause = "http"     // spoke HTTP
	closedSlowMonitor closeCause = "slow_monitor"
)

var closeCauses = []closeCause{
	closedLogin, closedSlow, closedWrite, closedIdle, closedBuffers,
	closedKilled, closedShutdown, closedProtocol, closedForeign, closedSlowMonitor,
}

// closeCounts counts the causes, and remembers when each was logged last.
type closeCounts struct {
	mu     sync.Mutex
	count  map[closeCause]uint64
	logged map[closeCause]int64 // server clock
}

func (k *closeCounts) add(cause closeCause) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.count == nil {
		k.count = make(map[closeCause]uint64)
	}
	k.count[cause]++
}

// logEvery bounds the log lines of one cause.
const logEvery = 10_000

// noteClose logs why a connection was closed, once in ten seconds for each
// cause.
func (s *Server) noteClose(c *conn, cause closeCause) {
	k, now := &s.closes, s.clock.Load()
	k.mu.Lock()
	if k.logged == nil {
		k.logged = make(map[closeCause]int64)
	}
	last, again := k.logged[cause]
	silent := again && now-last < logEvery
	if !silent {
		k.logged[cause] = now
	}
	total := k.count[cause]
	k.mu.Unlock()
	if !silent {
		s.log.Warn("a connection was closed", "cause", string(cause), "client", c.id, "addr", c.addr, "held_bytes", c.held.Load(), "such_so_far", total)
	}
}

// Numbers are counters since the server was made and gauges of now.
type Numbers struct {
	Connected, Blocked, Monitors int64  // now
	Polled                       int64  // of the connected now, those without a goroutine of their own
	BufferBytes                  int64  // now, of all connections
	Accepted, Refused            uint64 // connections; refused are those over the limit
	Commands, Errors             uint64 // commands that ran; error replies
	BytesIn, BytesOut            uint64
	AuthFailures, Denied         uint64            // wrong passwords; NOPERM
	Panics                       uint64            // connections that ended by a bug
	Closed                       map[string]uint64 // connections that the server closed, by cause
	PerCommand                   map[string]uint64 // commands that ran, by name, such as "queue|info"
}

// Numbers reads them. It waits for nothing.
func (s *Server) Numbers() Numbers {
	n := Numbers{
		Blocked: s.stats.blocked.Load(), Monitors: s.watched.Load(), BufferBytes: s.ceiling.used.Load(),
		Accepted: s.stats.accepted.Load(), Refused: s.stats.refused.Load(),
		Commands: s.stats.commands.Load(), Errors: s.stats.errors.Load(),
		BytesIn: s.stats.bytesIn.Load(), BytesOut: s.stats.bytesOut.Load(),
		AuthFailures: s.stats.authFailures.Load(), Denied: s.stats.denied.Load(), Panics: s.stats.panics.Load(),
		Closed: make(map[string]uint64), PerCommand: make(map[string]uint64),
	}
	s.mu.Lock()
	n.Connected = int64(len(s.conns))
	pollers := s.pollers
	s.mu.Unlock()
	for _, p := range pollers {
		n.Polled += p.count()
	}
	s.closes.mu.Lock()
	for _, cause := range closeCauses {
		n.Closed[string(cause)] = s.closes.count[cause]
	}
	s.closes.mu.Unlock()
	for i := range s.counts {
		if v := s.counts[i].Load(); v > 0 {
			n.PerCommand[commands[i].fullName()] = v
		}
	}
	return n
}

// resetStats is CONFIG RESETSTAT.
func (s *Server) resetStats() {
	for _, v := range []*atomic.Uint64{
		&s.stats.accepted, &s.stats.refused, &s.stats.commands, &s.stats.errors, &s.stats.bytesIn, &s.stats.bytesOut,
		&s.stats.authFailures, &s.stats.denied,
	} {
		v.Store(0)
	}
	for i := range s.counts {
		s.counts[i].Store(0)
	}
	s.closes.mu.Lock()
	s.closes.count = nil
	s.closes.mu.Unlock()
}
