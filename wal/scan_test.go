package wal_test

import (
	"errors"
	"testing"

	"pawl/wal"
	"pawl/wal/waltest"
)

// Sectors come in any order: the last write of a log may begin with zeros and have
// bytes behind them. Whatever it stood behind, it is torn, and the log ends there.
func TestTornBehindZeros(t *testing.T) {
	for name, entries := range map[string]int{"behind the link": 2, "behind a group": 3, "behind a mark": 4} {
		g := plain(1, 0, 0, 0, 0, 1)
		g.add(mark(g, 4, 1))
		g.entries = g.entries[:entries]
		d := put(t, g)
		b, _ := g.bytes()
		end := len(b)
		b = append(b, make([]byte, 1000)...)
		copy(b[end+512:], "came")
		d.SetContents(segmentFile(1), b)
		groups, found, err := waltest.Read(d, logDir, wal.ReaderOptions{})
		if want := min(entries-2, 1); err != nil || len(groups) != want || int(found.Length) != end || found.Cut != 516 {
			t.Errorf("%s: %d groups, end %+v, %v; want %d groups and 516 bytes cut behind %d", name, len(groups), found, err, want, end)
		}
	}
}

// At the link's place of a generation that was made ahead may stand a mark of the
// newest one, its witness. It vouches for what the newest has lost; what is no such
// mark does not, or is told as a link that cannot be read.
func TestWitness(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(e *wal.Forged)
		refused uint32 // the generation that is named
		cut     bool
	}{
		"idle mark":             {func(*wal.Forged) {}, 1, false},
		"closed mark":           {func(e *wal.Forged) { e.Kind = 5 }, 1, false},
		"of nothing new":        {func(e *wal.Forged) { e.LSN, e.Durable = 3, 3 }, 0, false},
		"of another generation": {func(e *wal.Forged) { e.Salt = 7 }, 0, true},
		"a group":               {func(e *wal.Forged) { e.Kind = 1 }, 2, false},
		"a link without length": {func(e *wal.Forged) { e.Kind = 3 }, 2, false},
		"a mark with content":   {func(e *wal.Forged) { e.Content = []byte("content!") }, 2, false},
	} {
		ahead := &forged{number: 2, salt: 2 << 32}
		ahead.add(wal.Forged{Kind: 2, Content: wal.ForgePair(1, 0)})
		ahead.add(wal.Forged{Kind: 4, LSN: 4, Durable: 4, Chain: 1})
		row.change(&ahead.entries[1])
		groups, end, err := waltest.Read(put(t, plain(1, 0, 0, 0, 0, 3), ahead), logDir, wal.ReaderOptions{})
		c, refused := errors.AsType[*wal.CorruptError](err)
		switch {
		case refused != (row.refused != 0), refused && c.Generation != row.refused:
			t.Errorf("%s: got %v, want damage of generation %d", name, err, row.refused)
		case !refused && (err != nil || len(groups) != 3 || end.Cut > 0 != row.cut):
			t.Errorf("%s: %d groups, %d bytes cut, %v; want 3 groups, cut: %t", name, len(groups), end.Cut, err, row.cut)
		}
	}
}
