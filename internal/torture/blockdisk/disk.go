// Package blockdisk is a disk in memory that a file system can be made on: it
// serves one file by FUSE, a loop device makes a block device of it. It sees
// every block write and every flush, so it knows what a power cut may take: all
// writes since the last flush, each sector for itself. It can fail from the
// k-th write on, and it can lie: acknowledge flushes and forget them.
//
// This is dm-log-writes and dm-flakey without the device mapper. Linux, root.
package blockdisk

import (
	"errors"
	"math/rand/v2"
	"sync"
)

// ErrUnsupported is given where there is no FUSE, no loop device or no right
// to mount.
var ErrUnsupported = errors.New("a disk in memory cannot be mounted here")

// errIO is what the file system below the daemon sees of a failing disk.
var errIO = errors.New("input/output error")

// SectorBytes is the unit that a power cut keeps or loses as a whole.
const SectorBytes = 512

// Disk is the memory behind the device. All methods may be called from any
// goroutine.
type Disk struct {
	mu      sync.Mutex
	now     []byte  // guarded by mu: what reads see
	durable []byte  // guarded by mu: as of the last flush
	pending []write // guarded by mu: since the last flush, in order
	writes  int64   // guarded by mu
	failAt  int64   // guarded by mu: which write fails, 0 is none
	sticky  bool    // guarded by mu: so do all later writes and flushes
	failed  int64   // guarded by mu: how many did
	lying   bool    // guarded by mu
}

type write struct {
	at   int64
	data []byte
}

// New is a disk of size bytes, all zero. size is a multiple of 4,096.
func New(size int64) *Disk {
	return &Disk{now: make([]byte, size), durable: make([]byte, size)}
}

// FromImage is a disk that holds image, durably. It keeps the slice.
func FromImage(image []byte) *Disk {
	return &Disk{now: append([]byte(nil), image...), durable: image}
}

// Size is the number of bytes.
func (d *Disk) Size() int64 { return int64(len(d.now)) }

// Fail makes the k-th write from now on fail, from 1; with sticky also all
// later writes and flushes. k 0 heals the disk.
func (d *Disk) Fail(k int64, sticky bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt, d.sticky, d.failed = 0, sticky, 0
	if k > 0 {
		d.failAt = d.writes + k
	}
}

// Lie makes later flushes succeed without effect on what survives a power cut.
func (d *Disk) Lie(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lying = on
}

// Crash is an image as a power cut now may leave it: all that was flushed, and
// of each sector written since then a version that rng chooses, the one before
// or the one after any of its writes.
func (d *Disk) Crash(rng *rand.Rand) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	image := append([]byte(nil), d.durable...)
	// Writes reach the medium in any order, so a later one may survive without
	// an earlier one: each sector of each write is kept or lost by itself.
	keep := rng.Float64()
	for _, w := range d.pending {
		for from := 0; from < len(w.data); from += SectorBytes {
			if rng.Float64() < keep {
				to := min(from+SectorBytes, len(w.data))
				copy(image[w.at+int64(from):], w.data[from:to])
			}
		}
	}
	return image
}

// Image is what was written, flushed or not.
func (d *Disk) Image() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]byte(nil), d.now...)
}

func (d *Disk) read(p []byte, at int64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at >= int64(len(d.now)) {
		return 0
	}
	return copy(p, d.now[at:])
}

func (d *Disk) write(p []byte, at int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	if d.fails() {
		return errIO
	}
	if at+int64(len(p)) > int64(len(d.now)) {
		return errIO
	}
	copy(d.now[at:], p)
	d.pending = append(d.pending, write{at, append([]byte(nil), p...)})
	return nil
}

func (d *Disk) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sticky && d.failed > 0 {
		d.failed++
		return errIO
	}
	if d.lying {
		return nil
	}
	for _, w := range d.pending {
		copy(d.durable[w.at:], w.data)
	}
	d.pending = d.pending[:0]
	return nil
}

// fails says whether the write being counted does, and notes it.
func (d *Disk) fails() bool {
	if d.failAt == 0 || d.writes != d.failAt && !(d.sticky && d.writes > d.failAt) {
		return false
	}
	d.failed++
	return true
}
