package waltest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
)

// Keep says what a crash leaves of one pending change.
type Keep struct {
	What  KeepWhat
	Bytes int // of a torn write
}

// KeepWhat is the kind of it.
type KeepWhat uint8

const (
	Drop   KeepWhat = iota // as if it had never been made
	Whole                  // made
	Torn                   // the first Bytes of a write; of anything else it is Whole
	Zeroed                 // a write has come as zeros; anything else it is Whole
)

// Pending is one change that is not durable yet.
type Pending struct {
	Text  string // for messages
	Write int    // bytes of a write, 0 of anything else
}

// Pending lists them, oldest first.
func (d *Disk) Pending() []Pending {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Pending, len(d.pending))
	for i := range d.pending {
		c := &d.pending[i]
		list[i].Text = c.String()
		if c.kind == changeWrite {
			list[i].Write = len(c.data)
		}
	}
	return list
}

// Crash returns the disk as another process finds it after the power was gone:
// what is durable, and of the pending change i what keep says. The disk it is
// called on is not changed and may crash again in another way.
func (d *Disk) Crash(keep func(i int) Keep) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := &Disk{live: clone(d.durable), nextID: d.nextID, free: d.free, limited: d.limited, locks: map[string]bool{}}
	for i := range d.pending {
		c, k := d.pending[i], keep(i)
		switch {
		case k.What == Drop:
			continue
		case k.What == Torn && c.kind == changeWrite:
			c.data = c.data[:min(k.Bytes, len(c.data))]
		case k.What == Zeroed && c.kind == changeWrite:
			c.data = make([]byte, len(c.data))
		}
		apply(after.live, &c)
	}
	after.durable = clone(after.live)
	return after
}

// Kill returns the disk as another process finds it after this one was killed:
// everything it wrote is there, and what was not durable still is not.
func (d *Disk) Kill() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{live: clone(d.live), durable: clone(d.durable), pending: slices.Clone(d.pending),
		nextID: d.nextID, free: d.free, limited: d.limited, locks: map[string]bool{}}
}

func clone(nodes map[int]*node) map[int]*node {
	out := make(map[int]*node, len(nodes))
	for id, n := range nodes {
		n.shared = true
		c := *n
		if n.names != nil {
			c.names = make(map[string]int, len(n.names))
			for name, id := range n.names {
				c.names[name] = id
			}
		}
		out[id] = &c
	}
	return out
}

const (
	sector     = 512
	allSubsets = 10 // pending changes of which every subset is tried
	maxTears   = 8  // of one write
)

// States yields the disks that a crash now may leave, each with a name that says
// which: nothing pending kept, all, each prefix and suffix, each one missing,
// each one alone, all subsets of up to ten changes or else so many random ones,
// each write torn at sectors and at a random byte or come as zeros, with all
// before it and with and without all after it. The same seed gives the same.
func (d *Disk) States(seed uint64, random int) iter.Seq2[string, *Disk] {
	pending := d.Pending()
	n := len(pending)
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	whole := func(yes bool) Keep {
		if yes {
			return Keep{What: Whole}
		}
		return Keep{}
	}
	return func(yield func(string, *Disk) bool) {
		try := func(name string, keep func(i int) Keep) bool { return yield(name, d.Crash(keep)) }
		if !try("none", func(int) Keep { return Keep{} }) || n == 0 {
			return
		}
		if !try("all", func(int) Keep { return whole(true) }) {
			return
		}
		for at := range n {
			what := fmt.Sprintf("%d of %d (%s)", at, n, pending[at].Text)
			if !try("prefix "+what, func(i int) Keep { return whole(i < at) }) ||
				!try("suffix "+what, func(i int) Keep { return whole(i >= at) }) ||
				!try("missing "+what, func(i int) Keep { return whole(i != at) }) ||
				!try("alone "+what, func(i int) Keep { return whole(i == at) }) {
				return
			}
			for _, k := range damages(pending[at].Write, rng) {
				for _, rest := range []bool{false, true} {
					name := fmt.Sprintf("%v at %d, rest %t, %s", k.What, k.Bytes, rest, what)
					if !try(name, func(i int) Keep {
						if i == at {
							return k
						}
						return whole(i < at || rest)
					}) {
						return
					}
				}
			}
		}
		if n <= allSubsets {
			for set := range 1 << n {
				if !try(fmt.Sprintf("subset %b of %d", set, n), func(i int) Keep { return whole(set>>i&1 == 1) }) {
					return
				}
			}
			return
		}
		for range random {
			s := rng.Uint64()
			subset := rand.New(rand.NewPCG(s, 0))
			set := make([]bool, n)
			for i := range set {
				set[i] = subset.IntN(2) == 1
			}
			if !try(fmt.Sprintf("random subset %x of %d", s, n), func(i int) Keep { return whole(set[i]) }) {
				return
			}
		}
	}
}

// damages are the ways in which a write of so many bytes may come in part.
func damages(bytes int, rng *rand.Rand) []Keep {
	if bytes == 0 {
		return nil
	}
	list := []Keep{{What: Zeroed}}
	if bytes > 1 {
		list = append(list, Keep{Torn, 1}, Keep{Torn, bytes / 2}, Keep{Torn, bytes - 1}, Keep{Torn, 1 + rng.IntN(bytes-1)})
	}
	step := max((bytes/sector+maxTears-1)/maxTears, 1) * sector
	for at := step; at < bytes; at += step {
		list = append(list, Keep{Torn, at})
	}
	return list
}

func (k KeepWhat) String() string {
	return [...]string{"dropped", "whole", "torn", "zeroed"}[k]
}

// Contents returns what a process reads in a file; nil if there is none. It is
// no operation.
func (d *Disk) Contents(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, _, _, err := d.find(name)
	if err != nil || id == 0 {
		return nil
	}
	return slices.Clone(d.live[id].data)
}

// SetContents replaces what is in a file, on the disk too: damage. The file must
// exist. It is no operation.
func (d *Disk) SetContents(name string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, _, _, err := d.find(name)
	if err != nil || id == 0 {
		panic("waltest: no file " + name)
	}
	for _, nodes := range []map[int]*node{d.live, d.durable} {
		nodes[id].data, nodes[id].shared = slices.Clone(data), false
	}
	d.pending = slices.DeleteFunc(d.pending, func(c change) bool { return c.node == id && c.kind <= changeSize })
}

// Cut leaves the first n bytes of a file, on the disk too.
func (d *Disk) Cut(name string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, _, _, err := d.find(name)
	if err != nil || id == 0 {
		panic("waltest: no file " + name)
	}
	for _, nodes := range []map[int]*node{d.live, d.durable} {
		nodes[id].data, nodes[id].shared = nodes[id].data[:n:n], true
	}
	d.pending = slices.DeleteFunc(d.pending, func(c change) bool { return c.node == id && c.kind <= changeSize })
}

// Flip turns one bit of a file over, on the disk too.
func (d *Disk) Flip(name string, bit int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, _, _, err := d.find(name)
	if err != nil || id == 0 {
		panic("waltest: no file " + name)
	}
	for _, nodes := range []map[int]*node{d.live, d.durable} {
		if n := nodes[id]; bit/8 < int64(len(n.data)) {
			n.own()
			n.data[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// Files lists all files, sorted. It is no operation.
func (d *Disk) Files() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	var walk func(dir int, prefix string)
	walk = func(dir int, prefix string) {
		for name, id := range d.live[dir].names {
			if d.live[id].names != nil {
				walk(id, prefix+"/"+name)
			} else {
				list = append(list, prefix+"/"+name)
			}
		}
	}
	walk(rootID, "")
	slices.Sort(list)
	return list
}
