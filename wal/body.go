package wal

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"pawl/internal/vfs"
)

// Read appends the body at pos to dst. The group that carries it must have been
// committed, and the generation be held or known to stay. A *CorruptError says
// that the bytes on disk are not those, or that the disk cannot read them; any
// other error says nothing about them (too many open files, for one).
func (l *Log) Read(pos Pos, dst []byte) ([]byte, error) { return l.read(pos, dst, true) }

// TryRead is Read for those who do not wait until others have read from the disk:
// ErrReading.
func (l *Log) TryRead(pos Pos, dst []byte) ([]byte, error) { return l.read(pos, dst, false) }

func (l *Log) read(pos Pos, dst []byte, patient bool) ([]byte, error) {
	if pos.Length == 0 {
		return dst, nil
	}
	start := len(dst)
	out, ok := l.images.read(pos, dst)
	if !ok {
		var err error
		if out, err = l.files.read(pos, dst, patient); err != nil {
			return dst, err
		}
	}
	if checksum(out[start:]) != pos.Checksum {
		return dst, l.files.corrupt(pos, fmt.Errorf("body %w", errChecksum))
	}
	return out, nil
}

// images finds memory images by generation. Bodies are read from them without
// a system call, the newest of all, which are those most often read.
type images struct {
	mu      sync.RWMutex
	by      map[uint32]*generation
	retired []*generation // oldest first
	bytes   int           // of the retired
	hits    atomic.Uint64
}

func (m *images) init() { m.by = make(map[uint32]*generation) }

func (m *images) add(gen *generation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.by[gen.number] = gen
}

func (m *images) remove(gen *generation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, gen.number)
	gen.image = nil
}

// keep notes that gen is full, forgets the oldest images beyond limit bytes, and
// returns one that nobody reads any more, nil if none.
func (m *images) keep(gen *generation, limit int) (free []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retired = append(m.retired, gen)
	m.bytes += len(gen.image)
	for len(m.retired) > 0 && m.bytes > limit {
		old := m.retired[0]
		m.retired = append(m.retired[:0], m.retired[1:]...)
		m.bytes -= len(old.image)
		delete(m.by, old.number)
		free, old.image = old.image, nil
	}
	return free
}

func (m *images) read(pos Pos, dst []byte) ([]byte, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	gen := m.by[pos.Generation]
	end := uint64(pos.Offset) + uint64(pos.Length)
	if gen == nil || end > uint64(len(gen.image)) {
		return dst, false
	}
	m.hits.Add(1)
	return append(dst, gen.image[pos.Offset:end]...), true
}

const (
	maxOpenFiles = 256
	// maxFileReads is how many reads may wait for the disk at once: they would
	// stand before the log's own writes.
	maxFileReads = 4
)

// files reads segment files through a cache of descriptors, least recently used
// out first. An open one outlives the removal of its file.
type files struct {
	fs    vfs.FS
	dir   string
	turns chan struct{}
	reads atomic.Uint64

	mu     sync.Mutex
	open   map[uint32]*list.Element // of *openFile
	recent *list.List               // most recently used first
}

type openFile struct {
	number  uint32
	file    vfs.File
	users   int  // guarded by files.mu
	evicted bool // closed by the last user
}

func (c *files) init(fsys vfs.FS, dir string) {
	c.fs, c.dir = fsys, dir
	c.turns = make(chan struct{}, maxFileReads)
	c.open = make(map[uint32]*list.Element)
	c.recent = list.New()
}

func (c *files) read(pos Pos, dst []byte, patient bool) ([]byte, error) {
	select {
	case c.turns <- struct{}{}:
	default:
		if !patient {
			return dst, ErrReading
		}
		c.turns <- struct{}{}
	}
	defer func() { <-c.turns }()
	c.reads.Add(1)
	f, err := c.acquire(pos.Generation)
	if errors.Is(err, fs.ErrNotExist) {
		return dst, c.corrupt(pos, ErrMissing)
	}
	if err != nil {
		return dst, fmt.Errorf("read body: %w", err)
	}
	defer c.release(f)
	start := len(dst)
	dst = grow(dst, int(pos.Length))
	n, err := f.file.ReadAt(dst[start:], int64(pos.Offset))
	if n < int(pos.Length) {
		if err == nil || errors.Is(err, io.EOF) {
			err = errTorn
		}
		return dst[:start], c.corrupt(pos, fmt.Errorf("read body: %w", err))
	}
	return dst, nil
}

func (c *files) corrupt(pos Pos, err error) error {
	return &CorruptError{
		Path:       segmentPath(c.dir, pos.Generation),
		Generation: pos.Generation,
		Offset:     int64(pos.Offset),
		Err:        err,
	}
}

// grow makes dst n bytes longer, with whatever bytes.
func grow(dst []byte, n int) []byte {
	if free := cap(dst) - len(dst); free >= n {
		return dst[:len(dst)+n]
	}
	return append(dst, make([]byte, n)...)
}

func (c *files) acquire(number uint32) (*openFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.open[number]; e != nil {
		c.recent.MoveToFront(e)
		f := e.Value.(*openFile)
		f.users++
		return f, nil
	}
	file, err := c.fs.OpenFile(segmentPath(c.dir, number), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	f := &openFile{number: number, file: file, users: 1}
	c.open[number] = c.recent.PushFront(f)
	if c.recent.Len() > maxOpenFiles {
		c.evict(c.recent.Back())
	}
	return f, nil
}

func (c *files) release(f *openFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.users--
	if f.evicted && f.users == 0 {
		f.file.Close()
	}
}

// evict is called with mu held.
func (c *files) evict(e *list.Element) {
	f := c.recent.Remove(e).(*openFile)
	delete(c.open, f.number)
	f.evicted = true
	if f.users == 0 {
		f.file.Close()
	}
}

func (c *files) forget(number uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.open[number]; e != nil {
		c.evict(e)
	}
}

func (c *files) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.recent.Front(); e != nil; e = c.recent.Front() {
		c.evict(e)
	}
}

// Hold keeps a generation from being dropped until Unhold. Holds are counted.
// The caller makes sure that it is not being dropped already.
func (l *Log) Hold(generation uint32) { l.holds.add(generation, 1) }

// Unhold takes a Hold back.
func (l *Log) Unhold(generation uint32) { l.holds.add(generation, -1) }

// HoldAll keeps all generations from being dropped, but for those that are Going,
// until UnholdAll: what Generations lists meanwhile can still be held, one by one.
// Such holds are counted too.
func (l *Log) HoldAll() { l.holds.addAll(1) }

// UnholdAll takes a HoldAll back.
func (l *Log) UnholdAll() { l.holds.addAll(-1) }

type holds struct {
	mu  sync.Mutex
	by  map[uint32]int
	all int // by HoldAll
}

func (h *holds) init() { h.by = make(map[uint32]int) }

func (h *holds) add(generation uint32, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := h.by[generation] + n
	switch {
	case count < 0:
		panic(fmt.Sprintf("wal: generation %d is not held", generation))
	case count == 0:
		delete(h.by, generation)
	default:
		h.by[generation] = count
	}
}

func (h *holds) addAll(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all += n; h.all < 0 {
		panic("wal: not all generations are held")
	}
}

// keep says that a generation must not be dropped.
func (h *holds) keep(generation uint32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all > 0 || h.by[generation] > 0
}

func (h *holds) count(generation uint32) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[generation]
}
