package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Server is one that Start has started, on free ports of this machine with a
// temporary directory for its data.
type Server struct {
	Target    Target
	dir       string
	adminAddr string     // of a pawl
	procs     []*process // in the order in which they were started
}

// process is one program of a server.
type process struct {
	cmd    *exec.Cmd
	ready  func(context.Context) error // nil when it answers
	output output
	done   chan struct{} // closed when the process has ended
}

// output keeps the first bytes of what a process says, for the error.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := 8<<10 - o.b.Len(); room > 0 {
		o.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.b.String())
}

// StartOptions say what to start.
type StartOptions struct {
	Kind string // one of Kinds
	// Dir is below which the data goes; empty is the system's directory for
	// temporary files. It should be on the disk to be measured.
	Dir string
	// Sync is always or never. What is compared must be the same for all.
	Sync string
	// Binary is the path of the server's program; empty is this process's own for
	// pawl, and the usual name on PATH for the others.
	Binary string
	// Flags are further ones for pawl serve.
	Flags []string
}

// starters start each kind of server in s.dir and set s.Target.
var starters = map[string]func(*Server, context.Context, StartOptions) error{
	"pawl":       (*Server).startPawl,
	"pawl-http":  (*Server).startPawl,
	"redis":      (*Server).startRedis,
	"beanstalkd": (*Server).startBeanstalkd,
	"nats":       (*Server).startNATS,
	"lmstfy":     (*Server).startLmstfy,
}

// Kinds are the kinds of servers that can be started and measured.
var Kinds = []string{"pawl", "pawl-http", "redis", "beanstalkd", "nats", "lmstfy"}

// Start starts a server and waits until it answers. The caller stops it.
func Start(ctx context.Context, o StartOptions) (s *Server, err error) {
	if !slices.Contains(Kinds, o.Kind) {
		return nil, fmt.Errorf("cannot start %q, only %s", o.Kind, strings.Join(Kinds, ", "))
	}
	// Somebody may take the free port in the moment before the server does.
	for range 5 {
		if s, err = start(ctx, o); !errors.Is(err, errEnded) {
			break
		}
	}
	return s, err
}

// errEnded is in the error of a server that ended before it answered.
var errEnded = errors.New("ended at once")

func start(ctx context.Context, o StartOptions) (*Server, error) {
	dir, err := os.MkdirTemp(o.Dir, "pawl-bench-*")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if err := starters[o.Kind](s, ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// launch starts one program of the server and waits until ready says nil.
func (s *Server) launch(ctx context.Context, name string, args []string, ready func(context.Context) error) error {
	return s.launchWithin(ctx, 30*time.Second, name, args, ready)
}

// launchWithin is launch for a program that may take longer to be ready.
func (s *Server) launchWithin(ctx context.Context, limit time.Duration, name string, args []string, ready func(context.Context) error) error {
	p := &process{cmd: exec.Command(name, args...), ready: ready, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	s.procs = append(s.procs, p)
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s %w: %s", name, errEnded, p.output.String())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	for _, p := range slices.Backward(s.procs) {
		p.stop()
	}
	return os.RemoveAll(s.dir)
}

func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
	}
}

// binary is the program to start.
func (o StartOptions) binary(usual string) string {
	if o.Binary != "" {
		return o.Binary
	}
	return usual
}

func (s *Server) startPawl(ctx context.Context, o StartOptions) error {
	self, err := os.Executable()
	if err != nil && o.Binary == "" {
		return err
	}
	addrs, err := freeAddrs(3)
	if err != nil {
		return err
	}
	addr, httpAddr, adminAddr := addrs[0], addrs[1], addrs[2]
	s.adminAddr = adminAddr
	args := []string{
		"serve", "--dir", filepath.Join(s.dir, "data"), "--addr", addr, "--http-addr", httpAddr, "--admin-addr", adminAddr,
		"--sync", o.Sync, "--log-level", "warn",
	}
	err = s.launch(ctx, o.binary(self), append(args, o.Flags...), func(ctx context.Context) error { return pawlReady(ctx, addr) })
	if err != nil || o.Kind == "pawl" {
		s.Target = Pawl{Addr: addr}
		return err
	}
	return s.overHTTP(ctx, PawlHTTP{Addr: httpAddr}, adminAddr)
}

// overHTTP makes a token for the target.
func (s *Server) overHTTP(ctx context.Context, target PawlHTTP, adminAddr string) (err error) {
	target.Namespace = "bench"
	target.Token, err = newToken(ctx, adminAddr, target.Namespace)
	s.Target = target
	return err
}

func (s *Server) startRedis(ctx context.Context, o StartOptions) error {
	addr, err := freeAddr()
	if err == nil {
		err = s.launchRedis(ctx, o.binary("redis-server"), addr, o.Sync)
	}
	s.Target = Redis{Addr: addr}
	return err
}

func (s *Server) launchRedis(ctx context.Context, binary, addr, sync string) error {
	if sync == "never" {
		sync = "no"
	}
	args := []string{"--port", portOf(addr), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", sync, "--daemonize", "no"}
	return s.launch(ctx, binary, args, func(ctx context.Context) error { return dialReady(ctx, addr) })
}

func (s *Server) startBeanstalkd(ctx context.Context, o StartOptions) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	args := []string{"-l", "127.0.0.1", "-p", portOf(addr), "-b", s.dir, "-F"}
	if o.Sync == "always" {
		args = append(args[:len(args)-1], "-f", "0")
	}
	s.Target = Beanstalkd{Addr: addr}
	return s.launch(ctx, o.binary("beanstalkd"), args, func(ctx context.Context) error { return dialReady(ctx, addr) })
}

// startNATS needs nats-server 2.10 or later to sync before it answers: older
// ones refuse the setting.
func (s *Server) startNATS(ctx context.Context, o StartOptions) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	sync := ""
	if o.Sync == "always" {
		sync = "sync_interval: always"
	}
	file := filepath.Join(s.dir, "nats.conf")
	text := fmt.Sprintf("listen: %q\njetstream {\n store_dir: %q\n %s\n}\n", addr, s.dir, sync)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	s.Target = NATS{Addr: addr}
	return s.launch(ctx, o.binary("nats-server"), []string{"-c", file}, func(ctx context.Context) error {
		c, err := s.Target.Dial(ctx, "ready")
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

// startLmstfy starts a Redis for it, and lmstfy itself with a pool there.
func (s *Server) startLmstfy(ctx context.Context, o StartOptions) error {
	addrs, err := freeAddrs(3)
	if err != nil {
		return err
	}
	redis, addr, adminAddr := addrs[0], addrs[1], addrs[2]
	if err := s.launchRedis(ctx, "redis-server", redis, o.Sync); err != nil {
		return err
	}
	file := filepath.Join(s.dir, "lmstfy.toml")
	text := fmt.Sprintf(`Host = "127.0.0.1"
Port = %s
AdminHost = "127.0.0.1"
AdminPort = %s
LogDir = %q
LogLevel = "error"
EnableAccessLog = false
[AdminRedis]
Addr = %q
[Pool.default]
Addr = %[4]q
`, portOf(addr), portOf(adminAddr), s.dir, redis)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	err = s.launch(ctx, o.binary("lmstfy-server"), []string{"-c", file}, func(ctx context.Context) error {
		return errors.Join(dialReady(ctx, addr), dialReady(ctx, adminAddr))
	})
	if err != nil {
		return err
	}
	return s.overHTTP(ctx, PawlHTTP{Addr: addr, Server: "lmstfy"}, adminAddr)
}

// freeAddrs are addresses of loopback that were free a moment ago.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at the end, so that they differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func freeAddr() (string, error) {
	addrs, err := freeAddrs(1)
	return strings.Join(addrs, ""), err
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func dialReady(ctx context.Context, addr string) error {
	w, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	return w.Close()
}

// pawlReady asks for something that has to look at jobs.
func pawlReady(ctx context.Context, addr string) error {
	w, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer w.Close()
	w.command([]byte("STATS"), []byte("bench"))
	if err := w.Flush(); err != nil {
		return err
	}
	return w.skip()
}

// newToken makes a token for a namespace by lmstfy's admin API.
func newToken(ctx context.Context, adminAddr, namespace string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+adminAddr+"/token/"+namespace+"?description=bench", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return "", err
	}
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(body, &made); err != nil || made.Token == "" {
		return "", fmt.Errorf("no token from %s: %s %.80s", adminAddr, response.Status, body)
	}
	return made.Token, nil
}
