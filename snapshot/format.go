package snapshot

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"

	"pawl/state"
)

// The bytes of a snapshot. FORMAT.md draws them and decodes an example. What
// stands here is frozen: a change is a new format number, and the reader of
// every older one stays.
//
//	preamble   magic "PAWLSNAP" | format u32 | CRC-32C of these 12 bytes u32
//	header     112 bytes behind it, the last 4 the CRC-32C of the 124 before
//	block      length u32, 1 … MaxBlock | check u32 | payload
//	…
//	end        length 0 u32 | check u32 | payload bytes u64 | blocks u64
//
// All numbers are little endian. The check of a block is the CRC-32C of the
// check before it (the header's for the first), its length and its payload, so
// no block can be moved, repeated, left out or taken from another snapshot.
const (
	magic = "PAWLSNAP"

	// Format is the format that this package writes, and the newest it reads. In
	// format 1 the payload is a state of version 1, all else is the same.
	Format = 2

	preambleLen    = 16
	headerLen      = 128
	blockHeaderLen = 8
	endLen         = 24

	// MaxBlock is the largest payload of one block in bytes.
	MaxBlock = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// StoreID names a data directory for ever: random, made once.
type StoreID [16]byte

// String is 32 hexadecimal digits.
func (id StoreID) String() string { return hex.EncodeToString(id[:]) }

// Meta says what a snapshot is of. It stands in the header.
type Meta struct {
	Store   StoreID
	History uint32       // of the store; a restore begins a new one
	LSN     uint64       // the state after the group of this number, exactly
	LogTime state.Millis // of that group
	Wall    state.Millis // wall time of that group, Unix milliseconds
	Jobs    uint64       // that the state holds; for people, and checked by who loads it
}

// DamageError says where a snapshot is not what was written.
type DamageError struct {
	File   string // empty while only bytes are known
	Offset int64
	Want   string // what should have stood there
	Got    string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at offset %d: want %s, got %s", named(e.File), e.Offset, e.Want, e.Got)
}

// FormatError is a snapshot of a format that this program does not know. It is
// no damage: the program that wrote it can read it.
type FormatError struct {
	File  string
	Found uint32
	Known uint32 // the newest format that can be read
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this program reads formats 1 to %d", named(e.File), e.Found, e.Known)
}

// ErrForeign is a file with a sound beginning that belongs to another store,
// or to another history of this one.
var ErrForeign = errors.New("snapshot of another store")

func named(file string) string {
	if file == "" {
		return "snapshot"
	}
	return "snapshot " + file
}

// encodeHeader gives the 128 bytes of preamble and header.
func encodeHeader(m Meta) []byte {
	le := binary.LittleEndian
	dst := append(make([]byte, 0, headerLen), magic...)
	dst = le.AppendUint32(dst, Format)
	dst = le.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
	dst = append(dst, m.Store[:]...)
	dst = le.AppendUint32(dst, m.History)
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint64(dst, m.LSN)
	dst = le.AppendUint64(dst, uint64(m.LogTime))
	dst = le.AppendUint64(dst, uint64(m.Wall))
	dst = le.AppendUint64(dst, m.Jobs)
	dst = append(dst, make([]byte, headerLen-4-len(dst))...)
	return le.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
}

// decodeHeader reads the 128 bytes that encodeHeader gave and gives their
// checksum, with which the chain of the blocks begins. Magic, format and
// checksum are looked at in this order, so that what a newer program wrote is
// told from damage whatever its header looks like.
func decodeHeader(b []byte) (m Meta, chain uint32, err error) {
	le := binary.LittleEndian
	if len(b) < preambleLen {
		return m, 0, &DamageError{Offset: int64(len(b)), Want: "a header of 128 bytes", Got: "the end of the file"}
	}
	if got := b[:8]; string(got) != magic {
		return m, 0, &DamageError{Want: fmt.Sprintf("%q", magic), Got: fmt.Sprintf("%q", got)}
	}
	if want, got := crc32.Checksum(b[:12], castagnoli), le.Uint32(b[12:]); want != got {
		return m, 0, &DamageError{Offset: 8, Want: fmt.Sprintf("checksum %08x of the preamble", want), Got: fmt.Sprintf("%08x", got)}
	}
	if f := le.Uint32(b[8:]); f < 1 || f > Format {
		return m, 0, &FormatError{Found: f, Known: Format}
	}
	if len(b) < headerLen {
		return m, 0, &DamageError{Offset: int64(len(b)), Want: "a header of 128 bytes", Got: "the end of the file"}
	}
	chain = crc32.Checksum(b[:headerLen-4], castagnoli)
	if got := le.Uint32(b[headerLen-4:]); chain != got {
		return m, 0, &DamageError{Offset: headerLen - 4, Want: fmt.Sprintf("checksum %08x of the header", chain), Got: fmt.Sprintf("%08x", got)}
	}
	m.Store = StoreID(b[16:32])
	m.History = le.Uint32(b[32:])
	m.LSN = le.Uint64(b[40:])
	m.LogTime = state.Millis(le.Uint64(b[48:]))
	m.Wall = state.Millis(le.Uint64(b[56:]))
	m.Jobs = le.Uint64(b[64:])
	return m, chain, nil
}

// chained is the check of a block with this length field and payload behind a
// block with the check prev.
func chained(prev, length uint32, payload []byte) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:4], prev)
	binary.LittleEndian.PutUint32(b[4:], length)
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, payload)
}
