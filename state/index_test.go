package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pawl/internal/seeds"
)

// checkOrder follows the whole tree: all leaves at one depth, none empty, marks
// in order and within the bounds above them, the count right.
func checkOrder(x *order) error {
	count := 0
	depth := -1
	var walk func(b *branch, level int, low, high mark, hasHigh bool) error
	walk = func(b *branch, level int, low, high mark, hasHigh bool) error {
		if lowest := b.leaves != nil; lowest && (len(b.kids) > 0 || len(b.leaves) != len(b.low)) || !lowest && len(b.kids) != len(b.low) {
			return fmt.Errorf("branch of %d bounds, %d leaves, %d branches", len(b.low), len(b.leaves), len(b.kids))
		}
		if len(b.low) > branchKids || len(b.low) == 0 && b != x.root {
			return fmt.Errorf("branch with %d children", len(b.low))
		}
		for i := range b.low {
			from, to, hasTo := low, high, hasHigh
			if i > 0 {
				from = b.low[i]
			}
			if i+1 < len(b.low) {
				to, hasTo = b.low[i+1], true
			}
			if b.leaves == nil {
				if err := walk(b.kids[i], level+1, from, to, hasTo); err != nil {
					return err
				}
				continue
			}
			if depth < 0 {
				depth = level
			}
			l := b.leaves[i]
			if level != depth || l.n < 1 {
				return fmt.Errorf("leaf of %d at level %d, want %d", l.n, level, depth)
			}
			for k := range int(l.n) {
				m := l.mark(k)
				if m.less(from) || hasTo && !m.less(to) || k > 0 && !l.mark(k-1).less(m) {
					return fmt.Errorf("%v is out of order or of its bounds %v and %v", m, from, to)
				}
			}
			count += int(l.n)
		}
		return nil
	}
	if err := walk(x.root, 0, mark{at: -1 << 62}, mark{}, false); err != nil {
		return err
	}
	if count != x.count {
		return fmt.Errorf("%d marks, counted %d", count, x.count)
	}
	return nil
}

// agree compares an index with the marks it should have.
func agree(t *testing.T, x index, want map[mark]bool) {
	t.Helper()
	if err := checkOrder(x.order); err != nil {
		t.Fatal(err)
	}
	sorted := make([]mark, 0, len(want))
	for m := range want {
		sorted = append(sorted, m)
	}
	slices.SortFunc(sorted, mark.compare)
	var got []mark
	x.upTo(mark{1 << 60, maxUint32}, func(m mark) bool { got = append(got, m); return true })
	if !slices.Equal(got, sorted) {
		t.Fatalf("%d marks, want %d; or in another order", len(got), len(sorted))
	}
	first, ok := x.first()
	if ok != (len(sorted) > 0) || ok && first != sorted[0] {
		t.Fatalf("first is %v, %v of %d", first, ok, len(sorted))
	}
	if len(sorted) > 2 {
		limit := sorted[len(sorted)/2]
		n := 0
		x.upTo(limit, func(m mark) bool { n++; return !limit.less(m) })
		if n != len(sorted)/2+1 {
			t.Fatalf("%d up to %v, want %d", n, limit, len(sorted)/2+1)
		}
	}
}

// Entries come and go in ways that each have a shape of their own, and what is
// there is compared with a map.
func TestIndex(t *testing.T) {
	r := seeds.Rand(t.Name())
	for name, at := range map[string]func(i int) Millis{
		"ascending":   func(i int) Millis { return Millis(i) },
		"descending":  func(i int) Millis { return Millis(-i) },
		"random":      func(int) Millis { return Millis(r.Uint64N(1 << 40)) },
		"few times":   func(int) Millis { return Millis(r.IntN(3)) },
		"two streams": func(i int) Millis { return Millis(i + i%2*1_000_000) },
		"far apart":   func(i int) Millis { return Millis(r.IntN(50)) + Millis(i%2)*MaxMillis },
	} {
		t.Run(name, func(t *testing.T) {
			const marks = 30_000
			x, want := newIndex(), map[mark]bool{}
			var all []mark
			for i := range marks {
				m := mark{at(i), uint32(i)}
				all = append(all, m)
				x.add(m.at, m.id)
				x.add(m.at, m.id) // again changes nothing
				want[m] = true
			}
			agree(t, x, want)

			filled := newIndex()
			filled.fill(listed(all))
			agree(t, filled, want)
			for _, y := range []index{x, filled} {
				want := want
				if y == filled {
					want = map[mark]bool{}
					for _, m := range all {
						want[m] = true
					}
				}
				// Most go, in a random order; some come again.
				for i, k := range r.Perm(marks) {
					m := all[k]
					if !y.has(m.at, m.id) {
						t.Fatalf("%v is not there", m)
					}
					y.remove(m.at, m.id)
					y.remove(m.at, m.id)
					if y.has(m.at, m.id) {
						t.Fatalf("%v is there yet", m)
					}
					delete(want, m)
					if i%5 == 0 {
						again := mark{m.at + 7, m.id}
						y.add(again.at, again.id)
						want[again] = true
					}
					if i%(marks/4) == 0 {
						agree(t, y, want)
					}
				}
				agree(t, y, want)
				// The rest goes from the front, as time does.
				for y.len() > 0 {
					m, _ := y.first()
					y.remove(m.at, m.id)
					delete(want, m)
				}
				agree(t, y, want)
			}
		})
	}
}

// Filling takes what adding takes, whatever the number and the times.
func TestIndexFill(t *testing.T) {
	r := seeds.Rand(t.Name())
	for _, n := range []int{0, 1, 2, leafMarks - 1, leafMarks, leafMarks + 1, leafMarks * branchKids, leafMarks*branchKids + 1} {
		for _, spread := range []uint64{1, 100, 1 << 48} {
			var all []mark
			want := map[mark]bool{}
			for i := range n {
				m := mark{Millis(r.Uint64N(spread)), uint32(i)}
				all, want[m] = append(all, m), true
			}
			x := newIndex()
			x.fill(listed(all))
			agree(t, x, want)
			x.add(5, maxUint32)
			want[mark{5, maxUint32}] = true
			agree(t, x, want)
		}
	}
}

// Where nearly all are of one hour and one is of another decade, filling has to
// sort the many of the hour in parts as well.
func TestIndexFillUneven(t *testing.T) {
	r := seeds.Rand(t.Name())
	for _, spread := range []uint64{1, 1000, 3_600_000} {
		all := []mark{{MaxMillis, 0}}
		want := map[mark]bool{all[0]: true}
		for i := range manyMarks {
			m := mark{Millis(r.Uint64N(spread)), uint32(i + 1)}
			all, want[m] = append(all, m), true
		}
		x := newIndex()
		x.fill(listed(all))
		agree(t, x, want)
	}
}

// What an entry takes, by how they come: 12 bytes are its own.
func BenchmarkIndexMemory(b *testing.B) {
	const marks = 1_000_000
	random := rand.New(rand.NewPCG(1, 2))
	for name, at := range map[string]func(i int) Millis{
		"ascending": func(i int) Millis { return Millis(i) },
		"random":    func(int) Millis { return Millis(random.Uint64N(1 << 40)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				x := newIndex()
				for i := range marks {
					x.add(at(i), uint32(i))
				}
				leaves := 0
				for rest := []*branch{x.root}; len(rest) > 0; rest = rest[1:] {
					leaves += len(rest[0].leaves)
					rest = append(rest, rest[0].kids...)
				}
				b.ReportMetric(float64(leaves)*1536/marks, "bytes/entry")
			}
		})
	}
}
