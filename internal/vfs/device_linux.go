package vfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// directSize is how much is read or written at once.
	directSize = 256 << 10
	// directAlign is what offsets, lengths and addresses must be multiples of on
	// every usual disk.
	directAlign = 4096
)

// direct is an open file past whose page cache is read or written, in order.
type direct struct {
	f   *os.File
	off int64  // of what is next
	buf []byte // of mmap, so it begins at a page
}

// newDirect returns nil where that cannot be.
func newDirect(f *os.File) *direct {
	d := &direct{f: f}
	if d.set(true) != nil {
		return nil
	}
	var err error
	if d.buf, err = unix.Mmap(-1, 0, directSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		_ = d.set(false)
		return nil
	}
	return d
}

// set switches to going past the page cache, or back.
func (d *direct) set(on bool) error {
	flags, err := unix.FcntlInt(d.f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if flags &^= unix.O_DIRECT; on {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(d.f.Fd(), unix.F_SETFL, flags)
	return err
}

// refused says that the disk has larger blocks, or that the file system took the
// flag and nothing more.
func refused(n int, err error) bool { return n == 0 && errors.Is(err, unix.EINVAL) }

// Close implements io.Closer.
func (d *direct) Close() error { return unix.Munmap(d.buf) }

// directReader reads whole buffers.
type directReader struct {
	*direct
	rest []byte // what of the buffer was not given out yet
}

// readDirect returns nil where that cannot be.
func readDirect(f *os.File) io.ReadCloser {
	if d := newDirect(f); d != nil {
		return &directReader{direct: d}
	}
	return nil
}

func (r *directReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		n, err := r.fill()
		if n == 0 {
			return 0, err // io.EOF as well
		}
		r.rest = r.buf[:n]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill reads the next piece into the buffer. An error behind a part of it is left
// for the next one to meet.
func (r *directReader) fill() (n int, err error) {
	whole := r.off%directAlign == 0 // if not, the last was cut short, by the end of the file most likely
	if whole {
		n, err = r.f.ReadAt(r.buf, r.off)
	}
	if !whole || refused(n, err) {
		if err := r.set(false); err != nil {
			return 0, err
		}
		n, err = r.f.ReadAt(r.buf, r.off)
	}
	r.off += int64(n)
	return n, err
}

// directWriter writes whole buffers. What is left at the end, and all where that
// turns out to be refused, goes another way.
type directWriter struct {
	*direct
	used int // of the buffer
	then *sequence
	over bool // to then
	err  error
}

// writeDirect returns nil where that cannot be.
func writeDirect(f *os.File, then *sequence) DeviceWriter {
	if d := newDirect(f); d != nil {
		return &directWriter{direct: d, then: then}
	}
	return nil
}

func (w *directWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && w.err == nil {
		if w.over {
			var m int
			m, w.err = w.then.Write(p)
			return n + m, w.err
		}
		m := copy(w.buf[w.used:], p)
		w.used, n, p = w.used+m, n+m, p[m:]
		if w.used == len(w.buf) {
			w.flush()
		}
	}
	return n, w.err
}

// flush writes the buffer, which is full.
func (w *directWriter) flush() {
	n, err := w.f.WriteAt(w.buf, w.off)
	if refused(n, err) {
		w.giveUp()
		return
	}
	w.off += int64(n)
	w.used, w.err = 0, err
}

// giveUp hands what is in the buffer, and all that comes, to the other way.
func (w *directWriter) giveUp() {
	if w.err = w.set(false); w.err != nil {
		return
	}
	w.over, w.then.off, w.then.synced = true, w.off, w.off
	_, w.err = w.then.Write(w.buf[:w.used])
	w.used = 0
}

func (w *directWriter) Sync() error {
	if w.err == nil && !w.over {
		w.giveUp()
	}
	if w.err == nil {
		w.err = w.then.Sync()
	}
	return w.err
}
