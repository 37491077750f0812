package state

import "slices"

// A page holds pageItems entries; a page of jobs is 4 KiB. A chunk holds chunkPages
// pages.
const (
	pageBits   = 6
	pageItems  = 1 << pageBits
	chunkBits  = 8
	chunkPages = 1 << chunkBits
	chunkShift = pageBits + chunkBits
)

// A slab is a table of entries addressed by number, from 1. Entries that were
// freed are handed out again, the last one first; they form a list through the
// field that link gives.
//
// view fixes a copy of the table: afterwards the first write to each page copies
// it, and its chunk before it. So a reader of the view and the owner of the slab
// never meet, and a view of ten million jobs, which is made while everybody waits,
// copies 611 pointers and not 156,251.
type slab[T any, P entry[T]] struct {
	chunks []*chunk[T]
	last   uint32 // the highest number ever handed out
	free   uint32 // the first of the freed entries
	used   uint32 // entries that are not free
	epoch  uint32 // rises with every view
	frozen uint32 // pages and chunks of earlier epochs belong to a view, 0 for none

	// What no view looks at: see pack.go.
	uses         []use         // of each page
	empty        []uint32      // pages that were empty once, for packSome to look at
	looked, kept int           // how many of empty packSome has looked at this time, and kept
	packed       uint64        // pages that are
	zero         *[pageItems]T // stands for all pages that are packed
}

type chunk[T any] struct {
	pages  [chunkPages]*[pageItems]T // a packed one is slab.zero, which nobody writes to
	rests  [chunkPages]*rest         // nil for a page that is not packed
	epochs [chunkPages]uint32        // in which each page was made, never before its chunk was
	epoch  uint32                    // in which this chunk was
}

// An entry can say where its link to the next free entry is, and be written and
// read (see table.go).
type entry[T any] interface {
	*T
	link() *uint32
	bare() bool // a free one is; of those in use, only an extra that just names a claim
	walk(*coder)
}

// has reports whether i was ever handed out.
func (s *slab[T, P]) has(i uint32) bool { return i != 0 && i <= s.last }

// at is an entry to read. A free one may lack its link, and what it leaves behind:
// read gives these.
func (s *slab[T, P]) at(i uint32) *T {
	return &s.chunks[i>>chunkShift].pages[i>>pageBits%chunkPages][i%pageItems]
}

// page is a page to read, as at gives its entries.
func (s *slab[T, P]) page(p uint32) *[pageItems]T { return s.chunks[p>>chunkBits].pages[p%chunkPages] }

// handed is a bit for each entry of a page that was ever handed out.
func (s *slab[T, P]) handed(p uint32) uint64 {
	all := ^uint64(0)
	if p == s.last>>pageBits {
		all >>= pageItems - 1 - s.last%pageItems
	}
	if p == 0 {
		all &^= 1 // numbers begin with 1
	}
	return all
}

// whole reports whether all entries of a page were handed out: only of the last one
// some may not have been.
func (s *slab[T, P]) whole(p uint32) bool {
	return p != s.last>>pageBits || (s.last+1)%pageItems == 0
}

// edit is an entry to read and write, until the next view. What at gave for
// entries of the same page before may be an old copy afterwards.
func (s *slab[T, P]) edit(i uint32) *T {
	c, p := s.chunks[i>>chunkShift], i>>pageBits%chunkPages
	if c.epochs[p] < s.frozen {
		c = s.own(i >> chunkShift)
		fresh := *c.pages[p]
		c.pages[p], c.epochs[p] = &fresh, s.epoch
	}
	return &c.pages[p][i%pageItems]
}

// own is a chunk that no view has, if need be a copy.
func (s *slab[T, P]) own(i uint32) *chunk[T] {
	if s.chunks[i].epoch < s.frozen {
		fresh := *s.chunks[i]
		fresh.epoch = s.epoch
		s.chunks[i] = &fresh
	}
	return s.chunks[i]
}

// put makes page p of the table, of which all before it are there.
func (s *slab[T, P]) put(p uint32, page *[pageItems]T) {
	if p>>chunkBits == uint32(len(s.chunks)) {
		s.chunks = append(s.chunks, &chunk[T]{epoch: s.epoch})
	}
	c := s.own(p >> chunkBits)
	c.pages[p%chunkPages], c.epochs[p%chunkPages] = page, s.epoch
	s.uses = append(s.uses, use{})
}

// next is the number that alloc will hand out, 0 when all are in use.
func (s *slab[T, P]) next() uint32 {
	if s.free != 0 {
		return s.free
	}
	return s.last + 1
}

// alloc hands out an entry. It is as free left it, but for its link, which is
// zero.
func (s *slab[T, P]) alloc() (uint32, *T) {
	i := s.next()
	if i > s.last {
		s.last = i
		if i == 1 || i%pageItems == 0 {
			s.put(i>>pageBits, new([pageItems]T))
		}
	}
	if s.free == i && s.rest(i) != nil {
		s.unpack(i >> pageBits)
	}
	e := s.edit(i)
	if s.free == i {
		s.free = *P(e).link()
		*P(e).link() = 0
	}
	s.used++
	u := &s.uses[i>>pageBits]
	u.n, u.fresh = u.n+1, true
	return i, e
}

// release frees an entry and leaves it zero but for its link.
func (s *slab[T, P]) release(i uint32) *T {
	e := s.edit(i)
	*e = *new(T)
	*P(e).link() = s.free
	s.free = i
	s.used--
	u := &s.uses[i>>pageBits]
	if u.n--; u.n == 0 && !u.listed {
		u.listed = true
		s.empty = append(s.empty, i>>pageBits)
	}
	return e
}

// view fixes a copy, to be read only.
func (s *slab[T, P]) view() slab[T, P] {
	v := *s
	v.chunks = slices.Clone(s.chunks)
	s.epoch++
	s.frozen = s.epoch
	return v
}

// thaw says that no view is read any more.
func (s *slab[T, P]) thaw() { s.frozen = 0 }
