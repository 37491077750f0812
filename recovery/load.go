package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
)

// A source is a data directory that is being read. Whoever has one holds the
// directory's lock, or knows that nobody writes to it.
type source struct {
	fs     vfs.FS
	dir    string
	settle bool // sync and drop the page cache before believing anything

	identity  Identity
	history   *wal.History
	snapshots []snapshot.File // newest first
	damaged   []damagedFile   // snapshots that were passed over
	report    Report
	progress  func(Progress)

	// What is wanted of the history: snapshots up to limit, groups up to stop,
	// and none from the first one on of whose wall time until is true (nil is
	// none). partial says that a new history will begin there, reached that what
	// is wanted ended before the log did.
	limit, stop wal.LSN
	until       func(wallTime int64) bool
	partial     bool
	reached     bool

	last wal.LSN // applied
}

// damagedFile is a snapshot that cannot be used.
type damagedFile struct {
	file snapshot.File
	err  error
}

// survey reads who the store is and what files it has, and refuses what is
// foreign or of another program.
func survey(fsys vfs.FS, dir string, settle bool) (*source, error) {
	return surveyLeft(fsys, dir, settle, false)
}

// surveyLeft is survey where the newest generations may have been left out:
// bereft says that they were.
func surveyLeft(fsys vfs.FS, dir string, settle, bereft bool) (*source, error) {
	src := &source{fs: fsys, dir: dir, settle: settle, progress: func(Progress) {}, limit: math.MaxUint64, stop: math.MaxUint64}
	var err error
	if src.identity, err = readIdentity(fsys, dir, settle); err != nil {
		return nil, err
	}
	src.history, err = wal.Find(fsys, LogDir(dir), wal.FindOptions{Store: wal.StoreID(src.identity.ID), Settle: settle, Bereft: bereft})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DamageError{File: LogDir(dir), Want: "the directory of the log", Err: err}
	}
	if err != nil {
		return nil, judged(err)
	}
	if src.snapshots, err = snapshot.List(fsys, SnapshotDir(dir)); err != nil {
		return nil, err
	}
	for _, file := range src.snapshots {
		meta, err := snapshot.ReadMeta(fsys, file.Path)
		switch err = judged(err); {
		case err == nil:
			if err := src.own(file.Path, meta); err != nil {
				return nil, err
			}
		case isOtherProgram(err), !IsDamage(err):
			return nil, err
		}
	}
	return src, nil
}

// own refuses the snapshots of others.
func (src *source) own(path string, meta snapshot.Meta) error {
	if meta.Store == src.identity.ID && meta.History == src.identity.History {
		return nil
	}
	return &ForeignError{
		File: path,
		Why: fmt.Sprintf("it belongs to store %s, history %d, and the directory to store %s, history %d",
			meta.Store, meta.History, src.identity.ID, src.identity.History),
		Err: snapshot.ErrForeign,
	}
}

// recover reads the state that the directory holds and where its log ends.
func (src *source) recover(ctx context.Context) (*state.State, wal.End, error) {
	st, end, err := src.recoverState(ctx)
	if err == nil {
		err = src.generationsOf(st)
	}
	return st, end, err
}

// recoverState is recover without a look at what the bodies need.
func (src *source) recoverState(ctx context.Context) (*state.State, wal.End, error) {
	st, at, err := src.newestSnapshot(ctx)
	if err != nil {
		return nil, wal.End{}, err
	}
	end, err := src.replay(ctx, st, at)
	if err != nil {
		if len(src.damaged) > 0 && IsDamage(err) && !isOtherProgram(err) {
			// The log alone would do, were it whole. It is the snapshot that is at fault.
			err = fmt.Errorf("%w; without it: %w", src.damaged[0].err, err)
		}
		return nil, wal.End{}, err
	}
	return st, timed(end, st), nil
}

// timed brings an end, whose times are those of the first record of the last
// group, to the time of the last record, as the state has it.
func timed(end wal.End, st *state.State) wal.End {
	if ahead := int64(st.Now()) - end.LogTime; ahead > 0 {
		end.LogTime += ahead
		end.WallTime += ahead
	}
	return end
}

// newestSnapshot loads the newest snapshot that is sound and says of which
// group it is, or the empty state and 0.
func (src *source) newestSnapshot(ctx context.Context) (*state.State, wal.LSN, error) {
	for _, file := range src.snapshots {
		if wal.LSN(file.LSN) > src.limit {
			continue
		}
		st, err := src.load(ctx, file)
		if err == nil {
			src.report.SnapshotLSN = file.LSN
			return st, wal.LSN(file.LSN), nil
		}
		if isOtherProgram(err) || !IsDamage(err) {
			return nil, 0, err
		}
		src.damaged = append(src.damaged, damagedFile{file, err})
	}
	return state.New(), 0, nil
}

// load reads one snapshot. A *DamageError is about the bytes; a state that does
// not fit its sound bytes is a *FormatError, because only another program can
// have written it.
func (src *source) load(ctx context.Context, file snapshot.File) (*state.State, error) {
	r, err := snapshot.Open(src.fs, file.Path)
	if err != nil {
		return nil, judged(err)
	}
	defer r.Close()
	if err := src.own(file.Path, r.Meta()); err != nil {
		return nil, err
	}
	ahead := readAhead(ctx, r, r.Size(), func(done uint64) {
		src.progress(Progress{Phase: "snapshot", Done: int64(done), Total: file.Size, LSN: wal.LSN(file.LSN)})
	})
	defer ahead.Close()
	st, err := state.Load(ahead)
	if errors.Is(err, state.ErrLoad) {
		return nil, &FormatError{File: file.Path, Why: err.Error(), Err: err}
	}
	if err != nil {
		return nil, judged(err)
	}
	if jobs := jobsIn(st.Counts()); jobs != r.Meta().Jobs {
		return nil, &FormatError{File: file.Path, Why: fmt.Sprintf("its header counts %d jobs, its state %d", r.Meta().Jobs, jobs)}
	}
	return st, nil
}

// jobsIn is how many jobs there are in all places.
func jobsIn(c state.Counts) (jobs uint64) {
	for _, n := range c.Jobs {
		jobs += n
	}
	return jobs
}

// generationsOf refuses a state whose jobs have bodies in generations that are
// not there.
func (src *source) generationsOf(st *state.State) error {
	for _, live := range livesOf(st) {
		if err := src.generationOf(live); err != nil {
			return err
		}
	}
	return nil
}

// generationOf is a *DamageError where a generation with bodies is not in the
// history: its file is gone, or its first entries are not what they were.
func (src *source) generationOf(live state.Live) error {
	if src.isLinked(live.Generation) {
		return nil
	}
	return &DamageError{
		File: wal.SegmentPath(LogDir(src.dir), live.Generation),
		Want: fmt.Sprintf("a generation with the payloads of %d jobs", live.Jobs),
		Got:  "no sound first entries",
	}
}

// readIdentity reads the file STORE. Without one, ErrNoStore, or a *DamageError
// where there is a log or a snapshot that must belong to somebody.
func readIdentity(fsys vfs.FS, dir string, settle bool) (Identity, error) {
	path := filepath.Join(dir, identityName)
	b, err := readFile(fsys, path, settle, 4096)
	if err == nil && settle {
		err = settleNames(fsys, dir)
	}
	if err == nil {
		return decodeIdentity(b, path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Identity{}, err
	}
	empty, err := isUnused(fsys, dir)
	if err != nil {
		return Identity{}, err
	}
	if !empty {
		return Identity{}, &DamageError{File: path, Want: "the file that says which store this is", Got: "no file, beside data"}
	}
	return Identity{}, fmt.Errorf("%s: %w", dir, ErrNoStore)
}

// settleNames makes the names in a directory and its own name durable: whoever
// made or renamed them may have been killed before they were. A parent that may
// not be read, or not be written, is left out: who runs a daemon in a directory
// need not own what is above it.
func settleNames(fsys vfs.FS, dir string) error {
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(filepath.Clean(dir))); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return nil
}

// readFile reads a small file, at most limit bytes of it.
func readFile(fsys vfs.FS, path string, settle bool, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if settle {
		if err := f.Sync(); err != nil {
			return nil, err
		}
		if err := f.DropCache(); err != nil {
			return nil, err
		}
	}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(size, limit))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b, nil
}

// isUnused says that a directory holds no data: nothing at all, or what a crash
// left of a store that was never finished.
func isUnused(fsys vfs.FS, dir string) (bool, error) {
	files, err := snapshot.List(fsys, SnapshotDir(dir))
	if err != nil || len(files) > 0 {
		return false, err
	}
	history, err := wal.Find(fsys, LogDir(dir), wal.FindOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		if _, ok := errors.AsType[*wal.CorruptError](err); ok {
			return false, nil
		}
		return false, err
	}
	return noGroups(history)
}

// noGroups says that no group was ever committed to a log.
func noGroups(history *wal.History) (bool, error) {
	if len(history.Linked) == 0 {
		return true, nil
	}
	r, err := history.Reader(wal.ReaderOptions{})
	if err == nil {
		if r.Next() {
			return false, nil
		}
		err = r.Err()
	}
	if _, ok := errors.AsType[*wal.CorruptError](err); ok {
		return false, nil
	}
	return err == nil, err
}

// every calls report at most once in each interval of this length.
func every(interval time.Duration, report func(Progress)) func(Progress) {
	last := time.Now()
	return func(p Progress) {
		if now := time.Now(); now.Sub(last) >= interval {
			last = now
			report(p)
		}
	}
}
