package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"pawl/snapshot"
)

var example = snapshot.Meta{
	Store:   snapshot.StoreID{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf},
	History: 2,
	LSN:     1234,
	LogTime: 60_000,
	Wall:    1_764_340_000_000,
	Jobs:    3,
}

// encode is a snapshot of example with this payload.
func encode(t testing.TB, payload []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	err := snapshot.Encode(&b, example, func(w io.Writer) error {
		n, err := w.Write(payload)
		if n != len(payload) {
			t.Errorf("a write took %d of %d bytes", n, len(payload))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decode reads all of a snapshot.
func decode(raw []byte) (snapshot.Meta, []byte, error) {
	r, err := snapshot.NewReader(bytes.NewReader(raw))
	if err != nil {
		return snapshot.Meta{}, nil, err
	}
	payload, err := io.ReadAll(r)
	return r.Meta(), payload, err
}

func random(n int) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 4096, snapshot.MaxBlock - 1, snapshot.MaxBlock, snapshot.MaxBlock + 1, 3*snapshot.MaxBlock + 17} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			want := random(n)
			meta, got, err := decode(encode(t, want))
			if err != nil {
				t.Fatal(err)
			}
			if meta != example {
				t.Errorf("got meta %+v, want %+v", meta, example)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got %d other bytes, want the %d written", len(got), len(want))
			}
		})
	}
}

// How the payload is handed over must not be seen in the file.
func TestBlocksDoNotFollowWrites(t *testing.T) {
	payload := random(2*snapshot.MaxBlock + 5)
	want := encode(t, payload)
	var b bytes.Buffer
	err := snapshot.Encode(&b, example, func(w io.Writer) error {
		for rest := payload; len(rest) > 0; {
			n := min(len(rest), 1000)
			if _, err := w.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Error("writes of 1,000 bytes give another file than one write")
	}
}

func TestReadInSmallPieces(t *testing.T) {
	payload := random(5000)
	r, err := snapshot.NewReader(iotest.OneByteReader(bytes.NewReader(encode(t, payload))))
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(r, payload); err != nil {
		t.Error(err)
	}
	if n := r.Payload(); n != uint64(len(payload)) {
		t.Errorf("got %d bytes of payload counted, want %d", n, len(payload))
	}
}

func TestEveryBitMatters(t *testing.T) {
	raw := encode(t, random(300))
	for i := range len(raw) * 8 {
		bad := bytes.Clone(raw)
		bad[i/8] ^= 1 << (i % 8)
		_, _, err := decode(bad)
		damage, ok := errors.AsType[*snapshot.DamageError](err)
		if !ok {
			t.Fatalf("bit %d of byte %d flipped: got %v, want a DamageError", i%8, i/8, err)
		}
		if damage.Offset < 0 || damage.Offset > int64(len(raw)) || damage.Want == "" || damage.Got == "" {
			t.Fatalf("bit %d of byte %d flipped: %+v says too little", i%8, i/8, damage)
		}
	}
}

func TestEveryLengthMatters(t *testing.T) {
	raw := encode(t, random(300))
	for n := range raw {
		_, _, err := decode(raw[:n])
		if _, ok := errors.AsType[*snapshot.DamageError](err); !ok {
			t.Fatalf("cut to %d of %d bytes: got %v, want a DamageError", n, len(raw), err)
		}
	}
	if _, _, err := decode(append(bytes.Clone(raw), 0)); err == nil {
		t.Error("a byte behind the end goes unnoticed")
	}
}

// remade gives raw, with the n bytes at offset replaced, new checks as far as
// the change reaches: what a program with a bug could have written.
func remade(raw []byte, offset int, with []byte, resum func(raw []byte)) []byte {
	b := bytes.Clone(raw)
	copy(b[offset:], with)
	resum(b)
	return b
}

func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumPreamble(b []byte) { copy(b[12:], u32(crc32.Checksum(b[:12], castagnoli))) }
func sumNothing([]byte)    {}

func TestDecodeTable(t *testing.T) {
	payload := random(100)
	raw := encode(t, payload)
	block := snapshot.HeaderLen
	end := block + snapshot.BlockHeaderLen + len(payload)
	twoBlocks := encode(t, random(2*snapshot.MaxBlock))
	first := twoBlocks[block : block+snapshot.BlockHeaderLen+snapshot.MaxBlock]
	second := twoBlocks[block+len(first) : block+2*len(first)]

	for _, tt := range []struct {
		name   string
		raw    []byte
		offset int64
		want   string // in the error's text
	}{
		{"empty file", nil, 0, "want a header of 128 bytes, got the end of the file"},
		{"other magic", remade(raw, 0, []byte("PAWLSTOR"), sumPreamble), 0, `want "PAWLSNAP", got "PAWLSTOR"`},
		{"preamble check", remade(raw, 8, u32(1), sumNothing), 8, "of the preamble"},
		{"header cut", raw[:127], 127, "want a header of 128 bytes"},
		{"header check", remade(raw, 40, u64(1), sumNothing), 124, "of the header"},
		{"no block", raw[:block], int64(block), "want the header of a block"},
		{"block cut", raw[:end-1], int64(end - 1), "want a block of 100 bytes"},
		{"block too long", remade(raw, block, u32(snapshot.MaxBlock+1), sumNothing), int64(block), "want a block of at most 262144 bytes, got length 262145"},
		{"block check", remade(raw, block+4, u32(1), sumNothing), int64(block), "of the block, got 00000001"},
		{"blocks swapped", bytes.Join([][]byte{twoBlocks[:block], second, first, twoBlocks[len(twoBlocks)-snapshot.EndLen:]}, nil), int64(block), "of the block"},
		{"block left out", bytes.Join([][]byte{twoBlocks[:block], first, twoBlocks[len(twoBlocks)-snapshot.EndLen:]}, nil), int64(block + len(first)), "of the end"},
		{"end cut", raw[:len(raw)-1], int64(len(raw) - 1), "want the end of the snapshot"},
		{"end check", remade(raw, end+4, u32(1), sumNothing), int64(end), "of the end, got 00000001"},
		{"other bytes counted", remade(raw, end+8, u64(101), func(b []byte) { sumEnd(b, end) }), int64(end), "want 101 bytes in 1 blocks, got 100 bytes in 1 blocks"},
		{"other blocks counted", remade(raw, end+16, u64(2), func(b []byte) { sumEnd(b, end) }), int64(end), "want 100 bytes in 2 blocks"},
		{"more behind the end", append(bytes.Clone(raw), 'x'), int64(len(raw)), "want the end of the file, got more bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := decode(tt.raw)
			damage, ok := errors.AsType[*snapshot.DamageError](err)
			if !ok {
				t.Fatalf("got %v, want a DamageError", err)
			}
			if damage.Offset != tt.offset {
				t.Errorf("got offset %d, want %d", damage.Offset, tt.offset)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want it to hold %q", err, tt.want)
			}
		})
	}
}

// sumEnd gives the end at this offset the check that belongs to it.
func sumEnd(b []byte, end int) {
	last := binary.LittleEndian.Uint32(b[snapshot.HeaderLen+4:])
	copy(b[end+4:], u32(snapshot.Chained(last, 0, b[end+8:])))
}

// What the first version wrote is read: the example that FORMAT.md had then.
func TestFormat1(t *testing.T) {
	raw, err := hex.DecodeString("5041574c534e415001000000182ec24e" + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" +
		"0200000000000000d204000000000000" + "60ea00000000000000e5dbca9a010000" + "0300000000000000" +
		strings.Repeat("00", 52) + "90a27526" + "09000000bb792ef6746865207374617465" + "00000000e3a7b2090900000000000000" + "0100000000000000")
	if err != nil {
		t.Fatal(err)
	}
	meta, payload, err := decode(raw)
	if err != nil || meta != example || string(payload) != "the state" {
		t.Errorf("got %+v, %q, %v, want %+v and %q", meta, payload, err, example, "the state")
	}
}

func TestNewerFormatIsNoDamage(t *testing.T) {
	raw := remade(encode(t, nil), 8, u32(7), sumPreamble)
	for _, n := range []int{16, 40, len(raw)} { // a newer header may be shorter than ours
		_, _, err := decode(raw[:n])
		format, ok := errors.AsType[*snapshot.FormatError](err)
		if !ok {
			t.Fatalf("%d bytes: got %v, want a FormatError", n, err)
		}
		if want := "snapshot has format 7, this program reads formats 1 to 2"; format.Error() != want {
			t.Errorf("got %q, want %q", format, want)
		}
	}
}

// failingOnce says once that it fails, and then that there is nothing.
type failingOnce struct{ err error }

func (f *failingOnce) Read([]byte) (int, error) {
	err := f.err
	f.err = io.EOF
	return 0, err
}

// What the disk says is passed on as it is and never taken for damage.
func TestReadErrorsAreNotDamage(t *testing.T) {
	broken := errors.New("input/output error")
	raw := encode(t, random(300))
	for n := range len(raw) + 1 {
		r, err := snapshot.NewReader(io.MultiReader(bytes.NewReader(raw[:n]), &failingOnce{broken}))
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if !errors.Is(err, broken) {
			t.Fatalf("error behind byte %d: got %v, want it", n, err)
		}
		if r != nil {
			if _, again := r.Read(make([]byte, 1)); again != err {
				t.Fatalf("error behind byte %d: got %v at the second read, want the first error again", n, again)
			}
		}
	}
}

// limited takes so many bytes and then fails, or says nothing and is short.
type limited struct {
	left  int
	fails error
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) <= l.left {
		l.left -= len(p)
		return len(p), nil
	}
	n := l.left
	l.left = 0
	return n, l.fails
}

func TestWriteErrors(t *testing.T) {
	full := errors.New("no space left on device")
	payload := random(snapshot.MaxBlock + 10)
	whole := len(encode(t, payload))
	for _, tt := range []struct{ fails, want error }{{full, full}, {nil, io.ErrShortWrite}} {
		for _, n := range []int{0, 100, 128, 5000, 128 + 8 + snapshot.MaxBlock, whole - 1} {
			var said error
			err := snapshot.Encode(&limited{n, tt.fails}, example, func(w io.Writer) error {
				_, said = w.Write(payload)
				return nil
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("room for %d of %d bytes: got %v, want %v", n, whole, err, tt.want)
			}
			if inside := n < 128+8+snapshot.MaxBlock; inside != errors.Is(said, tt.want) {
				t.Errorf("room for %d of %d bytes: a write of more than a block gave %v", n, whole, said)
			}
		}
	}
}

func TestReadNothing(t *testing.T) {
	r, err := snapshot.NewReader(bytes.NewReader(encode(t, []byte("x"))))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(nil); n != 0 || err != nil {
		t.Errorf("got %d, %v for a read of nothing, want 0, nil", n, err)
	}
}

// FORMAT.md shows a snapshot in hex; it must be one, and the one that is made
// today.
func TestFormatDocument(t *testing.T) {
	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	var raw []byte
	for _, line := range regexp.MustCompile(`(?m)^[0-9a-f]{4}  ((?: ?[0-9a-f]{2})+)`).FindAllSubmatch(text, -1) {
		for _, octet := range bytes.Fields(line[1]) {
			var b byte
			if _, err := fmt.Sscanf(string(octet), "%x", &b); err != nil {
				t.Fatal(err)
			}
			raw = append(raw, b)
		}
	}
	meta, payload, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if meta != example || string(payload) != "the state" {
		t.Errorf("got %+v and %q, want %+v and %q", meta, payload, example, "the state")
	}
	if got := encode(t, []byte("the state")); !bytes.Equal(got, raw) {
		t.Errorf("got other bytes today:\n% x\nwant\n% x", got, raw)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte{})
	f.Add(encode(f, nil))
	raw := encode(f, random(100))
	f.Add(raw)
	f.Add(raw[:len(raw)-30])
	f.Add(remade(raw, 8, u32(1), sumPreamble))
	f.Add(remade(raw, 8, u32(3), sumPreamble))
	f.Add(remade(raw, snapshot.HeaderLen, u32(1<<31), sumNothing))
	f.Fuzz(func(t *testing.T, raw []byte) {
		meta, payload, err := decode(raw)
		if err != nil {
			_, damage := errors.AsType[*snapshot.DamageError](err)
			_, format := errors.AsType[*snapshot.FormatError](err)
			if !damage && !format {
				t.Fatalf("got %v, want damage or format", err)
			}
			return
		}
		// What was read without an error is what would be written, but for how
		// the payload was cut into blocks.
		var again bytes.Buffer
		if err := snapshot.Encode(&again, meta, func(w io.Writer) error { _, err := w.Write(payload); return err }); err != nil {
			t.Fatal(err)
		}
		if len(payload) == 0 && again.Len() != len(raw) {
			t.Fatalf("an empty snapshot of %d bytes, want %d", len(raw), again.Len())
		}
	})
}
