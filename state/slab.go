package state

// A page holds pageItems entries; a page of jobs is 4 KiB.
const (
	pageBits  = 6
	pageItems = 1 << pageBits
)

// A slab is a table of entries addressed by number, from 1. Entries that were
// freed are handed out again, the last one first; they form a list through the
// field that link gives.
//
// view fixes a copy of the table: afterwards the first write to each page copies
// it. So a reader of the view and the owner of the slab never meet.
type slab[T any, P entry[T]] struct {
	pages  []*[pageItems]T
	epochs []uint32 // of each page: the epoch in which it was made
	last   uint32   // the highest number ever handed out
	free   uint32   // the first of the freed entries
	used   uint32   // entries that are not free
	epoch  uint32   // rises with every view
	frozen uint32   // pages of earlier epochs belong to a view, 0 for none
}

// An entry can say where its link to the next free entry is, and be written and
// read (see table.go).
type entry[T any] interface {
	*T
	link() *uint32
	walk(*coder)
}

// has reports whether i was ever handed out.
func (s *slab[T, P]) has(i uint32) bool { return i != 0 && i <= s.last }

// at is an entry to read.
func (s *slab[T, P]) at(i uint32) *T { return &s.pages[i>>pageBits][i&(pageItems-1)] }

// edit is an entry to read and write, until the next view. What at gave for
// entries of the same page before may be an old copy afterwards.
func (s *slab[T, P]) edit(i uint32) *T {
	p := i >> pageBits
	if s.epochs[p] < s.frozen {
		fresh := *s.pages[p]
		s.pages[p] = &fresh
		s.epochs[p] = s.epoch
	}
	return &s.pages[p][i&(pageItems-1)]
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
		if int(i>>pageBits) >= len(s.pages) {
			s.pages = append(s.pages, new([pageItems]T))
			s.epochs = append(s.epochs, s.epoch)
		}
	}
	e := s.edit(i)
	if s.free == i {
		s.free = *P(e).link()
		*P(e).link() = 0
	}
	s.used++
	return i, e
}

// release frees an entry and leaves it zero but for its link.
func (s *slab[T, P]) release(i uint32) *T {
	e := s.edit(i)
	*e = *new(T)
	*P(e).link() = s.free
	s.free = i
	s.used--
	return e
}

// view fixes a copy, to be read only.
func (s *slab[T, P]) view() slab[T, P] {
	v := *s
	v.pages = append([]*[pageItems]T(nil), s.pages...)
	v.epochs = nil
	s.epoch++
	s.frozen = s.epoch
	return v
}

// thaw says that no view is read any more.
func (s *slab[T, P]) thaw() { s.frozen = 0 }
