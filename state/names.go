package state

import (
	"hash/maphash"
	"maps"
)

// finder finds entries of a table by what they are called. A map of Go's keeps the
// memory of the most it ever held, and to make it anew takes as long as it is large;
// so there are many small ones, each of which is made anew when most of what it held
// is gone. Which one is said by a hash that nobody sees: nobody shall fill one.
type finder[K comparable] struct {
	shards []shard[K]
	count  int // of names
}

type shard[K comparable] struct {
	of   map[K]uint32
	most int // it held since it was made
}

// A shard that held fewer than fewNames stays as it is; one of more is made anew
// when one part in shrinkAt is left.
const (
	fewNames = 16
	shrinkAt = 4
)

func newFinder[K comparable](shards int) finder[K] {
	return finder[K]{shards: make([]shard[K], shards)}
}

func (f *finder[K]) in(hash uint64) *shard[K] { return &f.shards[hash%uint64(len(f.shards))] }

func (f *finder[K]) put(s *shard[K], name K, i uint32) {
	if s.of == nil {
		s.of = map[K]uint32{}
	}
	f.count -= len(s.of)
	s.of[name] = i
	f.count += len(s.of)
	s.most = max(s.most, len(s.of))
}

// drop takes away a name. It costs at most the move of a quarter of what one shard
// held.
func (f *finder[K]) drop(s *shard[K], name K) {
	f.count -= len(s.of)
	delete(s.of, name)
	f.count += len(s.of)
	if s.most >= fewNames && len(s.of) <= s.most/shrinkAt {
		fresh := make(map[K]uint32, len(s.of))
		maps.Copy(fresh, s.of)
		*s = shard[K]{of: fresh, most: len(fresh)}
	}
}

// names finds queues by their keys, of which there are a million at most.
type names struct {
	finder[string]
	seed maphash.Seed
}

func newNames() *names { return &names{newFinder[string](1 << 8), maphash.MakeSeed()} }

// find is the number of a name, 0 for none. It does not allocate.
func (n *names) find(name []byte) uint32 { return n.in(maphash.Bytes(n.seed, name)).of[string(name)] }

func (n *names) add(name string, i uint32) { n.put(n.in(maphash.String(n.seed, name)), name, i) }

func (n *names) remove(name string) { n.drop(n.in(maphash.String(n.seed, name)), name) }

// keys finds groups and claims by queue and key, of which there are as many as jobs.
type keys struct {
	finder[queueText]
	seed maphash.Seed
}

func newKeys() *keys { return &keys{newFinder[queueText](1 << 10), maphash.MakeSeed()} }

// find is the number of a key, 0 for none.
func (k *keys) find(name queueText) uint32 { return k.of(name).of[name] }

func (k *keys) of(name queueText) *shard[queueText] { return k.in(maphash.Comparable(k.seed, name)) }

func (k *keys) add(name queueText, i uint32) { k.put(k.of(name), name, i) }

func (k *keys) remove(name queueText) { k.drop(k.of(name), name) }

// texts finds reasons by queue and text.
type texts struct {
	finder[reasonText]
	seed maphash.Seed
}

func newTexts() *texts { return &texts{newFinder[reasonText](1 << 8), maphash.MakeSeed()} }

// spread brings queues apart that have one text: many do.
func spread(text uint64, queue uint32) uint64 { return text ^ uint64(queue)*0x9e3779b97f4a7c15 }

// find is the number of a reason, 0 for none. It does not allocate.
func (t *texts) find(queue uint32, text []byte) uint32 {
	return t.in(spread(maphash.Bytes(t.seed, text), queue)).of[reasonText{queue, string(text)}]
}

func (t *texts) of(r reasonText) *shard[reasonText] {
	return t.in(spread(maphash.String(t.seed, r.text), r.queue))
}

func (t *texts) add(r reasonText, i uint32) { t.put(t.of(r), r, i) }

func (t *texts) remove(r reasonText) { t.drop(t.of(r), r) }
