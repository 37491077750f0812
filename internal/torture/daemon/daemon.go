//go:build linux

// Package daemon runs the real pawl binary for the proofs: it builds it, starts
// it, learns when it answers, and ends it by every means a process can end.
// Each start, death and signal goes into the history that the checker judges.
package daemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pawl/internal/child"
	"pawl/internal/torture/history"
	"pawl/internal/torture/tracee"
)

// Patience bounds every wait for a daemon. It is generous: a starved machine
// is no fault of the daemon's.
const Patience = 60 * time.Second

// Build compiles the daemon of the module that the working directory is in to
// the file binary. Overlay, if not empty, is a file for `go build -overlay`
// that lays other sources over the module's.
func Build(ctx context.Context, binary, overlay string) error {
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	args := []string{"build", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/pawl")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the daemon: %w\n%s", err, out)
	}
	return nil
}

// Root is the directory of the module that the working directory is in.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("find the module: not inside one")
	}
	return filepath.Dir(mod), nil
}

// Options say how a daemon is run. Binary, Dir and Addr are needed.
type Options struct {
	Binary string   // of pawl
	Dir    string   // data directory
	Addr   string   // RESP, host:port
	Args   []string // further flags of `pawl serve`
	// Wrap, if not empty, is a command that runs the daemon as its child and
	// ends when that ends: strace. Signals go to the child.
	Wrap []string
	// Trace, if not nil, runs the daemon under the tracer of package tracee.
	// Its outputs are set here.
	Trace *tracee.Options
}

// Supervisor runs one daemon after the other on one directory and address. Its
// methods may be called by one goroutine; Incarnation and Addr by any.
type Supervisor struct {
	opt         Options
	rec         *history.Recorder
	incarnation atomic.Int64
	running     *process
}

// New makes a supervisor that notes what happens in rec.
func New(opt Options, rec *history.Recorder) *Supervisor {
	return &Supervisor{opt: opt, rec: rec}
}

// process is one incarnation.
type process struct {
	number int
	pid    int
	traced *tracee.Process // nil without Options.Trace
	stderr *tail
	gone   chan struct{} // closed when it has been waited for
	code   int           // exit code, or 128 + signal; readable after gone
	struck bool          // whether the fault of Trace took place; likewise
}

// Incarnation is the number of the latest start, from 1; 0 before the first.
func (s *Supervisor) Incarnation() int { return int(s.incarnation.Load()) }

// Addr is where the daemon answers RESP.
func (s *Supervisor) Addr() string { return s.opt.Addr }

// SetOptions changes how the next start is made.
func (s *Supervisor) SetOptions(change func(*Options)) { change(&s.opt) }

// Pid is the running daemon's; 0 if none runs.
func (s *Supervisor) Pid() int {
	if s.running == nil {
		return 0
	}
	if len(s.opt.Wrap) > 0 {
		if child := childOf(s.running.pid); child != 0 {
			return child
		}
	}
	return s.running.pid
}

// childOf is the first child of a process, 0 if there is none (yet).
func childOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	child, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return child
}

// Stderr is the end of what the latest daemon wrote to its standard error.
func (s *Supervisor) Stderr() string {
	if s.running == nil {
		return ""
	}
	return s.running.stderr.String()
}

// Start starts the daemon. The one before must be dead.
func (s *Supervisor) Start() error {
	args := append(append([]string{}, s.opt.Wrap...), s.opt.Binary, "serve",
		"--dir", s.opt.Dir, "--addr", s.opt.Addr, "--http-addr", "", "--admin-addr", "")
	args = append(args, s.opt.Args...)
	p := &process{stderr: &tail{}, gone: make(chan struct{})}
	p.number = int(s.incarnation.Add(1))
	s.rec.Event(history.Event{Kind: history.Start, Incarnation: p.number})
	run := p.plain
	if s.opt.Trace != nil {
		opt := *s.opt.Trace
		run = func(args []string) error { return p.underTrace(opt, args) }
	}
	if err := run(args); err != nil {
		return fmt.Errorf("start %s: %w", args[0], err)
	}
	s.running = p
	return nil
}

// plain starts the process and a goroutine that notes its end.
func (p *process) plain(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = p.stderr, p.stderr
	cmd.WaitDelay = 5 * time.Second
	c, err := child.Start(cmd)
	if err != nil {
		return err
	}
	p.pid = c.Pid()
	go func() {
		state := c.State()
		p.code = state.ExitCode()
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			p.code = 128 + int(status.Signal())
		}
		close(p.gone)
	}()
	return nil
}

// underTrace does the same with a tracer between.
func (p *process) underTrace(opt tracee.Options, args []string) error {
	opt.Stdout, opt.Stderr = p.stderr, p.stderr
	traced, err := tracee.Start(opt, args[0], args[1:]...)
	if err != nil {
		return err
	}
	p.pid, p.traced = traced.Pid(), traced
	go func() {
		status, err := traced.Wait()
		if err != nil {
			fmt.Fprintf(p.stderr, "tracer: %v\n", err)
		}
		p.code, p.struck = status.Code, status.Struck
		if status.Signal != 0 {
			p.code = 128 + int(status.Signal)
		}
		close(p.gone)
	}()
	return nil
}

// ErrExited is in the error of WaitReady when the daemon ended instead.
var ErrExited = errors.New("the daemon exited")

// patience bounds the waits for the next daemon. A traced one stops at each look
// at the clock until the tracer has had its turn, which on a machine that is
// full is long.
func (s *Supervisor) patience() time.Duration {
	if s.opt.Trace != nil || len(s.opt.Wrap) > 0 {
		return 4 * Patience
	}
	return Patience
}

// WaitReady returns when the daemon answers about jobs. That it does not within
// [Patience], four times that if it is traced, or that it exits (noted in the
// history), is an error.
func (s *Supervisor) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	for {
		if err := probe(ctx, s.opt.Addr); err == nil {
			s.rec.Event(history.Event{Kind: history.Ready, Incarnation: s.running.number})
			return nil
		}
		select {
		case <-s.running.gone:
			s.noteExit()
			return fmt.Errorf("%w with %d before it was ready: %s", ErrExited, s.ExitCode(), s.Stderr())
		case <-ctx.Done():
			return fmt.Errorf("the daemon is not ready: %w\n%s", context.Cause(ctx), s.Stderr())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// probe asks about a queue that does not exist; while loading the daemon
// refuses that.
func probe(ctx context.Context, addr string) error {
	const patience = Patience / 2
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("*2\r\n$10\r\nMOXY.STATS\r\n$5\r\nprobe\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "*") {
		return fmt.Errorf("not ready: %s", strings.TrimSpace(line))
	}
	return nil
}

// Kill ends the daemon by SIGKILL and returns when it is dead.
func (s *Supervisor) Kill() error {
	if err := s.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-s.running.gone
	s.rec.Event(history.Event{Kind: history.Killed, Incarnation: s.running.number})
	return nil
}

// Killed notes that the daemon was killed by somebody else, after WaitGone.
func (s *Supervisor) Killed() {
	s.rec.Event(history.Event{Kind: history.Killed, Incarnation: s.running.number})
}

// Terminate asks the daemon to end by SIGTERM, waits for its exit and returns
// its code.
func (s *Supervisor) Terminate(ctx context.Context) (int, error) {
	s.rec.Event(history.Event{Kind: history.Terminate, Incarnation: s.running.number})
	if err := s.signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	return s.WaitExit(ctx)
}

// WaitExit waits until the daemon ends by itself and returns its code.
func (s *Supervisor) WaitExit(ctx context.Context) (int, error) {
	if err := s.WaitGone(ctx); err != nil {
		return 0, err
	}
	s.noteExit()
	return s.ExitCode(), nil
}

// WaitGone waits until the process is dead, however it died, and notes nothing.
func (s *Supervisor) WaitGone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	select {
	case <-s.running.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the daemon does not end: %w\n%s", context.Cause(ctx), s.Stderr())
	}
}

// Pause stops the process with SIGSTOP: it does nothing until Continue or Kill.
// It returns when all its threads have stopped.
func (s *Supervisor) Pause() error {
	if err := s.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(Patience)
	for !stopped(s.Pid()) {
		if time.Now().After(deadline) {
			return errors.New("the daemon does not stop")
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Continue lets a paused process go on.
func (s *Supervisor) Continue() error { return s.signal(syscall.SIGCONT) }

// Reload has the daemon read its configuration again, by SIGHUP.
func (s *Supervisor) Reload() error { return s.signal(syscall.SIGHUP) }

// Close kills what still runs. It is for defers.
func (s *Supervisor) Close() {
	if s.running == nil {
		return
	}
	select {
	case <-s.running.gone:
	default:
		if err := s.signal(syscall.SIGKILL); err == nil {
			<-s.running.gone
		}
	}
}

// Alive tells whether the latest daemon still runs.
func (s *Supervisor) Alive() bool {
	if s.running == nil {
		return false
	}
	select {
	case <-s.running.gone:
		return false
	default:
		return true
	}
}

// ExitCode is that of the latest daemon, which must be dead; 128 + the signal
// for one that was killed.
func (s *Supervisor) ExitCode() int { return s.running.code }

// Traced is the tracer's side of the latest daemon, nil without one.
func (s *Supervisor) Traced() *tracee.Process { return s.running.traced }

// Struck tells whether the fault of Options.Trace took place in the latest
// daemon, which must be dead.
func (s *Supervisor) Struck() bool { return s.running.struck }

func (s *Supervisor) noteExit() {
	s.rec.Event(history.Event{
		Kind: history.Exited, Incarnation: s.running.number, Code: s.ExitCode(), Text: s.Stderr(),
	})
}

func (s *Supervisor) signal(sig syscall.Signal) error {
	if s.running == nil {
		return errors.New("no daemon runs")
	}
	select {
	case <-s.running.gone:
		return nil // its number may be another's by now
	default:
	}
	if err := syscall.Kill(s.Pid(), sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal the daemon: %w", err)
	}
	return nil
}

// stopped reads from procfs whether all threads of a process are stopped.
func stopped(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false
	}
	for _, task := range tasks {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
		if err != nil {
			continue // the thread ended
		}
		// The state follows the name, which may hold anything but ends in ")".
		if i := bytes.LastIndexByte(stat, ')'); i < 0 || len(stat) < i+3 || stat[i+2] != 'T' && stat[i+2] != 't' {
			return false
		}
	}
	return true
}

// Port finds a port that nothing listens on. It lies below the range from
// which the kernel takes the ports of outgoing connections, so that none of
// those can take it while a daemon is down between two starts.
func Port(seed uint64) (string, error) {
	const first, count = 10000, 20000
	for i := range uint64(200) {
		addr := fmt.Sprintf("127.0.0.1:%d", first+(seed+uint64(os.Getpid())*131+i*37)%count)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return "", fmt.Errorf("close the probe of %s: %w", addr, err)
		}
		return addr, nil
	}
	return "", errors.New("no free port")
}

// tail keeps the last bytes written to it, and how a crash of the Go runtime began:
// its goroutines would push that out.
type tail struct {
	mu    sync.Mutex
	buf   []byte // guarded by mu
	crash []byte // guarded by mu; the line
}

const tailBytes = 8 << 10

// crashed is the first line of a crash of the runtime, or of the C library's part
// of it.
var crashed = regexp.MustCompile(`(?m)^(fatal error|runtime/cgo): .*\n`)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if t.crash == nil {
		t.crash = bytes.Clone(crashed.Find(t.buf))
	}
	if len(t.buf) > 2*tailBytes {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.buf[max(0, len(t.buf)-tailBytes):]
	if bytes.Contains(last, t.crash) {
		return string(last)
	}
	return string(t.crash) + "…\n" + string(last)
}
