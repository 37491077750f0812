package wal

import (
	"fmt"
	"os"

	"pawl/internal/vfs"
)

// Info describes one linked generation.
type Info struct {
	Generation uint32
	FirstLSN   LSN   // of its first group; one more than LastLSN if it has none
	LastLSN    LSN   // of its last group: so far, or at most, where the generation behind it was dropped
	Length     int64 // bytes of history
	Size       int64 // bytes of the segment file
	Sealed     bool  // a later generation is linked, nothing more comes
	// LogTime and WallTime, in Unix milliseconds, are those of the last group.
	// 0 of a generation that was written before Begin.
	LogTime, WallTime int64
	Holds             int
	// Going: Drop has begun to remove it, and nobody can hold it any more. It may
	// be half there.
	Going bool
}

// addMember lists a generation whose link, which says that last is the group
// before, is durable.
func (l *Log) addMember(gen *generation, last LSN) {
	if n := len(l.members); n > 0 {
		l.members[n-1].Sealed = true
	}
	l.members = append(l.members, &Info{
		Generation: gen.number,
		FirstLSN:   last + 1,
		LastLSN:    last,
		Length:     firstGroup,
		Size:       int64(gen.size),
	})
}

// Generations lists the linked generations, oldest first. The last is the one
// being written.
func (l *Log) Generations() []Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Info, len(l.members))
	for i, m := range l.members {
		list[i] = *m
		list[i].Holds = l.holds.count(m.Generation)
	}
	return list
}

// History finds what lies on disk of the log, which goes on meanwhile: groups
// that are not durable may be in it, and generations may go before they are read
// (fs.ErrNotExist).
func (l *Log) History() (*History, error) {
	return Find(l.opt.FS, l.opt.Dir, FindOptions{Store: l.store, Live: true})
}

// Drop removes a generation and returns when its removal is durable. The caller
// knows that nothing needs it. ErrHeld, ErrInUse. After any other error the
// generation is Going, and Drop may be tried again.
func (l *Log) Drop(number uint32) error {
	l.mu.Lock()
	i := 0
	for i < len(l.members) && l.members[i].Generation != number {
		i++
	}
	switch {
	case i == len(l.members):
		l.mu.Unlock()
		return fmt.Errorf("drop generation %d: %w", number, os.ErrNotExist)
	case !l.members[i].Sealed:
		l.mu.Unlock()
		return fmt.Errorf("drop generation %d: %w", number, ErrInUse)
	case l.holds.keep(number):
		l.mu.Unlock()
		return fmt.Errorf("drop generation %d: %w", number, ErrHeld)
	}
	dropped := l.members[i]
	dropped.Going = true
	l.mu.Unlock()

	if err := removeGeneration(l.opt.FS, l.opt.Dir, number); err != nil {
		return fmt.Errorf("drop generation %d: %w", number, err)
	}
	if err := l.opt.FS.SyncDir(l.opt.Dir); err != nil {
		return fmt.Errorf("drop generation %d: %w", number, err)
	}
	l.files.forget(number)
	l.mu.Lock()
	for i, m := range l.members {
		if m == dropped {
			l.members = append(l.members[:i:i], l.members[i+1:]...)
			break
		}
	}
	l.mu.Unlock()
	return nil
}

// trim gives back what lies behind the history of a generation that an earlier
// process wrote, durably: once the link that says how long it is has gone, its end
// says so. Behind one of this process lies nothing but zeros.
func (l *Log) trim(m *Info) error {
	if m.Size <= m.Length {
		return nil
	}
	if err := truncateFile(l.opt.FS, segmentPath(l.opt.Dir, m.Generation), m.Length); err != nil {
		return err
	}
	m.Size = m.Length
	return nil
}

func truncateFile(fsys vfs.FS, path string, length int64) error {
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := f.Truncate(length); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
