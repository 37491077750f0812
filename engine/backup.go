package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/wal"
)

// Copying is what the name of a backup ends in while it is made: no backup may be
// called so.
const Copying = vfs.Copying

// Backup writes a consistent copy of the data directory to dir, which must not
// exist, while everything goes on. It holds a snapshot of the state as it is
// after one group, and the generations of the log that this state needs:
// finished ones by hard link where dir is on the same file system, copied
// otherwise. When it returns the copy would survive a power loss; until then it
// has another name, so that whoever finds dir finds all of it.
//
// A copy that fails is removed as far as that is possible; it stops nothing.
func (e *Engine) Backup(ctx context.Context, dir string) error {
	if _, err := e.fs.Stat(dir); err == nil {
		return ErrExists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup: %w", err)
	}
	made := dir + Copying
	lock, err := vfs.MakeLocked(e.fs, made)
	if err != nil {
		return fmt.Errorf("backup to %s: %w", dir, err)
	}
	defer lock.Close()
	b := &backup{e: e, fs: e.fs, ctx: ctx}
	err = vfs.RemoveBelow(e.fs, made) // of one that was killed
	if err == nil {
		err = b.write(made)
	}
	if err := vfs.Publish(e.fs, made, dir, err); err != nil {
		return fmt.Errorf("backup to %s: %w", dir, err)
	}
	return nil
}

// backup is one copy under way.
type backup struct {
	e   *Engine
	fs  vfs.FS
	ctx context.Context
}

func (b *backup) write(dir string) error {
	e := b.e
	gens, err := b.snapshot(dir)
	if err != nil {
		return err
	}
	defer func() {
		for _, g := range gens {
			e.log.Unhold(g.Generation)
		}
	}()
	logDir, err := b.inCopy(dir, e.start.LogDir)
	if err != nil {
		return err
	}
	if err := b.mkdir(logDir); err != nil {
		return err
	}
	for _, g := range gens {
		if err := b.generation(g, logDir); err != nil {
			return err
		}
	}
	if err := b.fs.SyncDir(logDir); err != nil {
		return err
	}
	for _, name := range e.start.Files {
		if err := b.copy(filepath.Join(e.start.Dir, name), filepath.Join(dir, name), -1, -1); err != nil {
			return err
		}
	}
	return b.fs.SyncDir(dir)
}

// snapshot writes one of the state as it is now, and returns the generations of
// the log, which hold all that this state needs, held.
func (b *backup) snapshot(dir string) (gens []wal.Info, err error) {
	e := b.e
	snapshots, err := b.inCopy(dir, e.start.SnapshotDir)
	if err != nil {
		return nil, err
	}
	// Before the view is taken: what is going by then has no body of a job in it,
	// and nothing else goes until all that the view needs is held.
	e.log.HoldAll()
	defer e.log.UnholdAll()
	view, meta, release, err := e.takeView()
	if err != nil {
		return nil, err
	}
	defer release()
	_, err = snapshot.Write(b.ctx, b.fs, snapshots, onceWritten{view, release}, meta, e.beside(&meta))
	if err != nil {
		return nil, err
	}
	// Listed behind that: the view's last group is durable, so the generation that
	// it went into is linked.
	gens = slices.DeleteFunc(e.log.Generations(), func(g wal.Info) bool { return g.Going })
	for _, g := range gens {
		e.log.Hold(g.Generation)
	}
	return gens, nil
}

// inCopy is where the copy has what is at path in the data directory.
func (b *backup) inCopy(dir, path string) (string, error) {
	rel, err := filepath.Rel(b.e.start.Dir, path)
	return filepath.Join(dir, rel), err
}

// generation copies one directory of the log. The one being written is copied
// as far as it went when the copy began, and is longer than the state needs.
func (b *backup) generation(g wal.Info, logDir string) error {
	from := wal.GenerationDir(b.e.start.LogDir, g.Generation)
	to := wal.GenerationDir(logDir, g.Generation)
	entries, err := b.fs.ReadDir(from)
	if err != nil {
		return err
	}
	if err := b.mkdir(to); err != nil {
		return err
	}
	for _, entry := range entries {
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		if g.Sealed {
			if err := b.fs.Link(source, target); err == nil {
				continue
			}
		}
		// As long as it was made, whatever became of its end meanwhile: nothing but
		// the next generation, which the copy may not have, says that it was trimmed.
		if err := b.copy(source, target, g.Length, g.Size); err != nil {
			return err
		}
	}
	return b.fs.SyncDir(to)
}

func (b *backup) mkdir(dir string) error {
	if err := b.fs.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// copy copies the first length bytes of a file, all of them if length is
// negative, makes the copy size bytes long, or as long as the file if size is
// negative, and durable.
func (b *backup) copy(from, to string, length, size int64) (err error) {
	source, err := b.fs.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	there, err := source.Size()
	if err != nil {
		return err
	}
	if length < 0 || length > there {
		length = there
	}
	if size < 0 {
		size = there
	}
	target, err := b.fs.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closing := target.Close(); err == nil {
			err = closing
		}
	}()
	buf := make([]byte, 256<<10)
	for at := int64(0); at < length; {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		n, err := source.ReadAt(buf[:min(int64(len(buf)), length-at)], at)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return err
		}
		if _, err := target.WriteAt(buf[:n], at); err != nil {
			return err
		}
		at += int64(n)
	}
	if err := target.Truncate(size); err != nil {
		return err
	}
	return target.Sync()
}
