package snapshot

import (
	"encoding/binary"
	"io"
)

// An encoder writes the header, cuts what it is given into blocks, and writes
// the end. It is not safe for concurrent use.
type encoder struct {
	w       io.Writer
	block   []byte // header of the open block and its payload so far
	chain   uint32 // check of the block before
	payload uint64 // bytes in closed blocks
	blocks  uint64
	written int64 // bytes given to w
	err     error // the first error of w; nothing is written after it
}

// newEncoder writes the header of a snapshot of m to w.
func newEncoder(w io.Writer, m Meta) *encoder {
	header := encodeHeader(m)
	e := &encoder{
		w:     w,
		block: make([]byte, blockHeaderLen, blockHeaderLen+MaxBlock),
		chain: binary.LittleEndian.Uint32(header[headerLen-4:]),
	}
	e.write(header)
	return e
}

// Write implements io.Writer. It keeps nothing of p.
func (e *encoder) Write(p []byte) (n int, err error) {
	for len(p) > 0 && e.err == nil {
		room := cap(e.block) - len(e.block)
		take := min(room, len(p))
		e.block = append(e.block, p[:take]...)
		n, p = n+take, p[take:]
		if take == room {
			e.closeBlock()
		}
	}
	return n, e.err
}

// close writes the open block and the end. Without it the snapshot is damaged
// for every reader.
func (e *encoder) close() error {
	if len(e.block) > blockHeaderLen {
		e.closeBlock()
	}
	le := binary.LittleEndian
	var end [endLen]byte
	le.PutUint64(end[8:], e.payload)
	le.PutUint64(end[16:], e.blocks)
	le.PutUint32(end[4:], chained(e.chain, 0, end[8:]))
	e.write(end[:])
	return e.err
}

func (e *encoder) closeBlock() {
	payload := e.block[blockHeaderLen:]
	length := uint32(len(payload))
	e.chain = chained(e.chain, length, payload)
	binary.LittleEndian.PutUint32(e.block[0:], length)
	binary.LittleEndian.PutUint32(e.block[4:], e.chain)
	e.payload += uint64(length)
	e.blocks++
	e.write(e.block)
	e.block = e.block[:blockHeaderLen]
}

func (e *encoder) write(p []byte) {
	if e.err != nil {
		return
	}
	n, err := e.w.Write(p)
	e.written += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	e.err = err
}
