package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"pawl/internal/vfs"
)

// DamageError says which bytes of a store are not what was written. A start is
// refused with it, exit 65; nothing was changed.
type DamageError struct {
	File   string
	Offset int64  // in File
	LSN    uint64 // of the group at fault, 0 when it is not known or there is none
	Want   string // what should have stood there
	Got    string
}

func (e *DamageError) Error() string {
	at := ""
	if e.LSN != 0 {
		at = fmt.Sprintf(" (group %d)", e.LSN)
	}
	return fmt.Sprintf("%s is damaged at offset %d%s: want %s, got %s", e.File, e.Offset, at, e.Want, e.Got)
}

// FormatError is a file that a newer or another program wrote, exit 65. It is
// no damage, and nothing may remove or repair it.
type FormatError struct {
	File  string
	Found uint32
	Known uint32 // the newest format that this program reads
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this program reads formats 1 to %d: use the program that wrote it, or a newer one", e.File, e.Found, e.Known)
}

// ForeignError is a file of another store, or of another history of this one,
// exit 65.
type ForeignError struct {
	File  string
	Found string // the identity in File
	Want  string // the identity in STORE
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s belongs to store %s, this directory is store %s", e.File, e.Found, e.Want)
}

var (
	// ErrNoStore is a directory without a store where one must be, exit 73.
	ErrNoStore = errors.New("no data here")
	// ErrNotEmpty is a directory with files that are not Pawl's where a store
	// should be made, exit 73.
	ErrNotEmpty = errors.New("the directory holds other files")
	// ErrOpenToOthers is a directory that others than its owner can write to,
	// exit 77.
	ErrOpenToOthers = errors.New("the directory can be written by group or others")
)

// Exit codes of a daemon and of the tools, as in sysexits.h.
const (
	ExitOK         = 0
	ExitUsage      = 64
	ExitDamaged    = 65
	ExitCantCreate = 73
	ExitIO         = 74
	ExitLocked     = 75
	ExitPermission = 77
	ExitConfig     = 78
)

// ExitCode is the one that belongs to an error of this package. What is none
// of the known kinds is an error of the storage.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if errors.Is(err, vfs.ErrLocked) {
		return ExitLocked
	}
	if isDamage(err) {
		return ExitDamaged
	}
	switch {
	case errors.Is(err, ErrNoStore), errors.Is(err, ErrNotEmpty), errors.Is(err, syscall.ENOTDIR):
		return ExitCantCreate
	case errors.Is(err, fs.ErrPermission), errors.Is(err, ErrOpenToOthers):
		return ExitPermission
	}
	return ExitIO
}

// isDamage says that the bytes are at fault, not the reading of them.
func isDamage(err error) bool {
	if _, ok := errors.AsType[*DamageError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*FormatError](err); ok {
		return true
	}
	_, ok := errors.AsType[*ForeignError](err)
	return ok
}
