//go:build linux

package child_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"pawl/internal/child"
)

func TestEnd(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	state := p.End(syscall.SIGTERM)
	if status := state.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %v, want %v", status.Signal(), syscall.SIGTERM)
	}
	if _, open := <-p.Gone(); open {
		t.Error("it is not gone")
	}
}

// The thread that called Start may end, and takes no child with it.
func TestThreadThatEnds(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var p *child.Process
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		p, err = child.Start(cmd)
		thread <- syscall.Gettid()
	}()
	id := <-thread
	if err != nil {
		t.Fatal(err)
	}
	for id != os.Getpid() { // the first thread stays
		if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", id)); err != nil {
			break
		}
		runtime.Gosched()
	}
	in.Close() // cat ends with 0 where its input ends
	if state := p.State(); !state.Success() {
		t.Errorf("cat ended with %v", state)
	}
}

// Who asks for another signal than SIGKILL, to clean up behind itself, gets that.
func TestSignalOfItsOwn(t *testing.T) {
	for _, sig := range []syscall.Signal{0, syscall.SIGTERM} {
		cmd := exec.Command("sleep", "600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: sig}
		p, err := child.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		want := sig
		if want == 0 {
			want = syscall.SIGKILL
		}
		if got := cmd.SysProcAttr.Pdeathsig; got != want {
			t.Errorf("asked for %d: got %d, want %d", sig, got, want)
		}
		p.End(syscall.SIGKILL)
	}
}

func TestNoSuchProgram(t *testing.T) {
	if _, err := child.Start(exec.Command("/nonexistent")); err == nil {
		t.Error("it started")
	}
}
