//go:build !(linux && amd64)

package tracee

// Process is a running program.
type Process struct{}

// Start gives ErrUnsupported.
func Start(Options, string, ...string) (*Process, error) { return nil, ErrUnsupported }

// Pid is 0.
func (p *Process) Pid() int { return 0 }

// ShiftClock does nothing.
func (p *Process) ShiftClock(Shift) {}

// Wait gives ErrUnsupported.
func (p *Process) Wait() (Status, error) { return Status{}, ErrUnsupported }
