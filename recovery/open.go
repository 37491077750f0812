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
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"syscall"
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
	Created     bool    // there was no store before
	SnapshotLSN uint64  // 0 is none
	Damaged     []error // of snapshots that were passed over and moved aside
	Groups      uint64  // replayed
	Records     uint64  // replayed
	LogBytes    int64   // replayed
	Bodies      int64   // bytes of bodies that were verified, beside the replayed ones
	CutBytes    int64   // of an unfinished write behind the end of the log
	Clean       bool    // the log ended with the marker of a clean stop
	Took        time.Duration
}

// Open locks a directory and recovers the store in it, or makes one. The
// errors are those of ExitCode, or what the file system said. With an error the
// directory is as it was, and not locked.
//
// Who opens a store begins a new generation of the log behind Store.End before
// anything is shown to anybody: only that makes what was found final.
func Open(ctx context.Context, opt Options) (*Store, error) {
	opt = opt.withDefaults()
	began := time.Now()
	lock, err := lockStore(opt)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, opt)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	s.Report.Took = time.Since(began)
	s.Report.log(opt.Log, s)
	warnInterrupted(opt.FS, s, opt.Log)
	return s, nil
}

func (opt Options) withDefaults() Options {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	if opt.VerifyBodies == 0 {
		opt.VerifyBodies = DefaultVerifyBodies
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Progress == nil {
		opt.Progress = func(Progress) {}
	}
	if opt.Random == nil {
		opt.Random = rand.Reader
	}
	if opt.Wall == nil {
		opt.Wall = time.Now
	}
	return opt
}

// lockStore makes the directory if it may, and locks it.
func lockStore(opt Options) (io.Closer, error) {
	info, err := opt.FS.Stat(opt.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		if opt.Existing {
			return nil, fmt.Errorf("%s: %w", opt.Dir, ErrNoStore)
		}
		if err := opt.FS.Mkdir(opt.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err = opt.FS.Stat(opt.Dir)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open store", Path: opt.Dir, Err: syscall.ENOTDIR}
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s: %w (mode %04o): chmod go-w", opt.Dir, ErrOpenToOthers, info.Mode().Perm())
	}
	return opt.FS.Lock(opt.Dir)
}

// open recovers or makes the store in a locked directory.
func open(ctx context.Context, opt Options) (*Store, error) {
	created := false
	src, err := survey(opt.FS, opt.Dir, true)
	if errors.Is(err, ErrNoStore) && !opt.Existing {
		if err := create(opt); err != nil {
			return nil, err
		}
		created = true
		src, err = survey(opt.FS, opt.Dir, true)
	}
	if err != nil {
		return nil, err
	}
	src.progress = every(time.Second, opt.Progress)
	st, end, err := src.recover(ctx)
	if err != nil {
		return nil, err
	}
	if err := src.verifyBodies(ctx, st, opt.VerifyBodies); err != nil {
		return nil, err
	}
	if err := src.tidy(opt.Log); err != nil {
		return nil, err
	}
	src.report.Created = created
	return &Store{Dir: opt.Dir, Identity: src.identity, State: st, End: end, Report: src.report}, nil
}

// tidy puts away what a crash or a disk left, once all else has succeeded.
func (src *source) tidy(log *slog.Logger) error {
	for _, damaged := range src.damaged {
		// Said before it is done: whatever becomes of this start, the next one does not
		// find the file any more.
		log.Warn("a snapshot is damaged and is moved aside; the one before and the log hold everything", "error", damaged.err)
		// Kept for whoever wants to look, but out of the way: it must not be counted
		// as one of the two that are kept.
		if err := src.fs.Rename(damaged.file.Path, damaged.file.Path+".damaged"); err != nil {
			return err
		}
		src.report.Damaged = append(src.report.Damaged, damaged.err)
	}
	if len(src.damaged) > 0 {
		if err := src.fs.SyncDir(SnapshotDir(src.dir)); err != nil {
			return err
		}
	}
	sweep(src.fs, src.dir, log)
	if err := src.fs.Remove(filepath.Join(src.dir, identityTmpName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return snapshot.Clean(src.fs, SnapshotDir(src.dir))
}

// log writes the lines of a start.
func (r *Report) log(log *slog.Logger, s *Store) {
	if r.Created {
		log.Warn("made a new store: there was no data here", "dir", s.Dir, "store", s.Identity.ID)
	}
	if r.CutBytes > 0 {
		log.Warn("the log ends with an unfinished write, which nobody was told of", "bytes", r.CutBytes, "group", s.End.LSN+1)
	}
	log.Info("recovered", "dir", s.Dir, "store", s.Identity.ID, "snapshot", r.SnapshotLSN, "groups", r.Groups,
		"records", r.Records, "lsn", s.End.LSN, "jobs", jobsIn(s.State.Counts()), "clean", r.Clean, "took", r.Took.Round(time.Millisecond))
}
