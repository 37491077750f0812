package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrUnknown is in the error of a call whose outcome is open: it may have
	// had its effect or not.
	ErrUnknown = errors.New("the outcome is open")
	// ErrNoLease: the lease is unknown, finished, or has ended. The job is
	// done, or somebody else's now.
	ErrNoLease = errors.New("lease does not exist")
	// ErrClosed is given by calls after Close.
	ErrClosed = errors.New("client is closed")
	// ErrProtocol: the other side does not speak RESP as Pawl does.
	ErrProtocol = errors.New("unexpected reply")
)

// Error is a refusal by the daemon: the command changed nothing (but see
// ErrUnknown).
type Error struct {
	Word string // first word, upper case: ERR, NOAUTH, MISCONF, QUEUEFULL, …
	Text string // the rest
}

func (e *Error) Error() string { return e.Word + " " + e.Text }

// Is makes errors.Is work with ErrNoLease and ErrUnknown.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNoLease:
		return e.Word == "ERR" && e.Text == "lease does not exist"
	case ErrUnknown:
		return e.Word == "UNKNOWN"
	}
	return false
}

// Temporary says whether the same command may be accepted later without anybody
// changing it: the daemon is loading, draining, full, or its storage refuses.
func (e *Error) Temporary() bool {
	switch e.Word {
	case "LOADING", "MISCONF", "OOM", "QUEUEFULL", "PAUSED":
		return true
	case "ERR":
		return slices.Contains([]string{
			"shutting down", "too many commands are waiting", "max number of clients reached",
		}, e.Text)
	}
	return false
}

func parseError(line string) *Error {
	word, text, _ := strings.Cut(line, " ")
	return &Error{word, text}
}

// ConnectError is a daemon that could not be reached: nothing was sent.
type ConnectError struct {
	Addr string
	Err  error
}

func (e *ConnectError) Error() string { return fmt.Sprintf("connect to pawl at %s: %v", e.Addr, e.Err) }

// Unwrap gives the error of the network.
func (e *ConnectError) Unwrap() error { return e.Err }

// openError is a broken exchange.
type openError struct{ err error }

func (e *openError) Error() string {
	return fmt.Sprintf("no reply (%v), the outcome is open", e.err)
}
func (e *openError) Unwrap() error        { return e.err }
func (e *openError) Is(target error) bool { return target == ErrUnknown }
