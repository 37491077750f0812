// Package snapshot keeps states of the store in files: one file, one View,
// every byte of it checked.
//
// A snapshot makes a start short and lets old log go, so a wrong one would lose
// data twice. Hence Write publishes a file only after it was read back from the
// disk and after its LSN is durable in the log, and Reader gives out nothing
// that it has not checked. What the bytes inside mean is state's; when a
// snapshot is due is the engine's; which one to believe is recovery's.
//
// FORMAT.md describes the file.
package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pawl/internal/vfs"
	"pawl/state"
)

const (
	suffix    = ".snapshot"
	tmpSuffix = ".snapshot.tmp"

	// readSize is how much is read at once.
	readSize = 1 << 20
)

// File is a snapshot in its place.
type File struct {
	Path string
	LSN  uint64 // as the name says; Reader checks that the header agrees
	Size int64  // bytes
}

// Name is the name of the snapshot of an LSN below its directory.
func Name(lsn uint64) string { return fmt.Sprintf("%020d%s", lsn, suffix) }

// parseName is the opposite of Name; ok is false for every other name.
func parseName(name string) (lsn uint64, ok bool) {
	digits, found := strings.CutSuffix(name, suffix)
	if !found || len(digits) != 20 {
		return 0, false
	}
	lsn, err := strconv.ParseUint(digits, 10, 64)
	return lsn, err == nil && Name(lsn) == name
}

// Beside is what Write needs of the log that it writes beside.
type Beside struct {
	// Durable returns nil once Meta.LSN is durable in the log; a snapshot that is
	// ahead of the log would show at the next start what nobody was told.
	Durable func(context.Context) error
	// Pace, when not nil, is told of each piece of the file that was written, and
	// later of each that was read back, and takes the time that should pass until
	// the next. It returns when ctx ends.
	Pace func(ctx context.Context, bytes int)
}

func (b Beside) pace(ctx context.Context, bytes int) {
	if b.Pace != nil {
		b.Pace(ctx, bytes)
	}
}

// Write puts a snapshot of v into dir, which it makes if it is missing, and
// returns when the file would survive a power loss.
//
// After an error, or when ctx ends, nothing of the snapshot is left but, at
// worst, a temporary file that Clean removes; where the last sync of a directory
// failed, the snapshot is there, whole and ahead of nothing, but may be gone after
// a power loss. The snapshots that were there are untouched; Prune removes those
// that are not needed any more.
func Write(ctx context.Context, fsys vfs.FS, dir string, v io.WriterTo, m Meta, log Beside) (File, error) {
	file := File{Path: filepath.Join(dir, Name(m.LSN)), LSN: m.LSN}
	tmp := filepath.Join(dir, fmt.Sprintf("%020d%s", m.LSN, tmpSuffix))
	err := func() (err error) {
		if err := fsys.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if file.Size, err = writeFile(ctx, fsys, tmp, v, m, log); err != nil {
			return err
		}
		if err := readBack(ctx, fsys, tmp, m, log); err != nil {
			return fmt.Errorf("read back: %w", err)
		}
		if err := log.Durable(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return fsys.Rename(tmp, file.Path)
	}()
	if err != nil {
		// The error counts; a file that cannot be removed now is no worse than
		// one left by a crash.
		_ = fsys.Remove(tmp)
		return File{}, fmt.Errorf("snapshot of group %d: %w", m.LSN, err)
	}
	// The entry of dir in its parent too, each time: the crash that undoes the
	// making of dir may come long after it.
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := fsys.SyncDir(d); err != nil {
			return File{}, fmt.Errorf("snapshot of group %d: %w", m.LSN, err)
		}
	}
	return file, nil
}

// writeFile writes and syncs a new file and returns its size.
func writeFile(ctx context.Context, fsys vfs.FS, name string, v io.WriterTo, m Meta, log Beside) (size int64, err error) {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	disk := vfs.ToDevice(f)
	defer func() {
		if closing := disk.Close(); err == nil {
			err = closing
		}
	}()
	e := newEncoder(&fileWriter{ctx, disk, log}, m)
	if _, err := v.WriteTo(e); err != nil {
		return 0, err
	}
	if err := e.close(); err != nil {
		return 0, err
	}
	if err := disk.Sync(); err != nil {
		return 0, err
	}
	return e.written, nil
}

// fileWriter writes to a file at the pace.
type fileWriter struct {
	ctx  context.Context // of the one Write that owns this writer
	disk io.Writer
	log  Beside
}

func (w *fileWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.disk.Write(p)
	w.log.pace(w.ctx, n)
	return n, err
}

// readBack reads a file from the disk, not from memory, and finds what was
// meant to be written. After a failed sync the page cache can hold what the disk
// does not.
func readBack(ctx context.Context, fsys vfs.FS, name string, m Meta, log Beside) error {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	disk, err := vfs.FromDevice(f)
	if err != nil {
		return err
	}
	defer disk.Close()
	r, err := newNamed(disk, name)
	if err != nil {
		return err
	}
	if r.Meta() != m {
		return &DamageError{File: name, Offset: preambleLen, Want: fmt.Sprintf("%+v", m), Got: fmt.Sprintf("%+v", r.Meta())}
	}
	return drain(ctx, r, log)
}

// drain reads to the end, which verifies everything.
func drain(ctx context.Context, r io.Reader, log Beside) error {
	b := make([]byte, 32<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(b)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		log.pace(ctx, n)
	}
}

// OpenReader is a Reader of a file.
type OpenReader struct {
	*Reader
	f    vfs.File
	size int64
}

// Size is the size of the file in bytes.
func (r *OpenReader) Size() int64 { return r.size }

// Close closes the file.
func (r *OpenReader) Close() error { return r.f.Close() }

// Open begins to read a snapshot. It syncs the file and drops it from the page
// cache first: after a failed sync the cache can hold what the disk does not,
// and a later crash would take it away again. Errors are those of NewReader,
// with the file's name. The name must fit the header where it is a snapshot's.
func Open(fsys vfs.FS, path string) (*OpenReader, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	r, err := open(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func open(f vfs.File, path string) (*OpenReader, error) {
	size, err := settle(f)
	if err != nil {
		return nil, err
	}
	r, err := newNamed(bufio.NewReaderSize(io.NewSectionReader(f, 0, size), int(min(size, readSize))), path)
	if err != nil {
		return nil, err
	}
	return &OpenReader{r, f, size}, nil
}

// settle makes sure that what will be read is what is on disk, and says how
// much it is.
func settle(f vfs.File) (size int64, err error) {
	if err := f.Sync(); err != nil {
		return 0, err
	}
	if err := f.DropCache(); err != nil {
		return 0, err
	}
	return f.Size()
}

// newNamed is newReader for a file whose name may say an LSN.
func newNamed(r io.Reader, path string) (*Reader, error) {
	d, err := newReader(r, path)
	if err != nil {
		return nil, err
	}
	if lsn, ok := parseName(filepath.Base(path)); ok && lsn != d.meta.LSN {
		return nil, &DamageError{File: path, Offset: 40, Want: fmt.Sprintf("LSN %d, as the file's name says", lsn), Got: strconv.FormatUint(d.meta.LSN, 10)}
	}
	return d, nil
}

// Verify reads a whole snapshot and returns its header. Errors are those of
// Open and Reader.
func Verify(ctx context.Context, fsys vfs.FS, path string) (Meta, error) {
	r, err := Open(fsys, path)
	if err != nil {
		return Meta{}, err
	}
	defer r.Close()
	return r.Meta(), drain(ctx, r, Beside{})
}

// ReadMeta reads only the header. Errors are those of Open.
func ReadMeta(fsys vfs.FS, path string) (m Meta, err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return Meta{}, err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	size, err := settle(f)
	if err != nil {
		return Meta{}, err
	}
	r, err := newNamed(io.NewSectionReader(f, 0, size), path)
	if err != nil {
		return Meta{}, err
	}
	return r.Meta(), nil
}

// List is the snapshots in dir, newest first, by name alone. A directory that
// does not exist has none. Files with other names are left out.
func List(fsys vfs.FS, dir string) ([]File, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []File
	for i := len(entries) - 1; i >= 0; i-- {
		lsn, ok := parseName(entries[i].Name())
		if !ok || entries[i].IsDir() {
			continue
		}
		info, err := entries[i].Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // Prune has removed it meanwhile
		}
		if err != nil {
			return nil, err
		}
		files = append(files, File{Path: filepath.Join(dir, entries[i].Name()), LSN: lsn, Size: info.Size()})
	}
	return files, nil
}

// Clean removes the temporary files that a crash left behind. No Write may be
// under way.
func Clean(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), tmpSuffix) {
			if err := fsys.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Prune removes snapshots that nothing needs any more and returns the floor:
// the LSN up to which no log is needed for a start or a restore, that is the
// LSN of the oldest snapshot that stays. It is 0 while there are fewer than two.
//
// The two newest stay, so that one may rot. With a keep of more than 0 the past
// keep can be restored, from the newest snapshot that is older and the log
// after it; of the younger ones, one in each quarter of keep stays, so that the
// older one is not needed for much longer than keep. now is the wall time.
//
// What cannot be read, or is of a newer format, is neither counted nor removed.
// With an error the floor is 0 or right, and some may be left that could have
// gone.
func Prune(fsys vfs.FS, dir string, now, keep state.Millis) (floor uint64, err error) {
	files, err := List(fsys, dir)
	if err != nil {
		return 0, err
	}
	var sound []File
	var walls []state.Millis
	for _, file := range files {
		meta, err := ReadMeta(fsys, file.Path)
		if isUnreadable(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		sound, walls = append(sound, file), append(walls, meta.Wall)
	}
	gone := surplus(walls, now, keep)
	var kept int
	for i, file := range sound {
		if !gone[i] {
			kept, floor = kept+1, file.LSN
		}
	}
	if kept < 2 {
		floor = 0
	}
	if kept == len(sound) {
		return floor, nil
	}
	// The oldest first: what a crash leaves is then again a row without holes.
	for i := len(sound) - 1; i >= 0; i-- {
		if !gone[i] {
			continue
		}
		if err := fsys.Remove(sound[i].Path); err != nil {
			return floor, err
		}
	}
	return floor, fsys.SyncDir(dir)
}

// surplus says which of the snapshots with these wall times, newest first, may
// go.
func surplus(walls []state.Millis, now, keep state.Millis) []bool {
	gone := make([]bool, len(walls))
	reached := keep <= 0
	quarter := max(keep/4, 1)
	for i, wall := range walls {
		switch {
		case i < 2:
		case reached:
			gone[i] = true
		case wall > now-keep:
			// The oldest of each quarter stays: which that is does not change as
			// newer ones come.
			gone[i] = i+1 < len(walls) && walls[i+1]/quarter == wall/quarter
		}
		reached = reached || wall <= now-keep
	}
	return gone
}

func isUnreadable(err error) bool {
	if _, ok := errors.AsType[*DamageError](err); ok {
		return true
	}
	_, ok := errors.AsType[*FormatError](err)
	return ok
}
