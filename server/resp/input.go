package resp

import "sync"

// input is what a connection has received and not yet used. It begins in a
// small array of the connection itself, so that an idle connection costs no
// buffer, and doubles only when bytes that arrived have filled it: memory
// follows what was received, never what was announced.
type input struct {
	buf        []byte // the space; never grows by append
	start, end int    // the bytes that are there
	pinned     bool   // somebody reads into free(): nothing may move
	small      [512]byte
}

// bytes are those not used yet; they are valid until makeRoom.
func (in *input) bytes() []byte { return in.buf[in.start:in.end] }

// free is where the next bytes go.
func (in *input) free() []byte { return in.buf[in.end:] }

// take drops n bytes from the front.
func (in *input) take(n int) {
	in.start += n
	if in.start == in.end && !in.pinned {
		in.start, in.end = 0, 0
	}
}

// canCompact says whether there are used bytes at the front.
func (in *input) canCompact() bool { return in.start > 0 }

// pooled reports the bytes that are held beyond the small array.
func (in *input) pooled() int64 {
	if len(in.buf) <= len(in.small) {
		return 0
	}
	return int64(len(in.buf))
}

// nextSize is the size to grow to from the present one.
func (in *input) nextSize() int {
	if len(in.buf) < minPooled {
		return minPooled
	}
	return 2 * len(in.buf)
}

// compact moves what is there to the front.
func (in *input) compact() {
	if in.start > 0 {
		in.end = copy(in.buf, in.buf[in.start:in.end])
		in.start = 0
	}
}

// swap continues in a buffer of size bytes, which must be enough.
func (in *input) swap(size int) {
	old := in.buf
	if size <= len(in.small) {
		in.buf = in.small[:]
	} else {
		in.buf = getBuffer(size)
	}
	in.end = copy(in.buf, old[in.start:in.end])
	in.start = 0
	putBuffer(old)
}

// Buffers of 4 KiB to 4 MiB, in powers of two, are kept in pools; the garbage
// collector empties them.
const (
	minPooled     = 4 << 10
	minPooledBits = 12
	pooledSizes   = 11
)

var bufferPools [pooledSizes]sync.Pool

// getBuffer gives a buffer of size bytes, a power of two.
func getBuffer(size int) []byte {
	if i := sizeClass(size); i >= 0 {
		if b, ok := bufferPools[i].Get().(*[]byte); ok {
			return *b
		}
	}
	return make([]byte, size)
}

func putBuffer(b []byte) {
	if i := sizeClass(len(b)); i >= 0 {
		bufferPools[i].Put(&b)
	}
}

// sizeClass is the index of the pool of a size, -1 when there is none.
func sizeClass(size int) int {
	for i := range pooledSizes {
		if size == 1<<(i+minPooledBits) {
			return i
		}
	}
	return -1
}
