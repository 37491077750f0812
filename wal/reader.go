package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// ReaderOptions say what to read.
type ReaderOptions struct {
	// After is the LSN up to which a snapshot holds everything: groups above it
	// are read. If generations between are missing that is a *CorruptError.
	After LSN
	// Vouched is the highest LSN that any snapshot, even a bad one, proves to have
	// been durable. After counts too.
	Vouched LSN
}

// Reader reads groups in LSN order and verifies all it reads. Use it like
// bufio.Scanner.
type Reader struct {
	h       *History
	opt     ReaderOptions
	at      int  // index in h.Linked of the present generation
	last    int  // index of the last one to read
	alone   bool // one generation, whatever is around it
	opened  bool
	s       scanner
	data    []byte
	group   Stored
	end     End
	err     error
	stopped bool
}

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

// End is where a log ends: what Begin needs to go on from.
type End struct {
	Store      StoreID
	Generation uint32 // the newest linked; 0 is none
	Length     uint32 // its bytes of history
	LSN        LSN    // of the last group
	Chain      uint32 // header checksum of the last entry
	// LogTime and WallTime, in Unix milliseconds, are those of the last group.
	LogTime, WallTime int64
	Closed            bool     // it ended with the closed mark of a clean stop
	Cut               int64    // bytes that something was written to and that are no history
	Highest           uint32   // highest number that a directory has, linked or not
	Linked            []Info   // oldest first
	Unused            []uint32 // never linked: Begin removes them
}

// Reader starts at the first group above opt.After. Without any linked
// generation there is nothing to read, and After and Vouched must be 0.
func (h *History) Reader(opt ReaderOptions) (*Reader, error) {
	opt.Vouched = max(opt.Vouched, opt.After)
	r := &Reader{h: h, opt: opt, last: len(h.Linked) - 1}
	if len(h.Linked) == 0 {
		if v := max(opt.Vouched, h.vouched, h.lostVouched); v > 0 {
			return nil, &CorruptError{Path: h.dir, LSN: v, Err: fmt.Errorf("%w: there is none, but group %d was on disk", ErrMissing, v)}
		}
		r.stopped = true
		r.end = h.endAt(0)
		return r, nil
	}
	r.at = r.last
	for h.heads[r.at].link.lsn > opt.After {
		before := h.heads[r.at].link.generation
		if r.at == 0 || h.Linked[r.at-1].Generation != before {
			if before == 0 {
				before = h.Linked[r.at].Generation
			}
			return nil, &CorruptError{Path: segmentPath(h.dir, before), Generation: before, LSN: opt.After + 1, Err: ErrMissing}
		}
		r.at--
	}
	return r, nil
}

// Generation reads the groups of one linked generation, for tools and cleaning.
// It ends with the history of that generation.
func (h *History) Generation(number uint32) (*Reader, error) {
	for i, info := range h.Linked {
		if info.Generation == number {
			return &Reader{h: h, at: i, last: i, alone: true}, nil
		}
	}
	return nil, fmt.Errorf("read generation %d: %w", number, os.ErrNotExist)
}

// Again makes of r, in the buffers that it has, what Generation gives for number.
func (r *Reader) Again(number uint32) error {
	next, err := r.h.Generation(number)
	if err == nil {
		next.data, next.group.Records = r.data, r.group.Records[:0]
		*r = *next
	}
	return err
}

// Verify reads one linked generation whole and checks everything in it, bodies
// too. The newest ends where the log ends.
func (h *History) Verify(number uint32) error {
	r, err := h.Generation(number)
	if err != nil {
		return err
	}
	for r.Next() {
	}
	return r.Err()
}

// Next goes to the next group. False at the end of the log and at an error.
func (r *Reader) Next() bool {
	for !r.stopped {
		if !r.opened {
			if r.err = r.open(); r.err != nil {
				r.stopped = true
				return false
			}
		}
		content, err := r.s.next()
		if err != nil {
			r.turn(err)
			continue
		}
		if r.s.last.kind != kindGroup || !r.alone && r.s.lsn <= r.opt.After {
			continue
		}
		if r.err = r.take(content); r.err != nil {
			r.stopped = true
			return false
		}
		return true
	}
	return false
}

// open reads the present generation into memory.
func (r *Reader) open() error {
	info := &r.h.Linked[r.at]
	f, err := r.h.fs.OpenFile(segmentPath(r.h.dir, info.Generation), os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("read generation %d: %w", info.Generation, err)
	}
	defer f.Close()
	r.data = slices.Grow(r.data[:0], int(info.Length))[:info.Length]
	n, err := f.ReadAt(r.data, 0)
	switch {
	case n == len(r.data):
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read generation %d: %w", info.Generation, err)
	case r.h.live && r.at == len(r.h.Linked)-1:
		r.data = r.data[:n] // it has been sealed since, and cut off behind its history
	default:
		return r.corrupt(0, errTorn)
	}
	r.s = scanner{data: r.data, store: r.h.Store, generation: info.Generation}
	r.opened = true
	return nil
}

// turn is called where the scanner found no entry: at the end of a generation,
// of the log, or at damage.
func (r *Reader) turn(found error) {
	info, offset := &r.h.Linked[r.at], r.s.offset
	rest := r.data[offset:]
	newest := r.at == len(r.h.Linked)-1
	e := Evidence{Expected: r.s.lsn + 1, Followed: !newest, NotZero: notZero(rest)}
	if newest {
		e.VouchedByEntry = max(r.s.vouched(rest), r.h.vouched, r.h.lostVouched)
		e.VouchedBySnapshot = r.opt.Vouched
	} else if !errors.Is(found, errEnd) || r.linkAhead() != nil {
		e.Behind = int64(len(rest))
	}
	verdict := Decide(e)
	switch {
	case verdict.Refuse != "" && newest && r.h.lostVouched == e.VouchedByEntry && r.h.lostVouched >= e.Expected:
		r.err = r.h.lostLink(e.Expected, verdict.Refuse)
	case verdict.Refuse != "":
		r.err = r.corrupt(int64(offset), fmt.Errorf("%w: %s", found, verdict.Refuse))
	case newest:
		info.LastLSN, info.Length = r.s.lsn, int64(offset)
		r.end = r.h.endAt(offset)
		r.end.LSN, r.end.Chain = r.s.lsn, r.s.last.sum
		r.end.LogTime, r.end.WallTime = r.s.last.logTime, r.s.last.wallTime
		r.end.Closed = r.s.last.kind == kindClosed
		r.end.Cut = verdict.Cut + r.h.cut
	default:
		r.err = r.checkLink()
	}
	if r.err != nil || r.at == r.last {
		r.stopped = true
		return
	}
	r.at++
	r.opened = false
}

// linkAhead is the link of the generation that follows directly, nil if that
// was dropped.
func (r *Reader) linkAhead() *link {
	if next := &r.h.heads[r.at+1].link; next.generation == r.h.Linked[r.at].Generation {
		return next
	}
	return nil
}

// checkLink compares the end of a generation with what the next one says of it.
func (r *Reader) checkLink() error {
	next := r.linkAhead()
	switch {
	case next == nil:
		return nil
	case r.s.lsn != next.lsn:
		return r.corrupt(int64(r.s.offset), fmt.Errorf("it ends with group %d, but the next generation follows group %d", r.s.lsn, next.lsn))
	case r.s.last.sum != next.chain:
		return r.corrupt(int64(r.s.entry), errors.New("last header is not the one that the next generation follows"))
	}
	return nil
}

func (h *History) endAt(length int) End {
	return End{
		Store:      h.Store,
		Generation: h.newest(),
		Length:     uint32(length),
		Cut:        h.cut,
		Highest:    h.highest,
		Linked:     slices.Clone(h.Linked),
		Unused:     slices.Clone(h.Unused),
	}
}

// take makes a group of an entry's content.
func (r *Reader) take(content []byte) error {
	h := &r.s.last
	r.group = Stored{
		LSN: h.lsn, Generation: h.generation, Offset: int64(r.s.entry),
		LogTime: h.logTime, WallTime: h.wallTime, Records: r.group.Records[:0],
	}
	at := r.s.entry + prefixBytes + headerBytes
	for k := range h.records {
		head, body, size, err := decodeRecord(content)
		if err != nil {
			return r.corrupt(int64(at), fmt.Errorf("record %d of group %d: %w", k, h.lsn, err))
		}
		rec := Record{Head: head, Body: body}
		if len(body) > 0 {
			rec.Pos = Pos{
				Generation: h.generation,
				Offset:     uint32(at + size - len(body)),
				Length:     uint32(len(body)),
				Checksum:   checksum(body),
			}
		}
		r.group.Records = append(r.group.Records, rec)
		content, at = content[size:], at+size
	}
	if len(content) > 0 {
		return r.corrupt(int64(at), fmt.Errorf("group %d has more than its %d records", h.lsn, h.records))
	}
	return nil
}

func (r *Reader) corrupt(offset int64, err error) error {
	number := r.h.Linked[r.at].Generation
	return &CorruptError{Path: segmentPath(r.h.dir, number), Generation: number, Offset: offset, LSN: r.s.lsn + 1, Err: err}
}

// DamagedAt is the wall time, in Unix milliseconds, of the group whose content
// kept Next from going on, where its header is whole and says so: enough for who
// only wants to know whether it came before some moment.
func (r *Reader) DamagedAt() (wallTime int64, ok bool) {
	if r.err == nil || !r.opened {
		return 0, false
	}
	h, err := decodeHeader(r.s.data[min(r.s.offset+prefixBytes, len(r.s.data)):])
	if err != nil || h.kind != kindGroup || h.lsn != r.s.lsn+1 || h.salt != r.s.salt || h.store != r.s.last.store || h.generation != r.s.generation {
		return 0, false
	}
	return h.wallTime, true
}

// Group is the present one, valid until Next.
func (r *Reader) Group() *Stored { return &r.group }

// Err is what stopped Next: nil at the end of the log, a *CorruptError where
// something vouches for what can not be read, or an IO error.
func (r *Reader) Err() error { return r.err }

// End is valid once Next has returned false and Err is nil, of a Reader that
// History.Reader made.
func (r *Reader) End() End { return r.end }
