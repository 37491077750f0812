package wal

import (
	"errors"
	"fmt"
)

// Returned by Log.Open.
var (
	// ErrNoSpace: no generation is prepared and the last try to make one failed;
	// the error it is wrapped with says why. It goes on by itself.
	ErrNoSpace = errors.New("no generation could be prepared")
	// ErrPreparing: no prepared generation has the room wanted; one is being
	// made. Wait for Prepared outside the critical section and try again.
	ErrPreparing = errors.New("the next generation is being prepared")
	// ErrTooLarge: no generation can hold so many bytes.
	ErrTooLarge = errors.New("records are too large for one group")
)

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("log is closed")
	// ErrReading is TryRead's: as many read from the disk as may at a time.
	ErrReading = errors.New("others read from the disk")
	// ErrHeld is Drop's: somebody holds the generation.
	ErrHeld = errors.New("generation is held")
	// ErrInUse is Drop's: the generation is being written.
	ErrInUse = errors.New("generation is in use")
)

// Matched by a *CorruptError.
var (
	// ErrForeign: the file belongs to another store or generation.
	ErrForeign = errors.New("belongs to another store or generation")
	// ErrFormat: the file has a format this version does not know.
	ErrFormat = errors.New("unknown format")
	// ErrMissing: a generation that the log needs is not there.
	ErrMissing = errors.New("generation is missing")
)

// CorruptError says that bytes which had been durable are not what was written.
type CorruptError struct {
	Path       string // segment file
	Generation uint32
	Offset     int64 // of the first bad byte or entry
	LSN        LSN   // of the group expected there; 0 is unknown
	Err        error // what was expected
}

func (e *CorruptError) Error() string {
	if e.LSN == 0 {
		return fmt.Sprintf("%s: damaged at offset %d: %v", e.Path, e.Offset, e.Err)
	}
	return fmt.Sprintf("%s: damaged at offset %d, group %d: %v", e.Path, e.Offset, e.LSN, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }
