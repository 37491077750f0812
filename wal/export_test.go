package wal

import "encoding/binary"

// Forged is an entry that no writer would make, with checksums that are right.
type Forged struct {
	Kind       uint16 // 1 group, 2 birth, 3 link, 4 idle mark, 5 closed mark
	Salt       uint64
	Store      StoreID
	LSN        LSN
	Durable    LSN
	Generation uint32
	Records    uint32
	Chain      uint32
	Content    []byte
}

// Forge returns its bytes and its header checksum.
func Forge(f Forged) (entry []byte, sum uint32) {
	b := make([]byte, prefixBytes+headerBytes+padded(len(f.Content)))
	copy(b[prefixBytes+headerBytes:], f.Content)
	h := header{kind: kind(f.Kind), salt: f.Salt, store: f.Store, lsn: f.LSN, durable: f.Durable,
		generation: f.Generation, records: f.Records, chain: f.Chain}
	return b[:encodeEntry(b, &h, len(f.Content))], h.sum
}

// ForgeRecord is one record as it stands in a group.
func ForgeRecord(head, body string) []byte {
	b := make([]byte, RecordBytes(len(head), len(body)))
	putRecord(b, []byte(head), []byte(body))
	return b
}

// ForgePair is the content of a birth or link.
func ForgePair(a, b uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, a), b)
}

// Room says what Open(n) would answer: nil, ErrPreparing, ErrNoSpace or
// ErrTooLarge. Like Open it has a generation made where one is missing.
func (l *Log) Room(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.place(n)
	return err
}

// ReadStill is readStill, which a disk in memory does not need.
var ReadStill = readStill

// Images is of how many generations bodies are read from memory.
func (l *Log) Images() int {
	l.images.mu.Lock()
	defer l.images.mu.Unlock()
	return len(l.images.by)
}

// Spare is how many bytes are kept for the image of a generation to come.
func (l *Log) Spare() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.spare)
}

// FailClose has the segment that is being written answer err when it is closed:
// the library syncs it then, and only on a real file system.
func (l *Log) FailClose(err error) { l.current.segment = unclosable{l.current.segment, err} }

type unclosable struct {
	segment
	err error
}

func (u unclosable) close() error {
	u.segment.close()
	return u.err
}

// Untended makes a log that began with Options.Foreground one whose maker and
// keeper have not come to run yet.
func (l *Log) Untended() { l.opt.Foreground = false }
