package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pawl/internal/vfs"
)

// Log writes groups and reads bodies. Open, Fits, Add and Seal belong to one
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
	opened   LSN           // of the last group that was opened
	waiting  int           // groups opened and not committed
	entered  []*generation // at has been there, current has not
	prepared []*generation // in order of number
	passed   []*generation // prepared, but overtaken by a larger one: to be removed
	retired  []*generation // full: to be closed and trimmed
	spare    []byte        // image of a generation that is cached no more
	highest  uint32        // number of the newest generation, whatever became of it
	linked   *generation   // the newest that is certainly linked
	members  []*member     // linked, oldest first
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

type failure struct{ err error }

// member is a linked generation.
type member struct {
	Info
	trimmed bool // nothing lies behind its history
}

// counts are the counters of Stats.
type counts struct {
	groups, records, syncs, bytes, marks, failures, zeros atomic.Uint64
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
	l.keeper.wake = make(chan struct{}, 1)
	l.images.init()
	l.files.init(opt.FS, opt.Dir)
	l.holds.init()
	for _, info := range end.Linked {
		info.Sealed = true
		l.members = append(l.members, &member{Info: info, trimmed: info.Size <= info.Length})
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

// addMember lists a generation whose link, which says that last is the group
// before, is durable.
func (l *Log) addMember(gen *generation, last LSN) {
	if n := len(l.members); n > 0 {
		l.members[n-1].Sealed = true
	}
	l.members = append(l.members, &member{Info: Info{
		Generation: gen.number,
		FirstLSN:   last + 1,
		LastLSN:    last,
		Length:     firstGroup,
		Size:       int64(gen.size),
	}})
}

// Open returns the next group. Its place is fixed: positions that Add returns
// are final. n is how many bytes of records (RecordBytes) it must have room
// for, at least; so a command whose records are counted first never meets a
// full group. The group before must be sealed. There is no IO, but with
// Options.Foreground.
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
	l.open = &Group{
		gen:    l.at,
		lsn:    l.opened,
		offset: l.at.tail,
		buf:    l.at.image[records : records : records+room],
		full:   min(targetGroupBytes, l.maxGroup/4),
	}
	return l.open, nil
}

// Ready says whether records of n bytes would find their places without
// ErrPreparing, in the open group or behind it, in however many groups. It belongs
// to the caller of Open and Add, and has nothing made.
func (l *Log) Ready(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	target := min(targetGroupBytes, l.maxGroup/4)
	n += (n/target + 2) * (prefixBytes + headerBytes + alignBytes) // sealed when full, and once because of its date
	if l.open != nil {
		n += len(l.open.buf) // the tail is behind it when it is sealed
	}
	return l.at.fits(n) || slices.ContainsFunc(l.prepared, func(gen *generation) bool { return gen.fits(n) })
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
	case padded(headerBytes+n) > maxEntryBytes-prefixBytes, sizeFor(0, n) > MaxGenerationBytes:
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

// Commit makes a sealed group durable as the sync policy says. Groups come in
// LSN order. It costs one write and at most one fdatasync, but for the first
// group of a generation, which may have to sync the one before. After an error,
// which is final, the group may or may not be in the log.
//
// Group commit: DeWitt et al., "Implementation Techniques for Main Memory
// Database Systems", SIGMOD 1984.
func (l *Log) Commit(g *Group) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.Failure(); err != nil {
		return err
	}
	if !g.sealed || g.lsn != l.committed+1 {
		panic(fmt.Sprintf("wal: commit of group %d (sealed: %t) after group %d", g.lsn, g.sealed, l.committed))
	}
	turned := g.gen != l.current
	if err := l.write(g, turned); err != nil {
		return l.fail(fmt.Errorf("commit group %d to %s: %w", g.lsn, g.gen.path, err))
	}
	if turned {
		l.turn(g.gen)
	}
	l.noteGroup(g)
	l.keeper.groupWritten(time.Since(l.started))
	if turned {
		l.kickMaker()
		if l.opt.Foreground {
			l.tidy()
			l.makeAll()
		}
	}
	return nil
}

// write puts g, and before it the link if it is the first of its generation,
// into the file, and syncs if that is due.
func (l *Log) write(g *Group, first bool) error {
	gen, from, split := g.gen, g.offset, g.size()
	if first {
		// The link vouches for all that it follows, marks too.
		if err := l.sync(l.current); err != nil {
			return err
		}
		l.putLink(gen, l.current.number, l.written)
		from, split = birthEntryBytes, linkEntryBytes
	}
	end := g.offset + g.size()
	h := l.header(kindGroup, gen)
	h.lsn, h.logTime, h.wallTime, h.records = g.lsn, g.logTime, g.wallTime, uint32(g.count)
	encodeEntry(gen.image[g.offset:end], &h, len(g.buf))
	gen.dirty = true
	if err := gen.segment.append(gen.image[from:end], split); err != nil {
		return err
	}
	l.chain, l.written, l.committed = h.sum, end, g.lsn
	l.logTime, l.wallTime, l.unmarked = g.logTime, g.wallTime, true
	l.counts.bytes.Add(uint64(end - from))
	if first || l.opt.Sync == SyncAlways {
		return l.sync(gen)
	}
	return nil
}

// sync makes what was written to gen durable. The caller holds writing.
func (l *Log) sync(gen *generation) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if !gen.dirty {
		return nil
	}
	if err := l.Failure(); err != nil {
		return err
	}
	if err := gen.file.Datasync(); err != nil {
		return l.fail(err)
	}
	gen.dirty = false
	l.counts.syncs.Add(1)
	l.raiseDurable(l.committed)
	return nil
}

// raiseDurable is called with syncing held.
func (l *Log) raiseDurable(lsn LSN) {
	if lsn > l.Durable() {
		l.durable.Store(uint64(lsn))
	}
}

// turn makes gen the generation that is written. Its link is durable.
func (l *Log) turn(gen *generation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members[len(l.members)-1].trimmed = true // nothing but zeros lies behind
	l.addMember(gen, l.committed-1)
	l.retired = append(l.retired, l.current)
	l.entered = l.entered[1:]
	l.current, l.linked = gen, gen
}

// noteGroup keeps the list of generations and the counters.
func (l *Log) noteGroup(g *Group) {
	l.mu.Lock()
	l.waiting--
	m := l.members[len(l.members)-1]
	m.LastLSN, m.Length = g.lsn, int64(l.written)
	m.LogTime, m.WallTime = g.logTime, g.wallTime
	l.mu.Unlock()
	l.counts.groups.Add(1)
	l.counts.records.Add(uint64(g.count))
}

// Durable is the highest LSN that is certainly on disk.
func (l *Log) Durable() LSN { return LSN(l.durable.Load()) }

// Failed is closed when a write or sync has failed, also one that nobody waits
// for; Failure says how.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Failure is nil while the log works.
func (l *Log) Failure() error {
	if f := l.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// fail poisons the log and returns what did it first.
func (l *Log) fail(err error) error {
	if l.failure.CompareAndSwap(nil, &failure{err}) {
		close(l.failed)
		l.mu.Lock()
		l.tell()
		l.mu.Unlock()
	}
	return l.Failure()
}

// tell wakes who waits for Prepared. The caller holds mu.
func (l *Log) tell() {
	close(l.news)
	l.news = make(chan struct{})
}

// Idle writes the idle mark now, unless groups are open or waiting, or there is
// nothing new to mark, or no room. With Foreground it also syncs it. The log
// does this by itself otherwise.
func (l *Log) Idle() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	marked, err := l.mark(kindIdle, markEntryBytes)
	if err != nil || !marked || !l.opt.Foreground {
		return err
	}
	return l.syncMark()
}

// syncMark makes the last mark durable, in both places. The caller holds
// writing.
func (l *Log) syncMark() error {
	if err := l.sync(l.current); err != nil {
		return err
	}
	if witness := l.standingWitness(); witness != nil {
		return l.sync(witness)
	}
	return nil
}

// standingWitness is the witness if it is still a prepared generation: else a
// group has been written to it and synced, or it was passed over and may be
// closed. The caller holds writing, and is who would close it.
func (l *Log) standingWitness() *generation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.prepared, l.witness) {
		return l.witness
	}
	return nil
}

// mark writes a mark if groups stand still and keep bytes stay free behind it.
// The caller holds writing.
func (l *Log) mark(k kind, keep int) (bool, error) {
	if err := l.Failure(); err != nil {
		return false, err
	}
	if k == kindIdle && !l.unmarked {
		return false, nil
	}
	gen := l.current
	l.mu.Lock()
	at := gen.tail
	if l.waiting > 0 || at+markEntryBytes+keep > gen.size || l.ended != (k == kindClosed) {
		l.mu.Unlock()
		return false, nil
	}
	gen.tail += markEntryBytes // a group that is opened now goes behind it
	l.mu.Unlock()
	entry := gen.image[at : at+markEntryBytes]
	h := l.header(k, gen)
	encodeEntry(entry, &h, 0)
	gen.dirty = true
	if err := gen.segment.append(entry, len(entry)); err != nil {
		return false, l.fail(fmt.Errorf("mark %s: %w", gen.path, err))
	}
	l.chain, l.written, l.unmarked = h.sum, at+markEntryBytes, false
	l.counts.marks.Add(1)
	l.counts.bytes.Add(markEntryBytes)
	l.mu.Lock()
	l.members[len(l.members)-1].Length = int64(l.written)
	l.witness = nil
	if n := len(l.prepared); n > 0 {
		l.witness = l.prepared[n-1]
	}
	l.mu.Unlock()
	if err := l.testify(k); err != nil {
		return false, l.fail(fmt.Errorf("mark %s: %w", l.witness.path, err))
	}
	return true, nil
}

// testify writes a mark a second time, where the link of a prepared generation
// will be: one bad sector can take the last group and the mark behind it, but
// not this one too. Nothing else is written there while writing is held.
func (l *Log) testify(k kind) error {
	if l.witness == nil {
		return nil
	}
	h := l.header(k, l.witness)
	entry := l.witness.image[birthEntryBytes : birthEntryBytes+markEntryBytes]
	encodeEntry(entry, &h, 0)
	l.witness.dirty = true
	_, err := l.witness.file.WriteAt(entry, birthEntryBytes)
	return err
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
	err := l.Failure()
	if err == nil && waiting > 0 {
		err = fmt.Errorf("wal: closed with %d groups that were not committed", waiting)
	}
	if err == nil {
		if _, err = l.mark(kindClosed, 0); err == nil {
			if err = l.syncMark(); err != nil {
				err = fmt.Errorf("close log: %w", err)
			}
		}
	}
	l.tidy()
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

// Generations lists the linked generations, oldest first. The last is the one
// being written.
func (l *Log) Generations() []Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Info, len(l.members))
	for i, m := range l.members {
		list[i] = m.Info
		list[i].Holds = l.holds.count(m.Generation)
	}
	return list
}

// History finds what lies on disk of the log, which goes on meanwhile: groups
// that are not durable may be in it, and generations may go before they are read
// (fs.ErrNotExist).
func (l *Log) History() (h *History, err error) {
	// A generation that comes to an end while it is looked at is a contradiction
	// once.
	for range 3 {
		if h, err = Find(l.opt.FS, l.opt.Dir, FindOptions{Store: l.store}); err == nil {
			return h, nil
		}
	}
	return nil, err
}

// Drop removes a generation and returns when its removal is durable. The caller
// knows that nothing needs it. ErrHeld, ErrInUse. After any other error it may
// be tried again.
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
	case l.holds.count(number) > 0:
		l.mu.Unlock()
		return fmt.Errorf("drop generation %d: %w", number, ErrHeld)
	}
	dropped := l.members[i]
	var before *member
	if i > 0 {
		before = l.members[i-1]
	}
	l.mu.Unlock()

	// The link in this generation says how much of the one before is history.
	if before != nil {
		if err := l.trim(before); err != nil {
			return fmt.Errorf("drop generation %d: %w", number, err)
		}
	}
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

// trim gives back what lies behind the history of a generation that is written
// no more, durably: once the link that says how long it is has gone, its end
// says so.
func (l *Log) trim(m *member) error {
	l.mu.Lock()
	path, length, trimmed := segmentPath(l.opt.Dir, m.Generation), m.Length, m.trimmed
	l.mu.Unlock()
	if trimmed {
		return nil
	}
	if err := truncateFile(l.opt.FS, path, length); err != nil {
		return err
	}
	l.mu.Lock()
	m.trimmed, m.Size = true, length
	l.mu.Unlock()
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

// Stats are counters since Begin and gauges. Reading them never waits for IO.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{
		Groups:              l.counts.groups.Load(),
		Records:             l.counts.records.Load(),
		Syncs:               l.counts.syncs.Load(),
		Bytes:               l.counts.bytes.Load(),
		Markers:             l.counts.marks.Load(),
		ZeroBytes:           l.counts.zeros.Load(),
		Prepared:            len(l.prepared),
		PreparationFailures: l.counts.failures.Load(),
		CacheHits:           l.images.hits.Load(),
		FileReads:           l.files.reads.Load(),
	}
	for _, m := range l.members {
		s.DiskBytes += m.Size
	}
	for _, gen := range l.prepared {
		s.DiskBytes += int64(gen.size)
	}
	return s
}

// Stats is what metrics read.
type Stats struct {
	Groups, Records, Syncs, Bytes uint64 // written; Bytes with headers and filler
	Markers                       uint64 // idle and closed marks
	ZeroBytes                     uint64 // written to make generations ahead
	Prepared                      int    // generations ready
	PreparationFailures           uint64
	DiskBytes                     int64 // all segment files, prepared ones too
	CacheHits, FileReads          uint64
}

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
}
