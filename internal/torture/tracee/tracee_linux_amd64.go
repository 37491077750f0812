package tracee

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a running program. Its methods may be called from any goroutine.
type Process struct {
	pid   int
	calls atomic.Int64
	wall  atomic.Int64 // nanoseconds
	mono  atomic.Int64
	done  chan struct{} // closed when status and err are set
	// status and err are written before done is closed.
	status Status
	err    error
}

// Start runs name with args. The caller must Wait.
func Start(opt Options, name string, args ...string) (*Process, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	if opt.Under != "" {
		// The kernel shows paths without symbolic links.
		if opt.Under, err = filepath.EvalSymlinks(opt.Under); err != nil {
			return nil, fmt.Errorf("directory to watch: %w", err)
		}
	}
	p := &Process{done: make(chan struct{})}
	p.ShiftClock(opt.Shift)
	started := make(chan error, 1)
	go func() {
		// Every ptrace request must come from the thread that started the
		// program. The thread is not unlocked, so it ends with this goroutine
		// and takes no tracing state back to the runtime.
		runtime.LockOSThread()
		defer close(p.done)
		t := &tracer{opt: opt, p: p, threads: map[int]*thread{}, paths: map[uint64]string{}}
		if err := t.start(path, append([]string{name}, args...)); err != nil {
			started <- err
			return
		}
		started <- nil
		p.status, p.err = t.run()
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Pid is the process ID, for signals.
func (p *Process) Pid() int { return p.pid }

// ShiftClock sets what is added to the clocks from the next reading on.
func (p *Process) ShiftClock(s Shift) {
	p.wall.Store(int64(s.Wall))
	p.mono.Store(int64(s.Monotonic))
}

// Wait returns how the program ended.
func (p *Process) Wait() (Status, error) {
	<-p.done
	return p.status, p.err
}

// tracer is owned by one locked thread.
type tracer struct {
	opt     Options
	p       *Process
	threads map[int]*thread
	copies  []chan struct{} // one for each output that is copied
	struck  bool
	paths   map[uint64]string // of descriptors, forgotten at close and open
}

// thread is one thread of the program.
type thread struct {
	inside  bool // between entry and exit of a call
	started bool // its first stop has been seen
	kill    bool // at the exit of the present call
	fail    syscall.Errno
}

func (t *tracer) start(path string, argv []string) error {
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer stdin.Close()
	files := []*os.File{stdin}
	for _, w := range []io.Writer{t.opt.Stdout, t.opt.Stderr} {
		f, err := t.output(w)
		if err != nil {
			return err
		}
		defer f.Close()
		files = append(files, f)
	}
	// StartProcess, not exec.Cmd: the process is reaped by run below.
	proc, err := os.StartProcess(path, argv, &os.ProcAttr{
		Env: t.opt.Env, Files: files,
		Sys: &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	pid := proc.Pid
	_ = proc.Release() // forgets the handle, not the process
	t.p.pid = pid
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
		return fmt.Errorf("wait for the exec: %w", err)
	}
	if err := hideVDSO(pid); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return fmt.Errorf("take the vDSO away: %w", err)
	}
	const options = syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(pid, options); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	t.threads[pid] = &thread{started: true}
	return syscall.PtraceSyscall(pid, 0)
}

// output is a file that the program can write to and whose bytes reach w.
func (t *tracer) output(w io.Writer) (*os.File, error) {
	if w == nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if f, ok := w.(*os.File); ok {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), f.Name()), nil
	}
	r, wr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	t.copies = append(t.copies, done)
	go func() {
		defer close(done)
		_, _ = io.Copy(w, r)
		r.Close()
	}()
	return wr, nil
}

// run lets the program go on from stop to stop until it has ended.
func (t *tracer) run() (Status, error) {
	var ws syscall.WaitStatus
	for {
		// WNOTHREAD: only children of this thread, so that the rest of this
		// process keeps its own.
		pid, err := syscall.Wait4(-1, &ws, syscall.WALL|unix.WNOTHREAD, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return Status{}, fmt.Errorf("wait for the traced program: %w", err)
		}
		if ws.Exited() || ws.Signaled() {
			if pid != t.p.pid {
				delete(t.threads, pid)
				continue
			}
			for _, done := range t.copies {
				<-done
			}
			s := Status{Code: -1, Calls: t.p.calls.Load(), Struck: t.struck}
			if ws.Signaled() {
				s.Signal = ws.Signal()
			} else {
				s.Code = ws.ExitStatus()
			}
			return s, nil
		}
		th := t.threads[pid]
		if th == nil {
			th = &thread{}
			t.threads[pid] = th
		}
		deliver := 0
		switch s := ws.StopSignal(); {
		case s == syscall.SIGTRAP|0x80:
			th.inside = !th.inside
			t.stop(pid, th)
		case s == syscall.SIGTRAP:
			// A clone: the new thread shows itself by a stop of its own.
		case s == syscall.SIGSTOP && !th.started:
			th.started = true
		default:
			deliver = int(s)
		}
		// A thread that was killed meanwhile is gone: its end comes by Wait4.
		_ = syscall.PtraceSyscall(pid, deliver)
	}
}

// stop is one entry into a call, or the exit from it.
func (t *tracer) stop(pid int, th *thread) {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return
	}
	if !th.inside {
		t.exit(pid, th, &regs)
		return
	}
	if t.opt.Socket != nil && regs.Rdx > 0 && t.onSocket(&regs) {
		switch n := t.opt.Socket(int(regs.Rdx)); {
		case n > 0 && regs.Orig_rax == unix.SYS_READ:
			return
		case n > 0:
			regs.Rdx = min(regs.Rdx, uint64(n))
		default:
			regs.Orig_rax = ^uint64(0) // no such call: nothing takes effect
			th.fail = syscall.EINTR
		}
		_ = syscall.PtraceSetRegs(pid, &regs)
		return
	}
	form, ok := calls[regs.Orig_rax]
	if !ok || t.opt.Under == "" {
		return
	}
	path := t.path(pid, form, &regs)
	if form.forgets {
		delete(t.paths, regs.Rdi)
	}
	if form.silent || !strings.HasPrefix(path, t.opt.Under+"/") && path != t.opt.Under {
		return
	}
	if form.name == "openat" && regs.Rdx&(syscall.O_CREAT|syscall.O_TRUNC) == 0 {
		return // changes nothing
	}
	n := t.p.calls.Add(1)
	if t.opt.Seen != nil {
		call := Call{N: n, Name: form.name, Path: path}
		if form.writes {
			call.Bytes = int(regs.Rdx)
		}
		t.opt.Seen(call)
	}
	f := t.opt.Fault
	if f.Mode == Count || n != f.Nth && !(f.Sticky && n > f.Nth) {
		return
	}
	t.struck = true
	switch f.Mode {
	case Before:
		t.kill()
	case After:
		th.kill = true
	case Tear:
		if form.writes {
			regs.Rdx = min(regs.Rdx, uint64(f.Bytes))
			_ = syscall.PtraceSetRegs(pid, &regs)
		}
		th.kill = true
	case Errno:
		regs.Orig_rax = ^uint64(0) // no such call: nothing takes effect
		_ = syscall.PtraceSetRegs(pid, &regs)
		th.fail = f.Errno
	}
}

// onSocket tells reads and writes of sockets, and waiting for them. The
// descriptor is looked at each time: one that is closed is another's at once.
func (t *tracer) onSocket(regs *syscall.PtraceRegs) bool {
	switch regs.Orig_rax {
	case unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT:
		return true
	case unix.SYS_READ, unix.SYS_WRITE:
		path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.p.pid, regs.Rdi))
		return strings.HasPrefix(path, "socket:")
	}
	return false
}

func (t *tracer) exit(pid int, th *thread, regs *syscall.PtraceRegs) {
	if th.fail != 0 {
		regs.Rax = uint64(-int64(th.fail))
		_ = syscall.PtraceSetRegs(pid, regs)
		th.fail = 0
	}
	if th.kill {
		t.kill()
	}
	if regs.Orig_rax == unix.SYS_CLOCK_GETTIME && int64(regs.Rax) == 0 {
		t.shift(pid, regs)
	}
}

func (t *tracer) kill() { _ = syscall.Kill(t.p.pid, syscall.SIGKILL) }

// shift changes the time that clock_gettime has just written.
func (t *tracer) shift(pid int, regs *syscall.PtraceRegs) {
	by := t.p.mono.Load()
	if clock := int32(regs.Rdi); clock == unix.CLOCK_REALTIME || clock == unix.CLOCK_REALTIME_COARSE {
		by = t.p.wall.Load()
	}
	if by == 0 {
		return
	}
	var spec [16]byte
	if _, err := syscall.PtracePeekData(pid, uintptr(regs.Rsi), spec[:]); err != nil {
		return
	}
	ns := int64(binary.LittleEndian.Uint64(spec[:8]))*1e9 + int64(binary.LittleEndian.Uint64(spec[8:])) + by
	binary.LittleEndian.PutUint64(spec[:8], uint64(ns/1e9))
	binary.LittleEndian.PutUint64(spec[8:], uint64(ns%1e9))
	_, _ = syscall.PtracePokeData(pid, uintptr(regs.Rsi), spec[:])
}

// form says how a call names its file.
type form struct {
	name    string
	arg     uint8 // which argument is the path, from 1; 0: the first is a descriptor
	writes  bool  // the third argument is a length
	forgets bool  // the descriptor is free afterwards
	silent  bool  // is followed, not counted
}

var calls = map[uint64]form{
	unix.SYS_WRITE:           {name: "write", writes: true},
	unix.SYS_PWRITE64:        {name: "pwrite64", writes: true},
	unix.SYS_WRITEV:          {name: "writev"},
	unix.SYS_PWRITEV:         {name: "pwritev"},
	unix.SYS_FSYNC:           {name: "fsync"},
	unix.SYS_FDATASYNC:       {name: "fdatasync"},
	unix.SYS_SYNC_FILE_RANGE: {name: "sync_file_range"},
	unix.SYS_FTRUNCATE:       {name: "ftruncate"},
	unix.SYS_FALLOCATE:       {name: "fallocate"},
	unix.SYS_TRUNCATE:        {name: "truncate", arg: 1},
	unix.SYS_RENAME:          {name: "rename", arg: 1},
	unix.SYS_RENAMEAT:        {name: "renameat", arg: 2},
	unix.SYS_RENAMEAT2:       {name: "renameat2", arg: 2},
	unix.SYS_UNLINK:          {name: "unlink", arg: 1},
	unix.SYS_UNLINKAT:        {name: "unlinkat", arg: 2},
	unix.SYS_OPENAT:          {name: "openat", arg: 2},
	unix.SYS_MKDIRAT:         {name: "mkdirat", arg: 2},
	unix.SYS_LINKAT:          {name: "linkat", arg: 2},
	unix.SYS_CLOSE:           {name: "close", forgets: true, silent: true},
}

// path is the file of the call, empty where it has none.
func (t *tracer) path(pid int, f form, regs *syscall.PtraceRegs) string {
	var at uint64
	switch f.arg {
	case 0:
		if f.silent {
			return ""
		}
		if path, ok := t.paths[regs.Rdi]; ok {
			return path
		}
		path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.p.pid, regs.Rdi))
		t.paths[regs.Rdi] = path
		return path
	case 1:
		at = regs.Rdi
	case 2:
		at = regs.Rsi
	}
	var buf [512]byte
	n, _ := syscall.PtracePeekData(pid, uintptr(at), buf[:])
	if end := bytes.IndexByte(buf[:n], 0); end >= 0 {
		n = end
	}
	path := string(buf[:n])
	if path != "" && !filepath.IsAbs(path) {
		wd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", t.p.pid))
		path = filepath.Join(wd, path)
	}
	return path
}

// hideVDSO overwrites the auxiliary vector's entry of the vDSO, so that the
// program reads its clocks by calls that can be seen.
func hideVDSO(pid int) error {
	const sysinfoEHDR, ignore = 33, 1 // AT_SYSINFO_EHDR, AT_IGNORE
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
		return err
	}
	word := func(at uint64) (uint64, error) {
		var b [8]byte
		_, err := syscall.PtracePeekData(pid, uintptr(at), b[:])
		return binary.LittleEndian.Uint64(b[:]), err
	}
	// At the first instruction: argc, argv, 0, environment, 0, pairs of the
	// auxiliary vector, 0.
	argc, err := word(regs.Rsp)
	if err != nil {
		return err
	}
	at := regs.Rsp + 8*(argc+2)
	for {
		v, err := word(at)
		if err != nil {
			return err
		}
		at += 8
		if v == 0 {
			break
		}
	}
	for ; ; at += 16 {
		kind, err := word(at)
		if err != nil || kind == 0 {
			return err
		}
		if kind == sysinfoEHDR {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], ignore)
			_, err := syscall.PtracePokeData(pid, uintptr(at), b[:])
			return err
		}
	}
}
