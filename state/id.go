package state

import (
	"encoding/base32"
	"encoding/binary"
	"errors"
)

// Millis is a time or a span of time in milliseconds. Which clock a time is on
// (log time or wall time) is said where it is declared.
type Millis int64

// Slot is the place of a job in the slab, from 1. Zero is no job.
type Slot uint32

// JobID is the identity of a job for as long as it lives: 6 bytes big-endian
// wall milliseconds at the enqueue, 4 bytes big-endian slot, 2 bytes big-endian
// reuse counter of that slot, 4 bytes little-endian delay in seconds (as
// lmstfy's clients decode it). Its text is 26 characters of ULID base 32.
type JobID [16]byte

// NewJobID puts the four fields together. wall is cut to 48 bits.
func NewJobID(wall Millis, slot Slot, reuse uint16, delaySeconds uint32) (id JobID) {
	binary.BigEndian.PutUint64(id[:8], uint64(wall)<<16)
	binary.BigEndian.PutUint32(id[6:10], uint32(slot))
	binary.BigEndian.PutUint16(id[10:12], reuse)
	binary.LittleEndian.PutUint32(id[12:16], delaySeconds)
	return id
}

// Wall is the wall time of the enqueue, Unix milliseconds.
func (id JobID) Wall() Millis {
	return Millis(binary.BigEndian.Uint64(id[:8]) >> 16)
}

// Slot is where the job stands, or stood.
func (id JobID) Slot() Slot { return Slot(binary.BigEndian.Uint32(id[6:10])) }

// Reuse counts how often the slot had been used before.
func (id JobID) Reuse() uint16 { return binary.BigEndian.Uint16(id[10:12]) }

// DelaySeconds is the delay the job was enqueued with.
func (id JobID) DelaySeconds() uint32 { return binary.LittleEndian.Uint32(id[12:16]) }

// ErrBadID is given for a text that is no job ID or no lease ID.
var ErrBadID = errors.New("not an ID")

// crockford is the alphabet of ULID: no I, L, O, U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// JobIDLen is the length of a job ID's text.
const JobIDLen = 26

// AppendText appends the 26 characters of the ID to dst.
func (id JobID) AppendText(dst []byte) []byte {
	// 128 bits in 26 digits of 5: the first digit holds the upper 3 bits.
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	var text [JobIDLen]byte
	for i := JobIDLen - 1; i >= 0; i-- {
		text[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return append(dst, text[:]...)
}

// String is the 26 characters of the ID.
func (id JobID) String() string { return string(id.AppendText(nil)) }

// ParseJobID reads what AppendText wrote, in either case of letters. Any other
// text gives ErrBadID.
func ParseJobID(text []byte) (id JobID, err error) {
	if len(text) != JobIDLen || text[0] > '7' {
		return id, ErrBadID
	}
	var hi, lo uint64
	for _, c := range text {
		v := digit[c]
		if v == 0xff {
			return id, ErrBadID
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(v)
	}
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id, nil
}

// digit is the value of each crockford character, 0xff for all others.
var digit = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xff
	}
	for i := range crockford {
		c := crockford[i]
		table[c] = byte(i)
		if c >= 'A' {
			table[c+'a'-'A'] = byte(i)
		}
	}
	return table
}()

// LeaseID fences one delivery of one job: the slot and 80 random bits, new for
// every delivery.
type LeaseID struct {
	Slot  Slot
	Nonce Nonce
}

// Nonce is the random part of a lease ID.
type Nonce [10]byte

// leaseText is lower-case base 32 without padding: 14 bytes in 23 characters.
var leaseText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// LeaseIDLen is the length of a lease ID's text.
const LeaseIDLen = 23

// AppendText appends the 23 characters of the ID to dst.
func (id LeaseID) AppendText(dst []byte) []byte {
	var raw [14]byte
	binary.BigEndian.PutUint32(raw[:4], uint32(id.Slot))
	copy(raw[4:], id.Nonce[:])
	return leaseText.AppendEncode(dst, raw[:])
}

// String is the 23 characters of the ID.
func (id LeaseID) String() string { return string(id.AppendText(nil)) }

// ParseLeaseID reads what AppendText wrote. Any other text gives ErrBadID.
func ParseLeaseID(text []byte) (id LeaseID, err error) {
	if len(text) != LeaseIDLen {
		return id, ErrBadID
	}
	var raw [15]byte
	n, err := leaseText.Decode(raw[:], text)
	if err != nil || n != 14 {
		return id, ErrBadID
	}
	id.Slot = Slot(binary.BigEndian.Uint32(raw[:4]))
	copy(id.Nonce[:], raw[4:14])
	// The last character has bits to spare: only one text leads to a lease.
	var again [LeaseIDLen]byte
	if string(id.AppendText(again[:0])) != string(text) {
		return LeaseID{}, ErrBadID
	}
	return id, nil
}
