package recovery

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
)

// create makes a store in a locked directory that holds no data. The file STORE
// comes last, so a crash on the way leaves a directory that still holds no
// data; and it stands for a log with at least one generation, so a log that is
// gone is missed.
func create(opt Options) error {
	if err := onlyOurs(opt.FS, opt.Dir); err != nil {
		return err
	}
	for _, dir := range []string{LogDir(opt.Dir), SnapshotDir(opt.Dir)} {
		if err := opt.FS.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := settleNames(opt.FS, opt.Dir); err != nil {
		return err
	}
	id := Identity{History: 1, Created: state.Millis(opt.Wall().UnixMilli())}
	history, err := wal.Find(opt.FS, LogDir(opt.Dir), wal.FindOptions{Settle: true})
	if err != nil {
		return err
	}
	// A crash may have come on the way: then the log says whose it is, and begins
	// behind what is there already.
	id.ID = snapshot.StoreID(history.Store)
	if id.ID == (snapshot.StoreID{}) {
		if _, err := io.ReadFull(opt.Random, id.ID[:]); err != nil {
			return fmt.Errorf("choose a store ID: %w", err)
		}
	}
	if len(history.Linked) == 0 {
		r, err := history.Reader(wal.ReaderOptions{})
		if err != nil {
			return judged(err)
		}
		end := r.End()
		end.Store = wal.StoreID(id.ID)
		if err := beginLog(opt.FS, LogDir(opt.Dir), end); err != nil {
			return err
		}
	}
	return writeIdentity(opt.FS, opt.Dir, id)
}

// beginLog begins a generation behind end and ends it again, so that end is
// final. The generation is small: whoever opens the store begins another one.
func beginLog(fsys vfs.FS, dir string, end wal.End) error {
	l, err := wal.Begin(toolLog(fsys, dir), end)
	if err != nil {
		return err
	}
	return l.Close()
}

// toolLog is how tools write a log: in few calls, without goroutines.
func toolLog(fsys vfs.FS, dir string) wal.Options {
	return wal.Options{FS: fsys, Dir: dir, GenerationBytes: wal.MinGenerationBytes, Ahead: 1, CacheBytes: -1, Foreground: true}
}

// writeIdentity writes STORE and returns when it is durable.
func writeIdentity(fsys vfs.FS, dir string, id Identity) error {
	tmp := filepath.Join(dir, identityTmpName)
	if err := writeFile(fsys, tmp, id.encode()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, filepath.Join(dir, identityName)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// writeFile writes a small file and syncs it, but not its directory.
func writeFile(fsys vfs.FS, path string, b []byte) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// onlyOurs refuses a directory with the files of others.
func onlyOurs(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case identityTmpName, logName, snapshotsName, "lost+found":
		default:
			return fmt.Errorf("%s %w, %s for one: a store needs a directory of its own", dir, ErrNotEmpty, entry.Name())
		}
	}
	return nil
}
