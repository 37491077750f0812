package recovery

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/wal"
)

// Scrubber re-reads the closed files of a running store, slowly and again and
// again, so that rot is known before the bytes are needed. It changes nothing.
type Scrubber struct {
	FS       vfs.FS // vfs.OS{}
	Dir      string
	Identity Identity

	// BytesPerSecond bounds the reading to begin with; 0 is 1 MiB. See SetRate.
	BytesPerSecond int64
	// Every is the least time from the beginning of one round to the next; 0 is a
	// day.
	Every time.Duration
	// Found is told of each damaged file, once a round, with a *DamageError; and
	// of what kept a file from being read. It must not block for long.
	Found func(error)

	rounds, bytes, damaged atomic.Uint64

	mu      sync.Mutex
	rate    int64         // guarded by mu; of SetRate: 0 is BytesPerSecond, below is a rest
	changed chan struct{} // guarded by mu; closed by the next SetRate; nil is nobody's
}

// SetRate bounds the reading to so many bytes a second from now on; 0 or less
// rests until there is another rate.
func (s *Scrubber) SetRate(bytesPerSecond int64) {
	if bytesPerSecond <= 0 {
		bytesPerSecond = -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate = bytesPerSecond
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// perSecond is the rate that holds until changed is closed; below zero is a rest.
func (s *Scrubber) perSecond() (rate int64, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = make(chan struct{}) // one goroutine pays at a time, so nobody waits for the one before
	switch {
	case s.rate != 0:
		rate = s.rate
	case s.BytesPerSecond > 0:
		rate = s.BytesPerSecond
	default:
		rate = 1 << 20
	}
	return rate, s.changed
}

// pay waits as long as reading n bytes has to take, whatever becomes of the rate
// meanwhile, and while the scrubber rests. Its only error is that ctx ended.
func (s *Scrubber) pay(ctx context.Context, n int) error {
	left := float64(n)
	for {
		rate, changed := s.perSecond()
		if rate > 0 && left < 1 {
			return nil
		}
		var enough <-chan time.Time // never, in a rest
		began := time.Now()
		if rate > 0 {
			timer := time.NewTimer(time.Duration(left / float64(rate) * float64(time.Second)))
			defer timer.Stop()
			enough = timer.C
		}
		select {
		case <-enough:
			left = 0
		case <-changed:
			left -= max(0, float64(rate)) * time.Since(began).Seconds()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ScrubNumbers count since Run began.
type ScrubNumbers struct {
	Rounds  uint64 // that were completed
	Bytes   uint64 // read
	Damaged uint64 // findings that are damage
}

// Numbers may be read at any time.
func (s *Scrubber) Numbers() ScrubNumbers {
	return ScrubNumbers{s.rounds.Load(), s.bytes.Load(), s.damaged.Load()}
}

// Run scrubs until ctx ends, and returns its error.
func (s *Scrubber) Run(ctx context.Context) error {
	every := s.Every
	if every == 0 {
		every = 24 * time.Hour
	}
	for {
		next := time.NewTimer(every)
		if err := s.Round(ctx); err != nil {
			next.Stop()
			return err
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return ctx.Err()
		}
	}
}

// Round reads every closed file once. Its only error is that ctx ended.
func (s *Scrubber) Round(ctx context.Context) error {
	if err := s.pay(ctx, 0); err != nil { // rests
		return err
	}
	slow := &slowFS{FS: s.FS, ctx: ctx, scrubber: s}
	if slow.FS == nil {
		slow.FS = vfs.OS{}
	}
	s.generations(ctx, slow)
	s.snapshots(ctx, slow)
	if ctx.Err() == nil {
		s.rounds.Add(1)
	}
	return ctx.Err()
}

func (s *Scrubber) generations(ctx context.Context, slow *slowFS) {
	history, err := wal.Find(slow, LogDir(s.Dir), wal.FindOptions{Store: wal.StoreID(s.Identity.ID), Live: true})
	if err != nil {
		s.report(ctx, err)
		return
	}
	for _, damage := range history.Damaged {
		s.report(ctx, damage)
	}
	slow.fromDisk = true
	for _, info := range history.Linked {
		if ctx.Err() != nil {
			return
		}
		if info.Sealed { // the others are being written
			s.report(ctx, history.Verify(info.Generation))
		}
	}
}

func (s *Scrubber) snapshots(ctx context.Context, slow *slowFS) {
	files, err := snapshot.List(slow, SnapshotDir(s.Dir))
	if err != nil {
		s.report(ctx, err)
		return
	}
	for _, file := range files {
		_, err := snapshot.Verify(ctx, slow, file.Path)
		s.report(ctx, err)
	}
}

// report passes on what was found. That a file has gone meanwhile is no news.
func (s *Scrubber) report(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	err = judged(err)
	if IsDamage(err) {
		s.damaged.Add(1)
	}
	if s.Found != nil {
		s.Found(err)
	}
}

// slowFS reads no more than so many bytes a second.
type slowFS struct {
	vfs.FS
	ctx      context.Context // of one Round
	scrubber *Scrubber

	// fromDisk says that files are read from the disk and not from the page cache.
	// A generation that is being written, or will be, keeps its pages: without them
	// a write of less than a page reads the rest of it first, under everybody's
	// commit.
	fromDisk bool
}

func (f *slowFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if !f.fromDisk {
		return &slowFile{file, f}, nil
	}
	if err := file.DropCache(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &slowFile{file, f}, nil
}

type slowFile struct {
	vfs.File
	fs *slowFS
}

// slowPiece is what is read at once.
const slowPiece = 64 << 10

func (f *slowFile) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		part := p[n:min(n+slowPiece, len(p))]
		got, err := f.File.ReadAt(part, off+int64(n))
		n += got
		f.fs.scrubber.bytes.Add(uint64(got))
		if err != nil {
			return n, err
		}
		if err := f.fs.scrubber.pay(f.fs.ctx, got); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Sync does nothing: the files are not the scrubber's, and their owner has
// synced them.
func (f *slowFile) Sync() error { return nil }
