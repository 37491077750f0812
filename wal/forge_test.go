package wal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pawl/wal"
	"pawl/wal/waltest"
)

// forged is a generation made entry by entry.
type forged struct {
	number  uint32
	salt    uint64
	entries []wal.Forged
}

// plain is a generation with its birth, a link behind length bytes of previous,
// and groups after LSN last.
func plain(number, previous, length uint32, last wal.LSN, chain uint32, groups int) *forged {
	g := &forged{number: number, salt: uint64(number) << 32}
	g.add(wal.Forged{Kind: 2, Content: wal.ForgePair(previous, 0)})
	g.add(wal.Forged{Kind: 3, LSN: last, Durable: last, Chain: chain, Content: wal.ForgePair(previous, length)})
	for range groups {
		last++
		g.add(wal.Forged{Kind: 1, LSN: last, Durable: last - 1, Records: 1, Content: wal.ForgeRecord("head", "body")})
	}
	return g
}

func (g *forged) add(e wal.Forged) {
	e.Salt, e.Store, e.Generation = g.salt, waltest.Store, g.number
	g.entries = append(g.entries, e)
}

// bytes chains the entries, but for those that have a chain of their own.
func (g *forged) bytes() (b []byte, chain uint32) {
	for i, e := range g.entries {
		if i > 1 && e.Chain == 0 {
			e.Chain = chain
		}
		var entry []byte
		entry, chain = wal.Forge(e)
		b = append(b, entry...)
	}
	return b, chain
}

// put writes generations where they belong.
func put(t *testing.T, generations ...*forged) *waltest.Disk {
	t.Helper()
	d := waltest.NewDisk()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(d.Mkdir(logDir, 0o700))
	for _, g := range generations {
		must(d.Mkdir(generationDir(g.number), 0o700))
		f, err := d.OpenFile(segmentFile(g.number), 0o102, 0o600) // O_RDWR|O_CREATE
		must(err)
		b, _ := g.bytes()
		_, err = f.WriteAt(append(b, make([]byte, 1000)...), 0)
		must(err)
	}
	return d
}

// TestEntryOutOfPlace: an entry may be whole and still not be the next one. Each
// row changes one entry of a generation with three groups; what follows vouches
// for it, so it is damage, and the reason is said.
func TestEntryOutOfPlace(t *testing.T) {
	last := func(g *forged) *wal.Forged { return &g.entries[3] }
	for name, row := range map[string]struct {
		change func(g *forged)
		want   string
	}{
		"another store":            {func(g *forged) { last(g).Store = wal.StoreID{9} }, "another store"},
		"another generation":       {func(g *forged) { last(g).Generation = 9 }, "generation 9, want 1"},
		"another salt":             {func(g *forged) { last(g).Salt = 1 }, "salt is not"},
		"a birth inside":           {func(g *forged) { *last(g) = g.entries[0] }, "kind 2 out of place"},
		"a link inside":            {func(g *forged) { *last(g) = g.entries[1] }, "kind 3 out of place"},
		"unknown kind":             {func(g *forged) { last(g).Kind = 6 }, "unknown format"},
		"another chain":            {func(g *forged) { last(g).Chain = 1 }, "does not follow"},
		"a group twice":            {func(g *forged) { last(g).LSN--; last(g).Durable-- }, "group 1 where 2 belongs"},
		"a group left out":         {func(g *forged) { last(g).LSN++ }, "group 3 where 2 belongs"},
		"a group that vouches":     {func(g *forged) { last(g).Durable = 2 }, "says of itself"},
		"mark of another group":    {func(g *forged) { *last(g) = mark(g, 4, 7) }, "mark of group 7 where 1 was last"},
		"mark with records":        {func(g *forged) { *last(g) = mark(g, 4, 1); last(g).Records = 1 }, "kind 4 with 1 records"},
		"mark with content":        {func(g *forged) { *last(g) = mark(g, 4, 1); last(g).Content = []byte("x") }, "length does not match"},
		"something behind a close": {func(g *forged) { *last(g) = mark(g, 5, 1) }, "entry behind the closed mark"},
	} {
		t.Run(name, func(t *testing.T) {
			g := plain(1, 0, 0, 0, 0, 4)
			row.change(g)
			_, _, err := waltest.Read(put(t, g), logDir, wal.ReaderOptions{})
			c, ok := errors.AsType[*wal.CorruptError](err)
			if !ok || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "a later entry says that group 3 was on disk") {
				t.Fatalf("got %v, want %q in it", err, row.want)
			}
			if c.Generation != 1 || c.LSN != 2 && name != "something behind a close" {
				t.Errorf("named generation %d, group %d", c.Generation, c.LSN)
			}
		})
	}
}

func mark(g *forged, kind uint16, lsn wal.LSN) wal.Forged {
	return wal.Forged{Kind: kind, Salt: g.salt, Store: waltest.Store, Generation: g.number, LSN: lsn, Durable: 1}
}

// TestRecordsOutOfPlace: a content with the right checksum that is not so many
// records is refused, wherever it stands.
func TestRecordsOutOfPlace(t *testing.T) {
	for name, change := range map[string]func(e *wal.Forged){
		"fewer than said": func(e *wal.Forged) { e.Records = 2 },
		"more than said":  func(e *wal.Forged) { e.Records = 0 },
		"no records":      func(e *wal.Forged) { e.Content = []byte("\x00\x00rubbish") },
	} {
		g := plain(1, 0, 0, 0, 0, 2)
		change(&g.entries[3])
		groups, _, err := waltest.Read(put(t, g), logDir, wal.ReaderOptions{})
		if c, ok := errors.AsType[*wal.CorruptError](err); !ok || c.Offset < 300 || len(groups) != 1 {
			t.Errorf("%s: %d groups, %v", name, len(groups), err)
		}
	}
}

// TestLinks: what a link says of the generation before must be so.
func TestLinks(t *testing.T) {
	first := plain(3, 0, 0, 0, 0, 3)
	b, chain := first.bytes()
	length := uint32(len(b))
	for _, row := range []struct {
		name string
		next *forged
		more []*forged
		want string // part of the error; empty: none
	}{
		{"as it is", plain(5, 3, length, 3, chain, 2), nil, ""},
		{"another chain", plain(5, 3, length, 3, chain+1, 2), nil, "last header is not the one"},
		{"another group", plain(5, 3, length, 4, chain, 2), nil, "ends with group 3, but the next generation follows group 4"},
		{"shorter by an entry", plain(5, 3, length-108, 3, chain, 2), nil, "ends with group 2"},
		{"shorter by a byte", plain(5, 3, length-1, 3, chain, 2), nil, "107 more bytes are history"},
		{"longer", plain(5, 3, length+8, 3, chain, 2), nil, "8 more bytes are history"},
		{"longer than the file", plain(5, 3, length+2000, 3, chain, 2), nil, "file ends"},
		{"to itself", plain(5, 5, length, 3, chain, 2), nil, "link to generation 5"},
		{"past the one before", plain(5, 2, length, 3, chain, 2), nil, "goes past generation 3"},
		{"back in time", plain(5, 3, length, 3, chain, 2), []*forged{plain(6, 5, 308, 2, 1, 1)}, "begins behind group 3"},
		{"to one that is gone", plain(5, 4, length, 5, chain, 2), nil, "generation is missing"},
		{"from the first to one that is gone", nil, []*forged{plain(4, 2, 500, 7, 1, 1)}, "generation is missing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			all := row.more
			if row.next != nil {
				all = append([]*forged{first, row.next}, row.more...)
			}
			groups, end, err := waltest.Read(put(t, all...), logDir, wal.ReaderOptions{})
			if row.want == "" {
				if err != nil || len(groups) != 5 || end.Generation != 5 || end.LSN != 5 {
					t.Errorf("%d groups, end %+v, %v", len(groups), end, err)
				}
				return
			}
			if _, ok := errors.AsType[*wal.CorruptError](err); !ok || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q in it", err, row.want)
			}
		})
	}
}

// TestForgedPayload: a payload that is a whole header with the right checksum,
// store and generation does not vouch for anything: it has no salt.
func TestForgedPayload(t *testing.T) {
	r := newRun(t)
	r.opt.Sync = wal.SyncNever
	l := r.begin(t)
	r.write(l, 10)
	if r.err != nil {
		t.Fatal(r.err)
	}
	liar, _ := wal.Forge(wal.Forged{Kind: 1, Store: waltest.Store, Generation: 1, LSN: 1000, Durable: 999})
	records := []waltest.Record{{Head: []byte("h"), Body: liar}}
	if _, err := waltest.Append(l, records...); err != nil {
		t.Fatal(err)
	}
	d := r.disk.Crash(func(int) waltest.Keep { return waltest.Keep{What: waltest.Whole} })
	d.Flip(segmentFile(1), 8*(200+20)) // in the header of the first group
	_, end, err := waltest.Read(d, logDir, wal.ReaderOptions{})
	if err != nil || end.LSN != 0 || end.Cut == 0 {
		t.Errorf("end %+v, %v; want a torn tail", end, err)
	}
}

func TestErrorTexts(t *testing.T) {
	err := &wal.CorruptError{Path: "log/0000000003/1", Generation: 3, Offset: 512, Err: errors.New("why")}
	if got, want := err.Error(), "log/0000000003/1: damaged at offset 512: why"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err.LSN = 9
	if got, want := err.Error(), "log/0000000003/1: damaged at offset 512, group 9: why"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := fmt.Sprint(wal.Pos{Generation: 3, Offset: 4, Length: 5}), "generation 3 offset 4 length 5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
