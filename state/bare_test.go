package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pawl/internal/seeds"
)

// walked is what walk writes of b.
func walked(b *bare, first uint32, traced bool) []byte {
	var c coder
	b.walk(&c, first, traced)
	return c.buf
}

// What is written of bare entries is read, whichever they are and whatever they say.
func TestBareRoundTrip(t *testing.T) {
	random := seeds.Rand(t.Name())
	for _, set := range []uint64{0, 1, 1 << 63, 1<<63 | 1, ^uint64(0), ^uint64(1), random.Uint64(), random.Uint64()} {
		for name, link := range map[string]func(i uint32) uint32{
			"none":       func(uint32) uint32 { return 0 },
			"in order":   func(i uint32) uint32 { return i - 1 },
			"against it": func(i uint32) uint32 { return i + 1 },
			"in pairs":   func(i uint32) uint32 { return i ^ 1 },
			"any":        func(uint32) uint32 { return random.Uint32() },
		} {
			const first = 640
			want := bare{bits: set}
			for _, i := range want.entries {
				want.links[i], want.traces[i] = link(first+i), uint16(random.Uint32()>>random.IntN(32))
			}
			for _, traced := range []bool{false, true} {
				wrote := want
				var got bare
				c := coder{mode: reading, buf: walked(&wrote, first, traced)}
				size := len(c.buf)
				got.walk(&c, first, traced)
				if wrote.row, got.row = want.row, want.row; wrote != want {
					t.Errorf("%x, %s: it was changed by being written", set, name)
				}
				if !traced {
					got.traces = want.traces
				}
				if c.bad != "" || len(c.buf) > 0 || got != want {
					t.Errorf("%x, %s: got %+v, %d bytes left, %q, want %+v", set, name, got, len(c.buf), c.bad, want)
				}
				if name == "in order" && set == ^uint64(0) && !traced && size != 8+2 {
					t.Errorf("a page that was freed in order takes %d bytes", size)
				}
			}
		}
	}
}

func TestBareRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  uint64
		runs string
		want string // what is bad
	}{
		{"cut in the bits", 0, "", "bare entries"},
		{"no links", 3, "", "link"},
		{"cut in a run", 3, "\x02", "link"},
		{"a run of none", 3, "\x02\x00", "link"},
		{"a run that is too long", 3, "\x02\x03\x07\x02", "link"},
		{"a run that is very much too long", 3, "\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x07\x02", "link"},
		{"a run cut in two", 3, "\x02\x01\x02\x01\x07\x02", "link"},
		{"a link of more than 32 bits", 1, "\x80\x80\x80\x80\x10\x01\x07\x01", "link"},
		{"a link that is not the shortest", 1, "\x82\x00\x01\x07\x01", "link"},
		{"no traces", 3, "\x02\x02", "trace"},
		{"a trace of more than 16 bits", 3, "\x02\x02\x80\x80\x04\x02", "trace"},
		{"traces for some", 3, "\x02\x02\x07\x01", "trace"},
		{"nothing is wrong", 3, "\x02\x02\x07\x01\x08\x01", ""},
		{"nothing is bare", 0, "", ""},
	} {
		buf := append(binary.LittleEndian.AppendUint64(nil, tt.set), tt.runs...)
		if tt.name == "cut in the bits" {
			buf = buf[:7]
		}
		c := coder{mode: reading, buf: buf}
		new(bare).walk(&c, 64, true)
		if c.bad != tt.want || len(c.buf) > 0 {
			t.Errorf("%s: got bad %q with %d bytes left, want %q", tt.name, c.bad, len(c.buf), tt.want)
		}
	}
}

// A page can be written in one way only, and says of no entry in use that it is free.
func TestLoadPagesRefused(t *testing.T) {
	s := New()
	apply := func(r Record) {
		t.Helper()
		if err := s.Apply(&r, Body{Generation: 1, Length: 9}, 1); err != nil {
			t.Fatal(err)
		}
	}
	apply(Record{Kind: KindQueue, Queue: 1, Text: []byte("p/n/q")})
	for slot := range Slot(130) {
		apply(Record{Kind: KindEnqueue, Slot: slot + 1, Queue: 1, Born: 1})
	}
	for slot := Slot(64); slot < 128; slot++ {
		apply(Record{Kind: KindDelete, Slot: slot, Cause: CauseDelete})
	}
	apply(Record{Kind: KindDelete, Slot: 10, Cause: CauseDelete})
	var b bytes.Buffer
	if _, err := s.View().WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	// The root, the size of the table, and its three pages.
	var blocks [][]byte
	le, rest := binary.LittleEndian, b.Bytes()[len(magic):]
	for range 5 {
		n := 4 + le.Uint32(rest)
		blocks, rest = append(blocks, rest[4:n]), rest[n:]
	}
	// page is a page that says of these entries that they are bare.
	page := func(p uint32, set uint64) []byte {
		var b bare
		s.jobs.look(p, &b)
		b.bits = set
		buf := walked(&b, p<<pageBits, true)
		for i := range uint32(pageItems) {
			if s.jobs.handed(p)&^set>>i&1 != 0 {
				buf = s.jobs.at(p<<pageBits + i).append(buf)
			}
		}
		return buf
	}
	for _, tt := range []struct {
		name  string
		page  int
		bytes []byte
		sound bool
	}{
		{"a page with one that is free", 0, page(0, 1<<10), true},
		{"a free entry as it is in memory", 0, page(0, 0), false},
		{"an entry in use is bare", 0, page(0, 1<<10|1<<11), false},
		{"entry 0 is bare", 0, page(0, 1<<10|1), false},
		{"a free page", 1, page(1, ^uint64(0)), true},
		{"a free page but for one entry", 1, page(1, ^uint64(1)), false},
		{"a free page as it is in memory", 1, page(1, 0), false},
		{"a byte behind a free page", 1, append(page(1, ^uint64(0)), 0), false},
		{"a page that is not whole", 2, page(2, 0), true},
		{"an entry that never was handed out is bare", 2, page(2, 1<<3), false},
		{"a page that is not whole is bare", 2, page(2, 7), false},
	} {
		changed := append([][]byte(nil), blocks...)
		changed[2+tt.page] = tt.bytes
		all := []byte(magic)
		for _, block := range changed {
			all = append(le.AppendUint32(all, uint32(len(block))), block...)
		}
		all = append(all, rest...)
		switch _, err := Load(bytes.NewReader(all)); {
		case tt.sound && (err != nil || !bytes.Equal(all, b.Bytes())):
			t.Errorf("%s: got %v, or other bytes than are written", tt.name, err)
		case !tt.sound && !errors.Is(err, ErrLoad):
			t.Errorf("%s: got %v, want ErrLoad", tt.name, err)
		}
	}
}
