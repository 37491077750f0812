package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/client"
	"pawl/config"
	"pawl/internal/cert"
)

// awaited is how long anything may take that has to happen.
const awaited = 30 * time.Second

// output is a buffer that a daemon writes while a test reads.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// wait waits until the output matches and returns the first group.
func (o *output) wait(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if m := re.FindStringSubmatch(o.String()); m != nil {
			return m[len(m)-1]
		}
		if time.Since(begun) > awaited {
			t.Fatalf("waited %v for %s in\n%s", awaited, pattern, o)
		}
	}
}

// served is pawl serve in this process.
type served struct {
	sock   string
	stderr *output
	stop   context.CancelFunc
	code   chan int
}

// serveIn starts pawl serve on a Unix socket below dir; args come behind.
func serveIn(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	s := &served{sock: filepath.Join(dir, "s"), stderr: &output{}, code: make(chan int, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	e := &env{stdin: strings.NewReader(""), stdout: io.Discard, stderr: s.stderr, lookup: func(string) (string, bool) { return "", false }}
	args = append([]string{"serve", "--dir", filepath.Join(dir, "data"), "--unix", s.sock, "--addr=", "--http-addr=", "--admin-addr="}, args...)
	ended := make(chan struct{})
	go func() {
		s.code <- run(ctx, e, args)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

func (s *served) ready(t *testing.T) *served {
	t.Helper()
	s.stderr.wait(t, "msg=serving")
	return s
}

// A daemon removes a backup that it was killed in, and nothing else.
func TestKilledInABackup(t *testing.T) {
	dir := t.TempDir()
	backups := filepath.Join(dir, "backups")
	for _, name := range []string{"monday/log", "tuesday.copying/log/0000000001", "photos.copying/cat"} {
		if err := os.MkdirAll(filepath.Join(backups, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := serveIn(t, dir, "--backup-dir", backups).ready(t)
	s.stderr.wait(t, "removed a backup that was not finished.*(tuesday.copying)")
	left, err := filepath.Glob(filepath.Join(backups, "*"))
	if want := []string{filepath.Join(backups, "monday"), filepath.Join(backups, "photos.copying")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("got %q, %v, want %q", left, err, want)
	}
	s.end(t)
}

func (s *served) end(t *testing.T) {
	t.Helper()
	s.stop()
	if code := s.exit(t); code != exitOK {
		t.Errorf("exit code %d, want 0:\n%s", code, s.stderr)
	}
}

func (s *served) exit(t *testing.T) int {
	t.Helper()
	select {
	case code := <-s.code:
		return code
	case <-time.After(awaited):
		t.Fatalf("the daemon does not end:\n%s", s.stderr)
		panic("not reached")
	}
}

// The service manager hears when the daemon serves and when it stops.
func TestServiceManagerIsTold(t *testing.T) {
	dir := t.TempDir()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	manager.SetReadDeadline(time.Now().Add(awaited))
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "notify"))
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	hear := func(want string) {
		t.Helper()
		for {
			b := make([]byte, 1024)
			n, err := manager.Read(b)
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if strings.Contains(string(b[:n]), want) {
				return
			}
		}
	}
	s := serveIn(t, dir)
	hear("READY=1")
	hear("WATCHDOG=1")
	hear("WATCHDOG=1")
	s.stop()
	hear("STOPPING=1")
	s.end(t)
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	s := serveIn(t, dir, "--addr", l.Addr().String())
	if code := s.exit(t); code != exitConfig {
		t.Errorf("exit code %d, want %d", code, exitConfig)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("it made a data directory before it knew that it can listen")
	}
}

func TestNoStoreCanBeMade(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := serveIn(t, dir).exit(t); code != exitCreate {
		t.Errorf("exit code %d, want %d", code, exitCreate)
	}
}

// writeCertificate makes a self-signed one for 127.0.0.1 with this serial.
func writeCertificate(t *testing.T, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := cert.Write(certFile, keyFile, serial); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, 1)
	s := serveIn(t, dir, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--http-tls", "--tls-cert", cert, "--tls-key", key).ready(t)
	addr := s.stderr.wait(t, `for="redis clients" addr=(127[^\s]+)`)
	admin := s.stderr.wait(t, `for=operators addr=(127[^\s]+)`)

	// The command line trusts the authority it is told.
	e, stdout, stderr := testEnv(map[string]string{"PAWL_ADDR": addr, "PAWL_TLS_CA": cert})
	if code := run(t.Context(), e, []string{"ping"}); code != exitOK || stdout.String() != "PONG\n" {
		t.Errorf("ping over TLS: exit code %d, %q %q", code, stdout, stderr)
	}
	e, _, stderr = testEnv(map[string]string{"PAWL_ADDR": addr, "PAWL_TLS": "true"})
	if code := run(t.Context(), e, []string{"ping"}); code != exitNoServer || !strings.Contains(stderr.String(), "certificate") {
		t.Errorf("ping without the authority: exit code %d, %q", code, stderr)
	}
	if c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 is accepted")
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := web.Get("https://" + admin + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	web.CloseIdleConnections()

	// Another certificate is served without a restart, also one with an older
	// date, as those have that are copied from elsewhere.
	for i, date := range []time.Time{time.Now().Add(time.Minute), time.Now().Add(-time.Hour)} {
		serial := int64(2 + i)
		writeCertificate(t, dir, serial)
		for _, name := range []string{cert, key} {
			if err := os.Chtimes(name, date, date); err != nil {
				t.Fatal(err)
			}
		}
		for begun := time.Now(); serialOf(t, addr) != serial; time.Sleep(50 * time.Millisecond) {
			if time.Since(begun) > awaited {
				t.Fatalf("certificate %d is not served", serial)
			}
		}
	}

	// A bad one leaves the old in use.
	if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lookEvery)
	if got := serialOf(t, addr); got != 3 {
		t.Errorf("with a bad file certificate %d is served, want 3", got)
	}
	s.stderr.wait(t, `cannot read the (new) TLS certificate`)
	s.end(t)
}

// serialOf is the serial number of the certificate that is served at addr.
func serialOf(t *testing.T, addr string) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestTLSClientAuthority(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, 1)
	nosuch := filepath.Join(dir, "nosuch")
	for name, files := range map[string]config.Config{
		"an authority without certificates": {TLSCert: cert, TLSKey: key, TLSClientCA: key},
		"an authority that does not exist":  {TLSCert: cert, TLSKey: key, TLSClientCA: nosuch},
		"a key that does not exist":         {TLSCert: cert, TLSKey: nosuch},
		"a certificate that does not exist": {TLSCert: nosuch, TLSKey: key},
		"a certificate that is the key's":   {TLSCert: key, TLSKey: key},
	} {
		if _, err := newTLSFiles(&files, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	with, err := newTLSFiles(&config.Config{TLSCert: cert, TLSKey: key, TLSClientCA: cert}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if c := with.current(); c.ClientAuth != tls.RequireAndVerifyClientCert || c.ClientCAs == nil {
		t.Errorf("clients are not asked for a certificate: %+v", c)
	}
}

// A blocked worker and an idle one do not hold up a stop.
func TestStopWithClients(t *testing.T) {
	s := serveIn(t, t.TempDir()).ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	fetched := make(chan error, 1)
	go func() {
		_, err := c.Fetch(context.Background(), client.FetchOptions{Queues: []string{"q"}, Wait: time.Hour})
		fetched <- err
	}()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		v, err := c.Do(t.Context(), "INFO")
		if err == nil && infoNumber(v.Text, "blocked_clients") == 1 {
			break
		}
		if time.Since(begun) > awaited {
			t.Fatalf("nobody waits: %v\n%s", err, v.Text)
		}
	}
	s.end(t)
	select {
	case <-fetched: // an error, or no job: both tell the worker to come again
	case <-time.After(awaited):
		t.Error("the blocked fetch was not answered")
	}
}

// A token of the HTTP API logs in over RESP, and its deletion cuts that off.
func TestDeletedTokenIsCutOff(t *testing.T) {
	s := serveIn(t, t.TempDir(), "--admin-addr", "127.0.0.1:0").ready(t)
	admin := "http://" + s.stderr.wait(t, `for=operators addr=(127[^\s]+)`)
	call := func(method, path string, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != want {
			t.Fatalf("%s %s: got %d, want %d", method, path, reply.StatusCode, want)
		}
	}
	call("POST", "/token/mail?description=x&token=01F4CKPFY8XYVH6WVEQB3747CW", http.StatusCreated)
	conn, err := net.Dial("unix", s.sock)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(awaited)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "AUTH mail 01F4CKPFY8XYVH6WVEQB3747CW\r\nFETCH mail/q 60000 WAIT 3600000\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); line != "+OK\r\n" {
		t.Fatalf("AUTH: got %q, %v", line, err)
	}
	call("DELETE", "/token/mail/01F4CKPFY8XYVH6WVEQB3747CW", http.StatusNoContent)
	if rest, err := io.ReadAll(r); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deletion: got %q, %v, want the end", rest, err)
	}
	s.end(t)
}

func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 1 << 20: 800, 4 << 20: 800, 64 << 20: 50, 320 << 20: 10, 640 << 20: 5, 10 << 30: 4} {
		if got := gcPercent(live, false); got != want {
			t.Errorf("with %d MiB live: got %d %%, want %d", live>>20, got, want)
		}
		if got, want := gcPercent(live, true), max(want, 100); got != want {
			t.Errorf("with %d MiB live during a start: got %d %%, want %d", live>>20, got, want)
		}
	}
}

// What is free is given back when it is much, beside what is live, for a while, and
// then not again before as long.
func TestSurplus(t *testing.T) {
	const mib = 1 << 20
	var s surplus
	now := time.Unix(0, 0)
	for i, step := range []struct {
		after      time.Duration
		live, free uint64
		want       bool
	}{
		{0, 10 * mib, 64 * mib, false}, // garbage of every day
		{time.Hour, 10 * mib, 64 * mib, false},
		{0, 10 * mib, 65 * mib, false}, // a backlog has gone
		{19 * time.Second, 10 * mib, 500 * mib, false},
		{time.Second, 10 * mib, 500 * mib, true},
		{time.Second, 10 * mib, 500 * mib, false}, // what came up meanwhile
		{19 * time.Second, 10 * mib, 500 * mib, false},
		{time.Second, 10 * mib, 20 * mib, false}, // it is used again
		{time.Second, 10 * mib, 500 * mib, false},
		{19 * time.Second, 10 * mib, 500 * mib, false},
		{time.Second, 10 * mib, 500 * mib, true},
		{time.Hour, 1600 * mib, 100 * mib, false}, // little beside a large index
		{time.Hour, 1600 * mib, 100 * mib, false},
		{0, 1600 * mib, 101 * mib, false},
		{time.Hour, 1600 * mib, 101 * mib, true},
	} {
		now = now.Add(step.after)
		if got := s.lasts(now, step.live, step.free); got != step.want {
			t.Errorf("step %d, %d MiB live and %d free: got %t, want %t", i, step.live/mib, step.free/mib, got, step.want)
		}
	}
}
