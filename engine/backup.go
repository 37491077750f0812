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

// Backup writes a consistent copy of the data directory to dir, which must not
// exist, while everything goes on. It holds a snapshot of the state as it is
// after one group, and the generations of the log that this state needs:
// finished ones by hard link where dir is on the same file system, copied
// otherwise. When it returns the copy would survive a power loss.
//
// A copy that fails is removed as far as that is possible; it stops nothing.
func (e *Engine) Backup(ctx context.Context, dir string) error {
	if err := e.fs.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return ErrExists
		}
		return fmt.Errorf("backup: %w", err)
	}
	b := &backup{e: e, fs: e.fs, ctx: ctx}
	if err := b.write(dir); err != nil {
		removeAll(e.fs, dir)
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
	view, meta, release, err := e.takeView()
	if err != nil {
		return err
	}
	lsn := LSN(meta.LSN)
	gens := e.holdNew(nil)
	defer func() {
		for _, g := range gens {
			e.log.Unhold(g.Generation)
		}
	}()
	sub := func(path string) (string, error) {
		rel, err := filepath.Rel(e.start.Dir, path)
		return filepath.Join(dir, rel), err
	}
	snapshots, err := sub(e.start.SnapshotDir)
	if err == nil {
		_, err = snapshot.Write(b.ctx, b.fs, snapshots, view, meta, func(ctx context.Context) error {
			return e.waitDurable(ctx, lsn)
		})
	}
	release()
	if err != nil {
		return err
	}
	// The view's last group may have been written since, and into a generation
	// that was not linked then. All of it is durable now.
	gens = e.holdNew(gens)
	logDir, err := sub(e.start.LogDir)
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
	if err := b.fs.SyncDir(dir); err != nil {
		return err
	}
	return b.fs.SyncDir(filepath.Dir(dir))
}

// holdNew lists the generations that are linked now, held. Of those in held,
// which were listed and held before, only the length and the seal are new; what
// went before it was held is not needed.
func (e *Engine) holdNew(held []wal.Info) []wal.Info {
	had := make(map[uint32]bool, len(held))
	for _, g := range held {
		had[g.Generation] = true
	}
	for _, g := range e.log.Generations() {
		switch {
		case !had[g.Generation] && len(held) > 0 && g.Generation < held[0].Generation:
			continue
		case !had[g.Generation]:
			e.log.Hold(g.Generation)
			held = append(held, g)
		default:
			i := slices.IndexFunc(held, func(h wal.Info) bool { return h.Generation == g.Generation })
			held[i] = g
		}
	}
	return held
}

// generation copies one directory of the log. The one being written is copied
// as far as it went when the copy began, and is longer than the state needs.
func (b *backup) generation(g wal.Info, logDir string) error {
	from := wal.GenerationDir(b.e.start.LogDir, g.Generation)
	to := wal.GenerationDir(logDir, g.Generation)
	entries, err := b.fs.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was dropped before it was held
	}
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

// removeAll removes a tree as far as it can.
func removeAll(fsys vfs.FS, dir string) {
	entries, _ := fsys.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if entry.IsDir() {
			removeAll(fsys, path)
		} else {
			_ = fsys.Remove(path)
		}
	}
	_ = fsys.Remove(dir)
}
