package vfs

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestDeviceRefused has buffers begin where no page does, which is refused where
// blocks have a size at all: the file is written and read by way of the page cache.
func TestDeviceRefused(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef!"), 40_000)
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shifted := func(d *direct) (undo func()) {
		whole := d.buf
		d.buf = whole[1:]
		return func() { d.buf = whole }
	}
	w, ok := ToDevice(osFile{f}).(*directWriter)
	if !ok {
		t.Skip("this file system has no O_DIRECT")
	}
	undo := shifted(w.direct)
	if n, err := w.Write(want); n != len(want) || err != nil {
		t.Fatal(n, err)
	}
	if !w.over {
		t.Log("this file system does not care where buffers begin")
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	undo()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := FromDevice(osFile{f})
	if err != nil {
		t.Fatal(err)
	}
	undo = shifted(r.(*directReader).direct)
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes were read as %d that are not the same; %v", len(want), len(got), err)
	}
	undo()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
