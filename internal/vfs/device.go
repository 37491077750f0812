package vfs

import "io"

// Large files that are written or read once, in order, go past the page cache where
// the system and the file system can do that (O_DIRECT of open(2)). It would cost
// several times the processor time, to find pages and to copy, in the kernel and so
// at a stretch, while somebody else's turn on that core is due; and the pages of
// such a file are of no use to anybody.

// FromDevice reads f from its beginning to its end as the disk has it: what was
// written to it must have been synced. Close gives back the reader's buffer and
// leaves f to the caller, who must not use it meanwhile.
func FromDevice(f File) (io.ReadCloser, error) {
	if err := f.DropCache(); err != nil {
		return nil, err
	}
	if o, ok := f.(osFile); ok {
		if r := readDirect(o.f); r != nil {
			return r, nil
		}
	}
	return &sequence{f: f}, nil
}

// DeviceWriter is what ToDevice returns.
type DeviceWriter interface {
	// Write appends. After an error nothing more is written.
	io.Writer
	// Sync writes what is left and makes the file durable. It comes last.
	Sync() error
	// Close gives back the writer's buffer.
	io.Closer
}

// ToDevice writes f, which is empty, from its beginning, and leaves few bytes of it
// unsynced: other files' syncs wait for the same disk. The file stays the caller's,
// who must not use it before Close.
func ToDevice(f File) DeviceWriter {
	s := &sequence{f: f}
	if o, ok := f.(osFile); ok {
		if w := writeDirect(o.f, s); w != nil {
			return w
		}
	}
	return s
}

// syncEvery bounds the bytes that wait in the page cache.
const syncEvery = 2 << 20

// sequence reads or writes one piece behind the other, by way of the page cache.
type sequence struct {
	f      File
	off    int64
	synced int64
	err    error // the first of Write
}

func (s *sequence) Read(p []byte) (int, error) {
	n, err := s.f.ReadAt(p, s.off)
	s.off += int64(n)
	if n > 0 {
		return n, nil // the next one meets the error again
	}
	return n, err
}

func (s *sequence) Write(p []byte) (n int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	n, s.err = s.f.WriteAt(p, s.off)
	s.off += int64(n)
	if s.err == nil && s.off-s.synced >= syncEvery {
		s.err = s.f.Datasync()
		s.synced = s.off
	}
	return n, s.err
}

func (s *sequence) Sync() error {
	if s.err == nil {
		s.err = s.f.Sync()
	}
	return s.err
}

func (s *sequence) Close() error { return nil }
