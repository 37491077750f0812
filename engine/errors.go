package engine

import (
	"errors"
	"fmt"
)

// Refusals: the command changed nothing. The text is what a RESP client reads
// behind the first word that the server chooses.
var (
	ErrEmptyName   = errors.New("queue name must not be empty")
	ErrNameTooLong = errors.New("queue name is too long")
	ErrTooLarge    = errors.New("payload is over the limit")
	ErrTimeout     = errors.New("lease timeout cannot be represented")
	ErrTTLShorter  = errors.New("ttl must be longer than the delay")
	ErrAttrs       = errors.New("too many or too long attributes")
	ErrQueueFull   = errors.New("queue is at its limit")
	ErrDraining    = errors.New("draining, no new jobs are taken")
	ErrNoMemory    = errors.New("memory limit is reached")
	ErrNoSpace     = errors.New("disk full: no next generation of the log could be prepared")
	ErrTooMany     = errors.New("too many queues, groups, crons or values")
	ErrNoLease     = errors.New("lease does not exist")
	ErrNoJob       = errors.New("job does not exist")
	ErrBusyJob     = errors.New("job is leased")
	ErrUniqueTaken = errors.New("unique key is taken in the target queue")
	ErrCursor      = errors.New("cursor or job is not in that state any more")
	ErrQueueLeased = errors.New("queue has leased jobs")
	ErrExists      = errors.New("exists already")
	ErrBusy        = errors.New("too many commands are waiting")
	// ErrDamaged is Load's: the body on disk is not what was written.
	ErrDamaged = errors.New("job body is damaged on disk")
)

// Stops: the storage is at fault, not the command.
var (
	// ErrUnknown is for the commands whose group was being written when the
	// storage failed: their effect may or may not survive.
	ErrUnknown = errors.New("the log failed, the outcome is open")
	// ErrFailed is for every command after that.
	ErrFailed = errors.New("the log has failed")
	// ErrHung is for commands that waited ten seconds for the disk before they
	// were decided: nothing happened.
	ErrHung = errors.New("the disk does not answer")
	// ErrUnanswered is for commands that were decided and waited ten seconds for
	// the disk: they take effect if it answers in the end.
	ErrUnanswered = errors.New("the disk does not answer, the outcome is open")
	// ErrPartly is for commands that work in turns or parts, where the storage failed, or
	// the engine was closed, between two of them: what was done stays done, the
	// rest is not. It may be asked for again.
	ErrPartly = errors.New("interrupted half way, the rest is not done")
	// ErrClosed is for commands after Close.
	ErrClosed = errors.New("shutting down")
)

// AbortError is why a Multi changed nothing.
type AbortError struct {
	Index int // of the command that was refused
	Err   error
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("command %d: %v", e.Index+1, e.Err)
}

func (e *AbortError) Unwrap() error { return e.Err }
