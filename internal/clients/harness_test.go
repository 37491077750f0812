//go:build linux

package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/internal/cert"
	"pawl/internal/child"
	"pawl/internal/torture/daemon"
)

// patience bounds whatever is waited for; it is no measure.
const patience = 2 * time.Minute

// needsE2E is why these tests are skipped by default.
const needsE2E = "runs other people's clients against the real daemon: set PAWL_E2E=1"

var (
	binary   string // pawl, built once
	port     = daemonPort(1)
	tlsPort  = daemonPort(2)
	certFile string
	keyFile  string
	// authority is the certificate of who signed certFile.
	authority string
	users     string // configuration file
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
	authority = filepath.Join(dir, "authority.pem")
	if err := cert.Issue(authority, certFile, keyFile); err != nil {
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
	proc *child.Process
	said *bytes.Buffer
}

// start starts a daemon where the user worker must log in.
func start(t *testing.T, addr string, args ...string) *pawl {
	t.Helper()
	return startWith(t, addr, append([]string{"--config", users}, args...)...)
}

// startWith starts a daemon with these arguments.
func startWith(t *testing.T, addr string, args ...string) *pawl {
	t.Helper()
	if os.Getenv("PAWL_E2E") != "1" {
		t.Skip(needsE2E)
	}
	p := &pawl{t: t, dir: t.TempDir(), addr: addr, args: args}
	p.run()
	t.Cleanup(func() { p.proc.End(syscall.SIGTERM) })
	return p
}

// startTLS starts a daemon that speaks TLS.
func startTLS(t *testing.T) *pawl {
	t.Helper()
	return start(t, tlsPort, "--tls-cert", certFile, "--tls-key", keyFile)
}

func (p *pawl) run() {
	p.t.Helper()
	p.said = new(bytes.Buffer)
	args := append([]string{"serve", "--dir", p.dir, "--addr", p.addr, "--http-addr", "", "--admin-addr", ""}, p.args...)
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = p.said, p.said
	var err error
	if p.proc, err = child.Start(cmd); err != nil {
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

// answers says whether the daemon has loaded: before, it answers LOADING.
func (p *pawl) answers() bool {
	var conn net.Conn
	var err error
	if p.addr == tlsPort {
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
	if _, err := r.ReadString('\n'); err != nil { // not OK where there are no users
		return false
	}
	line, err := r.ReadString('\n')
	return err == nil && strings.HasPrefix(line, "*")
}

// restart kills the daemon and starts it again.
func (p *pawl) restart() {
	p.t.Helper()
	p.proc.End(syscall.SIGKILL)
	p.run()
}

// play runs a client's program and compares what it passed with the row of
// docs/clients.md. The program says "step" and a word for each step, "restart"
// when the daemon is to be killed and started again, and "done" with its
// version at its end. Whatever it writes to standard error is a warning, and a
// failure.
func play(t *testing.T, client, name string, args ...string) {
	t.Helper()
	p := start(t, port)
	startTLS(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, append(args, number(port), number(tlsPort), authority)...)
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
	version := ""
	var steps []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "step":
			steps = append(steps, rest)
		case "restart":
			p.restart()
			if _, err := io.WriteString(in, "go\n"); err != nil {
				t.Fatal(err)
			}
		case "done":
			version = rest
		default:
			t.Errorf("the client says %q", lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil || version == "" || warnings.Len() > 0 {
		t.Errorf("got %v, version %q, warnings:\n%s\nthe daemon's log:\n%s", err, version, warnings.String(), p.said)
	}
	t.Logf("version %s", version)
	checkRow(t, client, steps)
}

// number is the port of an address.
func number(addr string) string {
	_, n, _ := net.SplitHostPort(addr)
	return n
}

// need is the path of a program, or the reason to skip.
func need(t *testing.T, name, pack string) string {
	t.Helper()
	if os.Getenv("PAWL_E2E") != "1" {
		t.Skip(needsE2E)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing, install %s", name, pack)
	}
	return path
}
