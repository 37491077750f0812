package state

import (
	"hash/maphash"
	"maps"
)

// names finds queues by their keys. A map of Go's keeps the memory of the most it
// ever held, and to make it anew takes as long as it is large; so there are many
// small ones, each of which is made anew when most of what it held is gone.
type names struct {
	shards [1 << shardBits]shard
	seed   maphash.Seed // says which shard, which nobody sees; not to be guessed, as nobody shall fill one
	count  int          // of names
}

const shardBits = 8

type shard struct {
	of   map[string]uint32
	most int // it held since it was made
}

// A shard that held fewer than fewNames stays as it is; one of more is made anew
// when one part in shrinkAt is left.
const (
	fewNames = 16
	shrinkAt = 4
)

func newNames() *names { return &names{seed: maphash.MakeSeed()} }

// find is the number of a name, 0 for none. It does not allocate.
func (n *names) find(name []byte) uint32 {
	return n.shards[maphash.Bytes(n.seed, name)>>(64-shardBits)].of[string(name)]
}

func (n *names) shard(name string) *shard {
	return &n.shards[maphash.String(n.seed, name)>>(64-shardBits)]
}

// add names i.
func (n *names) add(name string, i uint32) {
	s := n.shard(name)
	if s.of == nil {
		s.of = map[string]uint32{}
	}
	n.count -= len(s.of)
	s.of[name] = i
	n.count += len(s.of)
	s.most = max(s.most, len(s.of))
}

// remove takes away a name that is there. With a million names it costs at most
// the move of a thousand.
func (n *names) remove(name string) {
	s := n.shard(name)
	delete(s.of, name)
	n.count--
	if s.most >= fewNames && len(s.of) <= s.most/shrinkAt {
		fresh := make(map[string]uint32, len(s.of))
		maps.Copy(fresh, s.of)
		*s = shard{of: fresh, most: len(fresh)}
	}
}
