package wal

import "pawl/internal/vfs"

// End is where a log ends: what Begin needs to go on from.
type End struct {
	Store      StoreID
	Generation uint32 // the newest linked; 0 is none
	Length     uint32 // its bytes of history
	LSN        LSN    // of the last group
	Chain      uint32 // header checksum of the last entry
	// LogTime and WallTime, in Unix milliseconds, are those of the last group.
	LogTime, WallTime int64
	Closed            bool   // it ended with the closed marker of a clean stop
	Cut               int64  // bytes behind the end, up to the last that is not zero, that are no history
	Highest           uint32 // highest number that a directory has, linked or not
	Linked            []Info // oldest first
	Unused            []uint32
}

// FindOptions say how to look.
type FindOptions struct {
	Store StoreID // whose files these must be; zero is whoever's they are
	// Settle first syncs each file and directory and drops the page cache, so
	// that nothing is believed that a power loss could still take back. A tool
	// that must not write leaves it out.
	Settle bool
}

// History is the generations of a log, with what their first entries say.
type History struct {
	Store  StoreID
	Linked []Info   // oldest first
	Unused []uint32 // never linked: made ahead, or cut short
}

// Find reads the first entries of every generation in dir and puts the linked
// ones in order. A *CorruptError says that what is there can not be the log of
// one store. It changes nothing, but for Settle.
func Find(fsys vfs.FS, dir string, opt FindOptions) (*History, error) { panic("not yet") }

// ReaderOptions say what to read.
type ReaderOptions struct {
	// After is the LSN up to which a snapshot holds everything: groups above it
	// are read. If generations between are missing that is a *CorruptError.
	After LSN
	// Vouched is the highest LSN that any snapshot, even a bad one, proves to have
	// been durable. At least After.
	Vouched LSN
}

// Reader reads groups in LSN order and verifies all it reads. Use it like
// bufio.Scanner.
type Reader struct{}

// Reader starts at the first group above opt.After.
func (h *History) Reader(opt ReaderOptions) (*Reader, error) { panic("not yet") }

// Next goes to the next group. False at the end of the log and at an error.
func (r *Reader) Next() bool { panic("not yet") }

// Group is the present one, valid until Next.
func (r *Reader) Group() *Stored { panic("not yet") }

// Err is what stopped Next: nil at the end of the log, a *CorruptError where
// something vouches for what can not be read, or an IO error.
func (r *Reader) Err() error { panic("not yet") }

// End is valid once Next has returned false and Err is nil.
func (r *Reader) End() End { panic("not yet") }

// Verify reads one linked generation whole and checks everything in it, bodies
// too. The newest ends where the log ends.
func (h *History) Verify(generation uint32) error { panic("not yet") }

// Generation reads the groups of one linked generation, for tools and cleaning.
func (h *History) Generation(generation uint32) (*Reader, error) { panic("not yet") }

// Stored is a group as it stands in the log. Its slices are the reader's.
type Stored struct {
	LSN               LSN
	Generation        uint32
	Offset            int64 // of its entry in the segment file
	LogTime, WallTime int64 // Unix milliseconds
	Records           []Record
}

// Record is one record as it stands in the log: LSN.k is its index in Records.
type Record struct {
	Head, Body []byte
	Pos        Pos // of Body
}
