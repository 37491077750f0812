// Package tracee runs an unchanged program under ptrace and lets a test decide
// about its system calls on files below one directory: die before the N-th,
// die right after it, tear a write at k bytes, or see it fail with an errno.
// The calls are counted over all threads of the program, which strace cannot.
// It can also shift the clocks that the program reads.
//
// Only Linux on amd64; elsewhere Start gives ErrUnsupported.
package tracee

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// ErrUnsupported is given where the platform has no tracer of ours, and where
// the machine forbids ptrace.
var ErrUnsupported = errors.New("tracing system calls is not possible here")

// Mode is what happens at the chosen call.
type Mode uint8

const (
	// Count lets every call pass.
	Count Mode = iota
	// Before kills the program before the call takes effect.
	Before
	// After kills it when the call has taken effect and before it returns.
	After
	// Tear shortens a write to Fault.Bytes, then kills as After does. For calls
	// that write nothing it is After.
	Tear
	// Errno makes the call fail with Fault.Errno, without taking effect.
	Errno
)

var modeNames = [...]string{"count", "before", "after", "tear", "errno"}

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Fault is one thing that goes wrong.
type Fault struct {
	Mode   Mode
	Nth    int64 // which call, from 1
	Bytes  int   // Tear: how many bytes are written
	Errno  syscall.Errno
	Sticky bool // Errno: every later call fails as well
}

func (f Fault) String() string {
	switch f.Mode {
	case Count:
		return "no fault"
	case Tear:
		return fmt.Sprintf("tear call %d at %d bytes", f.Nth, f.Bytes)
	case Errno:
		s := fmt.Sprintf("call %d fails with %v", f.Nth, f.Errno)
		if f.Sticky {
			s += " and so do all later ones"
		}
		return s
	}
	return fmt.Sprintf("kill %v call %d", f.Mode, f.Nth)
}

// Call is one system call on a file below Options.Under.
type Call struct {
	N     int64  // from 1
	Name  string // as in the kernel's table: write, fdatasync, renameat …
	Path  string
	Bytes int // what a write wants to write, else 0
}

// Options of Start. The zero value runs a program that nothing happens to.
type Options struct {
	// Under is an absolute directory: calls on paths below it count. Empty
	// counts none.
	Under string
	Fault Fault
	// Seen is told of every counted call, before it takes effect, on the
	// tracer's thread. The program stands still meanwhile.
	Seen func(Call)
	// Shift is what the clocks begin with.
	Shift Shift
	// Socket, if not nil, says how much of a write of n bytes on a socket goes
	// through, from 1, and how many of n events an epoll_wait may report; 0 has the
	// call interrupted before it does anything. A read of n bytes is interrupted or
	// whole: one that gives less says that there is no more (epoll(7), on edges).
	// It is called on the tracer's thread.
	Socket func(n int) int

	Env            []string // nil is the environment of this process
	Stdout, Stderr io.Writer
}

// Status is how a program ended.
type Status struct {
	Code   int            // exit code, -1 when killed by a signal
	Signal syscall.Signal // 0 when it exited
	Calls  int64          // how many calls were counted
	Struck bool           // whether the fault took place
}

func (s Status) String() string {
	if s.Signal != 0 {
		return fmt.Sprintf("killed by %v after %d calls", s.Signal, s.Calls)
	}
	return fmt.Sprintf("exit %d after %d calls", s.Code, s.Calls)
}

// Shift is what is added to the clocks that the program reads. A suspended
// machine shows itself as a step of Wall alone.
type Shift struct{ Wall, Monotonic time.Duration }
