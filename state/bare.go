package state

import (
	"encoding/binary"
	"math/bits"
)

// The block of a page begins with what its bare entries say, those that are nothing
// but a link and a trace, as free entries are. So a snapshot follows what is held,
// and not what ever was:
//
//	bare     8 bytes, little endian: a bit for each entry that is bare, from bit 0
//	links    runs of number - link, of each bare entry
//	traces   runs, in the table of jobs: how often the slot was used before
//	entries  the others, as walk writes them
//
// A run is a value and how many entries in a row have it, two numbers as records
// have them. Differences are taken modulo 2³² and folded, so that those about zero,
// of entries that were freed in order or against it, are short. There is one
// encoding of each page, and no other is read.

// bare is what the bare entries of a page say.
type bare struct {
	bits   uint64            // which entries they are
	links  [pageItems]uint32 // of those
	traces [pageItems]uint16 // of those
	row    [pageItems]uint32 // scratch of walk
}

// walk writes or reads what stands before the other entries. The page's first entry
// has the number first.
func (b *bare) walk(c *coder, first uint32, traced bool) {
	var set [8]byte
	binary.LittleEndian.PutUint64(set[:], b.bits)
	raw(c, "bare entries", set[:])
	b.bits = binary.LittleEndian.Uint64(set[:])
	row := b.row[:bits.OnesCount64(b.bits)]
	for n, i := range b.entries {
		row[n] = fold(first + i - b.links[i])
	}
	runs(c, "link", row, maxUint32)
	for n, i := range b.entries {
		b.links[i] = first + i - unfold(row[n])
	}
	if !traced {
		return
	}
	for n, i := range b.entries {
		row[n] = uint32(b.traces[i])
	}
	runs(c, "trace", row, maxUint16)
	for n, i := range b.entries {
		b.traces[i] = uint16(row[n])
	}
}

// entries yields the bare entries, and which of them each is.
func (b *bare) entries(yield func(n int, i uint32) bool) {
	n := 0
	for left := b.bits; left != 0; left &= left - 1 {
		if !yield(n, uint32(bits.TrailingZeros64(left))) {
			return
		}
		n++
	}
}

// has reports whether entry i of the page is bare.
func (b *bare) has(i int) bool { return b.bits>>i&1 != 0 }

// fold makes small numbers of those that are a little more or less than zero.
func fold(d uint32) uint32 { return d<<1 ^ uint32(int32(d)>>31) }

func unfold(n uint32) uint32 { return n>>1 ^ -(n & 1) }

// runs writes or reads values of which neighbours are often the same.
func runs(c *coder, name string, values []uint32, most uint64) {
	for i := 0; i < len(values) && c.bad == ""; {
		n := 1
		for c.mode == writing && i+n < len(values) && values[i+n] == values[i] {
			n++
		}
		row := uint64(n)
		num(c, name, &values[i], 0, most)
		num(c, name, &row, 1, uint64(len(values)-i))
		if c.mode == reading {
			if i > 0 && values[i] == values[i-1] {
				c.fail(name) // it belongs to the run before
			}
			for n = 1; n < int(row); n++ {
				values[i+n] = values[i]
			}
		}
		i += n
	}
}
