//go:build linux

package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"pawl/internal/torture/daemon"
)

// patience bounds whatever is waited for; it is no measure.
const patience = 2 * time.Minute

var (
	binary   string // pawl, built once
	port     = daemonPort(1)
	tlsPort  = daemonPort(2)
	certFile string
	keyFile  string
	users    string // configuration file
)

func daemonPort(seed uint64) string {
	addr, err := daemon.Port(seed * 7919)
	if err != nil {
		panic(err)
	}
	return addr
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("PAWL_E2E") != "1" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "pawl-clients")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "pawl")
	if err := daemon.Build(context.Background(), binary, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	certFile, keyFile, users = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "pawl.toml")
	if err := writeCertificate(certFile, keyFile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.WriteFile(users, []byte("[users]\nworker = \"on >s3cret +@all ~*\"\n"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// pawl is one daemon that a test may kill and start again.
type pawl struct {
	t    *testing.T
	dir  string
	addr string
	args []string
	cmd  *exec.Cmd
	said *bytes.Buffer
}

func start(t *testing.T, addr string, args ...string) *pawl {
	t.Helper()
	if os.Getenv("PAWL_E2E") != "1" {
		t.Skip("runs other people's clients against the real daemon: set PAWL_E2E=1")
	}
	p := &pawl{t: t, dir: t.TempDir(), addr: addr, args: args}
	p.run()
	t.Cleanup(func() { p.end(syscall.SIGTERM) })
	return p
}

func (p *pawl) run() {
	p.t.Helper()
	p.said = new(bytes.Buffer)
	args := append([]string{"serve", "--dir", p.dir, "--addr", p.addr, "--http-addr", "", "--admin-addr", "", "--config", users}, p.args...)
	p.cmd = exec.Command(binary, args...)
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for !p.answers() {
		if time.Now().After(deadline) {
			p.t.Fatalf("the daemon does not answer:\n%s", p.said)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// answers says whether the daemon has loaded: AUTH is answered before.
func (p *pawl) answers() bool {
	var conn net.Conn
	var err error
	if len(p.args) > 0 {
		conn, err = tls.Dial("tcp", p.addr, &tls.Config{InsecureSkipVerify: true})
	} else {
		conn, err = net.Dial("tcp", p.addr)
	}
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(conn, "AUTH worker s3cret\r\nMOXY.STATS probe\r\n")
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || line != "+OK\r\n" {
		return false
	}
	line, err := r.ReadString('\n')
	return err == nil && strings.HasPrefix(line, "*")
}

func (p *pawl) end(sig os.Signal) {
	_ = p.cmd.Process.Signal(sig)
	_ = p.cmd.Wait()
}

// play runs a client's program: it says "restart" when the daemon is to be
// killed and started again, and "done" with its version at its end. Whatever
// it writes to standard error is a warning, and a failure.
func play(t *testing.T, name string, args ...string) {
	t.Helper()
	p := start(t, port)
	start(t, tlsPort, "--tls-cert", certFile, "--tls-key", keyFile)
	_, number, _ := net.SplitHostPort(port)
	_, tlsNumber, _ := net.SplitHostPort(tlsPort)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, append(args, number, tlsNumber, certFile)...)
	var warnings bytes.Buffer
	cmd.Stderr = &warnings
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "restart":
			p.end(syscall.SIGKILL)
			p.run()
			if _, err := io.WriteString(in, "go\n"); err != nil {
				t.Fatal(err)
			}
		case "done":
			done = rest
		default:
			t.Errorf("the client says %q", lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil || done == "" || warnings.Len() > 0 {
		t.Errorf("got %v, version %q, warnings:\n%s\nthe daemon's log:\n%s", err, done, warnings.String(), p.said)
	}
	t.Logf("version %s", done)
}

// need is the path of a program, or the reason to skip.
func need(t *testing.T, name, pack string) string {
	t.Helper()
	if os.Getenv("PAWL_E2E") != "1" {
		t.Skip("runs other people's clients against the real daemon: set PAWL_E2E=1")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing, install %s", name, pack)
	}
	return path
}

func TestRedisPy(t *testing.T) {
	// Debian's python, which has Debian's module.
	python := need(t, "/usr/bin/python3", "python3-redis")
	play(t, python, "-W", "error", "testdata/redispy.py")
}

func TestIoredis(t *testing.T) {
	play(t, need(t, "node", "nodejs"), filepath.Join(modules(t), "ioredis.js"))
}

func TestNodeRedis(t *testing.T) {
	play(t, need(t, "node", "nodejs"), filepath.Join(modules(t), "noderedis.js"))
}

// modules is a copy of testdata/node with the clients installed below it.
// PAWL_NODE_MODULES names a directory that has them already.
func modules(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("PAWL_NODE_MODULES"); dir != "" {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS("testdata/node")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(dir, filepath.Join(copied, "node_modules")); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	t.Fatal("set PAWL_NODE_MODULES to the node_modules of: npm install in internal/clients/testdata/node")
	return ""
}

func TestHiredis(t *testing.T) {
	cc := need(t, "cc", "gcc and libhiredis-dev")
	program := filepath.Join(t.TempDir(), "hiredis")
	if out, err := exec.Command(cc, "-Wall", "-Werror", "-o", program, "testdata/hiredis.c", "-lhiredis").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	play(t, program)
}

func TestRedisCLI(t *testing.T) {
	cli := need(t, "redis-cli", "redis-tools")
	start(t, port)
	_, number, _ := net.SplitHostPort(port)
	ask := func(input string, args ...string) string {
		t.Helper()
		cmd := exec.Command(cli, append([]string{"-p", number, "--user", "worker"}, args...)...)
		cmd.Env = append(os.Environ(), "REDISCLI_AUTH=s3cret")
		cmd.Stdin = strings.NewReader(input)
		var warnings bytes.Buffer
		cmd.Stderr = &warnings
		out, err := cmd.Output()
		if err != nil || warnings.Len() > 0 {
			t.Fatalf("redis-cli %q: %v\n%s%s", args, err, out, warnings.String())
		}
		return strings.TrimSpace(string(out))
	}
	for _, resp := range []string{"-2", "-3"} {
		if got := ask("", resp, "ENQUEUE", "cli", "hello"); !strings.HasPrefix(got, "task_id\n") {
			t.Errorf("%s ENQUEUE: got %q", resp, got)
		}
		got := strings.Split(ask("", resp, "FETCH", "cli", "60000"), "\n")
		if len(got) != 6 || got[5] != "hello" {
			t.Fatalf("%s FETCH: got %q", resp, got)
		}
		if got := ask("", resp, "ACK", got[1]); got != "OK" {
			t.Errorf("%s ACK: got %q", resp, got)
		}
	}
	// From a terminal's input: HELLO, COMMAND DOCS and INFO come before.
	if got := ask("PING\nENQUEUE cli x\nINFO server\n"); !strings.HasPrefix(got, "PONG\ntask_id\n") {
		t.Errorf("lines: got %q", got)
	}
	var mass strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&mass, "*3\r\n$7\r\nENQUEUE\r\n$4\r\nmass\r\n$%d\r\n%d\r\n", len(fmt.Sprint(i)), i)
	}
	if got := ask(mass.String(), "--pipe"); !strings.Contains(got, "errors: 0, replies: 10000") {
		t.Errorf("--pipe: got %q", got)
	}
	if got := ask("", "MOXY.STATS", "mass"); !strings.HasPrefix(got, "ready\n10000\n") {
		t.Errorf("STATS: got %q", got)
	}
}

func TestRedisBenchmark(t *testing.T) {
	tool := need(t, "redis-benchmark", "redis-tools")
	start(t, port)
	_, number, _ := net.SplitHostPort(port)
	for _, args := range [][]string{
		{"-t", "ping"},
		{"-P", "16", "ENQUEUE", "bench", "__rand_int__"},
		{"FETCH", "bench", "60000"},
	} {
		args = append([]string{"-p", number, "--user", "worker", "-a", "s3cret", "-n", "5000", "-c", "20", "-q"}, args...)
		out, err := exec.Command(tool, args...).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("requests per second")) || bytes.Contains(out, []byte("rror")) {
			t.Errorf("redis-benchmark %q: %v\n%s", args, err, out)
		}
	}
}

func TestGoRedis(t *testing.T) {
	p := start(t, port)
	start(t, tlsPort, "--tls-cert", certFile, "--tls-key", keyFile)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := redis.NewClient(&redis.Options{Addr: port, Username: "worker", Password: "s3cret", ClientName: "go"})
	defer r.Close()
	job, err := r.Do(ctx, "ENQUEUE", "go", "hello").StringSlice()
	if err != nil || len(job) != 2 {
		t.Fatalf("ENQUEUE: got %q, %v", job, err)
	}
	got, err := r.Do(ctx, "FETCH", "go", 60000).StringSlice()
	if err != nil || len(got) != 6 || got[5] != "hello" || got[3] != job[1] {
		t.Fatalf("FETCH: got %q, %v", got, err)
	}
	if err := r.Do(ctx, "ACK", got[1]).Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(ctx, "FETCH", "go", 60000).Err(); err != redis.Nil {
		t.Errorf("FETCH of nothing: got %v, want redis.Nil", err)
	}
	pipe := r.Pipeline()
	for i := range 10000 {
		pipe.Do(ctx, "ENQUEUE", "go-many", i)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	tx := r.TxPipeline()
	tx.Do(ctx, "ENQUEUE", "go-tx", "a")
	tx.Do(ctx, "ENQUEUE", "go-tx", "b")
	if _, err := tx.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	secure := redis.NewClient(&redis.Options{Addr: tlsPort, Username: "worker", Password: "s3cret", TLSConfig: &tls.Config{RootCAs: pool}})
	defer secure.Close()
	if err := secure.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
	p.end(syscall.SIGKILL)
	p.run()
	stats, err := r.Do(ctx, "MOXY.STATS", "go-many").Slice()
	if err != nil || len(stats) != 10 || stats[1] != int64(10000) {
		t.Errorf("after a restart: got %v, %v", stats, err)
	}
}

// writeCertificate makes an authority that is its own server.
func writeCertificate(certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pawl test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600)
}
