package wal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	library "github.com/tidwall/wal"

	"pawl/internal/vfs"
)

func TestPrefix(t *testing.T) {
	var b [prefixBytes]byte
	check := func(n int) {
		t.Helper()
		varint := putPrefix(b[:], n)
		if got, err := decodePrefix(b[:]); err != nil || got != n {
			t.Fatalf("prefix of %d: got %d, %v", n, got, err)
		}
		if got := prefixVarint(b[:]); got != varint {
			t.Fatalf("prefix of %d: varint of %d bytes, want %d", n, got, varint)
		}
	}
	for n := headerBytes; n < 1<<16; n += alignBytes {
		check(n)
	}
	for _, around := range []int{1 << 7, 1 << 14, 1 << 21, 1 << 27} {
		for n := around - 64; n <= around+64; n += alignBytes {
			if n >= headerBytes {
				check(n)
			}
		}
	}
	check(maxEntryBytes &^ (alignBytes - 1))
}

func TestPrefixRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"short":            {0x5b, 0, 0},
		"zero":             {0, 0, 0, 0},
		"endless varint":   {0xff, 0xff, 0xff, 0xff},
		"filler not zero":  {0x5b, 0, 1, 0},
		"longer than need": {0xdb, 0, 0, 0},
		"not a multiple":   {0x5c, 0, 0, 0},
		"less than header": {0x53, 0, 0, 0},
	} {
		if n, err := decodePrefix(b); err == nil {
			t.Errorf("%s: got %d, want an error", name, n)
		}
	}
}

// exampleEntry is one group with two records, whole.
func exampleEntry() []byte {
	content := append(appendRecord(nil, []byte("head"), []byte("body")), appendRecord(nil, []byte("alone"), nil)...)
	b := make([]byte, prefixBytes+headerBytes+padded(len(content)))
	copy(b[prefixBytes+headerBytes:], content)
	h := header{kind: kindGroup, salt: 0x1122334455667788, store: StoreID{0: 0xaa, 15: 0xbb}, lsn: 7, durable: 6,
		logTime: 1000, wallTime: 1700000000000, generation: 3, records: 2, chain: 0xdeadbeef}
	return b[:encodeEntry(b, &h, len(content))]
}

func appendRecord(dst, head, body []byte) []byte {
	b := make([]byte, RecordBytes(len(head), len(body)))
	putRecord(b, head, body)
	return append(dst, b...)
}

func TestEntryDamage(t *testing.T) {
	whole := exampleEntry()
	if _, _, n, err := decodeEntry(whole); err != nil || n != len(whole) {
		t.Fatalf("whole: %d, %v", n, err)
	}
	for n := range whole {
		if _, _, _, err := decodeEntry(whole[:n]); err == nil {
			t.Errorf("first %d of %d bytes: no error", n, len(whole))
		}
	}
	for bit := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if _, _, _, err := decodeEntry(b); err == nil {
			t.Errorf("bit %d flipped: no error", bit)
		}
	}
	// The checksums are right, and still it is none of ours.
	reseal := func(change func(h *header, b []byte)) error {
		b := bytes.Clone(whole)
		h, _ := decodeHeader(b[prefixBytes:])
		h.encode(b[prefixBytes:])
		change(&h, b[prefixBytes:])
		_, _, _, err := decodeEntry(b)
		return err
	}
	sum := func(b []byte) {
		s := checksum(b[:84])
		b[84], b[85], b[86], b[87] = byte(s), byte(s>>8), byte(s>>16), byte(s>>24)
	}
	for name, row := range map[string]struct {
		change func(h *header, b []byte)
		want   error
	}{
		"version":        {func(_ *header, b []byte) { b[4]++; sum(b) }, ErrFormat},
		"kind 0":         {func(h *header, b []byte) { h.kind = 0; h.encode(b) }, ErrFormat},
		"unknown kind":   {func(h *header, b []byte) { h.kind = kindClosed + 1; h.encode(b) }, ErrFormat},
		"too long":       {func(h *header, b []byte) { h.length += alignBytes; h.encode(b) }, errLength},
		"too short":      {func(h *header, b []byte) { h.length = headerBytes - 1; h.encode(b) }, errLength},
		"wrong content":  {func(h *header, b []byte) { h.contentSum++; h.encode(b) }, errChecksum},
		"padding not 0":  {func(h *header, b []byte) { b[h.length] = 1 }, errPadding},
		"another's mark": {func(_ *header, b []byte) { copy(b, "WAL!") }, errNoHeader},
	} {
		if err := reseal(row.change); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
	}
}

func TestRecords(t *testing.T) {
	for _, head := range []int{1, 127, 128, 20000} {
		for _, body := range []int{0, 1, 127, 128, 16383, 16384, 1 << 20} {
			h, b := bytes.Repeat([]byte{'h'}, head), bytes.Repeat([]byte{'b'}, body)
			enc := appendRecord(nil, h, b)
			gotHead, gotBody, n, err := decodeRecord(append(enc, 'x'))
			if err != nil || n != len(enc) || !bytes.Equal(gotHead, h) || !bytes.Equal(gotBody, b) {
				t.Errorf("head %d body %d: got %d bytes, %v", head, body, n, err)
			}
			for _, cut := range []int{0, 1, 2, len(enc) / 2, len(enc) - 1} {
				if _, _, _, err := decodeRecord(enc[:min(cut, len(enc)-1)]); err == nil {
					t.Errorf("head %d body %d cut at %d: no error", head, body, cut)
				}
			}
		}
	}
	for name, b := range map[string][]byte{
		"no head":                {0, 1, 'b'},
		"long varint of head":    {0x81, 0x00, 0, 'h'},
		"long varint of body":    {1, 0x80, 0x00, 'h'},
		"endless varint of body": {1, 0xff, 0xff},
		"huge head":              {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 'h'},
		"huge body":              {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 'h'},
	} {
		if _, _, _, err := decodeRecord(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A header vouches wherever it stands, from the first byte on.
func TestVouched(t *testing.T) {
	s := scanner{salt: 0x1122334455667788}
	entry := exampleEntry()
	for _, before := range []int{0, 1, prefixBytes, 1000} {
		b := append(make([]byte, before), entry[prefixBytes:]...)
		if got := s.vouched(b); got != 6 {
			t.Errorf("behind %d bytes: got group %d, want 6", before, got)
		}
	}
	for _, b := range [][]byte{nil, entry[:8], entry[prefixBytes+8:]} {
		if got := s.vouched(b); got != 0 {
			t.Errorf("of %d bytes: got group %d, want none", len(b), got)
		}
	}
	if got := (&scanner{salt: 1}).vouched(entry); got != 0 {
		t.Errorf("another generation's vouches for group %d", got)
	}
}

// TestFormatDocument decodes the example of FORMAT.md and makes it again.
func TestFormatDocument(t *testing.T) {
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(doc), "```hex\n")
	example, _, ended := strings.Cut(example, "```")
	if !found || !ended {
		t.Fatal("FORMAT.md has no hex example")
	}
	var digits strings.Builder
	for line := range strings.Lines(example) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	if want := exampleEntry(); !bytes.Equal(b, want) {
		t.Errorf("the example is\n%x, want\n%x", b, want)
	}
	h, content, _, err := decodeEntry(b)
	if err != nil {
		t.Fatal(err)
	}
	if h.lsn != 7 || h.records != 2 || h.generation != 3 || h.wallTime != 1700000000000 {
		t.Errorf("header is %+v", h)
	}
	if head, body, _, err := decodeRecord(content); err != nil || string(head) != "head" || string(body) != "body" {
		t.Errorf("first record is %q %q, %v", head, body, err)
	}
	// The table of the header names every field at its place.
	for _, field := range []string{"0 | 4 | magic", "4 | 2 | format", "6 | 2 | kind", "8 | 8 | salt", "16 | 16 | store", "32 | 8 | LSN",
		"40 | 8 | durable through", "48 | 8 | log time", "56 | 8 | wall time", "64 | 4 | generation", "68 | 4 | length",
		"72 | 4 | records", "76 | 4 | chain", "80 | 4 | content checksum", "84 | 4 | header checksum"} {
		if !regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(field)).Match(doc) {
			t.Errorf("FORMAT.md does not say %q", field)
		}
	}
}

// TestLibraryBytes: the library and the plain segment write the same file, and
// the library reads back what was given to it as entries.
func TestLibraryBytes(t *testing.T) {
	dir := t.TempDir()
	lib, err := createLibrarySegment(filepath.Join(dir, "lib"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := vfs.OS{}.OpenFile(filepath.Join(dir, "plain"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	plain := &plainSegment{file: f}
	entry := func(content int) []byte {
		b := make([]byte, prefixBytes+headerBytes+padded(content))
		for i := range content {
			b[prefixBytes+headerBytes+i] = byte(i)
		}
		return b[:encodeEntry(b, &header{kind: kindGroup}, content)]
	}
	var all []byte
	entries := 0
	for i, n := range []int{0, 8, 35, 40, 500, 16384 - headerBytes, 20000, 1 << 21} {
		first := entry(n)
		b, split := first, len(first)
		entries++
		if i%2 == 1 {
			b = append(bytes.Clone(first), entry(n+100)...)
			entries++
		}
		all = append(all, b...)
		if err := errors.Join(lib.append(b, split), plain.append(b, split)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(lib.close(), plain.close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join("lib", segmentName), "plain"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, all) {
			t.Errorf("%s: %d bytes, want %d, equal: %t, %v", name, len(got), len(all), bytes.Equal(got, all), err)
		}
	}
	log, err := library.Open(filepath.Join(dir, "lib"), &library.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if last, err := log.LastIndex(); err != nil || last != uint64(entries) {
		t.Errorf("library has %d entries, want %d, %v", last, entries, err)
	}
	for at, i := 0, uint64(1); at < len(all); i++ {
		data, err := log.Read(i)
		if err != nil {
			t.Fatal(err)
		}
		_, _, n, err := decodeEntry(all[at:])
		if err != nil {
			t.Fatal(err)
		}
		if want := all[at+prefixVarint(all[at:]) : at+n]; !bytes.Equal(data, want) {
			t.Errorf("entry %d: library reads %d bytes, want %d", i, len(data), len(want))
		}
		at += n
	}
}

// TestLibraryReadsLog: a log written through the library, read by our scanner,
// reads the same through the library.
func TestLibraryReadsLog(t *testing.T) {
	dir := t.TempDir()
	l, err := Begin(Options{Dir: dir, GenerationBytes: MinGenerationBytes, Foreground: true}, End{Store: StoreID{1}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		g, err := l.Open(2000)
		if err != nil {
			t.Fatal(err)
		}
		g.Add(fmt.Appendf(nil, "head %d", i), bytes.Repeat([]byte{'b'}, i*30))
		l.Seal(g, 1, 2)
		if err := l.Commit(g); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := Find(vfs.OS{}, dir, FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if h.Store != (StoreID{1}) || len(h.Linked) < 2 {
		t.Fatalf("found %+v, want two generations and more", h)
	}
	for _, info := range h.Linked[:len(h.Linked)-1] { // those are trimmed: the library knows no zeros
		log, err := library.Open(generationDir(dir, info.Generation), &library.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		r, err := h.Generation(info.Generation)
		if err != nil {
			t.Fatal(err)
		}
		index := uint64(2) // birth and link
		for r.Next() {
			index++
			data, err := log.Read(index)
			if err != nil {
				t.Fatal(err)
			}
			filler := prefixBytes - prefixVarint(mustPrefix(len(data)))
			got, err := decodeHeader(data[filler:])
			if err != nil || got.lsn != r.Group().LSN {
				t.Errorf("entry %d of generation %d: library has group %d, %v, scanner %d", index, info.Generation, got.lsn, err, r.Group().LSN)
			}
		}
		if r.Err() != nil {
			t.Error(r.Err())
		}
		if last, _ := log.LastIndex(); last != index {
			t.Errorf("generation %d: library has %d entries, scanner %d", info.Generation, last, index)
		}
	}
}

// mustPrefix is the prefix of an entry that the library read as n bytes.
func mustPrefix(n int) []byte {
	var b [prefixBytes]byte
	for filler := range prefixBytes {
		if (n-filler)%alignBytes == 0 && putPrefix(b[:], n-filler)+filler == prefixBytes {
			return b[:]
		}
	}
	panic(fmt.Sprintf("no entry has %d bytes", n))
}

// FuzzContent reads whatever a group may hold, with checksums that are right.
func FuzzContent(f *testing.F) {
	f.Add(exampleEntry()[prefixBytes+headerBytes:prefixBytes+headerBytes+17], uint32(2))
	f.Add([]byte{}, uint32(0))
	f.Add([]byte{1, 0, 'h', 1, 0}, uint32(2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0}, uint32(1))
	f.Fuzz(func(t *testing.T, content []byte, records uint32) {
		b := make([]byte, prefixBytes+headerBytes+padded(len(content)))
		copy(b[prefixBytes+headerBytes:], content)
		b = b[:encodeEntry(b, &header{kind: kindGroup, lsn: 1, records: records}, len(content))]
		h, got, size, err := decodeEntry(b)
		if err != nil || size != len(b) || !bytes.Equal(got, content) {
			t.Fatalf("entry of %d bytes: %d, %v", len(content), size, err)
		}
		r := Reader{h: &History{Linked: []Info{{Generation: 1}}}, s: scanner{last: h}}
		if r.take(got) != nil {
			return
		}
		var again []byte
		for _, rec := range r.group.Records {
			again = append(again, appendRecord(nil, rec.Head, rec.Body)...)
		}
		if len(r.group.Records) != int(records) || !bytes.Equal(again, content) {
			t.Fatalf("%d records of %x are %x again", len(r.group.Records), content, again)
		}
	})
}
