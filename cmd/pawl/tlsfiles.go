package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"pawl/config"
)

// tlsFiles serves certificates from files and reads them again when they have
// changed, so that a renewal needs no restart.
type tlsFiles struct {
	cert, key, clientCA string
	log                 *slog.Logger

	mu     sync.Mutex
	config *tls.Config // guarded by mu, as all below
	stamp  string      // of the files when they were read last
	looked time.Time
}

// lookEvery bounds how often a handshake looks at the files.
const lookEvery = time.Second

// newTLSFiles reads the files; nil without a certificate.
func newTLSFiles(c *config.Config, log *slog.Logger) (*tlsFiles, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	t := &tlsFiles{cert: c.TLSCert, key: c.TLSKey, clientCA: c.TLSClientCA, log: log}
	t.stamp = t.stampNow() // before: a change while they are read is seen later
	var err error
	if t.config, err = t.read(); err != nil {
		return nil, err
	}
	return t, nil
}

// server is the configuration for listeners. protocols are those of ALPN.
func (t *tlsFiles) server(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c := t.current().Clone()
			c.NextProtos = protocols
			return c, nil
		},
	}
}

func (t *tlsFiles) current() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.looked) >= lookEvery {
		t.looked = now
		if err := t.refresh(); err != nil {
			t.log.Error("cannot read the new TLS certificate, going on with the old one", "error", err)
		}
	}
	return t.config
}

// refresh is called with mu held.
func (t *tlsFiles) refresh() error {
	stamp := t.stampNow()
	if stamp == t.stamp {
		return nil
	}
	t.stamp = stamp // also when they are bad: say so once
	c, err := t.read()
	if err != nil {
		return err
	}
	t.config = c
	t.log.Info("read the new TLS certificate", "file", t.cert)
	return nil
}

// stampNow is another text when one of the files is another one, or is gone. A
// later date is not asked for: a file that is copied or linked may bring an
// earlier one.
func (t *tlsFiles) stampNow() string {
	stamp := ""
	for _, name := range []string{t.cert, t.key, t.clientCA} {
		if info, err := os.Stat(name); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
		}
		stamp += ";"
	}
	return stamp
}

func (t *tlsFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", t.cert, t.key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if t.clientCA != "" {
		pem, err := os.ReadFile(t.clientCA)
		if err != nil {
			return nil, err
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("no certificate in " + t.clientCA)
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}
