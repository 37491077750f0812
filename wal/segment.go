package wal

import (
	"math"

	library "github.com/tidwall/wal"

	"pawl/internal/vfs"
)

// segmentName is the library's name for the segment whose first entry is 1. A
// generation never has another.
const segmentName = "00000000000000000001"

const (
	dirPerm  = 0o700
	filePerm = 0o600
)

// segment puts entries into a segment file, one behind the other. Its bytes
// reach the file when append returns, and the disk when somebody syncs.
type segment interface {
	// append writes one or two whole entries, prefixes and filler and all, in one
	// write. The first takes split bytes; with one entry that is len(b).
	append(b []byte, split int) error
	close() error
}

// librarySegment is the log library, used for what it is good at: framing and
// one write. Everything it leaves open (checksums, torn tails, directory syncs,
// errors that it forgets) is answered around it; it is never asked to read, and
// never opens what an earlier process wrote.
type librarySegment struct {
	log   *library.Log
	batch library.Batch
	last  uint64 // the library's index of the last entry
}

// createSegment makes the segment file in an empty directory.
func createLibrarySegment(dir string) (*librarySegment, error) {
	log, err := library.Open(dir, &library.Options{ // a fresh one: Open writes to it
		NoSync:           true,        // we sync, through a descriptor of our own
		SegmentSize:      math.MaxInt, // a batch across two segments is not atomic
		SegmentCacheSize: 1,
		NoCopy:           true,
		DirPerms:         dirPerm,
		FilePerms:        filePerm,
	})
	if err != nil {
		return nil, err
	}
	return &librarySegment{log: log}, nil
}

func (s *librarySegment) append(b []byte, split int) error {
	// The library writes the varint itself; what it takes as data begins with
	// our filler.
	s.last++
	if split == len(b) {
		return s.log.Write(s.last, b[prefixVarint(b):])
	}
	s.batch.Clear()
	s.batch.Write(s.last, b[prefixVarint(b):split])
	s.last++
	s.batch.Write(s.last, b[split+prefixVarint(b[split:]):])
	err := s.log.WriteBatch(&s.batch)
	s.batch = library.Batch{} // it would keep the largest group for good
	return err
}

func (s *librarySegment) close() error { return s.log.Close() }

// prefixVarint is how many of the first bytes of an entry are the varint.
func prefixVarint(b []byte) int {
	n := 1
	for b[n-1] >= 0x80 {
		n++
	}
	return n
}

// plainSegment gives the same bytes on a file system that the library can not
// use. A test holds the two equal.
type plainSegment struct {
	file   vfs.File // not closed: it is the generation's
	offset int64
}

func (s *plainSegment) append(b []byte, _ int) error {
	n, err := s.file.WriteAt(b, s.offset)
	s.offset += int64(n)
	return err
}

func (s *plainSegment) close() error { return nil }
