package vfs_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pawl/internal/vfs"
)

// plainFile hides what an open file of the system can do.
type plainFile struct{ vfs.File }

// TestDevice writes and reads files of lengths around those of pages and buffers,
// in pieces of no particular length, past the page cache where that can be and by
// way of it.
func TestDevice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, way := range []struct {
		name string
		file func(vfs.File) vfs.File
	}{
		{"direct", func(f vfs.File) vfs.File { return f }},
		{"plain", func(f vfs.File) vfs.File { return plainFile{f} }},
	} {
		t.Run(way.name, func(t *testing.T) {
			for _, size := range []int{0, 1, 511, 4095, 4096, 4097, 256<<10 - 1, 256 << 10, 256<<10 + 1, 512 << 10, 3<<20 + 13} {
				want := make([]byte, size)
				for i := range want {
					want[i] = byte(random.Uint32())
				}
				name := filepath.Join(t.TempDir(), "f")
				f, err := vfs.OS{}.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				w := vfs.ToDevice(way.file(f))
				for rest := want; len(rest) > 0; {
					n := min(len(rest), 1+random.IntN(300<<10))
					if m, err := w.Write(rest[:n]); m != n || err != nil {
						t.Fatalf("%d of %d bytes of %d were written: %v", m, n, size, err)
					}
					rest = rest[n:]
				}
				if err := w.Sync(); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d bytes were written, and are %d bytes that are not the same; %v", size, len(got), err)
				}
				r, err := vfs.FromDevice(way.file(f))
				if err != nil {
					t.Fatal(err)
				}
				var got bytes.Buffer
				if _, err := io.CopyBuffer(&got, struct{ io.Reader }{r}, make([]byte, 1+random.IntN(300<<10))); err != nil || !bytes.Equal(got.Bytes(), want) {
					t.Fatalf("%d bytes were read as %d that are not the same; %v", size, got.Len(), err)
				}
				if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Errorf("behind the end there are %d bytes, and the error %v", n, err)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestDeviceFails has the file closed underneath: the first error stays.
func TestDeviceFails(t *testing.T) {
	for _, plain := range []bool{false, true} {
		f, err := vfs.OS{}.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		file := f
		if plain {
			file = plainFile{f}
		}
		w := vfs.ToDevice(file)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		_, first := w.Write(make([]byte, 1<<20))
		_, second := w.Write([]byte("more"))
		if last := w.Sync(); first == nil || second != first || last != first {
			t.Errorf("plain %v: a closed file was written: %v, then %v, and synced: %v", plain, first, second, last)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
