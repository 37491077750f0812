// Package waltest has a disk that can lose its power, for tests of everything
// that must survive that, and small helpers around package wal.
package waltest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"pawl/internal/vfs"
)

// ErrCrashed is what every call returns once the process of a Disk is dead.
var ErrCrashed = errors.New("crashed")

// Disk is a file system in memory that promises as little as POSIX does. What
// has been written and not synced, and what names have been made, changed or
// removed and the directory not synced, is one list of changes. A crash keeps
// any of them: see Crash and States.
//
// All operations are numbered from 1, over all files. Inject makes some fail.
//
// A failed sync is final, as on Linux: the changes it was to write stay visible
// until DropCache or a crash, and no later sync writes them.
//
// Names are slash-separated; "/" and "." are the root. Its methods may be called
// from any goroutine.
type Disk struct {
	mu      sync.Mutex
	live    map[int]*node // what a process sees
	durable map[int]*node // what is certainly on disk
	pending []change      // what may be, in order
	nextID  int
	ops     int
	inject  func(Op) Fault
	crashed bool
	free    int64 // bytes, where limited
	limited bool
	locks   map[string]bool
}

var _ vfs.FS = (*Disk)(nil)

const rootID = 1

// node is a file or directory. Nodes of several disks may share data; whoever
// writes to shared data copies it first.
type node struct {
	data   []byte
	shared bool
	names  map[string]int // nil in a file
	mode   fs.FileMode
}

type changeKind uint8

const (
	changeWrite changeKind = iota
	changeSize
	changeName   // name in dir now means node
	changeRemove // name in dir means nothing
	changeRename
)

// change is one thing that a crash may keep or forget.
type change struct {
	kind   changeKind
	node   int
	offset int64 // of a write; the new size of a changeSize
	data   []byte
	dir    int
	name   string
	toDir  int
	toName string
	lost   bool // a failed sync: no later one makes it durable
	path   string
}

func (c *change) String() string {
	switch c.kind {
	case changeWrite:
		return fmt.Sprintf("write %s %d+%d", c.path, c.offset, len(c.data))
	case changeSize:
		return fmt.Sprintf("truncate %s %d", c.path, c.offset)
	case changeName:
		return "make " + c.path
	case changeRemove:
		return "remove " + c.path
	default:
		return "rename " + c.path
	}
}

// NewDisk returns an empty one.
func NewDisk() *Disk {
	root := func() map[int]*node {
		return map[int]*node{rootID: {names: map[string]int{}, mode: fs.ModeDir | 0o755}}
	}
	return &Disk{live: root(), durable: root(), nextID: rootID + 1, locks: map[string]bool{}}
}

// Limit leaves n free bytes; writing more gives ENOSPC after a short write.
// Negative n is no limit.
func (d *Disk) Limit(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free, d.limited = n, n >= 0
}

// Ops is how many operations have been done.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Crashed says that the process is dead.
func (d *Disk) Crashed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.crashed
}

// Inject has f asked before every operation; nil is none. f must not call the
// Disk.
func (d *Disk) Inject(f func(Op) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inject = f
}

// Op is one operation. Kinds are open, mkdir, remove, rename, link, readdir,
// stat, syncdir, available, read, write, sync, datasync, truncate, size, drop
// and close.
type Op struct {
	N     int // from 1
	Kind  string
	Name  string
	Bytes int // of a read or write
}

// Fault is what happens to an operation. The zero Fault is none.
type Fault struct {
	Err   error // it fails with this
	Bytes int   // of a write that fails, so many bytes are written before
	Done  bool  // it fails, but takes effect all the same
	Crash bool  // it fails, and the process is dead from then on
}

// FailAt makes operation n fail with err; and all later ones of that kind too,
// if sticky.
func FailAt(n int, err error, sticky bool) func(Op) Fault {
	var kind string
	return func(op Op) Fault {
		if op.N == n {
			kind = op.Kind
		}
		if op.N == n || sticky && op.N > n && op.Kind == kind {
			return Fault{Err: err}
		}
		return Fault{}
	}
}

// CrashAt kills the process at operation n: before it, or with done after it.
// Of a write, the first bytes of it are done.
func CrashAt(n int, done bool, bytes int) func(Op) Fault {
	return func(op Op) Fault {
		if op.N == n {
			return Fault{Err: ErrCrashed, Crash: true, Done: done, Bytes: bytes}
		}
		return Fault{}
	}
}

// begin numbers an operation and says what happens to it. With a nil error it
// is to be done; with doIt, it is to be done and then err returned.
func (d *Disk) begin(kind, name string, bytes int) (f Fault, doIt bool) {
	if d.crashed {
		return Fault{Err: ErrCrashed}, false
	}
	d.ops++
	if d.inject != nil {
		f = d.inject(Op{d.ops, kind, name, bytes})
	}
	if f.Crash {
		d.crashed = true
		if f.Err == nil {
			f.Err = ErrCrashed
		}
	}
	return f, f.Err == nil || f.Done
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/")
}

// find returns a node's number, and the directory and base name it has or would
// have. The number is 0 if there is none.
func (d *Disk) find(name string) (id, dir int, base string, err error) {
	name = clean(name)
	if name == "" {
		return rootID, 0, "", nil
	}
	dir = rootID
	parts := strings.Split(name, "/")
	for _, part := range parts[:len(parts)-1] {
		next := d.live[dir].names[part]
		if next == 0 {
			return 0, 0, "", fs.ErrNotExist
		}
		if d.live[next].names == nil {
			return 0, 0, "", syscall.ENOTDIR
		}
		dir = next
	}
	base = parts[len(parts)-1]
	return d.live[dir].names[base], dir, base, nil
}

// do makes a change: seen at once, durable later.
func (d *Disk) do(c change) {
	apply(d.live, &c)
	d.pending = append(d.pending, c)
}

// apply makes a change in a set of nodes.
func apply(nodes map[int]*node, c *change) {
	switch c.kind {
	case changeWrite:
		nodes[c.node].write(c.data, c.offset)
	case changeSize:
		nodes[c.node].resize(c.offset)
	case changeName:
		nodes[c.dir].names[c.name] = c.node
	case changeRemove:
		delete(nodes[c.dir].names, c.name)
	case changeRename:
		delete(nodes[c.dir].names, c.name)
		nodes[c.toDir].names[c.toName] = c.node
	}
}

func (n *node) own() {
	if n.shared {
		n.data, n.shared = slices.Clone(n.data), false
	}
}

func (n *node) write(p []byte, off int64) {
	n.own()
	if end := int(off) + len(p); end > len(n.data) {
		n.data = append(n.data, make([]byte, end-len(n.data))...)
	}
	copy(n.data[off:], p)
}

func (n *node) resize(size int64) {
	n.own()
	if grow := int(size) - len(n.data); grow > 0 {
		n.data = append(n.data, make([]byte, grow)...)
	}
	n.data = n.data[:size]
}

// settle makes the pending changes that are picked durable.
func (d *Disk) settle(pick func(*change) bool) {
	kept := d.pending[:0]
	for i := range d.pending {
		if c := &d.pending[i]; pick(c) {
			apply(d.durable, c)
		} else {
			kept = append(kept, *c)
		}
	}
	clear(d.pending[len(kept):])
	d.pending = kept
}

// grow takes n bytes of the free space, or as many as there are.
func (d *Disk) grow(n int64) int64 {
	if !d.limited {
		return n
	}
	n = min(n, max(d.free, 0))
	d.free -= n
	return n
}

func (d *Disk) newNode(mode fs.FileMode) int {
	id := d.nextID
	d.nextID++
	for _, nodes := range []map[int]*node{d.live, d.durable} {
		n := &node{mode: mode}
		if mode.IsDir() {
			n.names = map[string]int{}
		}
		nodes[id] = n
	}
	return id
}

// OpenFile is vfs.FS's.
func (d *Disk) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, doIt := d.begin("open", name, 0)
	if !doIt {
		return nil, pathError("open", name, f.Err)
	}
	id, dir, base, err := d.find(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	switch {
	case id == 0 && flag&os.O_CREATE == 0:
		return nil, pathError("open", name, fs.ErrNotExist)
	case id == 0:
		id = d.newNode(perm.Perm())
		d.do(change{kind: changeName, node: id, dir: dir, name: base, path: name})
	case flag&os.O_EXCL != 0:
		return nil, pathError("open", name, fs.ErrExist)
	case d.live[id].names != nil:
		return nil, pathError("open", name, syscall.EISDIR)
	case flag&os.O_TRUNC != 0 && len(d.live[id].data) > 0:
		d.free += int64(len(d.live[id].data))
		d.do(change{kind: changeSize, node: id, path: name})
	}
	if f.Err != nil {
		return nil, pathError("open", name, f.Err)
	}
	return &file{disk: d, node: id, name: name, writable: flag&(os.O_WRONLY|os.O_RDWR) != 0}, nil
}

// Mkdir is vfs.FS's.
func (d *Disk) Mkdir(name string, perm fs.FileMode) error {
	return d.change("mkdir", name, func(id, dir int, base string) error {
		if id != 0 {
			return fs.ErrExist
		}
		d.do(change{kind: changeName, node: d.newNode(fs.ModeDir | perm.Perm()), dir: dir, name: base, path: name})
		return nil
	})
}

// Remove is vfs.FS's.
func (d *Disk) Remove(name string) error {
	return d.change("remove", name, func(id, dir int, base string) error {
		switch {
		case id == 0:
			return fs.ErrNotExist
		case id == rootID:
			return fs.ErrInvalid
		case len(d.live[id].names) > 0:
			return syscall.ENOTEMPTY
		}
		d.do(change{kind: changeRemove, dir: dir, name: base, path: name})
		d.release(id)
		return nil
	})
}

// release gives the space of a file back when its last name has gone. Open
// descriptors do not count.
func (d *Disk) release(id int) {
	for _, n := range d.live {
		for _, other := range n.names {
			if other == id {
				return
			}
		}
	}
	d.free += int64(len(d.live[id].data))
}

// Rename is vfs.FS's.
func (d *Disk) Rename(oldname, newname string) error {
	return d.change("rename", oldname, func(id, dir int, base string) error {
		if id == 0 {
			return fs.ErrNotExist
		}
		over, toDir, toBase, err := d.find(newname)
		if err != nil {
			return err
		}
		if over != 0 && len(d.live[over].names) > 0 {
			return syscall.ENOTEMPTY
		}
		d.do(change{kind: changeRename, node: id, dir: dir, name: base, toDir: toDir, toName: toBase, path: oldname + " " + newname})
		if over != 0 && over != id {
			d.release(over)
		}
		return nil
	})
}

// Link is vfs.FS's.
func (d *Disk) Link(oldname, newname string) error {
	return d.change("link", oldname, func(id, _ int, _ string) error {
		if id == 0 {
			return fs.ErrNotExist
		}
		over, dir, base, err := d.find(newname)
		if err != nil {
			return err
		}
		if over != 0 {
			return fs.ErrExist
		}
		d.do(change{kind: changeName, node: id, dir: dir, name: base, path: newname})
		return nil
	})
}

// change does an operation on names.
func (d *Disk) change(kind, name string, do func(id, dir int, base string) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, doIt := d.begin(kind, name, 0)
	if doIt {
		id, dir, base, err := d.find(name)
		if err == nil {
			err = do(id, dir, base)
		}
		if err != nil {
			return pathError(kind, name, err)
		}
	}
	if f.Err != nil {
		return pathError(kind, name, f.Err)
	}
	return nil
}

// ReadDir is vfs.FS's.
func (d *Disk) ReadDir(name string) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, _ := d.begin("readdir", name, 0); f.Err != nil {
		return nil, pathError("readdir", name, f.Err)
	}
	id, _, _, err := d.find(name)
	switch {
	case err != nil:
		return nil, pathError("readdir", name, err)
	case id == 0:
		return nil, pathError("readdir", name, fs.ErrNotExist)
	case d.live[id].names == nil:
		return nil, pathError("readdir", name, syscall.ENOTDIR)
	}
	var list []fs.DirEntry
	for _, base := range slices.Sorted(maps.Keys(d.live[id].names)) {
		list = append(list, fs.FileInfoToDirEntry(d.info(base, d.live[id].names[base])))
	}
	return list, nil
}

// Stat is vfs.FS's.
func (d *Disk) Stat(name string) (fs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, _ := d.begin("stat", name, 0); f.Err != nil {
		return nil, pathError("stat", name, f.Err)
	}
	id, _, _, err := d.find(name)
	if err == nil && id == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return d.info(path.Base("/"+clean(name)), id), nil
}

func (d *Disk) info(name string, id int) fs.FileInfo {
	return fileInfo{name, int64(len(d.live[id].data)), d.live[id].mode}
}

type fileInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }

// SyncDir is vfs.FS's.
func (d *Disk) SyncDir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, doIt := d.begin("syncdir", name, 0)
	id, _, _, err := d.find(name)
	if err == nil && id == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return pathError("syncdir", name, err)
	}
	ours := func(c *change) bool { return c.dir == id || c.kind == changeRename && c.toDir == id }
	if doIt {
		d.settle(func(c *change) bool { return !c.lost && ours(c) })
	}
	if f.Err != nil {
		d.lose(ours)
		return pathError("syncdir", name, f.Err)
	}
	return nil
}

// lose marks what a failed sync was to write.
func (d *Disk) lose(pick func(*change) bool) {
	for i := range d.pending {
		if pick(&d.pending[i]) {
			d.pending[i].lost = true
		}
	}
}

// Available is vfs.FS's.
func (d *Disk) Available(dir string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, _ := d.begin("available", dir, 0); f.Err != nil {
		return 0, pathError("available", dir, f.Err)
	}
	if !d.limited {
		return 1 << 50, nil
	}
	return max(d.free, 0), nil
}

// Lock is vfs.FS's.
func (d *Disk) Lock(dir string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return nil, pathError("lock", dir, ErrCrashed)
	}
	name := clean(dir)
	if id, _, _, err := d.find(name); err != nil || id == 0 {
		return nil, pathError("lock", dir, fs.ErrNotExist)
	}
	if d.locks[name] {
		return nil, &vfs.LockedError{Dir: dir}
	}
	d.locks[name] = true
	return unlock(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locks, name)
	}), nil
}

type unlock func()

func (u unlock) Close() error { u(); return nil }
