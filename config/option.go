package config

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// An Option is one setting with its value as text and where it came from.
type Option struct {
	Name   string // of the flag, without dashes
	Usage  string
	Reload bool   // a running daemon can change it
	Value  string // effective
	Origin string // "flag", "env PAWL_…", "file PATH" or "default"
	// Default is the value when nobody says anything.
	Default string
}

// Key is the option's name in the file.
func (o Option) Key() string { return strings.ReplaceAll(o.Name, "-", "_") }

// Env is the option's environment variable.
func (o Option) Env() string { return "PAWL_" + strings.ToUpper(o.Key()) }

// reloadable are the options that a running daemon can change, by SIGHUP and, all
// but the password's file, by CONFIG SET. Certificates are not among them because
// they are read again by themselves, from the same files.
var reloadable = map[string]bool{
	"max-memory": true, "max-disk": true, "max-clients": true, "max-http-clients": true, "max-buffers": true, "max-http-buffers": true, "max-waiters": true,
	"idle-timeout": true, "password-file": true, "admin-host-names": true, "log-level": true,
	"snapshot-bytes": true, "snapshot-rate": true, "snapshot-interval": true, "keep": true, "scrub-rate": true, "metrics-queues": true,
}

// define makes the flags of all options in fs, with their defaults in c.
func define(fs *pflag.FlagSet, c *Config) {
	fs.StringVar(&c.Dir, "dir", "./pawl-data", "data directory, made if it is not there")
	fs.BoolVar(&c.Existing, "existing", false, "refuse to start without a data directory made before (pawl init)")
	fs.BoolVar(&c.Ephemeral, "ephemeral", false, "keep nothing: a directory that goes when the daemon ends")
	backend := choice{new(string), []string{"log", "memory"}}
	*backend.value = "log"
	fs.Var(backend, "backend", "memory is the same as --ephemeral")
	fs.Var(&c.Sync, "sync", "when the log is synced: always, never, or every so often (100ms)")
	c.GenerationSize = 4 << 20
	fs.Var(&c.GenerationSize, "generation-size", "size of the log's files")
	c.SnapshotBytes = 64 << 20
	fs.Var(&c.SnapshotBytes, "snapshot-bytes", "write a snapshot after this much log")
	c.SnapshotRate = 64 << 20
	fs.Var(&c.SnapshotRate, "snapshot-rate", "write it, and read it back, at this many bytes a second while the log leaves time for that; 0 is as fast as it can")
	fs.DurationVar(&c.SnapshotInterval, "snapshot-interval", 15*time.Minute, "and after this long, if anything changed; 0 is by bytes only")
	fs.DurationVar(&c.Keep, "keep", 0, "keep finished log this long, for restore to a point in time")
	c.VerifyBodies = 1 << 30
	fs.Var(&c.VerifyBodies, "verify-bodies", "read and check all payloads at start while they total at most this")
	c.ScrubRate = 1 << 20
	fs.Var(&c.ScrubRate, "scrub-rate", "re-read closed files at this many bytes a second; 0 is off")
	fs.StringVar(&c.BackupDir, "backup-dir", "", "directory below which BACKUP may write; none refuses it")
	fs.Var(&c.MaxMemory, "max-memory", "refuse new jobs while their index takes more memory than this; 0 is no limit")
	fs.Var(&c.MaxDisk, "max-disk", "refuse new jobs while the data directory is larger than this; 0 is no limit")

	fs.StringVar(&c.Addr, "addr", "127.0.0.1:6380", "address for Redis clients, host:port or the path of a socket; empty is off")
	fs.StringVar(&c.Unix, "unix", "", "a Unix socket for Redis clients besides")
	fs.StringVar(&c.HTTPAddr, "http-addr", "127.0.0.1:7777", "address of lmstfy's HTTP API; empty is off")
	fs.StringVar(&c.AdminAddr, "admin-addr", "127.0.0.1:7778", "address of dashboard, metrics and health; empty is off")
	fs.StringVar(&c.LmstfyFile, "lmstfy-config", "", "configuration file of an lmstfy to take over")
	fs.StringVar(&c.TLSCert, "tls-cert", "", "certificate (PEM) for Redis clients, read again when it changes")
	fs.StringVar(&c.TLSKey, "tls-key", "", "its key (PEM)")
	fs.StringVar(&c.TLSClientCA, "tls-client-ca", "", "demand client certificates of this authority (PEM)")
	fs.BoolVar(&c.HTTPTLS, "http-tls", false, "TLS on --http-addr and --admin-addr too")
	fs.StringVar(&c.PasswordFile, "password-file", "", "file with the password of the user \"default\"; PAWL_PASSWORD does the same")
	fs.BoolVar(&c.Insecure, "insecure", false, "listen beyond this machine though nobody has to log in")
	c.MaxPayload = 1 << 20
	fs.Var(&c.MaxPayload, "max-payload", "largest payload of a job")
	fs.IntVar(&c.MaxClients, "max-clients", 10000, "connections of Redis clients")
	fs.IntVar(&c.MaxHTTPClients, "max-http-clients", 10000, "connections of clients of lmstfy's HTTP API")
	c.MaxBuffers = 256 << 20
	fs.Var(&c.MaxBuffers, "max-buffers", "memory for requests and replies of all Redis clients together")
	c.MaxHTTPBuffers = 256 << 20
	fs.Var(&c.MaxHTTPBuffers, "max-http-buffers", "memory for requests and replies of all clients of lmstfy's HTTP API together")
	fs.IntVar(&c.MaxWaiters, "max-waiters", 10000, "fetches that wait for a job at the same time")
	fs.DurationVar(&c.IdleTimeout, "idle-timeout", 0, "close connections of Redis clients idle this long; 0 is never")
	c.Loop = "auto"
	fs.Var(choice{&c.Loop, []string{"auto", "portable", "poll"}}, "loop",
		"how Redis clients are served: portable is each in a goroutine, poll is many in one (Linux), auto is poll where there is one")
	fs.StringSliceVar(&c.AdminHostNames, "admin-host-names", nil, "names by which browsers may reach --admin-addr, besides localhost and IP addresses")
	fs.IntVar(&c.MetricsQueues, "metrics-queues", 1000, "queues that have metrics of their own; the rest is summed")
	fs.BoolVar(&c.Pprof, "pprof", false, "profiles below /debug/pprof/ of --admin-addr")

	fs.Var(level{&c.LogLevel}, "log-level", "debug, info, warn or error")
	c.LogFormat = "text"
	fs.Var(choice{&c.LogFormat, []string{"text", "json"}}, "log-format", "text or json")
	fs.StringVar(&c.File, "config", "", "file (TOML) with any of these, - as _")
}
