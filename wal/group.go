package wal

import "fmt"

const (
	targetGroupBytes = 256 << 10
	maxGroupBytes    = 1 << 20
)

// Group is one open, sealed or committed group. It lies in the memory image of
// its generation, where it will lie in the file. It belongs to whoever opened
// it until Commit.
type Group struct {
	gen    *generation
	lsn    LSN
	offset int    // of its entry in the generation
	buf    []byte // records, appended in place; its capacity is the room
	count  int
	full   int // bytes from which on it is better sealed

	sealed            bool
	logTime, wallTime int64
}

// LSN numbers it.
func (g *Group) LSN() LSN { return g.lsn }

// Records is how many Add has taken.
func (g *Group) Records() int { return g.count }

// Bytes is what its records take, as RecordBytes counts.
func (g *Group) Bytes() int { return len(g.buf) }

// Fits says whether records of n bytes together still go into the group. Where
// Open was asked for room they do.
func (g *Group) Fits(n int) bool { return n <= cap(g.buf)-len(g.buf) }

// Full says that the group has reached its target of 256 KiB (a sixteenth of a
// small generation) and is better sealed.
func (g *Group) Full() bool { return len(g.buf) >= g.full }

// Add copies one record into the group and returns the position of its body,
// the zero Pos if it has none. A head must not be empty. It panics if the record
// does not fit or the group is sealed; it does not allocate.
func (g *Group) Add(head, body []byte) Pos {
	size := RecordBytes(len(head), len(body))
	switch {
	case len(head) == 0:
		panic("wal: record without a head")
	case g.sealed:
		panic(fmt.Sprintf("wal: group %d is sealed", g.lsn))
	case !g.Fits(size):
		panic(fmt.Sprintf("wal: record of %d bytes does not fit group %d: %d of %d are taken", size, g.lsn, len(g.buf), cap(g.buf)))
	}
	at := len(g.buf)
	g.buf = g.buf[:at+size]
	at += putRecord(g.buf[at:], head, body)
	g.count++
	if len(body) == 0 {
		return Pos{}
	}
	return Pos{
		Generation: g.gen.number,
		Offset:     uint32(g.offset + prefixBytes + headerBytes + at),
		Length:     uint32(len(body)),
		Checksum:   checksum(body),
	}
}

// size is what the entry takes in the file.
func (g *Group) size() int { return prefixBytes + padded(headerBytes+len(g.buf)) }
