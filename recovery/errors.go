package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/wal"
)

// DamageError says which bytes of a store are not what was written. A start is
// refused with it, exit 65; nothing was changed.
type DamageError struct {
	File   string
	Offset int64   // in File
	LSN    wal.LSN // of the group at fault, 0 when it is not known or there is none
	Want   string  // what should have stood there
	Got    string  // empty where Want says it all
	Err    error   // of the package that found it; nil where this one did
}

func (e *DamageError) Error() string {
	text := fmt.Sprintf("%s is damaged at offset %d", e.File, e.Offset)
	if e.LSN != 0 {
		text += fmt.Sprintf(", group %d", e.LSN)
	}
	text += ": want " + e.Want
	if e.Got != "" {
		text += ", got " + e.Got
	}
	return text
}

func (e *DamageError) Unwrap() error { return e.Err }

// FormatError is a file that a newer or another program wrote, exit 65. It is
// no damage, and nothing may remove or repair it.
type FormatError struct {
	File string
	Why  string // both versions
	Err  error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s: use the program that wrote it, or a newer one", e.File, e.Why)
}

func (e *FormatError) Unwrap() error { return e.Err }

func formats(found, known uint32) string {
	return fmt.Sprintf("format %d, this program reads formats 1 to %d", found, known)
}

// ForeignError is a file of another store, or of another history of this one,
// exit 65.
type ForeignError struct {
	File string
	Why  string // both identities, as far as they are known
	Err  error
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is not of this store: %s", e.File, e.Why)
}

func (e *ForeignError) Unwrap() error { return e.Err }

var (
	// ErrNoStore is a directory without a store where one must be, exit 73.
	ErrNoStore = errors.New("no data here")
	// ErrNotEmpty is a directory with files that are not Pawl's where a store
	// should be made, exit 73.
	ErrNotEmpty = errors.New("holds other files")
	// ErrExists is something where a new directory should be made, exit 73.
	ErrExists = errors.New("exists already")
	// ErrUnconfirmed is a repair that was done, but the disk did not confirm the new
	// names: a power loss may bring the old ones back, exit 74. A start confirms
	// them, or is refused.
	ErrUnconfirmed = errors.New("the repaired store is in place, but the disk has not confirmed that")
	// ErrOpenToOthers is a directory that others than its owner can write to,
	// exit 77.
	ErrOpenToOthers = errors.New("can be written by group or others")
)

// Exit codes of a daemon and of the tools, as in sysexits.h.
const (
	ExitOK         = 0
	ExitDamaged    = 65
	ExitCantCreate = 73
	ExitIO         = 74
	ExitLocked     = 75
	ExitPermission = 77
)

// ExitCode is the one that belongs to an error of this package. What is none
// of the known kinds is an error of the storage.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, vfs.ErrLocked):
		return ExitLocked
	case errors.Is(err, ErrOutOfReach):
		return ExitCantCreate
	case IsDamage(err):
		return ExitDamaged
	case errors.Is(err, ErrNoStore), errors.Is(err, ErrNotEmpty), errors.Is(err, ErrExists),
		errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		return ExitCantCreate
	case errors.Is(err, fs.ErrPermission), errors.Is(err, ErrOpenToOthers):
		return ExitPermission
	}
	return ExitIO
}

// IsDamage says that the bytes of a store are at fault, not the reading of
// them: a *DamageError, *FormatError or *ForeignError.
func IsDamage(err error) bool {
	if _, ok := errors.AsType[*DamageError](err); ok {
		return true
	}
	return isOtherProgram(err)
}

// isOtherProgram says that the bytes are sound but not ours to judge.
func isOtherProgram(err error) bool {
	if _, ok := errors.AsType[*FormatError](err); ok {
		return true
	}
	_, ok := errors.AsType[*ForeignError](err)
	return ok
}

// judged gives an error of wal or snapshot the form of this package. Others
// stay as they are: they say nothing about the bytes.
func judged(err error) error {
	if e, ok := errors.AsType[*wal.CorruptError](err); ok {
		switch {
		case errors.Is(e, wal.ErrFormat):
			return &FormatError{File: e.Path, Why: e.Err.Error(), Err: err}
		case errors.Is(e, wal.ErrForeign):
			return &ForeignError{File: e.Path, Why: e.Err.Error(), Err: err}
		}
		return &DamageError{File: e.Path, Offset: e.Offset, LSN: e.LSN, Want: e.Err.Error(), Err: err}
	}
	if e, ok := errors.AsType[*snapshot.DamageError](err); ok {
		return &DamageError{File: e.File, Offset: e.Offset, Want: e.Want, Got: e.Got, Err: err}
	}
	if e, ok := errors.AsType[*snapshot.FormatError](err); ok {
		return &FormatError{File: e.File, Why: formats(e.Found, e.Known), Err: err}
	}
	return err
}
