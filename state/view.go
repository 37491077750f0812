package state

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"pawl/internal/hugepage"
)

// View is a fixed copy of a State.
type View struct {
	root
	tables
}

// View fixes a copy, in the time it takes to copy the page tables. It may be
// read by another goroutine while the state goes on. The owner of the state
// must Release it.
func (s *State) View() *View {
	s.orderLate()
	s.views++
	return &View{root: s.root, tables: tables{
		jobs:     s.jobs.view(),
		extras:   s.extras.view(),
		policies: s.policies.view(),
		queues:   s.queues.view(),
		levels:   s.levels.view(),
		groups:   s.groups.view(),
		claims:   s.claims.view(),
		reasons:  s.reasons.view(),
		settings: s.settings.view(),
		crons:    s.crons.view(),
		metas:    s.metas.view(),
	}}
}

// Release says that v is not read any more, so that pages need not be copied
// for it. Only the owner of the state calls it, once; v is of no use afterwards.
func (s *State) Release(v *View) {
	*v = View{}
	if s.views--; s.views > 0 {
		return
	}
	s.jobs.thaw()
	s.extras.thaw()
	s.policies.thaw()
	s.queues.thaw()
	s.levels.thaw()
	s.groups.thaw()
	s.claims.thaw()
	s.reasons.thaw()
	s.settings.thaw()
	s.crons.thaw()
	s.metas.thaw()
}

// The bytes of a state are a magic text with the version, and blocks: 4 bytes
// little endian with the length, and that many bytes. The first block is the
// root; then each table has a block with its size and one for each page, which
// bare.go draws. In version 1, which is still read, a page's block is all its
// entries, free ones too.
const (
	magic  = "pawl state 2\n"
	magic1 = "pawl state 1\n"
)

// WriteTo writes the whole state, the same bytes for the same state. Load reads
// it. The bytes carry a version, but no checksum: that is the file's business.
func (v *View) WriteTo(w io.Writer) (int64, error) {
	b := blockWriter{w: bufio.NewWriterSize(w, 16<<10)}
	b.write([]byte(magic))
	b.block(v.root.walk)
	writeTable(&b, &v.jobs)
	writeTable(&b, &v.extras)
	writeTable(&b, &v.policies)
	writeTable(&b, &v.queues.slab)
	writeTable(&b, &v.levels)
	writeTable(&b, &v.groups)
	writeTable(&b, &v.claims)
	writeTable(&b, &v.reasons)
	writeTable(&b, &v.settings)
	writeTable(&b, &v.crons)
	writeTable(&b, &v.metas)
	if b.err == nil {
		b.err = b.w.Flush()
	}
	return b.n, b.err
}

type blockWriter struct {
	w   *bufio.Writer
	c   coder
	n   int64
	err error
}

func (b *blockWriter) write(p []byte) {
	if b.err == nil {
		_, b.err = b.w.Write(p)
		b.n += int64(len(p))
	}
}

func (b *blockWriter) block(walk func(*coder)) {
	b.c.buf = append(b.c.buf[:0], 0, 0, 0, 0)
	walk(&b.c)
	binary.LittleEndian.PutUint32(b.c.buf, uint32(len(b.c.buf)-4))
	b.write(b.c.buf)
}

func writeTable[T any, P entry[T]](b *blockWriter, s *slab[T, P]) {
	b.block(func(c *coder) { numbers(c, &s.last, &s.free, &s.used) })
	if s.last == 0 {
		return
	}
	e, bares := new(T), new(bare) // one for all: they escape
	traced := isTraced[T, P]()
	for p := uint32(0); p <= s.last>>pageBits; p++ {
		if b.err != nil {
			return
		}
		b.block(func(c *coder) {
			s.look(p, bares)
			bares.walk(c, p<<pageBits, traced)
			page, others := s.page(p), s.handed(p)&^bares.bits
			for i := range page {
				if others>>i&1 != 0 {
					*e = page[i] // a copy: walking writes its fields back
					P(e).walk(c)
				}
			}
		})
	}
}

// Load reads what View.WriteTo wrote, up to the end of r, and checks it as Check
// does. It needs no trust in r: whatever it reads, it gives a sound state, an
// error that wraps ErrLoad, or the error of r.
func Load(r io.Reader) (*State, error) {
	b := blockReader{r: bufio.NewReaderSize(r, 64<<10)}
	got := make([]byte, len(magic))
	if _, err := io.ReadFull(b.r, got); err != nil {
		return nil, b.short(err)
	}
	switch string(got) {
	case magic:
	case magic1:
		b.first = true
	default:
		return nil, fmt.Errorf("%w: it begins with %q, want %q", ErrLoad, got, magic)
	}
	s := New()
	b.block("root", s.root.walk)
	readTable(&b, "jobs", &s.jobs)
	readTable(&b, "extras", &s.extras)
	readTable(&b, "policies", &s.policies)
	readTable(&b, "queues", &s.queues.slab)
	readTable(&b, "levels", &s.levels)
	readTable(&b, "groups", &s.groups)
	readTable(&b, "claims", &s.claims)
	readTable(&b, "reasons", &s.reasons)
	readTable(&b, "settings", &s.settings)
	readTable(&b, "crons", &s.crons)
	readTable(&b, "metas", &s.metas)
	if b.err != nil {
		return nil, b.err
	}
	switch _, err := b.r.ReadByte(); {
	case err == nil:
		return nil, fmt.Errorf("%w: more bytes than a state", ErrLoad)
	case err != io.EOF:
		return nil, err
	}
	if err := s.loadTables(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	s.reindex()
	if err := s.checkNames(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	return s, nil
}

type blockReader struct {
	r     *bufio.Reader
	first bool // it is version 1
	buf   []byte
	err   error
}

func (b *blockReader) short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too early", ErrLoad)
	}
	return err
}

// block reads one block, which walk must use up.
func (b *blockReader) block(name string, walk func(*coder)) {
	if b.err != nil {
		return
	}
	var head [4]byte
	if _, err := io.ReadFull(b.r, head[:]); err != nil {
		b.err = b.short(err)
		return
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	content, err := b.content(n)
	if err != nil {
		b.err = b.short(err)
		return
	}
	c := coder{mode: reading, buf: content}
	walk(&c)
	if c.bad != "" {
		b.err = fmt.Errorf("%w: %s: bad %s", ErrLoad, name, c.bad)
	} else if len(c.buf) > 0 {
		b.err = fmt.Errorf("%w: %s: %d bytes too many", ErrLoad, name, len(c.buf))
	}
}

// content is the next n bytes, good until the next read. Most blocks lie in the
// reader's buffer whole. The length of another is not believed: its buffer grows
// as bytes come.
func (b *blockReader) content(n int) ([]byte, error) {
	if n <= b.r.Size() {
		content, err := b.r.Peek(n)
		if err == nil {
			_, err = b.r.Discard(n)
		}
		return content, err
	}
	b.buf = b.buf[:0]
	for len(b.buf) < n {
		at := len(b.buf)
		b.buf = append(b.buf, make([]byte, min(n-at, 64<<10))...)
		if _, err := io.ReadFull(b.r, b.buf[at:]); err != nil {
			return nil, err
		}
	}
	return b.buf, nil
}

// manyEntries is from how many on memory for them is asked for in large pages.
const manyEntries = 1 << 18

func readTable[T any, P entry[T]](b *blockReader, name string, s *slab[T, P]) {
	b.block(name, func(c *coder) { numbers(c, &s.last, &s.free, &s.used) })
	if s.last == 0 || b.err != nil {
		return
	}
	var fill hugepage.Filler
	bares, traced := new(bare), isTraced[T, P]()
	for p := uint32(0); p <= s.last>>pageBits && b.err == nil; p++ {
		b.block(name, func(c *coder) {
			handed := s.handed(p)
			if !b.first {
				bares.walk(c, p<<pageBits, traced)
			}
			if bares.bits&^handed != 0 {
				c.fail("bare entries")
			}
			switch {
			case c.bad != "":
				return
			case bares.bits == handed && s.whole(p):
				s.put(p, nil)
				s.setRest(p, bares.rest())
				return
			}
			page := new([pageItems]T)
			if s.used >= manyEntries {
				fill.Next(page)
			}
			for i := range page {
				switch e := &page[i]; {
				case bares.has(i):
					leave[T, P](e, bares.links[i], bares.traces[i])
				case handed>>i&1 != 0:
					P(e).walk(c)
					if !b.first && P(e).bare() {
						c.fail("bare entry")
					}
				}
			}
			s.put(p, page)
		})
	}
}

// fillTimes makes the indexes of what time does to jobs, of which there are so
// many.
func (s *State) fillTimes(deadlines, walls span) {
	s.deadlines.fill(deadlines, func(yield func(mark)) {
		each(&s.jobs, func(i uint32, j *job) {
			if at, ok := j.deadline(); ok && j.where != 0 {
				yield(mark{at, i})
			}
		})
	})
	s.walls.fill(walls, func(yield func(mark)) {
		each(&s.jobs, func(i uint32, j *job) {
			if j.isWall() {
				yield(mark{j.whenAt(), i})
			}
		})
	})
}

// reindex makes all maps and indexes from the tables, whose references hold, but
// those that loadTables has made.
func (s *State) reindex() {
	var windows, pauses, graves, fires []mark
	each(&s.claims, func(i uint32, c *claim) {
		if c.serial == 0 || !c.held {
			return
		}
		s.claimOf.add(c.name(), i)
		if !s.alive(c) {
			windows = append(windows, mark{c.until, i})
		}
	})
	s.queues.each(func(i uint32, q *queue) {
		s.queueOf.add(q.key, i)
		if q.pausedUntil != 0 && q.pausedUntil != Forever {
			pauses = append(pauses, mark{q.pausedUntil, i})
		}
		if q.graveAt != 0 {
			graves = append(graves, mark{q.graveAt, i})
		}
	})
	each(&s.groups, func(i uint32, g *group) {
		if g.serial != 0 {
			s.groupOf.add(queueText{g.serial, g.key}, i)
		}
	})
	each(&s.reasons, func(i uint32, r *reason) {
		if r.refs != 0 {
			s.reasonOf.add(reasonText{r.queue, r.text}, i)
		}
	})
	each(&s.policies, func(i uint32, p *policy) {
		if p.refs != 0 {
			s.policyOf[p.policyValue] = i
		}
	})
	each(&s.crons, func(i uint32, c *cron) {
		if c.Name == "" {
			return
		}
		s.cronOf[c.key()] = i
		if c.Next != 0 {
			fires = append(fires, mark{c.Next, i})
		}
	})
	each(&s.metas, func(i uint32, m *meta) {
		if m.key != "" {
			s.metaOf[m.key] = i
		}
	})
	s.windows.fill(listed(windows))
	s.pauses.fill(listed(pauses))
	s.graves.fill(listed(graves))
	s.fires.fill(listed(fires))
}

// listed is what index.fill needs to know of marks.
func listed(marks []mark) (all span, each func(yield func(mark))) {
	for _, m := range marks {
		all.add(m.at)
	}
	return all, func(yield func(mark)) {
		for _, m := range marks {
			yield(m)
		}
	}
}

// each calls f for all entries, free ones too.
func each[T any, P entry[T]](s *slab[T, P], f func(uint32, *T)) {
	for i := uint32(1); i <= s.last && i != 0; i++ {
		f(i, s.at(i))
	}
}
