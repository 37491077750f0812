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

	mu      sync.Mutex
	config  *tls.Config // guarded by mu
	changed time.Time   // guarded by mu: the newest of the files when they were read
	looked  time.Time   // guarded by mu
}

// lookEvery bounds how often a handshake looks at the files.
const lookEvery = time.Second

// newTLSFiles reads the files; nil without a certificate.
func newTLSFiles(c *config.Config, log *slog.Logger) (*tlsFiles, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	t := &tlsFiles{cert: c.TLSCert, key: c.TLSKey, clientCA: c.TLSClientCA, log: log}
	changed, err := t.newest()
	if err != nil {
		return nil, err
	}
	if t.config, err = t.read(); err != nil {
		return nil, err
	}
	t.changed = changed
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
	changed, err := t.newest()
	if err != nil || !changed.After(t.changed) {
		return err
	}
	t.changed = changed // also when they are bad: say so once
	c, err := t.read()
	if err != nil {
		return err
	}
	t.config = c
	t.log.Info("read the new TLS certificate", "file", t.cert)
	return nil
}

func (t *tlsFiles) newest() (newest time.Time, err error) {
	for _, name := range []string{t.cert, t.key, t.clientCA} {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return newest, err
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest, nil
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
