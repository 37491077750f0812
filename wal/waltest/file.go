package waltest

import (
	"io"
	"slices"
	"syscall"

	"io/fs"
)

// file is an open file of a Disk.
type file struct {
	disk     *Disk
	node     int
	name     string
	writable bool
	closed   bool // guarded by disk.mu
}

// begin is the Disk's, with the lock taken and the descriptor checked.
func (f *file) begin(kind string, bytes int) (Fault, bool) {
	f.disk.mu.Lock()
	if f.closed {
		return Fault{Err: fs.ErrClosed}, false
	}
	return f.disk.begin(kind, f.name, bytes)
}

// end is what an operation returns after what the Fault says.
func (f *file) end(kind string, fault Fault) error {
	if fault.Err != nil {
		return pathError(kind, f.name, fault.Err)
	}
	return nil
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	fault, _ := f.begin("read", len(p))
	defer f.disk.mu.Unlock()
	if fault.Err != nil {
		return 0, f.end("read", fault)
	}
	data := f.disk.live[f.node].data
	if off >= int64(len(data)) {
		return 0, io.EOF
	}
	n := copy(p, data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	fault, doIt := f.begin("write", len(p))
	defer f.disk.mu.Unlock()
	n := len(p)
	if !doIt {
		n = min(n, fault.Bytes)
	}
	if !f.writable {
		return 0, pathError("write", f.name, syscall.EBADF)
	}
	d := f.disk
	if more := off + int64(n) - int64(len(d.live[f.node].data)); more > 0 {
		if short := more - d.grow(more); short > 0 {
			n = max(n-int(short), 0)
			if fault.Err == nil {
				fault.Err = syscall.ENOSPC
			}
		}
	}
	if n > 0 {
		d.do(change{kind: changeWrite, node: f.node, offset: off, data: slices.Clone(p[:n]), path: f.name})
	}
	return n, f.end("write", fault)
}

func (f *file) Truncate(size int64) error {
	fault, doIt := f.begin("truncate", 0)
	defer f.disk.mu.Unlock()
	if !doIt {
		return f.end("truncate", fault)
	}
	if !f.writable {
		return pathError("truncate", f.name, syscall.EINVAL)
	}
	d := f.disk
	if more := size - int64(len(d.live[f.node].data)); more > 0 {
		if d.grow(more) < more {
			return pathError("truncate", f.name, syscall.ENOSPC)
		}
	} else {
		d.free -= more
	}
	d.do(change{kind: changeSize, node: f.node, offset: size, path: f.name})
	return f.end("truncate", fault)
}

func (f *file) Sync() error { return f.sync("sync") }

func (f *file) Datasync() error { return f.sync("datasync") }

func (f *file) sync(kind string) error {
	fault, doIt := f.begin(kind, 0)
	defer f.disk.mu.Unlock()
	ours := func(c *change) bool { return c.node == f.node && c.kind <= changeSize }
	if doIt {
		f.disk.settle(func(c *change) bool { return !c.lost && ours(c) })
	}
	if fault.Err != nil {
		f.disk.lose(ours)
	}
	return f.end(kind, fault)
}

// DropCache forgets what a failed sync has left in memory only.
func (f *file) DropCache() error {
	fault, doIt := f.begin("drop", 0)
	defer f.disk.mu.Unlock()
	if doIt {
		d := f.disk
		n := d.live[f.node]
		onDisk := d.durable[f.node]
		n.data, n.shared, onDisk.shared = onDisk.data, true, true
		for i := range d.pending {
			if c := &d.pending[i]; c.node == f.node && c.kind <= changeSize && !c.lost {
				apply(d.live, c)
			}
		}
		d.pending = slices.DeleteFunc(d.pending, func(c change) bool {
			return c.node == f.node && c.kind <= changeSize && c.lost
		})
	}
	return f.end("drop", fault)
}

func (f *file) Size() (int64, error) {
	fault, _ := f.begin("size", 0)
	defer f.disk.mu.Unlock()
	if fault.Err != nil {
		return 0, f.end("size", fault)
	}
	return int64(len(f.disk.live[f.node].data)), nil
}

func (f *file) Close() error {
	fault, _ := f.begin("close", 0)
	defer f.disk.mu.Unlock()
	f.closed = true
	return f.end("close", fault)
}
