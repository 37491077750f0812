package waltest

import (
	"io/fs"
	"slices"
	"sync"

	"pawl/internal/vfs"
)

// Hanging is a file system on which reads ("read") and data syncs ("datasync") of
// files, and the making of directories ("mkdir"), wait while it hangs.
type Hanging struct {
	vfs.FS
	mu    sync.Mutex
	kinds []string      // guarded by mu
	gate  chan struct{} // guarded by mu; nil: it does not hang
}

// Hang has operations of these kinds wait until release is called. It must not
// hang already.
func (h *Hanging) Hang(kinds ...string) (release func()) {
	gate := make(chan struct{})
	h.set(gate, kinds)
	return func() {
		h.set(nil, nil)
		close(gate)
	}
}

func (h *Hanging) set(gate chan struct{}, kinds []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gate, h.kinds = gate, kinds
}

func (h *Hanging) wait(kind string) {
	h.mu.Lock()
	gate := h.gate
	if !slices.Contains(h.kinds, kind) {
		gate = nil
	}
	h.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

// OpenFile implements vfs.FS.
func (h *Hanging) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &hangingFile{f, h}, nil
}

// Mkdir implements vfs.FS.
func (h *Hanging) Mkdir(name string, perm fs.FileMode) error {
	h.wait("mkdir")
	return h.FS.Mkdir(name, perm)
}

type hangingFile struct {
	vfs.File
	h *Hanging
}

func (f *hangingFile) ReadAt(p []byte, off int64) (int, error) {
	f.h.wait("read")
	return f.File.ReadAt(p, off)
}

func (f *hangingFile) Datasync() error {
	f.h.wait("datasync")
	return f.File.Datasync()
}
