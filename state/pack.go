package state

import (
	"reflect"
	"slices"
)

// A page all of whose entries are free is packed after a while: what its entries
// keep, the order in which they are handed out again and how often a job's slot was
// used, takes a fourteenth of it. So what a large backlog took is given back when it
// is gone, although numbers stand in IDs and in the log and nothing may move. What
// the state says is the same either way, and so are its bytes, which are as few: a
// page that is packed is written, read and loaded as what is left of it (bare.go).

// rest is a packed page.
type rest struct {
	traces *[pageItems]uint16 // what each entry leaves behind, nil where all leave trace
	links  [pageItems]uint32
	trace  uint16
}

// restBytes is about what a rest takes.
const restBytes = 288

func (r *rest) traceOf(i uint32) uint16 {
	if r.traces != nil {
		return r.traces[i%pageItems]
	}
	return r.trace
}

// traced is an entry that leaves something behind in its place when it is freed: 16
// bits, at most.
type traced interface{ trace() *uint64 }

func (j *job) trace() *uint64 { return &j.born }

func isTraced[T any, P entry[T]]() bool {
	_, ok := any(P(nil)).(traced)
	return ok
}

// leave gives an entry that is zero what a free one has.
func leave[T any, P entry[T]](e *T, link uint32, trace uint16) {
	*P(e).link() = link
	if e, ok := any(P(e)).(traced); ok {
		*e.trace() = uint64(trace)
	}
}

// use is what a slab knows of a page besides.
type use struct {
	n      uint8 // entries that are not free
	listed bool  // in slab.empty
	fresh  bool  // listed: it was in use after it was last looked at
}

// rest is the packed page that i stands in, nil where it is not packed.
func (s *slab[T, P]) rest(i uint32) *rest {
	return s.chunks[i>>chunkShift].rests[i>>pageBits%chunkPages]
}

// read copies an entry, a free one too, as it is when it is not packed.
func (s *slab[T, P]) read(i uint32, e *T) {
	*e = *s.at(i)
	if r := s.rest(i); r != nil {
		leave[T, P](e, r.links[i%pageItems], r.traceOf(i))
	}
}

// look finds the bare entries of a page.
func (s *slab[T, P]) look(p uint32, b *bare) {
	b.bits = 0
	if r := s.rest(p << pageBits); r != nil {
		b.bits, b.links = s.handed(p), r.links
		for i := range b.traces {
			b.traces[i] = r.traceOf(uint32(i))
		}
		return
	}
	page, handed := s.page(p), s.handed(p)
	for i := range page {
		e := P(&page[i])
		if handed>>i&1 == 0 || !e.bare() {
			continue
		}
		b.bits |= 1 << i
		b.links[i] = *e.link()
		if e, ok := any(e).(traced); ok {
			b.traces[i] = uint16(*e.trace())
		}
	}
}

// rest is the page as it is packed. All its entries are bare.
func (b *bare) rest() *rest {
	r := &rest{links: b.links, trace: b.traces[0]}
	for _, trace := range b.traces {
		if trace != r.trace {
			traces := b.traces
			r.traces = &traces
			break
		}
	}
	return r
}

// packSome looks at up to n pages that were empty once, and packs those that were empty
// at the last look and have been since. It says how many it has not looked at this
// time.
func (s *slab[T, P]) packSome(n int) (left int) {
	for ; n > 0 && s.looked < len(s.empty); n-- {
		p := s.empty[s.looked]
		s.looked++
		switch u := &s.uses[p]; {
		case u.n > 0:
			u.listed = false
		case u.fresh:
			u.fresh = false
			s.empty[s.kept] = p
			s.kept++
		default:
			u.listed = false
			s.pack(p)
		}
	}
	if left = len(s.empty) - s.looked; left > 0 {
		return left
	}
	s.empty, s.looked = s.empty[:s.kept], 0
	if s.kept == 0 {
		s.empty = nil
	}
	s.kept = 0
	return 0
}

// pack packs a page of free entries. The last page is left alone if it has entries
// that never were handed out.
func (s *slab[T, P]) pack(p uint32) {
	if s.whole(p) {
		var b bare
		s.look(p, &b)
		s.setRest(p, b.rest())
	}
}

// setRest packs page p, which is there: this is its rest.
func (s *slab[T, P]) setRest(p uint32, r *rest) {
	if s.zero == nil {
		s.zero = new([pageItems]T)
	}
	c := s.own(p >> chunkBits)
	c.pages[p%chunkPages], c.rests[p%chunkPages], c.epochs[p%chunkPages] = s.zero, r, s.epoch
	s.packed++
}

// unpack makes a page again of its rest.
func (s *slab[T, P]) unpack(p uint32) {
	c := s.own(p >> chunkBits)
	page, r := new([pageItems]T), c.rests[p%chunkPages]
	for i := range page {
		leave[T, P](&page[i], r.links[i], r.traceOf(uint32(i)))
	}
	c.pages[p%chunkPages], c.rests[p%chunkPages], c.epochs[p%chunkPages] = page, nil, s.epoch
	s.packed--
}

// unpackUsed unpacks what is in use of a table that was just read, in which all
// pages of bare entries are packed: an extra that only names a claim is bare too.
func (s *slab[T, P]) unpackUsed(free []bool) {
	for p := range uint32(len(s.uses)) {
		from := p << pageBits
		if s.rest(from) != nil && slices.Contains(free[max(from, 1):from+pageItems], false) {
			s.unpack(p)
		}
	}
}

// bytes is what the pages take in memory, of entries of so many bytes.
func (s *slab[T, P]) bytes(each uint64) uint64 {
	return (uint64(s.last)-min(uint64(s.last), s.packed*pageItems))*each + s.packed*restBytes
}

// Pack gives back memory of what is gone, after it has not been needed from one look
// at it to the next. It looks at about n pages of the tables, of 64 entries each, and
// says whether it has looked at less than all that there is to look at. It changes
// nothing that the state says.
func (s *State) Pack(n int) (more bool) {
	left := s.jobs.packSome(n) + s.extras.packSome(n) + s.policies.packSome(n) + s.queues.packSome(n) + s.levels.packSome(n) +
		s.groups.packSome(n) + s.claims.packSome(n) + s.reasons.packSome(n) + s.settings.packSome(n) + s.crons.packSome(n) + s.metas.packSome(n)
	return left > 0
}

// HasEmpty says whether Pack will give something back, if it is not needed again.
func (s *State) HasEmpty() bool {
	return len(s.jobs.empty)+len(s.extras.empty)+len(s.policies.empty)+len(s.queues.empty)+len(s.levels.empty)+
		len(s.groups.empty)+len(s.claims.empty)+len(s.reasons.empty)+len(s.settings.empty)+len(s.crons.empty)+len(s.metas.empty) > 0
}

// packFree packs the pages of a state that is loaded in which nothing is in use, or
// checks what a state that runs knows of its pages.
func (c *checker) packFree() bool {
	return takeStock(c, "jobs", &c.jobs, c.free.jobs) && takeStock(c, "extras", &c.extras, c.free.extras) &&
		takeStock(c, "policies", &c.policies, c.free.policies) && takeStock(c, "queues", &c.queues.slab, c.free.queues) &&
		takeStock(c, "levels", &c.levels, c.free.levels) && takeStock(c, "groups", &c.groups, c.free.groups) &&
		takeStock(c, "claims", &c.claims, c.free.claims) && takeStock(c, "reasons", &c.reasons, c.free.reasons) &&
		takeStock(c, "settings", &c.settings, c.free.settings) &&
		takeStock(c, "crons", &c.crons, freeList(&c.crons)) && takeStock(c, "metas", &c.metas, freeList(&c.metas))
}

// freeList says which entries are free, where the list of them is known to be right.
func freeList[T any, P entry[T]](s *slab[T, P]) []bool {
	free, e := make([]bool, uint64(s.last)+1), new(T)
	for i := s.free; i != 0; i = *P(e).link() {
		free[i] = true
		s.read(i, e)
	}
	return free
}

// takeStock counts the entries of each page.
func takeStock[T any, P entry[T]](c *checker, name string, s *slab[T, P], free []bool) bool {
	packed := uint64(0)
	for p := range s.uses {
		n, from := uint8(0), uint64(p)<<pageBits
		for i := max(from, 1); i < from+pageItems && i <= uint64(s.last); i++ {
			if !free[i] {
				n++
			}
		}
		u, isPacked := &s.uses[p], s.rest(uint32(from)) != nil
		if isPacked {
			packed++
		}
		switch {
		case !c.loads && u.n != n:
			return c.fail("%s: page %d has %d entries, counted were %d", name, p, n, u.n)
		case !c.loads && isPacked && n > 0:
			return c.fail("%s: page %d is packed and has %d entries", name, p, n)
		case c.loads && n == 0 && !isPacked:
			s.pack(uint32(p))
		}
		u.n = n
	}
	return c.loads || packed == s.packed && (s.zero == nil || reflect.ValueOf(s.zero).Elem().IsZero()) ||
		c.fail("%s: %d packed pages, counted were %d; or what stands for them is not empty", name, packed, s.packed)
}
