package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The bytes of a segment file; FORMAT.md draws them. All of this is frozen: a
// change is a new formatVersion, and this version must stay readable.
//
//	entry   prefix (4) | header (88) | content | zeros to a multiple of 8
//	prefix  length of the rest as a varint, then zeros
//	content records of a group; 8 bytes in a birth and a link; nothing in a mark
//	record  varint head length | varint body length | head | body
const (
	magic         = "PAWL"
	formatVersion = 1

	prefixBytes = 4
	headerBytes = 88
	alignBytes  = 8

	birthBytes = 8 // newest linked generation (4), size of the segment file (4)
	linkBytes  = 8 // previous generation (4), its bytes of history (4)

	birthEntryBytes = prefixBytes + headerBytes + birthBytes
	linkEntryBytes  = prefixBytes + headerBytes + linkBytes
	markEntryBytes  = prefixBytes + headerBytes
	firstGroup      = birthEntryBytes + linkEntryBytes // offset of the first group

	// maxEntryBytes is what a four-byte varint can count.
	maxEntryBytes = 1<<28 - 1
)

// kind says what an entry is.
type kind uint16

const (
	kindGroup  kind = 1 + iota
	kindBirth       // first entry of a generation, durable before it is used
	kindLink        // second: what the generation follows, written with its first group
	kindIdle        // nothing has come for a while; repeats the LSN
	kindClosed      // a clean stop; repeats the LSN
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// header stands before the content of every entry, little endian.
type header struct {
	kind       kind
	salt       uint64 // of the generation, never shown to a client
	store      StoreID
	lsn        LSN // of this group, or of the group before
	durable    LSN // highest LSN known to be on disk when this was built
	logTime    int64
	wallTime   int64
	generation uint32
	length     uint32 // header and content
	records    uint32
	chain      uint32 // sum of the entry before; of the last one of the previous generation in a link
	contentSum uint32 // CRC-32C of the content
	sum        uint32 // CRC-32C of the header before it
}

// encode fills dst[:headerBytes] and h.sum.
func (h *header) encode(dst []byte) {
	le := binary.LittleEndian
	copy(dst, magic)
	le.PutUint16(dst[4:], formatVersion)
	le.PutUint16(dst[6:], uint16(h.kind))
	le.PutUint64(dst[8:], h.salt)
	copy(dst[16:32], h.store[:])
	le.PutUint64(dst[32:], uint64(h.lsn))
	le.PutUint64(dst[40:], uint64(h.durable))
	le.PutUint64(dst[48:], uint64(h.logTime))
	le.PutUint64(dst[56:], uint64(h.wallTime))
	le.PutUint32(dst[64:], h.generation)
	le.PutUint32(dst[68:], h.length)
	le.PutUint32(dst[72:], h.records)
	le.PutUint32(dst[76:], h.chain)
	le.PutUint32(dst[80:], h.contentSum)
	h.sum = checksum(dst[:84])
	le.PutUint32(dst[84:], h.sum)
}

// Why a header or an entry is none.
var (
	errNoHeader = errors.New("no header")
	errChecksum = errors.New("checksum does not match")
	errLength   = errors.New("length does not match")
	errPadding  = errors.New("filler is not zero")
	errTorn     = errors.New("entry is cut short")
)

// decodeHeader reads one, whosever it is. It says ErrFormat only of a header
// that is whole: magic and checksum come first.
func decodeHeader(b []byte) (header, error) {
	if len(b) < headerBytes {
		return header{}, errTorn
	}
	if string(b[:4]) != magic {
		return header{}, errNoHeader
	}
	le := binary.LittleEndian
	h := header{
		kind:       kind(le.Uint16(b[6:])),
		salt:       le.Uint64(b[8:]),
		store:      StoreID(b[16:32]),
		lsn:        LSN(le.Uint64(b[32:])),
		durable:    LSN(le.Uint64(b[40:])),
		logTime:    int64(le.Uint64(b[48:])),
		wallTime:   int64(le.Uint64(b[56:])),
		generation: le.Uint32(b[64:]),
		length:     le.Uint32(b[68:]),
		records:    le.Uint32(b[72:]),
		chain:      le.Uint32(b[76:]),
		contentSum: le.Uint32(b[80:]),
		sum:        le.Uint32(b[84:]),
	}
	if checksum(b[:84]) != h.sum {
		return header{}, fmt.Errorf("header %w", errChecksum)
	}
	if v := le.Uint16(b[4:]); v != formatVersion {
		return header{}, fmt.Errorf("%w: format %d, this program reads formats 1 to %d", ErrFormat, v, formatVersion)
	}
	if h.kind < kindGroup || h.kind > kindClosed {
		return header{}, fmt.Errorf("%w: entry kind %d", ErrFormat, h.kind)
	}
	return h, nil
}

// padded rounds the length of header and content up to what an entry takes.
func padded(length int) int { return (length + alignBytes - 1) &^ (alignBytes - 1) }

// putPrefix writes what the log library would before an entry of n bytes, n
// being padded, with filler where its varint is short. It returns how long the
// varint is. Multiples of 8 miss the lengths where filler and varint can not
// add up to four bytes: 125, 16,382 and 2,097,151.
func putPrefix(dst []byte, n int) int {
	clear(dst[:prefixBytes])
	for varint := 1; ; varint++ {
		rest := n + prefixBytes - varint
		if varintBytes(rest) == varint {
			return binary.PutUvarint(dst, uint64(rest))
		}
	}
}

// decodePrefix returns the bytes of the entry behind its four bytes.
func decodePrefix(b []byte) (int, error) {
	if len(b) < prefixBytes {
		return 0, errTorn
	}
	rest, varint := binary.Uvarint(b[:prefixBytes])
	if varint <= 0 || varint != varintBytes(int(rest)) {
		return 0, errLength
	}
	if !allZero(b[varint:prefixBytes]) {
		return 0, errPadding
	}
	n := int(rest) - (prefixBytes - varint)
	if n < headerBytes || n%alignBytes != 0 {
		return 0, errLength
	}
	return n, nil
}

// decodeEntry takes the entry at the start of b apart, checks its sums and its
// filler, and returns its header, its content and the bytes it takes.
func decodeEntry(b []byte) (h header, content []byte, size int, err error) {
	n, err := decodePrefix(b)
	if err != nil {
		return header{}, nil, 0, err
	}
	b = b[prefixBytes:]
	if h, err = decodeHeader(b); err != nil {
		return header{}, nil, 0, err
	}
	if h.length < headerBytes || padded(int(h.length)) != n {
		return header{}, nil, 0, errLength
	}
	if n > len(b) {
		return header{}, nil, 0, errTorn
	}
	content = b[headerBytes:h.length:h.length]
	if checksum(content) != h.contentSum {
		return header{}, nil, 0, fmt.Errorf("content %w", errChecksum)
	}
	if !allZero(b[h.length:n]) {
		return header{}, nil, 0, errPadding
	}
	return h, content, prefixBytes + n, nil
}

// encodeEntry makes a whole entry of h and the content that already stands at
// dst[prefixBytes+headerBytes:], and returns the bytes it takes. dst must have
// room for the padding.
func encodeEntry(dst []byte, h *header, content int) int {
	length := headerBytes + content
	n := padded(length)
	putPrefix(dst, n)
	body := dst[prefixBytes : prefixBytes+n]
	clear(body[length:])
	h.length = uint32(length)
	h.contentSum = checksum(body[headerBytes:length])
	h.encode(body)
	return prefixBytes + n
}

// RecordBytes is what a record with such a head and body takes in a group.
func RecordBytes(head, body int) int {
	return varintBytes(head) + varintBytes(body) + head + body
}

// putRecord writes one record to dst, which has room for it, and returns where
// in dst its body begins.
func putRecord(dst, head, body []byte) int {
	n := binary.PutUvarint(dst, uint64(len(head)))
	n += binary.PutUvarint(dst[n:], uint64(len(body)))
	n += copy(dst[n:], head)
	copy(dst[n:], body)
	return n
}

// decodeRecord takes the record at the start of b apart and returns the bytes
// it takes.
func decodeRecord(b []byte) (head, body []byte, size int, err error) {
	h, n := binary.Uvarint(b)
	if n <= 0 || h == 0 || h > uint64(len(b)) || n != varintBytes(int(h)) {
		return nil, nil, 0, errLength
	}
	l, m := binary.Uvarint(b[n:])
	if m <= 0 || l > uint64(len(b)) || m != varintBytes(int(l)) {
		return nil, nil, 0, errLength
	}
	n += m
	size = n + int(h) + int(l)
	if size > len(b) {
		return nil, nil, 0, errLength
	}
	return b[n : n+int(h) : n+int(h)], b[n+int(h) : size : size], size, nil
}

func varintBytes(n int) int {
	size := 1
	for n >= 0x80 {
		n >>= 7
		size++
	}
	return size
}

// zeros is compared with: bytes.Equal is the fastest way to see that all are.
var zeros [4096]byte

func allZero(b []byte) bool {
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}
