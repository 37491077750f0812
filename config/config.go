// Package config is where a daemon's settings come from: flags win over
// PAWL_* environment variables, those over a TOML file, that over defaults. One
// name serves all: the flag --snapshot-bytes is PAWL_SNAPSHOT_BYTES in the
// environment and snapshot_bytes in the file.
//
// Everything is checked strictly. A key that means nothing is an error that
// names the nearest one that does, so that a typing error never silently leaves
// a default in place.
//
//	set, err := config.Load(os.Args[1:], os.LookupEnv)
//	set.Config.Addr           // the value
//	set.Option("addr").Origin // "flag", "env PAWL_ADDR", "file /etc/pawl.toml" or "default"
package config

import (
	"log/slog"
	"time"
)

// Config is the effective settings of a daemon. Sizes are bytes. It is filled
// by Load and not changed after that.
type Config struct {
	// The data directory and what is kept there.
	Dir              string        // data directory
	Existing         bool          // refuse to create one
	Ephemeral        bool          // no directory, nothing kept
	Sync             Sync          // when the log is synced
	GenerationSize   Bytes         // of the log's files
	SnapshotBytes    Bytes         // log written between two snapshots
	SnapshotRate     Bytes         // a second that the writer of a snapshot writes or reads back; 0 is no limit
	SnapshotInterval time.Duration // between two snapshots, if anything changed; 0 is by bytes only
	Keep             time.Duration // how long finished log stays for point-in-time restore; 0 is not at all
	VerifyBodies     Bytes         // bodies up to this total are verified at start
	ScrubRate        Bytes         // a second that the scrubber re-reads; 0 is off
	BackupDir        string        // where BACKUP may write; empty refuses BACKUP
	MaxMemory        Bytes         // of the state, beyond it ENQUEUE is refused; 0 is no limit
	MaxDisk          Bytes         // of the data directory, likewise; 0 is no limit

	// The edges.
	Addr           string // RESP, host:port, or the path of a Unix socket; empty is off
	Unix           string // RESP, path of a Unix socket; empty is off
	HTTPAddr       string // lmstfy's API; empty is off
	AdminAddr      string // metrics, health, dashboard; empty is off
	LmstfyFile     string // lmstfy configuration file; empty is none
	TLSCert        string // PEM files; empty is no TLS
	TLSKey         string
	TLSClientCA    string
	HTTPTLS        bool // TLS on HTTPAddr and AdminAddr too
	Insecure       bool // listen beyond loopback without authentication
	MaxPayload     Bytes
	MaxClients     int           // RESP connections
	MaxHTTPClients int           // connections of the HTTP API
	MaxBuffers     Bytes         // of all RESP connections together
	MaxHTTPBuffers Bytes         // of all connections of the HTTP API together
	MaxWaiters     int           // blocked fetches
	IdleTimeout    time.Duration // of RESP connections; 0 is none
	Loop           string        // how RESP connections are served: auto, portable or poll
	Pprof          bool          // profiles on AdminAddr
	// AdminHostNames are names, besides localhost and IP addresses, by which
	// browsers may reach AdminAddr.
	AdminHostNames []string
	MetricsQueues  int // that have series of their own

	// Users of the Redis protocol by name, each a line of rules as ACL SETUSER
	// takes them, from the [users] table of the file.
	Users map[string]string
	// Accounts of the admin address, password by user, from the [accounts] table
	// of the file.
	Accounts map[string]string
	// Password of the user "default", from PasswordFile or from PAWL_PASSWORD;
	// empty is none. It never stands on a command line, where others could read
	// it.
	Password     string
	PasswordFile string

	LogLevel  slog.Level
	LogFormat string // text or json
	File      string // the file that was read; empty is none
}
