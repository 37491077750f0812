// Package recovery turns a data directory into a state: it is the one place
// that decides what of the bytes on a disk is the store.
//
// A directory looks like this:
//
//	DIR/STORE       who the store is; its last step into being
//	DIR/log/        the generations of the log, package wal
//	DIR/snapshots/  states, package snapshot
//
// A start takes the newest sound snapshot and applies the log after it by the
// same State.Apply that the engine uses. It ends in a Store with everything
// that was ever acknowledged, or in an error that says which file and offset
// are at fault, with the directory as it was. The tools are here too, because
// they need the same judgement: Check says what a start would do, Repair and
// Restore make a new directory out of an old one.
package recovery

import (
	"context"
	"io"
	"log/slog"
	"time"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
)

// DefaultVerifyBodies is how many bytes of bodies a start reads to verify them.
const DefaultVerifyBodies = 1 << 30

// Options say how to open a store. The zero value of a field is its default.
type Options struct {
	FS  vfs.FS // vfs.OS{}
	Dir string

	// Existing refuses to make a store where there is none, with ErrNoStore: an
	// empty directory is more often a volume that was not mounted.
	Existing bool
	// VerifyBodies: when the bodies of all jobs in generations that need no replay
	// are no more bytes than this together, they are read and verified too.
	// 0 is DefaultVerifyBodies, negative is none.
	VerifyBodies int64
	// Progress is told once a second how far a start is; nil is nobody.
	Progress func(Progress)
	// Log hears what an operator must know and what was noticed on the way; nil
	// is nobody.
	Log *slog.Logger
	// Random is where store IDs come from: crypto/rand.
	Random io.Reader
	// Wall is the wall time: time.Now. A new store notes it.
	Wall func() time.Time
}

// Progress is how far a start is.
type Progress struct {
	Phase   string // "snapshot", "log", "bodies"
	Done    int64  // bytes
	Total   int64  // bytes, estimated for the log
	Records uint64 // applied so far
	LSN     wal.LSN
}

// Store is an open store. Its owner holds the lock of the directory until
// Close.
type Store struct {
	Dir      string
	Identity Identity
	State    *state.State // the caller's to change from now on
	End      wal.End      // for wal.Begin
	Report   Report

	lock io.Closer
}

// LogDir is where the generations are.
func (s *Store) LogDir() string { return LogDir(s.Dir) }

// SnapshotDir is where the snapshots are.
func (s *Store) SnapshotDir() string { return SnapshotDir(s.Dir) }

// Close lets go of the directory. It is the last thing a process does with it.
func (s *Store) Close() error { return s.lock.Close() }

// Report is what a start found.
type Report struct {
	Created     bool   // there was no store before
	SnapshotLSN uint64 // 0 is none
	Floor       uint64 // up to where no snapshot that is kept needs the log
	Snapshots   []snapshot.File
	Damaged     []string // snapshots that were passed over, moved aside
	Groups      uint64   // replayed
	Records     uint64   // replayed
	LogBytes    int64    // replayed
	Bodies      int64    // bytes of bodies that were verified, beside the replayed ones
	CutBytes    int64    // of an unfinished write behind the end of the log
	Clean       bool     // the log ended with the marker of a clean stop
	Took        time.Duration
}

// Open locks a directory and recovers the store in it, or makes one. The
// errors are *vfs.LockedError, *DamageError, *FormatError, *ForeignError,
// ErrNoStore, ErrNotEmpty, ErrOpenToOthers, or what the file system said; see
// ExitCode. With an error the directory is as it was, and not locked.
func Open(ctx context.Context, opt Options) (*Store, error) { panic("not yet") }
