package blockdisk

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func block(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

func TestCrashKeepsWhatWasFlushed(t *testing.T) {
	d := New(64 << 10)
	if err := d.write(block(1, 4096), 0); err != nil {
		t.Fatal(err)
	}
	if err := d.flush(); err != nil {
		t.Fatal(err)
	}
	if err := d.write(block(2, 4096), 0); err != nil {
		t.Fatal(err)
	}
	if err := d.write(block(3, 4096), 8192); err != nil {
		t.Fatal(err)
	}
	seen := map[byte]bool{}
	for seed := range uint64(50) {
		image := d.Crash(rand.New(rand.NewPCG(seed, 1)))
		for at := 0; at < 4096; at += SectorBytes {
			sector := image[at : at+SectorBytes]
			if !bytes.Equal(sector, block(sector[0], SectorBytes)) {
				t.Fatalf("seed %d: the sector at %d is of two writes", seed, at)
			}
			if sector[0] != 1 && sector[0] != 2 {
				t.Fatalf("seed %d: got %d at %d, want the flushed byte or the one after", seed, sector[0], at)
			}
			seen[sector[0]] = true
		}
		seen[image[8192]|0x80] = true
	}
	for _, want := range []byte{1, 2, 0x80, 0x83} {
		if !seen[want] {
			t.Errorf("no crash kept version %#x", want)
		}
	}
}

func TestLie(t *testing.T) {
	d := New(64 << 10)
	d.Lie(true)
	if err := d.write(block(1, 512), 0); err != nil {
		t.Fatal(err)
	}
	if err := d.flush(); err != nil {
		t.Fatal(err)
	}
	lost := false
	for seed := range uint64(50) {
		lost = lost || d.Crash(rand.New(rand.NewPCG(seed, 1)))[0] == 0
	}
	if !lost {
		t.Error("a lying disk never lost what it had acknowledged")
	}
}

func TestFail(t *testing.T) {
	for _, c := range []struct {
		name   string
		k      int64
		sticky bool
		want   string // o: fine, x: failed; three writes and a flush
	}{
		{"never", 0, false, "oooo"},
		{"second once", 2, false, "oxoo"},
		{"second for good", 2, true, "oxxx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := New(64 << 10)
			d.Fail(c.k, c.sticky)
			got := ""
			note := func(err error) {
				if err != nil {
					got += "x"
				} else {
					got += "o"
				}
			}
			for i := range 3 {
				note(d.write(block(1, 512), int64(i)*512))
			}
			note(d.flush())
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
