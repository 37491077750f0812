package resp

import "time"

// Limits bound what clients can make the server hold. A zero field has the
// default that is said at it; docs/limits.md lists all of them with the error
// and the metric of each.
type Limits struct {
	// PayloadBytes is the limit of one argument; 1 MiB. The whole command may
	// have 1 MiB more.
	PayloadBytes int
	// Clients is how many connections may be open; 10,000. The daemon lowers it
	// when it may open fewer files.
	Clients int
	// BufferBytes is the limit of all buffers of all connections together; 256
	// MiB. Beyond it the connection that holds most is closed.
	BufferBytes int64
	// CommandTime is how long the sending of one command may take; 30 s.
	CommandTime time.Duration
	// LoginTime is how long a client that must log in has for it; 10 s. A TLS
	// handshake has as long.
	LoginTime time.Duration
	// WriteTime is how long a reply may wait for the client to read on; 30 s.
	WriteTime time.Duration
	// IdleTime is how long a client may send nothing; 0 is for ever.
	IdleTime time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.PayloadBytes, 1<<20)
	setDefault(&l.Clients, 10_000)
	setDefault(&l.BufferBytes, 256<<20)
	setDefault(&l.CommandTime, 30*time.Second)
	setDefault(&l.LoginTime, 10*time.Second)
	setDefault(&l.WriteTime, 30*time.Second)
	return l
}

// SetLimits makes Clients, BufferBytes and IdleTime of l hold from now on, with
// their defaults where they are 0. Nobody is cut off by a lower limit of
// connections; buffers over a lower ceiling go as connections need more. The
// other fields stay as they were.
func (s *Server) SetLimits(l Limits) {
	l = l.withDefaults()
	s.clientLimit.Store(int64(min(l.Clients, DescriptorLimit()-64)))
	s.ceiling.limit.Store(l.BufferBytes)
	s.ceiling.grant()
	s.idleTime.Store(int64(l.IdleTime))
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Bounds that nobody needs to change.
const (
	maxBatch       = 1024    // commands of one connection in flight
	maxBatchBytes  = 1 << 20 // their arguments, or one command
	flushBytes     = 64 << 10
	directBytes    = 16 << 10 // a payload from here on is written from where it is
	maxReadBytes   = 256 << 10
	maxMonitorLag  = 4096            // lines a MONITOR client may be behind
	stopGrace      = 5 * time.Second // Shutdown; the engine needs some of the ten seconds, too
	lingerTime     = 500 * time.Millisecond
	lingerBytes    = 256 << 10 // read of what is sent behind the last reply
	failuresPerSec = 10        // wrong passwords of one address before it is slowed
)
