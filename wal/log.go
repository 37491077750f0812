package wal

// Log writes groups and reads bodies. Open, Fits, Add and Seal belong to one
// caller at a time (the engine's critical section) and do no IO; Commit and
// Close belong to one caller at a time too, and may run beside them. All else
// may be called from any goroutine.
//
// The first failed write or sync poisons the log for good: what is on disk is
// then unknown, and only recovery can tell.
type Log struct{}

// Begin starts a new generation behind end, which Reader.End said, or which is
// End{Store: id} for a new store. When it returns the generation is linked and
// durable, so what end says can no longer change; generations that were never
// linked are gone, and the space behind linked lengths is given back.
func Begin(opt Options, end End) (*Log, error) { panic("not yet") }

// Open returns the next group. Its place is fixed: positions that Add returns
// are final. n is how many bytes of records (RecordBytes) it must have room
// for, at least; so a command whose records are counted first never meets a
// full group. The group before must be sealed. There is no IO.
//
// ErrPreparing, ErrNoSpace and ErrTooLarge change nothing.
func (l *Log) Open(n int) (*Group, error) { panic("not yet") }

// Prepared is closed when there is news for a caller that Open answered with
// ErrPreparing or ErrNoSpace. Take it before Open, or the news may be missed.
func (l *Log) Prepared() <-chan struct{} { panic("not yet") }

// Room says without side effects what Open(n) would answer: nil, ErrPreparing,
// ErrNoSpace or ErrTooLarge.
func (l *Log) Room(n int) error { panic("not yet") }

// Seal ends an open group and dates it. Times are Unix milliseconds. The next
// group may be opened at once; several may wait for Commit. A group without
// records is allowed.
func (l *Log) Seal(g *Group, logTime, wallTime int64) { panic("not yet") }

// Commit makes a sealed group durable as the sync policy says. Groups come in
// LSN order. It costs one write and at most one fdatasync, but for the first
// group of a generation under SyncInterval and SyncNever. After an error, which
// is final, the group may or may not be in the log.
//
// Group commit: DeWitt et al., "Implementation Techniques for Main Memory
// Database Systems", SIGMOD 1984.
func (l *Log) Commit(g *Group) error { panic("not yet") }

// Durable is the highest LSN that is certainly on disk.
func (l *Log) Durable() LSN { panic("not yet") }

// Failed is closed when a write or sync has failed; Failure says how.
func (l *Log) Failed() <-chan struct{} { panic("not yet") }

// Failure is nil while the log works.
func (l *Log) Failure() error { panic("not yet") }

// Idle writes the idle marker now, unless groups are open or waiting, or there
// is nothing new to mark. With Foreground it also syncs it. The log does this
// by itself otherwise.
func (l *Log) Idle() error { panic("not yet") }

// Close writes the closed marker, syncs, and ends the log's goroutines. All
// groups must be committed. After a failure it only ends and returns it.
func (l *Log) Close() error { panic("not yet") }

// Read appends the body at pos to dst. The group that carries it must have been
// committed, and the generation be held or known to stay. A *CorruptError says
// that the bytes on disk are not those; any other error says nothing about
// them (too many open files, for one).
func (l *Log) Read(pos Pos, dst []byte) ([]byte, error) { panic("not yet") }

// Hold keeps a generation from being dropped until Unhold. Holds are counted.
func (l *Log) Hold(generation uint32) { panic("not yet") }

// Unhold takes a Hold back.
func (l *Log) Unhold(generation uint32) { panic("not yet") }

// Drop removes a generation and returns when its removal is durable. The caller
// knows that nothing needs it. ErrHeld, ErrInUse.
func (l *Log) Drop(generation uint32) error { panic("not yet") }

// Generations lists the linked generations, oldest first. The last is the one
// being written.
func (l *Log) Generations() []Info { panic("not yet") }

// Stats are counters since Begin and gauges. Reading them never waits for IO.
func (l *Log) Stats() Stats { panic("not yet") }

// Stats is what metrics read.
type Stats struct {
	Groups, Records, Syncs, Bytes uint64 // written; Bytes with headers and filler
	Markers                       uint64 // idle markers
	Prepared                      int    // generations ready
	PreparationFailures           uint64
	DiskBytes                     int64 // all segment files, prepared ones too
	CacheHits, FileReads          uint64
}

// Info describes one linked generation.
type Info struct {
	Generation uint32
	FirstLSN   LSN   // of its first group; one more than LastLSN if it has none
	LastLSN    LSN   // of its last group. Of the generation being written: so far
	Length     int64 // bytes of history
	Size       int64 // bytes of the segment file
	Sealed     bool  // a later generation is linked, nothing more comes
	// LogTime and WallTime, in Unix milliseconds, are those of the last group.
	// 0 of a generation that was written before Begin.
	LogTime, WallTime int64
	Holds             int
}

// Group is one open, sealed or committed group.
type Group struct{}

// LSN numbers it.
func (g *Group) LSN() LSN { panic("not yet") }

// Records is how many Add has taken.
func (g *Group) Records() int { panic("not yet") }

// Bytes is what its records take, as RecordBytes counts.
func (g *Group) Bytes() int { panic("not yet") }

// Fits says whether records of n bytes together still go into the group. Where
// Open was asked for room they do.
func (g *Group) Fits(n int) bool { panic("not yet") }

// Full says that the group has reached its target of 256 KiB (a sixteenth of a
// small generation) and is better sealed.
func (g *Group) Full() bool { panic("not yet") }

// Add copies one record into the group and returns the position of its body,
// the zero Pos if it has none. A head must not be empty. It panics if the record
// does not fit; it does not allocate.
func (g *Group) Add(head, body []byte) Pos { panic("not yet") }

// RecordBytes is what a record with such a head and body takes in a group.
func RecordBytes(head, body int) int { panic("not yet") }
