package state

import (
	"slices"

	"github.com/google/btree"
)

// An index orders entries by time, and by number where times are equal.
type index struct{ tree *btree.BTreeG[mark] }

// mark is one entry of an index.
type mark struct {
	at Millis
	id uint32
}

func (m mark) less(o mark) bool {
	return m.at < o.at || m.at == o.at && m.id < o.id
}

func newIndex() index { return index{btree.NewG(32, mark.less)} }

func (x index) add(at Millis, id uint32)    { x.tree.ReplaceOrInsert(mark{at, id}) }
func (x index) remove(at Millis, id uint32) { x.tree.Delete(mark{at, id}) }
func (x index) len() int                    { return x.tree.Len() }

// first is the earliest entry.
func (x index) first() (mark, bool) { return x.tree.Min() }

func (x index) has(at Millis, id uint32) bool { return x.tree.Has(mark{at, id}) }

// upTo calls yield for the entries up to and with m, in order, until it returns
// false.
func (x index) upTo(m mark, yield func(mark) bool) {
	x.tree.Ascend(func(n mark) bool { return !m.less(n) && yield(n) })
}

// fill adds marks in order, which is faster than in any other.
func (x index) fill(marks []mark) {
	slices.SortFunc(marks, func(a, b mark) int {
		switch {
		case a.less(b):
			return -1
		case b.less(a):
			return 1
		}
		return 0
	})
	for _, m := range marks {
		x.tree.ReplaceOrInsert(m)
	}
}
