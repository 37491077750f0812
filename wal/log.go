package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Log writes groups and reads bodies. Open, Fits, Add, Withdraw and Seal belong to one
// caller at a time (the engine's critical section) and do no IO; Commit and
// Close belong to one caller at a time too, and may run beside them. All else
// may be called from any goroutine.
//
// The first failed write or sync poisons the log for good: what is on disk is
// then unknown, and only recovery can tell.
//
// Locks are taken in the order writing, syncing, mu, images, and none of the
// last two is held during IO.
type Log struct {
	opt      Options
	store    StoreID
	maxGroup int // bytes of records in a group, but for one big command
	started  time.Time

	// mu guards places: what has been opened where, and what is there to open.
	mu       sync.Mutex
	at       *generation   // where the next group goes
	open     *Group        // nil between Seal and Open
	taken    *Group        // that was withdrawn, for the next Open
	opened   LSN           // of the last group that was opened
	waiting  int           // groups opened and not committed
	entered  []*generation // at has been there, current has not
	prepared []*generation // in order of number
	passed   []*generation // prepared, but overtaken by a larger one: to be removed
	retired  []*generation // full: to be closed and trimmed
	spare    []byte        // image of a generation that is cached no more
	highest  uint32        // number of the newest generation, whatever became of it
	linked   *generation   // the newest that is certainly linked
	members  []*Info       // linked, oldest first
	want     int           // bytes of records that somebody needs a generation for
	cause    error         // why the last preparation failed, nil if it did not
	news     chan struct{} // closed when prepared or cause has changed
	ended    bool          // Close has been called

	// writing is held by whoever writes: Commit, Idle, Close.
	writing           sync.Mutex
	current           *generation // that is being written
	written           int         // its bytes of history
	committed         LSN         // last group written
	chain             uint32      // header checksum of the last entry
	logTime, wallTime int64       // of the last group
	unmarked          bool        // a group was written since the last mark
	witness           *generation // prepared, has the last mark too; nil if none

	// syncing is held during a sync until a failure of it is known to all: the
	// kernel reports a lost write once, and the next sync of the file would say
	// that all is well.
	syncing sync.Mutex

	durable atomic.Uint64 // LSN
	failure atomic.Pointer[failure]
	failed  chan struct{}

	keeper   keeper
	kick     chan struct{} // to the maker, that it may lack something
	stop     chan struct{} // closed by Close
	finished sync.WaitGroup

	images images
	files  files
	holds  holds
	counts counts
}

// Begin starts a new generation behind end, which Reader.End said, or which is
// End{Store: id} for a new store. When it returns the generation is linked and
// durable, so what end says can no longer change; generations that were never
// linked are gone, and the space behind linked lengths is given back.
func Begin(opt Options, end End) (*Log, error) {
	opt = opt.withDefaults()
	if err := opt.validate(); err != nil {
		return nil, err
	}
	if end.Store == (StoreID{}) {
		return nil, errors.New("wal: begin without a store ID")
	}
	l := &Log{
		opt:       opt,
		store:     end.Store,
		maxGroup:  min(maxGroupBytes, opt.GenerationBytes/4),
		started:   time.Now(),
		opened:    end.LSN,
		highest:   max(end.Highest, end.Generation),
		committed: end.LSN,
		chain:     end.Chain,
		logTime:   end.LogTime,
		wallTime:  end.WallTime,
		news:      make(chan struct{}),
		failed:    make(chan struct{}),
		kick:      make(chan struct{}, 1),
		stop:      make(chan struct{}),
	}
	l.durable.Store(uint64(end.LSN))
	l.keeper.wake, l.keeper.full = make(chan struct{}, 1), make(chan struct{}, 1)
	l.images.init()
	l.files.init(opt.FS, opt.Dir)
	l.holds.init()
	for _, info := range end.Linked {
		info.Sealed = true
		l.members = append(l.members, &info)
	}

	l.highest++
	first, err := makeGeneration(opt, l.store, l.highest, opt.GenerationBytes, end.Generation, end.LSN, nil)
	if err != nil {
		return nil, fmt.Errorf("begin log: %w", err)
	}
	if err := l.begin(first, end); err != nil {
		first.abandon()
		return nil, fmt.Errorf("begin log: %w", err)
	}
	if opt.Foreground {
		l.makeAll()
	} else {
		l.finished.Add(2)
		go l.runMaker()
		go l.runKeeper()
	}
	return l, nil
}

// begin links the first generation and tidies up behind it, in that order: what
// recovery has read must not go before the link says how far it counts.
func (l *Log) begin(first *generation, end End) error {
	l.putLink(first, end.Generation, int(end.Length))
	if err := first.segment.append(first.image[birthEntryBytes:firstGroup], linkEntryBytes); err != nil {
		return err
	}
	if err := first.file.Datasync(); err != nil {
		return err
	}
	l.at, l.current, l.linked, l.written = first, first, first, firstGroup
	l.images.add(first)
	l.addMember(first, end.LSN)
	for _, m := range l.members[:len(l.members)-1] {
		if err := l.trim(m); err != nil {
			return err
		}
	}
	for _, number := range end.Unused {
		if err := removeGeneration(l.opt.FS, l.opt.Dir, number); err != nil {
			return err
		}
	}
	if len(end.Unused) > 0 {
		return l.opt.FS.SyncDir(l.opt.Dir)
	}
	return nil
}

// putLink writes the link of a generation that follows the present state of the
// log into its image.
func (l *Log) putLink(gen *generation, previous uint32, length int) {
	entry := gen.image[birthEntryBytes:firstGroup]
	content := entry[prefixBytes+headerBytes:]
	binary.LittleEndian.PutUint32(content, previous)
	binary.LittleEndian.PutUint32(content[4:], uint32(length))
	h := l.header(kindLink, gen)
	encodeEntry(entry, &h, linkBytes)
	l.chain = h.sum
}

// header is that of the next entry, for a group but without its LSN and times.
func (l *Log) header(k kind, gen *generation) header {
	return header{
		kind: k, salt: gen.salt, store: l.store, generation: gen.number,
		lsn: l.committed, durable: l.Durable(), logTime: l.logTime, wallTime: l.wallTime, chain: l.chain,
	}
}

// Open returns the next group. Its place is fixed: positions that Add returns
// are final. n is how many bytes of records (RecordBytes) it must have room
// for, at least; so a command whose records are counted first never meets a
// full group. The group before must be sealed or withdrawn. There is no IO, but
// with Options.Foreground.
//
// ErrPreparing, ErrNoSpace and ErrTooLarge change nothing.
func (l *Log) Open(n int) (*Group, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open != nil {
		panic(fmt.Sprintf("wal: group %d is open", l.open.lsn))
	}
	next, err := l.place(n)
	if err != nil {
		return nil, err
	}
	if next >= 0 {
		l.passed = append(l.passed, l.prepared[:next]...)
		l.at = l.prepared[next]
		l.entered = append(l.entered, l.at)
		l.prepared = append(l.prepared[:0], l.prepared[next+1:]...)
		l.kickMaker()
	}
	l.opened++
	l.waiting++
	records := l.at.tail + prefixBytes + headerBytes
	room := min(l.at.room(), max(l.maxGroup, n))
	g := l.taken
	if l.taken = nil; g == nil {
		g = new(Group)
	}
	*g = Group{
		gen:    l.at,
		lsn:    l.opened,
		offset: l.at.tail,
		buf:    l.at.image[records : records : records+room],
		full:   min(targetGroupBytes, l.maxGroup/4),
	}
	l.open = g
	return g, nil
}

// place finds where a group with n bytes of records goes: the index of a
// prepared generation, or -1 for the present one. With Foreground it makes what
// is missing. The caller holds mu.
func (l *Log) place(n int) (int, error) {
	switch {
	case l.ended:
		return 0, ErrClosed
	case l.Failure() != nil:
		return 0, l.Failure()
	case padded(headerBytes+n) > maxEntryBytes:
		return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, n)
	case l.at.fits(n):
		return -1, nil
	}
	for tried := false; ; tried = true {
		for i, gen := range l.prepared {
			if gen.fits(n) {
				return i, nil
			}
		}
		l.want = max(l.want, n)
		if tried || !l.opt.Foreground {
			break
		}
		l.mu.Unlock()
		l.makeAll()
		l.mu.Lock()
	}
	l.kickMaker()
	if l.cause != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoSpace, l.cause)
	}
	return 0, ErrPreparing
}

// Prepared is closed when there is news for a caller that Open answered with
// ErrPreparing or ErrNoSpace, and when the log has failed or ended. Take it
// before Open, or the news may be missed.
func (l *Log) Prepared() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.news
}

// Withdraw takes an open group back that has no records, and is not to be used any
// more: all is as if it had not been opened, but for generations that were passed over.
func (l *Log) Withdraw(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open != g || g.count > 0 {
		panic(fmt.Sprintf("wal: group %d, of %d records, cannot be withdrawn", g.lsn, g.count))
	}
	l.open, l.taken = nil, g
	l.opened--
	l.waiting--
	if n := len(l.entered) - 1; n >= 0 && l.entered[n] == g.gen && g.offset == firstGroup {
		// It would have been the first of its generation, which is as good as new.
		l.entered, l.at = l.entered[:n], l.current
		if n > 0 {
			l.at = l.entered[n-1]
		}
		l.prepared = slices.Insert(l.prepared, 0, g.gen)
	}
}

// Seal ends an open group and dates it. Times are Unix milliseconds. The next
// group may be opened at once; several may wait for Commit. A group without
// records is allowed.
func (l *Log) Seal(g *Group, logTime, wallTime int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open != g {
		panic(fmt.Sprintf("wal: seal of group %d, which is not the open one", g.lsn))
	}
	g.sealed, g.logTime, g.wallTime = true, logTime, wallTime
	g.gen.tail = g.offset + g.size()
	l.open = nil
}

// Close writes the closed mark, syncs, and ends the log's goroutines. All groups
// must be committed. After a failure it only ends and returns it. Generations
// made ahead stay, for they witness which one was written last. Close may be
// called again.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return l.Failure()
	}
	l.ended = true
	waiting := l.waiting
	l.tell()
	l.mu.Unlock()
	close(l.stop)
	l.finished.Wait()

	l.writing.Lock()
	defer l.writing.Unlock()
	l.tidy() // first: a segment that cannot be closed is a failure
	err := l.Failure()
	if err == nil && waiting > 0 {
		err = fmt.Errorf("wal: closed with %d groups that were not committed", waiting)
	}
	if err == nil {
		if _, err = l.mark(kindClosed); err == nil {
			if err = l.syncMark(); err != nil {
				err = fmt.Errorf("close log: %w", err)
			}
		}
	}
	if e := l.current.segment.close(); err == nil && e != nil {
		err = l.fail(fmt.Errorf("close %s: %w", l.current.path, e))
	}
	l.current.file.Close()
	for _, gen := range l.prepared {
		gen.abandon()
	}
	for _, gen := range l.entered {
		gen.abandon()
	}
	l.files.close()
	return err
}
