package state

import "reflect"

// FieldsOf are the names of the fields of a kind, in the order of the bytes.
func FieldsOf(k Kind) []string {
	r := Record{Kind: k, Settings: new(Settings), Cron: new(Cron)}
	c := coder{mode: naming}
	r.walk(&c)
	return c.names
}

// KindEnd is the first kind that is none.
const KindEnd = kindEnd

// JobBytes is what one entry of the slab of jobs takes.
var JobBytes = reflect.TypeFor[job]().Size()

// Shrinks are the numbers of names with which a shard that held n is made anew,
// while one after the other goes.
func Shrinks(n int) (at []int) {
	f := newFinder[int](1)
	s := &f.shards[0]
	for name := range n {
		f.put(s, name, 1)
	}
	for name := range n {
		most := s.most
		if f.drop(s, name); s.most != most {
			at = append(at, f.count)
		}
	}
	return at
}
