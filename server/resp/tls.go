package resp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// TLSFiles are the PEM files of a TLS listener.
type TLSFiles struct {
	Cert, Key string
	// ClientCA, when set, demands a certificate of every client that this
	// authority has signed.
	ClientCA string
}

// LoadTLS reads the files and gives a configuration for tls.NewListener: TLS
// 1.2 and up. When the files change they are read again at the next
// handshake, at most once a second, so certificates are renewed without a
// restart; files that cannot be read then leave the old ones in use, and
// complain is told.
func LoadTLS(files TLSFiles, complain func(error)) (*tls.Config, error) {
	l := &tlsLoader{files: files, complain: complain}
	if err := l.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return l.current(time.Now()), nil
		},
	}, nil
}

type tlsLoader struct {
	files    TLSFiles
	complain func(error)

	mu      sync.Mutex
	config  *tls.Config // guarded by mu, as all below
	stamp   string      // of the files config was made from
	checked time.Time
}

// current is the configuration of the files as they are.
func (l *tlsLoader) current(now time.Time) *tls.Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.checked) >= time.Second {
		l.checked = now
		if stamp := l.files.stamp(); stamp != l.stamp {
			if err := l.loadLocked(); err != nil && l.complain != nil {
				l.complain(err)
			}
		}
	}
	return l.config
}

func (l *tlsLoader) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loadLocked()
}

func (l *tlsLoader) loadLocked() error {
	stamp := l.files.stamp() // first: a change while reading is seen again
	cert, err := tls.LoadX509KeyPair(l.files.Cert, l.files.Key)
	if err != nil {
		return fmt.Errorf("load certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if l.files.ClientCA != "" {
		pem, err := os.ReadFile(l.files.ClientCA)
		if err != nil {
			return fmt.Errorf("load client authority: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("load client authority: %w", errors.New("no certificate in "+l.files.ClientCA))
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	l.config, l.stamp = config, stamp
	return nil
}

// stamp changes when one of the files does.
func (f TLSFiles) stamp() string {
	stamp := ""
	for _, name := range []string{f.Cert, f.Key, f.ClientCA} {
		if info, err := os.Stat(name); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), ";")
		}
	}
	return stamp
}
