package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// scanner takes the entries of one segment file apart, one by one, and checks
// each against the one before. It shares the format with the writer and nothing
// else, and is never asked to write.
type scanner struct {
	data       []byte // the file, or as much of it as is history
	store      StoreID
	generation uint32

	offset int // of the next entry
	entry  int // offset of the present one
	salt   uint64
	birth  birth
	link   link
	last   header // of the present entry
	lsn    LSN    // of the last group
	groups int
}

// birth is what the first entry of a generation says.
type birth struct {
	linked  uint32 // newest generation linked when this one was made; 0 is none
	size    uint32 // bytes of the segment file
	durable LSN    // highest LSN known durable then
}

// within is how much of a file of size bytes the log can have written.
func (b birth) within(size int64) int64 {
	made := int64(MaxGenerationBytes)
	if b.size > 0 {
		made = int64(b.size)
	}
	return min(size, made)
}

// link is what the second one says of the generation before. Zero generation:
// there was none.
type link struct {
	generation uint32
	length     uint32
	lsn        LSN
	chain      uint32
}

// errEnd is next's at a place from which on all is zero, or nothing.
var errEnd = errors.New("end of the written part")

// next goes to the next entry and returns its content. errEnd at the zeros that
// follow the last one; any other error says why the bytes are no entry. After an
// error the scanner stays where it is.
func (s *scanner) next() (content []byte, err error) {
	rest := s.data[s.offset:]
	switch closed := s.last.kind == kindClosed; {
	case !closed && len(rest) > 0 && rest[0] != 0: // an entry, or damage
	case allZero(rest):
		return nil, errEnd
	case closed:
		return nil, errors.New("entry behind the closed mark")
	default:
		return nil, errNoHeader
	}
	h, content, size, err := decodeEntry(rest)
	if err != nil {
		return nil, err
	}
	if err := s.check(&h, content); err != nil {
		return nil, err
	}
	switch h.kind {
	case kindBirth:
		s.salt = h.salt
		s.birth = birth{binary.LittleEndian.Uint32(content), binary.LittleEndian.Uint32(content[4:]), h.durable}
	case kindLink:
		s.link = link{binary.LittleEndian.Uint32(content), binary.LittleEndian.Uint32(content[4:]), h.lsn, h.chain}
		s.lsn = h.lsn
	case kindGroup:
		s.lsn = h.lsn
		s.groups++
	}
	s.entry, s.last = s.offset, h
	s.offset += size
	return content, nil
}

// check says whether an entry that is whole stands where it belongs.
func (s *scanner) check(h *header, content []byte) error {
	first, second := s.offset == 0, s.last.kind == kindBirth
	switch {
	case h.store != s.store && s.store != (StoreID{}):
		return fmt.Errorf("%w: store %s, want %s", ErrForeign, h.store, s.store)
	case h.generation != s.generation:
		return fmt.Errorf("%w: generation %d, want %d", ErrForeign, h.generation, s.generation)
	case first != (h.kind == kindBirth), second != (h.kind == kindLink):
		return fmt.Errorf("entry of kind %d out of place", h.kind)
	case first && len(content) != birthBytes, second && len(content) != linkBytes:
		return errLength
	case h.kind != kindGroup && h.records != 0:
		return fmt.Errorf("entry of kind %d with %d records", h.kind, h.records)
	case h.kind > kindLink && len(content) != 0:
		return errLength
	case first:
		return nil
	case h.store != s.last.store:
		return fmt.Errorf("%w: store %s, want %s", ErrForeign, h.store, s.last.store)
	case h.salt != s.salt:
		return errors.New("salt is not that of the generation")
	case second:
		return nil
	case h.chain != s.last.sum:
		return errors.New("header does not follow the one before")
	case h.kind == kindGroup && h.lsn != s.lsn+1:
		return fmt.Errorf("group %d where %d belongs", h.lsn, s.lsn+1)
	case h.kind == kindGroup && h.durable >= h.lsn:
		return fmt.Errorf("group %d says of itself that it is on disk", h.lsn)
	case h.kind != kindGroup && h.lsn != s.lsn:
		return fmt.Errorf("mark of group %d where %d was last", h.lsn, s.lsn)
	}
	return nil
}

// mark returns the mark of this generation that b begins with, if it does.
func (s *scanner) mark(b []byte) (header, bool) {
	h, content, _, err := decodeEntry(b)
	return h, err == nil && h.kind > kindLink && len(content) == 0 && h.salt == s.salt
}

// vouched searches every offset of b for headers of this generation, whole ones,
// whatever became of what follows them, and returns the highest LSN that one
// knows to have been durable. The salt says whose they are: no other generation
// has it, and payloads can not pass for headers, for clients never see one.
func (s *scanner) vouched(b []byte) LSN {
	var salt [8]byte
	binary.LittleEndian.PutUint64(salt[:], s.salt)
	const saltAt = 8
	var highest LSN
	for at := min(saltAt, len(b)); ; at++ {
		i := bytes.Index(b[at:], salt[:])
		if i < 0 {
			return highest
		}
		at += i
		if h, err := decodeHeader(b[at-saltAt:]); err == nil {
			highest = max(highest, h.durable)
		}
	}
}

// notZero is how many bytes b has up to the last one that is not zero.
func notZero(b []byte) int64 {
	for bytes.HasSuffix(b, zeros[:]) {
		b = b[:len(b)-len(zeros)]
	}
	return int64(len(bytes.TrimRight(b, "\x00")))
}
