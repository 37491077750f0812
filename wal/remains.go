package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
)

// What tools need that make a new log out of the good part of an old one.

// SegmentPath is the segment file of a generation below the log's directory.
func SegmentPath(dir string, generation uint32) string { return segmentPath(dir, generation) }

// EndAt is where the log would end if group lsn were its last one. Begin behind
// it in a copy of the directory, without the later generations, starts another
// history. The group must stand in the log, or be the one that a generation
// follows; else the error matches fs.ErrNotExist. Damage before it in its
// generation is a *CorruptError. Linked ends with the generation of the group,
// and Unused is empty.
func (h *History) EndAt(lsn LSN) (End, error) {
	if len(h.Linked) == 0 && lsn == 0 {
		return h.endAt(0), nil
	}
	i := len(h.Linked) - 1
	for i >= 0 && h.heads[i].link.lsn > lsn {
		i--
	}
	if i < 0 {
		return End{}, fmt.Errorf("group %d is not in the log: %w", lsn, os.ErrNotExist)
	}
	r := &Reader{h: h, at: i, last: i, alone: true}
	if err := r.open(); err != nil {
		return End{}, err
	}
	for r.s.last.kind != kindLink {
		if _, err := r.s.next(); err != nil {
			return End{}, r.corrupt(int64(r.s.offset), err)
		}
	}
	end := End{Store: h.Store, Highest: h.highest}
	if link := &h.heads[i].link; link.lsn == lsn {
		end.Generation, end.Length, end.Chain = link.generation, link.length, link.chain
	} else {
		for r.s.lsn < lsn {
			if _, err := r.s.next(); err != nil {
				return End{}, r.corrupt(int64(r.s.offset), fmt.Errorf("group %d: %w", lsn, err))
			}
		}
		end.Generation, end.Length, end.Chain = h.Linked[i].Generation, uint32(r.s.offset), r.s.last.sum
	}
	end.LSN, end.LogTime, end.WallTime = lsn, r.s.last.logTime, r.s.last.wallTime
	for _, info := range h.Linked {
		if info.Generation < end.Generation {
			end.Linked = append(end.Linked, info)
		} else if info.Generation == end.Generation {
			info.LastLSN, info.Length = lsn, int64(end.Length)
			end.Linked = append(end.Linked, info)
		}
	}
	return end, nil
}

// Remains calls yield for the groups that stand at or behind offset in a
// generation, whatever is damaged before and between them, until it returns
// false. A header must be whole to be found. Of a group whose content is not,
// sound is false and it has the records before the first that cannot be told;
// their bytes may be wrong. A group may be kept; as long as it is, the generation
// stays in memory.
//
// What is found proves nothing about order: it is for saying what was lost.
func (h *History) Remains(generation uint32, offset int64, yield func(g *Stored, sound bool) bool) error {
	data, err := h.whole(generation)
	if err != nil {
		return err
	}
	const saltAt = 8
	// The birth says the salt, or the link where that is damaged.
	first, err := decodeHeader(data[min(prefixBytes, len(data)):])
	if err != nil {
		first, err = decodeHeader(data[min(birthEntryBytes+prefixBytes, len(data)):])
	}
	if err == nil && h.Store != (StoreID{}) && first.store != h.Store {
		err = ErrForeign
	}
	if err != nil {
		return &CorruptError{Path: segmentPath(h.dir, generation), Generation: generation, Err: fmt.Errorf("first entries: %w", err)}
	}
	var salt [8]byte
	binary.LittleEndian.PutUint64(salt[:], first.salt)
	for at := max(int(offset), 0); ; {
		i := bytes.Index(data[min(at, len(data)):], salt[:])
		if i < 0 {
			return nil
		}
		start := at + i - saltAt // of the header
		at += i + 1
		if start < prefixBytes || int64(start-prefixBytes) < offset {
			continue
		}
		head, err := decodeHeader(data[start:])
		if err != nil || head.kind != kindGroup || head.generation != generation || head.store != first.store {
			continue
		}
		g, sound := remaining(&head, data, start)
		if !yield(g, sound) {
			return nil
		}
	}
}

// remaining takes as much of a group apart as there is.
func remaining(h *header, data []byte, start int) (g *Stored, sound bool) {
	from := start + headerBytes
	content := data[from:max(from, min(start+int(h.length), len(data)))]
	g = &Stored{LSN: h.lsn, Generation: h.generation, Offset: int64(start - prefixBytes), LogTime: h.logTime, WallTime: h.wallTime}
	sound = len(content) == int(h.length)-headerBytes && checksum(content) == h.contentSum
	for at := 0; len(g.Records) < int(h.records); {
		head, body, size, err := decodeRecord(content[at:])
		if err != nil {
			return g, false
		}
		at += size
		rec := Record{Head: head, Body: body}
		if len(body) > 0 {
			rec.Pos = Pos{h.generation, uint32(from + at - len(body)), uint32(len(body)), checksum(body)}
		}
		g.Records = append(g.Records, rec)
	}
	return g, sound
}

// whole reads the segment file of a generation, linked or not, as far as the log
// can have written it.
func (h *History) whole(generation uint32) ([]byte, error) {
	f, err := h.fs.OpenFile(segmentPath(h.dir, generation), os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("read generation %d: %w", generation, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("read generation %d: %w", generation, err)
	}
	first := make([]byte, min(size, birthEntryBytes))
	if err := h.readFull(f, first, 0); err != nil {
		return nil, fmt.Errorf("read generation %d: %w", generation, err)
	}
	s := scanner{data: first, store: h.Store, generation: generation}
	_, _ = s.next() // without a birth it may be as long as any
	data := make([]byte, s.birth.within(size))
	if err := h.readFull(f, data, 0); err != nil {
		return nil, fmt.Errorf("read generation %d: %w", generation, err)
	}
	return data, nil
}
