package state

import (
	"slices"
	"sort"

	"pawl/internal/hugepage"
)

// An index orders entries by time, and by number where times are equal. It is a
// B+ tree whose leaves hold no pointers, so that the collector does not look
// into them, and whose entries cost 12 bytes in a full leaf. A leaf that
// overflows at its end stays full, and the entry begins a new one: times mostly
// come in ascending order, because most delays and leases have the same length.
//
// Bayer and McCreight, "Organization and Maintenance of Large Ordered Indexes",
// Acta Informatica 1, 1972.
type index struct{ *order }

// mark is one entry of an index.
type mark struct {
	at Millis
	id uint32
}

func (m mark) less(o mark) bool {
	return m.at < o.at || m.at == o.at && m.id < o.id
}

const (
	leafMarks  = 127 // as many as fit into 1,536 bytes
	branchKids = 64
)

// order is the tree of an index.
type order struct {
	root  *branch
	count int
}

// A leaf holds n marks, in order.
type leaf struct {
	at [leafMarks]Millis
	id [leafMarks]uint32
	n  int32
}

// A branch has leaves below it, or branches. What lies below child i is not less
// than low[i], but for the first child, which has no bound, and less than
// low[i+1].
type branch struct {
	low    []mark
	leaves []*leaf   // nil above the lowest branches
	kids   []*branch // nil in the lowest ones
}

func newIndex() index { return index{&order{root: newBranch(true)}} }

func newBranch(lowest bool) *branch {
	b := &branch{low: make([]mark, 0, branchKids)}
	if lowest {
		b.leaves = make([]*leaf, 0, branchKids)
	} else {
		b.kids = make([]*branch, 0, branchKids)
	}
	return b
}

func (x *order) len() int { return x.count }

// add does nothing where the entry is there already.
func (x *order) add(at Millis, id uint32) {
	right, low, added := x.root.add(mark{at, id})
	if right != nil {
		root := newBranch(false)
		root.low = append(root.low, mark{}, low)
		root.kids = append(root.kids, x.root, right)
		x.root = root
	}
	if added {
		x.count++
	}
}

// addAll is add for entries that are in order, none of which is there. Many of
// them cost a pass over the whole index, which leaves it without a gap.
func (x *order) addAll(sorted []mark) {
	if len(sorted) == 0 {
		return
	}
	if len(sorted)*leafMarks < x.count {
		for _, m := range sorted {
			x.add(m.at, m.id)
		}
		return
	}
	var leaves, spent []*leaf
	end := leafMarks // of what is in the last of leaves
	add := func(m mark) {
		if end == leafMarks {
			l := new(leaf)
			if n := len(spent); n > 0 {
				l, spent = spent[n-1], spent[:n-1]
			}
			l.n = leafMarks
			leaves, end = append(leaves, l), 0
		}
		leaves[len(leaves)-1].set(end, m)
		end++
	}
	x.root.eachLeaf(func(l *leaf) bool {
		for i := range int(l.n) {
			m := l.mark(i)
			for len(sorted) > 0 && sorted[0].less(m) {
				add(sorted[0])
				x.count++
				sorted = sorted[1:]
			}
			add(m)
		}
		spent = append(spent, l) // all it had stands elsewhere by now
		return true
	})
	for _, m := range sorted {
		add(m)
	}
	x.count += len(sorted)
	leaves[len(leaves)-1].n = int32(end)
	x.root = grow(leaves)
}

// eachLeaf calls f for all leaves below b, in order, until it returns false.
func (b *branch) eachLeaf(f func(*leaf) bool) bool {
	for _, kid := range b.kids {
		if !kid.eachLeaf(f) {
			return false
		}
	}
	for _, l := range b.leaves {
		if !f(l) {
			return false
		}
	}
	return true
}

// remove does nothing where the entry is not there.
func (x *order) remove(at Millis, id uint32) {
	if x.root.remove(mark{at, id}) {
		x.count--
	}
	for len(x.root.kids) == 1 {
		x.root = x.root.kids[0]
	}
	if x.root.leaves == nil && len(x.root.kids) == 0 {
		x.root = newBranch(true)
	}
}

// first is the earliest entry.
func (x *order) first() (m mark, ok bool) {
	b := x.root
	for b.leaves == nil {
		b = b.kids[0]
	}
	if len(b.leaves) == 0 {
		return mark{}, false
	}
	return b.leaves[0].mark(0), true
}

func (x *order) has(at Millis, id uint32) bool {
	m := mark{at, id}
	b := x.root
	for b.leaves == nil {
		b = b.kids[b.child(m)]
	}
	if len(b.leaves) == 0 {
		return false
	}
	_, found := b.leaves[b.child(m)].search(m)
	return found
}

// upTo calls yield for the entries up to and with m, in order, until it returns
// false. yield must not change the index.
func (x *order) upTo(m mark, yield func(mark) bool) {
	x.root.eachLeaf(func(l *leaf) bool {
		for i := range int(l.n) {
			if n := l.mark(i); m.less(n) || !yield(n) {
				return false
			}
		}
		return true
	})
}

func (l *leaf) mark(i int) mark { return mark{l.at[i], l.id[i]} }

func (l *leaf) set(i int, m mark) { l.at[i], l.id[i] = m.at, m.id }

// search is where m stands or belongs.
func (l *leaf) search(m mark) (i int, found bool) {
	i = sort.Search(int(l.n), func(i int) bool { return !l.mark(i).less(m) })
	return i, i < int(l.n) && l.mark(i) == m
}

// insert makes room at i for m; the leaf is not full.
func (l *leaf) insert(i int, m mark) {
	copy(l.at[i+1:l.n+1], l.at[i:l.n])
	copy(l.id[i+1:l.n+1], l.id[i:l.n])
	l.set(i, m)
	l.n++
}

func (l *leaf) delete(i int) {
	copy(l.at[i:l.n-1], l.at[i+1:l.n])
	copy(l.id[i:l.n-1], l.id[i+1:l.n])
	l.n--
}

// take moves the marks of r from i on behind those of l.
func (l *leaf) take(r *leaf, i int) {
	copy(l.at[l.n:], r.at[i:r.n])
	copy(l.id[l.n:], r.id[i:r.n])
	l.n += r.n - int32(i)
	r.n = int32(i)
}

// child is below which child m stands or belongs.
func (b *branch) child(m mark) int {
	i := sort.Search(len(b.low), func(i int) bool { return i > 0 && m.less(b.low[i]) })
	return max(i-1, 0)
}

// add returns the branch that has to stand behind b, where b had no room, and
// what is not less than low in it.
func (b *branch) add(m mark) (right *branch, low mark, added bool) {
	i := b.child(m)
	if b.leaves == nil {
		kid, kidLow, added := b.kids[i].add(m)
		if kid == nil {
			return nil, mark{}, added
		}
		at, right := b.room(i + 1)
		at.b.low = slices.Insert(at.b.low, at.i, kidLow)
		at.b.kids = slices.Insert(at.b.kids, at.i, kid)
		return right, right.bound(), added
	}
	if len(b.leaves) == 0 {
		b.leaves, b.low = append(b.leaves, new(leaf)), append(b.low, m)
	}
	l := b.leaves[i]
	pos, found := l.search(m)
	if found {
		return nil, mark{}, false
	}
	if l.n < leafMarks {
		l.insert(pos, m)
		return nil, mark{}, true
	}
	fresh := new(leaf)
	switch half := leafMarks / 2; {
	case pos == leafMarks:
		fresh.insert(0, m)
	case pos <= half:
		fresh.take(l, half)
		l.insert(pos, m)
	default:
		fresh.take(l, half)
		fresh.insert(pos-half, m)
	}
	at, right := b.room(i + 1)
	at.b.low = slices.Insert(at.b.low, at.i, fresh.mark(0))
	at.b.leaves = slices.Insert(at.b.leaves, at.i, fresh)
	return right, right.bound(), true
}

// spot is a place for a child.
type spot struct {
	b *branch
	i int
}

// room is where a child that belongs at i goes: in b or, where b is full, in b or
// the branch behind it that is made.
func (b *branch) room(i int) (at spot, right *branch) {
	if len(b.low) < branchKids {
		return spot{b, i}, nil
	}
	half := branchKids / 2
	if i == branchKids {
		half = branchKids // as with leaves, what is full stays so
	}
	right = newBranch(b.leaves != nil)
	right.low = append(right.low, b.low[half:]...)
	b.low = b.low[:half]
	right.leaves = append(right.leaves, cut(&b.leaves, half)...)
	right.kids = append(right.kids, cut(&b.kids, half)...)
	if i > half || half == branchKids {
		return spot{right, i - half}, right
	}
	return spot{b, i}, right
}

// cut takes what is behind n off a slice, and the references out of it.
func cut[T any](all *[]*T, n int) []*T {
	if len(*all) <= n {
		return nil
	}
	tail := slices.Clone((*all)[n:])
	clear((*all)[n:])
	*all = (*all)[:n]
	return tail
}

// bound is what nothing in a branch that was just made is less than.
func (b *branch) bound() mark {
	if b == nil {
		return mark{}
	}
	return b.low[0]
}

// remove says whether m was there. Of two neighbours below one branch, one is
// more than a quarter full, or both were when they were last touched.
func (b *branch) remove(m mark) bool {
	if len(b.low) == 0 {
		return false
	}
	i := b.child(m)
	if b.leaves == nil {
		kid := b.kids[i]
		if !kid.remove(m) {
			return false
		}
		if len(kid.low) == 0 {
			b.drop(i)
		} else if len(kid.low) < branchKids/4 {
			b.joinKids(i)
		}
		return true
	}
	l := b.leaves[i]
	pos, found := l.search(m)
	if !found {
		return false
	}
	l.delete(pos)
	if l.n == 0 {
		b.drop(i)
	} else if l.n < leafMarks/4 {
		b.joinLeaves(i)
	}
	return true
}

// drop takes child i out.
func (b *branch) drop(i int) {
	b.low = slices.Delete(b.low, i, i+1)
	if b.leaves != nil {
		b.leaves = slices.Delete(b.leaves, i, i+1)
	} else {
		b.kids = slices.Delete(b.kids, i, i+1)
	}
}

// joinLeaves makes one of leaf i and a neighbour, if that is then no more than
// three quarters full: the next entry shall not split it again.
func (b *branch) joinLeaves(i int) {
	for _, left := range [2]int{i, i - 1} {
		if left >= 0 && left+1 < len(b.leaves) && b.leaves[left].n+b.leaves[left+1].n <= leafMarks*3/4 {
			b.leaves[left].take(b.leaves[left+1], 0)
			b.drop(left + 1)
			return
		}
	}
}

// joinKids is joinLeaves for branches.
func (b *branch) joinKids(i int) {
	for _, left := range [2]int{i, i - 1} {
		if left < 0 || left+1 >= len(b.kids) {
			continue
		}
		l, r := b.kids[left], b.kids[left+1]
		if len(l.low)+len(r.low) > branchKids*3/4 {
			continue
		}
		r.low[0] = b.low[left+1] // of a first child it counts for nothing, and may be too high
		l.low = append(l.low, r.low...)
		l.leaves = append(l.leaves, r.leaves...)
		l.kids = append(l.kids, r.kids...)
		b.drop(left + 1)
		return
	}
}

// A span is how many entries there are, and between which times.
type span struct {
	n           uint32
	least, most Millis
}

func (p *span) add(at Millis) {
	if p.n == 0 {
		p.least, p.most = at, at
	}
	p.n++
	p.least, p.most = min(p.least, at), max(p.most, at)
}

const (
	// bucketMarks is about how many entries fill sorts at a time: with as much room
	// beside them they fit into the cache of one core.
	bucketMarks = 1 << 12
	// manyMarks of about one time, where others are far away, are spread again.
	manyMarks = bucketMarks << 4
)

// fill puts the entries of a span into an empty index, in whose order of number
// each yields them whenever it is called; what it yields must not change. All
// leaves are full, and little is needed beside them.
func (x *order) fill(all span, each func(yield func(mark))) {
	if all.n == 0 {
		return
	}
	leaves := make([]*leaf, (all.n+leafMarks-1)/leafMarks)
	var fill hugepage.Filler
	for i := range leaves {
		leaves[i] = new(leaf)
		if all.n >= manyEntries {
			fill.Next(leaves[i])
		}
		leaves[i].n = leafMarks
	}
	leaves[len(leaves)-1].n = int32(all.n - uint32(len(leaves)-1)*leafMarks)
	f := filling{leaves: leaves}
	f.spread(0, all, each)
	x.root, x.count = grow(leaves), int(all.n)
}

// filling is what fill works with.
type filling struct {
	leaves []*leaf
	sorter markSorter
	some   []mark
}

// spread brings entries to the places from from on. They are counted by time
// first, then written to where those of about their time belong, and sorted there.
func (f *filling) spread(from uint32, all span, each func(yield func(mark))) {
	least, shift := all.least, 0
	for uint64(all.most-least)>>shift > uint64(all.n)/bucketMarks {
		shift++
	}
	ends := make([]uint32, uint64(all.most-least)>>shift+1)
	each(func(m mark) { ends[uint64(m.at-least)>>shift]++ })
	sum := from
	for i, k := range ends {
		ends[i] = sum
		sum += k
	}
	each(func(m mark) {
		end := &ends[uint64(m.at-least)>>shift]
		f.leaves[*end/leafMarks].set(int(*end%leafMarks), m)
		*end++
	})
	for _, end := range ends {
		if shift > 0 {
			f.sort(from, end)
		}
		from = end
	}
}

// sort sorts the entries at the places from to end, which are in order of number.
func (f *filling) sort(from, end uint32) {
	some := f.some[:0]
	for i := from; i < end; i++ {
		some = append(some, f.leaves[i/leafMarks].mark(int(i%leafMarks)))
	}
	if len(some) >= manyMarks {
		f.some = nil
		all, each := listed(some)
		f.spread(from, all, each)
		return
	}
	f.some = some
	f.sorter.sort(some)
	for i, m := range some {
		at := from + uint32(i)
		f.leaves[at/leafMarks].set(int(at%leafMarks), m)
	}
}

func (m mark) compare(o mark) int {
	switch {
	case m.less(o):
		return -1
	case o.less(m):
		return 1
	}
	return 0
}

// grow makes the branches above leaves, of which there is one at least.
func grow(leaves []*leaf) *branch {
	var row []*branch
	for some := range slices.Chunk(leaves, branchKids) {
		b := newBranch(true)
		for _, l := range some {
			b.low = append(b.low, l.mark(0))
		}
		b.leaves = append(b.leaves, some...)
		row = append(row, b)
	}
	for len(row) > 1 {
		var above []*branch
		for some := range slices.Chunk(row, branchKids) {
			b := newBranch(false)
			for _, kid := range some {
				b.low = append(b.low, kid.low[0])
			}
			b.kids = append(b.kids, some...)
			above = append(above, b)
		}
		row = above
	}
	return row[0]
}
