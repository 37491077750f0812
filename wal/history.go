package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pawl/internal/vfs"
)

// FindOptions say how to look.
type FindOptions struct {
	Store StoreID // whose files these must be; zero is whoever's they are
	// Settle first syncs each file and directory and drops the page cache, so
	// that nothing is believed that a power loss could still take back. A tool
	// that must not write leaves it out.
	Settle bool
	// Bereft says that later generations may have been taken away, as a repair
	// does: the newest one that is left may be as short as its successor made it.
	Bereft bool
	// Live says that the log is being written meanwhile: the newest generation
	// found may not be the newest any more, and one that is found unlinked may be
	// half made. What depends on that is not judged; Sealed generations can be
	// verified.
	Live bool
}

// History is the generations of a log, with what their first entries say.
type History struct {
	Store  StoreID  // zero if there is no generation
	Linked []Info   // oldest first
	Unused []uint32 // never linked: made ahead, or cut short
	// Damaged are generations that are neither, with FindOptions.Live: what their
	// first entries were is not to be made out, and they are left out. Without it
	// Find fails.
	Damaged []*CorruptError

	fs      vfs.FS
	dir     string
	live    bool   // FindOptions.Live
	heads   []head // of Linked
	highest uint32
	// What the unused ones know: that an LSN was durable, says a birth; and an entry
	// behind the birth of generation lost, which has no link it could read.
	vouched, lostVouched LSN
	lost                 uint32
	lostErr              error // why
	cut                  int64 // bytes behind the births up to the last that is not zero
	buf                  []byte
}

// head is the first two entries of a linked generation.
type head struct {
	birth birth
	link  link
	began int64 // wall time of the last group before it, Unix milliseconds
}

// Find reads the first entries of every generation in dir and puts the linked
// ones in order. A *CorruptError says that what is there can not be the log of
// one store. It changes nothing, but for Settle; names in dir that are no
// generation's are not looked at.
func Find(fsys vfs.FS, dir string, opt FindOptions) (*History, error) {
	h := &History{Store: opt.Store, fs: fsys, dir: dir, live: opt.Live}
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	var witness, claimed uint32 // generation witness was made when claimed was the newest linked
	for _, name := range names {
		number, ok := generationNumber(name.Name())
		if !ok || !name.IsDir() {
			continue
		}
		h.highest = max(h.highest, number)
		if opt.Settle {
			if err := settle(fsys, dir, number); err != nil {
				return nil, err
			}
		}
		b, err := h.look(number, !opt.Live)
		if err != nil {
			return nil, err
		}
		if b.linked >= claimed {
			witness, claimed = number, b.linked
		}
	}
	if opt.Settle {
		if err := fsys.SyncDir(dir); err != nil {
			return nil, fmt.Errorf("settle log: %w", err)
		}
	}
	if opt.Live {
		return h, h.joinLive()
	}
	if newest := h.newest(); claimed > newest {
		return nil, &CorruptError{Path: segmentPath(dir, claimed), Generation: claimed,
			Err: fmt.Errorf("%w: generation %d was made when it was in use", ErrMissing, witness)}
	}
	if err := h.join(opt.Bereft); err != nil {
		return nil, err
	}
	return h, nil
}

// Since is the linked generations, oldest first, but for those that ended before
// wallTime, in Unix milliseconds: what was logged from then on is in them. Where
// the wall clock was set back, older ones may be among them.
func (h *History) Since(wallTime int64) []Info {
	first := 0
	for first+1 < len(h.Linked) && h.heads[first+1].began < wallTime {
		first++
	}
	return h.Linked[first:]
}

// newest is the number of the newest linked generation, 0 if none.
func (h *History) newest() uint32 {
	if len(h.Linked) == 0 {
		return 0
	}
	return h.Linked[len(h.Linked)-1].Generation
}

// settle makes sure that what will be read is what is on disk.
func settle(fsys vfs.FS, dir string, number uint32) error {
	path := generationDir(dir, number)
	files, err := fsys.ReadDir(path)
	if err != nil {
		return fmt.Errorf("settle generation %d: %w", number, err)
	}
	for _, name := range files {
		f, err := fsys.OpenFile(filepath.Join(path, name.Name()), os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("settle generation %d: %w", number, err)
		}
		if err := f.Sync(); err != nil {
			f.Close()
			return fmt.Errorf("settle generation %d: %w", number, err)
		}
		if err := f.DropCache(); err != nil {
			f.Close()
			return fmt.Errorf("settle generation %d: %w", number, err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("settle generation %d: %w", number, err)
		}
	}
	if err := fsys.SyncDir(path); err != nil {
		return fmt.Errorf("settle generation %d: %w", number, err)
	}
	return nil
}

// look reads the first entries of a generation and notes whether it is linked.
// What is behind them, where it is not, is only looked at when all is.
func (h *History) look(number uint32, all bool) (birth, error) {
	path := segmentPath(h.dir, number)
	f, err := h.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		// Cut short while it was made, or while it was dropped.
		h.Unused = append(h.Unused, number)
		return birth{}, nil
	}
	if err != nil {
		return birth{}, fmt.Errorf("read generation %d: %w", number, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return birth{}, fmt.Errorf("read generation %d: %w", number, err)
	}
	data := make([]byte, min(size, firstGroup))
	if err := h.readFull(f, data, 0); err != nil {
		return birth{}, fmt.Errorf("read generation %d: %w", number, err)
	}
	s := scanner{data: data, store: h.Store, generation: number}
	_, birthErr := s.next()
	var linkErr error
	if birthErr == nil {
		h.Store = s.last.store
		_, linkErr = s.next()
	}
	if birthErr == nil && linkErr == nil {
		// What is longer than it was made has something behind it that the log did
		// not write.
		h.add(Info{
			Generation: number,
			FirstLSN:   s.link.lsn + 1,
			LastLSN:    s.link.lsn,
			Length:     s.birth.within(size),
			Size:       size,
		}, head{s.birth, s.link, s.last.wallTime})
		return s.birth, nil
	}
	if !all {
		h.Unused = append(h.Unused, number)
		return s.birth, nil
	}

	// Never linked, or its link is damaged: then what is behind may say so.
	if birthErr != nil {
		// A birth is durable before anything is written behind it.
		damage := &CorruptError{Path: path, Generation: number, Err: fmt.Errorf("birth entry: %w", birthErr)}
		if errors.Is(birthErr, ErrForeign) || errors.Is(birthErr, ErrFormat) {
			return birth{}, damage
		}
		if size > MaxGenerationBytes {
			damage.Err = fmt.Errorf("%w, and no generation has %d bytes", damage.Err, size)
			return birth{}, damage
		}
		switch zero, err := h.onlyZeros(f, min(size, birthEntryBytes), size); {
		case err != nil:
			return birth{}, fmt.Errorf("read generation %d: %w", number, err)
		case !zero:
			return birth{}, damage
		}
		h.Unused = append(h.Unused, number)
		return birth{}, nil
	}
	if errors.Is(linkErr, ErrForeign) || errors.Is(linkErr, ErrFormat) {
		return birth{}, &CorruptError{Path: path, Generation: number, Offset: birthEntryBytes, Err: fmt.Errorf("link entry: %w", linkErr)}
	}
	made := s.birth.within(size)
	h.buf = slices.Grow(h.buf[:0], int(made))[:made]
	if err := h.readFull(f, h.buf, 0); err != nil {
		return birth{}, fmt.Errorf("read generation %d: %w", number, err)
	}
	rest := h.buf[min(len(h.buf), birthEntryBytes):]
	h.vouched = max(h.vouched, s.birth.durable)
	if mark, ok := s.mark(rest); ok {
		// A witness; not history by nature, so it does not count as cut.
		h.vouched = max(h.vouched, mark.durable)
		rest = rest[markEntryBytes:]
	}
	if v := s.vouched(rest); v > h.lostVouched {
		h.lost, h.lostVouched, h.lostErr = number, v, linkErr
	}
	h.cut += notZero(rest)
	h.Unused = append(h.Unused, number)
	return s.birth, nil
}

// add lists a linked generation in its place.
func (h *History) add(info Info, first head) {
	i, _ := slices.BinarySearchFunc(h.Linked, info.Generation, func(i Info, number uint32) int { return cmp.Compare(i.Generation, number) })
	h.Linked = slices.Insert(h.Linked, i, info)
	h.heads = slices.Insert(h.heads, i, first)
}

// lostLink says that the link of a generation is damaged, as why says.
func (h *History) lostLink(lsn LSN, why string) *CorruptError {
	return &CorruptError{Path: segmentPath(h.dir, h.lost), Generation: h.lost, Offset: birthEntryBytes, LSN: lsn,
		Err: fmt.Errorf("link entry: %w: %s", h.lostErr, why)}
}

// onlyZeros says whether a file is zero from one offset to another.
func (h *History) onlyZeros(f io.ReaderAt, from, to int64) (bool, error) {
	var piece [64 << 10]byte
	for from < to {
		b := piece[:min(to-from, int64(len(piece)))]
		if err := h.readFull(f, b, from); err != nil {
			return false, err
		}
		if !allZero(b) {
			return false, nil
		}
		from += int64(len(b))
	}
	return true, nil
}

// joinLive is join for a log that is being written. Generations are linked in
// the order of their numbers, so what has a smaller one than a linked generation
// and is not linked itself will never be: now it can be judged.
func (h *History) joinLive() error {
	unlinked := h.Unused
	h.Unused = nil
	for _, number := range unlinked {
		if number > h.newest() {
			h.Unused = append(h.Unused, number)
			continue
		}
		_, err := h.look(number, true)
		damage, damaged := errors.AsType[*CorruptError](err)
		switch {
		case damaged:
			h.Damaged = append(h.Damaged, damage)
		case err != nil:
			return err
		case h.lost == number:
			h.Damaged = append(h.Damaged, h.lostLink(0, "a later entry is there"))
		}
	}
	// Of a generation whose successor was dropped, its own end says how long it
	// is: it was trimmed before that, but perhaps since it was looked at.
	for i := range h.Linked {
		if i+1 == len(h.Linked) || h.heads[i+1].link.generation <= h.Linked[i].Generation {
			continue
		}
		info, err := h.fs.Stat(segmentPath(h.dir, h.Linked[i].Generation))
		if errors.Is(err, fs.ErrNotExist) {
			continue // dropped as well; who reads it will see
		}
		if err != nil {
			return fmt.Errorf("read generation %d: %w", h.Linked[i].Generation, err)
		}
		h.Linked[i].Size = info.Size()
		h.Linked[i].Length = min(h.Linked[i].Length, info.Size())
	}
	return h.join(true)
}

// join fills in what each link says of the generation before.
func (h *History) join(bereft bool) error {
	if n := len(h.Linked); n > 0 && !bereft {
		// The newest was never trimmed.
		if newest, size := h.Linked[n-1], int64(h.heads[n-1].birth.size); newest.Size < size {
			return &CorruptError{Path: segmentPath(h.dir, newest.Generation), Generation: newest.Generation, Offset: newest.Size,
				Err: fmt.Errorf("file ends, but it was made with %d bytes", size)}
		}
	}
	for i := 1; i < len(h.Linked); i++ {
		before, link := &h.Linked[i-1], h.heads[i].link
		before.Sealed = true
		corrupt := func(err error) error {
			number := h.Linked[i].Generation
			return &CorruptError{Path: segmentPath(h.dir, number), Generation: number, Offset: birthEntryBytes, Err: err}
		}
		switch {
		case link.generation >= h.Linked[i].Generation:
			return corrupt(fmt.Errorf("link to generation %d", link.generation))
		case link.generation < before.Generation:
			return corrupt(fmt.Errorf("link to generation %d goes past generation %d", link.generation, before.Generation))
		case link.lsn < h.heads[i-1].link.lsn:
			return corrupt(fmt.Errorf("link to group %d, but generation %d begins behind group %d", link.lsn, before.Generation, h.heads[i-1].link.lsn))
		case link.generation > before.Generation:
			// The one between was dropped, and with it the exact end of this one.
			before.LastLSN = link.lsn
			continue
		}
		before.LastLSN = link.lsn
		before.Length = int64(link.length)
		if before.Length > before.Size {
			return &CorruptError{Path: segmentPath(h.dir, before.Generation), Generation: before.Generation, Offset: before.Size,
				Err: fmt.Errorf("file ends, but %d bytes are history", before.Length)}
		}
	}
	return nil
}

// readFull reads len(b) bytes that the file had when it was asked for its size. In
// a log that is being written it may have been cut off since, behind its history,
// where nothing but zeros stood.
func (h *History) readFull(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case h.live:
		clear(b[n:])
		return nil
	}
	return io.ErrUnexpectedEOF
}
