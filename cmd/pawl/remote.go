package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

// remote is how a subcommand reaches a daemon. Passwords come from the
// environment or from a file, never from the command line, where ps shows them.
type remote struct {
	e            *env
	fs           *pflag.FlagSet
	addr         string
	user         string
	passwordFile string
	secure       bool
	ca           string
	timeout      time.Duration
	asJSON       bool
}

// addRemote adds the flags every subcommand over a connection has.
func addRemote(e *env, fs *pflag.FlagSet) *remote {
	r := &remote{e: e, fs: fs}
	r.addFlags()
	return r
}

func (r *remote) addFlags() {
	fs := r.fs
	fs.StringVar(&r.addr, "addr", client.DefaultAddr, "the daemon: host:port, or the path of its socket (PAWL_ADDR)")
	fs.StringVar(&r.user, "user", "default", "log in as (PAWL_USER); the password is taken from PAWL_PASSWORD")
	fs.StringVar(&r.passwordFile, "password-file", "", "or from this file (PAWL_PASSWORD_FILE)")
	fs.BoolVar(&r.secure, "tls", false, "connect with TLS (PAWL_TLS)")
	fs.StringVar(&r.ca, "tls-ca", "", "trust this authority (PEM) besides the system's (PAWL_TLS_CA)")
	fs.DurationVar(&r.timeout, "timeout", 30*time.Second, "for one command, beyond what it waits itself")
}

// addJSON adds --json.
func (r *remote) addJSON() { r.fs.BoolVar(&r.asJSON, "json", false, jsonUsage) }

// options are a client's options as flags and environment say.
func (r *remote) options() (client.Options, error) {
	for _, f := range []string{"addr", "user", "password-file", "tls", "tls-ca"} {
		variable := "PAWL_" + strings.ToUpper(strings.ReplaceAll(f, "-", "_"))
		if text, ok := r.e.lookup(variable); ok && !r.fs.Changed(f) {
			if err := r.fs.Set(f, text); err != nil {
				return client.Options{}, usagef("%s: %w", variable, err)
			}
		}
	}
	o := client.Options{Addr: r.addr, User: r.user, Timeout: r.timeout, Name: "pawl-cli"}
	o.Password, _ = r.e.lookup("PAWL_PASSWORD")
	if r.passwordFile != "" {
		data, err := os.ReadFile(r.passwordFile)
		if err != nil {
			return o, withExit(exitConfig, err)
		}
		o.Password = strings.TrimRight(string(data), "\r\n")
	}
	if r.secure || r.ca != "" {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if r.ca != "" {
		pem, err := os.ReadFile(r.ca)
		if err != nil {
			return o, withExit(exitConfig, err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return o, withExit(exitConfig, fmt.Errorf("%s holds no certificate", r.ca))
		}
		o.TLS.RootCAs = pool
	}
	return o, nil
}

// client makes the client; the caller closes it.
func (r *remote) client() (*client.Client, error) {
	o, err := r.options()
	if err != nil {
		return nil, err
	}
	return client.New(o), nil
}

// remoteExit gives the error of a call its exit code: no daemon 69, no right
// 77, anything else 1.
func remoteExit(err error) error {
	var connect *client.ConnectError
	var refused *client.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &connect):
		return withExit(exitNoServer, fmt.Errorf("%w; is the daemon running (pawl serve), is --addr right?", err))
	case errors.As(err, &refused):
		switch refused.Word {
		case "NOAUTH", "WRONGPASS", "NOPERM":
			return withExit(exitDenied, err)
		}
	}
	return err
}

// millisText is a duration as the commands take it.
func millisText(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
