package state

import (
	"bytes"
	"slices"
	"strings"
)

// meta is a key and a value that mean something to others; free entries have no
// key.
type meta struct {
	key   string
	value []byte
	next  uint32
}

func (m *meta) link() *uint32 { return &m.next }

func (s *State) applyMeta(r *Record) string {
	if len(r.Text) == 0 {
		return "value without a key"
	}
	i, ok := s.metaOf[string(r.Text)]
	var m *meta
	if ok {
		m = s.metas.edit(i)
	} else {
		i, m = s.metas.alloc()
		m.key = string(r.Text)
		s.metaOf[m.key] = i
	}
	// A new one each time: views hold the old.
	m.value = bytes.Clone(r.Data)
	return ""
}

func (s *State) applyMetaDelete(r *Record) string {
	i, ok := s.metaOf[string(r.Text)]
	if !ok {
		return "no such value"
	}
	delete(s.metaOf, string(r.Text))
	s.metas.release(i)
	return ""
}

// Meta is the value of a key; it may be empty. It belongs to the state.
func (s *State) Meta(key string) ([]byte, bool) {
	i, ok := s.metaOf[key]
	if !ok {
		return nil, false
	}
	return s.metas.at(i).value, true
}

// Metas calls yield for the pairs whose key begins with prefix, sorted, until
// it returns false. The values belong to the state.
func (s *State) Metas(prefix string, yield func(key string, value []byte) bool) {
	var keys []string
	for key := range s.metaOf {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if !yield(key, s.metas.at(s.metaOf[key]).value) {
			return
		}
	}
}

// MetasFrom calls visit for the pairs among the n numbers from first on, free ones
// included, whose key begins with prefix, and gives the number to go on with, 0 at the
// end. It is for those who look at very many in pieces. The values belong to the state
// and are never changed.
func (s *State) MetasFrom(first uint32, n int, prefix string, visit func(key string, value []byte)) (next uint32) {
	i, end, next := piece(first, n, s.metas.last)
	for ; i < end; i++ {
		if m := s.metas.at(i); m.key != "" && strings.HasPrefix(m.key, prefix) {
			visit(m.key, m.value)
		}
	}
	return next
}
