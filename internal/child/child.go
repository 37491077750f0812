//go:build linux

// Package child runs other programs beside a test or a proof: the daemon, and
// what talks to it. A child never outlives who started it, however that ends.
package child

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a program that was started. Its methods may be called by any
// goroutine.
type Process struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

// Start starts cmd, which must not have been started, and waits for its end, which
// nobody else may. What it wrote is complete when Gone is closed; a pipe of cmd's own
// is closed then, so that who reads what comes last gives it a file.
//
// If the caller ends, however that is, cmd gets the signal that it names as
// Pdeathsig, SIGKILL where it names none.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if cmd.SysProcAttr.Pdeathsig == 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	p := &Process{cmd, make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ties Pdeathsig to the thread that forks, so it is kept for
		// as long as the child.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its error is the exit, which State tells
			close(p.gone)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Pid is the process's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Gone is closed when the process has ended.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// State says how the process ended. It waits for that.
func (p *Process) State() *os.ProcessState {
	<-p.gone
	return p.cmd.ProcessState
}

// End sends a signal and waits for the end.
func (p *Process) End(sig os.Signal) *os.ProcessState {
	_ = p.cmd.Process.Signal(sig) // gone already, or it is told
	return p.State()
}
