package config

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"time"
)

// The smallest values that a daemon can work with.
const (
	minGeneration = 16 << 10
	minSnapshot   = 64 << 10
	maxPayload    = 64 << 20

	minHTTPBuffers = 16 << 20
)

// validate says everything that is wrong with values that are well formed each
// by itself.
func (c *Config) validate() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Dir == "" && !c.Ephemeral {
		bad("dir: must not be empty")
	}
	if c.Ephemeral && c.Existing {
		bad("existing: makes no sense with ephemeral")
	}
	if c.GenerationSize < minGeneration {
		bad("generation-size: %v is below %v", c.GenerationSize, Bytes(minGeneration))
	}
	if c.SnapshotBytes < minSnapshot {
		bad("snapshot-bytes: %v is below %v", c.SnapshotBytes, Bytes(minSnapshot))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"snapshot-interval", c.SnapshotInterval}, {"keep", c.Keep}, {"idle-timeout", c.IdleTimeout}} {
		if d.value < 0 {
			bad("%s: must not be negative", d.name)
		}
	}
	if c.MaxPayload < 1 || c.MaxPayload > maxPayload {
		bad("max-payload: want 1B to %v", Bytes(maxPayload))
	}
	if c.MaxClients < 1 {
		bad("max-clients: must be at least 1")
	}
	if c.MaxHTTPClients < 1 {
		bad("max-http-clients: must be at least 1")
	}
	// What 100 jobs of a consume take, or one that is as large as may be.
	if least := max(minHTTPBuffers, 3*c.MaxPayload); c.MaxHTTPBuffers < least {
		bad("max-http-buffers: %v is below %v, which is 16MiB or three times max-payload", c.MaxHTTPBuffers, least)
	}
	if c.Loop == "poll" && runtime.GOOS != "linux" {
		bad("loop: poll is for Linux")
	}
	if c.MaxWaiters < 1 {
		bad("max-waiters: must be at least 1")
	}
	if c.MetricsQueues < 1 {
		bad("metrics-queues: must be at least 1")
	}
	if c.Addr == "" && c.Unix == "" && c.HTTPAddr == "" {
		bad("addr: nobody could reach a daemon without addr, unix and http-addr")
	}
	for _, a := range []struct{ name, value string }{{"addr", c.Addr}, {"http-addr", c.HTTPAddr}, {"admin-addr", c.AdminAddr}} {
		if a.value == "" || (a.name == "addr" && IsSocket(a.value)) {
			continue
		}
		if _, _, err := net.SplitHostPort(a.value); err != nil {
			bad("%s: %q is no host:port", a.name, a.value)
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		bad("tls-cert: needs tls-key, and the other way round")
	}
	if c.TLSCert == "" && (c.HTTPTLS || c.TLSClientCA != "") {
		bad("tls-cert: http-tls and tls-client-ca need a certificate")
	}
	if !c.Insecure {
		if c.Addr != "" && !IsSocket(c.Addr) && !Loopback(c.Addr) && len(c.Users) == 0 && c.Password == "" {
			bad("addr: %s can be reached from other machines, but nobody has to log in: name users in the file, set a password, or say --insecure", c.Addr)
		}
		// An lmstfy file may bring accounts; the daemon looks again.
		if c.AdminAddr != "" && !Loopback(c.AdminAddr) && len(c.Accounts) == 0 && c.LmstfyFile == "" {
			bad("admin-addr: %s can be reached from other machines, but nobody has to log in: name accounts in the file, or say --insecure", c.AdminAddr)
		}
	}
	return errs
}

// IsSocket says whether an address is the path of a Unix socket: it has a slash.
func IsSocket(addr string) bool { return strings.Contains(addr, "/") }

// Loopback says whether host:port can be reached from this machine only.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
