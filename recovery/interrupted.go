package recovery

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"pawl/internal/vfs"
)

// A repair in place that the power interrupted in the moment of the exchange leaves
// one of the two stores under a name that says neither which it is nor what became
// of the repair. Nobody removes it: the repaired one may have been used since. But
// it gets a name that is true, as soon as a repair may give it one.

const (
	exchangeMark = ".exchange-"
	damagedMark  = ".damaged-"
	repairedMark = ".repaired-"
	repairDate   = "20060102T150405Z"
)

// Interrupted is a store that an interrupted repair left beside another one.
type Interrupted struct {
	Path     string // as it was found
	Repaired bool   // it is the repaired one; else it is as it was before the repair
	Kept     string // what it is called now; Path where that could not be changed
}

// interrupted finds what interrupted repairs have left beside a store. What does not
// say which of the two it is, is left out, and so is all where the directory above
// may not be read.
func interrupted(fsys vfs.FS, dir string, own Identity) (found []Interrupted, err error) {
	entries, err := fsys.ReadDir(filepath.Dir(dir))
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	for _, entry := range entries {
		date, ok := strings.CutPrefix(entry.Name(), filepath.Base(dir)+exchangeMark)
		if _, err := time.Parse(repairDate, date); !ok || err != nil || !entry.IsDir() {
			continue
		}
		left := Interrupted{Path: filepath.Join(filepath.Dir(dir), entry.Name())}
		id, err := readIdentity(fsys, left.Path, false)
		if err != nil || id.ID != own.ID || id.History == own.History {
			continue
		}
		left.Repaired, left.Kept = id.History > own.History, left.Path
		found = append(found, left)
	}
	return found, nil
}

// nameInterrupted gives what interrupted repairs have left beside a store names that
// are true, unless somebody works there, or something else has the name.
func nameInterrupted(fsys vfs.FS, dir string) ([]Interrupted, error) {
	own, err := readIdentity(fsys, dir, false)
	if IsDamage(err) || errors.Is(err, ErrNoStore) {
		return nil, nil // the repair will see
	}
	if err != nil {
		return nil, err
	}
	found, err := interrupted(fsys, dir, own)
	if err != nil {
		return nil, err
	}
	for i := range found {
		left := &found[i]
		lock, err := fsys.Lock(left.Path)
		if errors.Is(err, vfs.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return found, err
		}
		mark := damagedMark
		if left.Repaired {
			mark = repairedMark
		}
		to := filepath.Join(filepath.Dir(dir), strings.Replace(filepath.Base(left.Path), exchangeMark, mark, 1))
		if err = mustBeNew(fsys, to); err == nil {
			err = fsys.Rename(left.Path, to)
		}
		if closing := lock.Close(); err == nil {
			err = closing
		}
		if errors.Is(err, ErrExists) {
			continue
		}
		if err == nil {
			err = fsys.SyncDir(filepath.Dir(dir))
		}
		if err != nil {
			return found, err
		}
		left.Kept = to
	}
	return found, nil
}

// warnInterrupted tells of them at a start.
func warnInterrupted(fsys vfs.FS, s *Store, log *slog.Logger) {
	found, err := interrupted(fsys, s.Dir, s.Identity)
	if err != nil {
		log.Warn("cannot look for what an interrupted repair has left", "beside", s.Dir, "error", err)
	}
	for _, left := range found {
		what := "it is the store as it was before"
		if left.Repaired {
			what = "it is the repaired store, which did not take its place"
		}
		log.Warn("a repair was interrupted, and has left a store beside this one: "+what, "dir", left.Path)
	}
}
