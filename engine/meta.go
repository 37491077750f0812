package engine

import (
	"slices"
	"strings"

	"pawl/state"
	"pawl/wal"
)

// MaxMetaBytes bounds a key, and a value, of MetaSet.
const MaxMetaBytes = 64 << 10

func (e *Engine) metaSet(c *MetaSet) error {
	if c.Key == "" {
		return ErrEmptyName
	}
	if len(c.Key) > MaxMetaBytes || len(c.Value) > MaxMetaBytes {
		return ErrTooLarge
	}
	if err := e.room(wal.RecordBytes(160+len(c.Key)+len(c.Value), 0)); err != nil {
		return err
	}
	_, c.Existed = e.st.Meta(c.Key)
	switch {
	case c.Value == nil && !c.Existed:
		return nil
	case c.Value == nil:
		e.record(&state.Record{Kind: state.KindMetaDelete, Text: []byte(c.Key)}, nil)
		return nil
	case c.IfAbsent && c.Existed:
		return ErrExists
	case !c.Existed && e.st.Counts().Metas >= uint64(e.opt.MaxMeta):
		return ErrTooMany
	case e.full.Load():
		return ErrNoSpace
	}
	e.record(&state.Record{Kind: state.KindMeta, Text: []byte(c.Key), Data: c.Value}, nil)
	return nil
}

func (e *Engine) metaGet(c *MetaGet) error {
	c.Value = nil
	if v, ok := e.st.Meta(c.Key); ok {
		c.Value = append([]byte{}, v...)
	}
	return nil
}

func (e *Engine) metaList(c *MetaList) error {
	c.Pairs = nil
	next := uint32(1)
	return e.inStays(func() (more bool) {
		next = e.st.MetasFrom(next, listChunk, c.Prefix, func(key string, value []byte) {
			c.Pairs = append(c.Pairs, MetaPair{key, value})
		})
		return next != 0
	})
}

// finish puts the pairs in order and gives the caller values of its own, when others
// can go on. A key that was deleted and stored again meanwhile may have been met twice,
// the second time as it is.
func (c *MetaList) finish() {
	slices.Reverse(c.Pairs)
	slices.SortStableFunc(c.Pairs, func(a, b MetaPair) int { return strings.Compare(a.Key, b.Key) })
	c.Pairs = slices.CompactFunc(c.Pairs, func(a, b MetaPair) bool { return a.Key == b.Key })
	for i := range c.Pairs {
		c.Pairs[i].Value = append([]byte{}, c.Pairs[i].Value...)
	}
}

func (e *Engine) drain(c *Drain) error {
	if err := e.room(recordRoom); err != nil {
		return err
	}
	if e.st.Draining() != c.On {
		e.record(&state.Record{Kind: state.KindDrain, On: c.On}, nil)
	}
	return nil
}
