package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Reader gives back the bytes that a View wrote, each block only after its
// check was found right. It reports io.EOF only behind a sound end with nothing
// after it, so whoever reads to io.EOF has verified the whole file.
//
// It takes one block of memory, whatever the lengths in the file say. It is not
// safe for concurrent use.
type Reader struct {
	meta    Meta
	r       io.Reader
	file    string // for errors
	offset  int64  // in the file, of the next byte of r
	chain   uint32
	payload uint64
	blocks  uint64
	buf     []byte // a whole block
	rest    []byte // what of buf was not given out yet
	err     error
}

// NewReader reads the header of a snapshot from r. Its errors are a
// *DamageError, a *FormatError, or what r said. It should be given large reads:
// it asks for a header and a payload at a time.
func NewReader(r io.Reader) (*Reader, error) { return newReader(r, "") }

func newReader(r io.Reader, file string) (*Reader, error) {
	header := make([]byte, headerLen)
	n, err := io.ReadFull(r, header)
	if err != nil && !short(err) {
		return nil, err
	}
	d := &Reader{r: r, file: file, offset: headerLen}
	d.meta, d.chain, err = decodeHeader(header[:n])
	if err != nil {
		return nil, d.in(err)
	}
	return d, nil
}

// Meta is what the header says.
func (d *Reader) Meta() Meta { return d.meta }

// Payload is how many bytes of the state were read so far.
func (d *Reader) Payload() uint64 { return d.payload }

// Read implements io.Reader. Its errors are io.EOF, a *DamageError, or what the
// reader below said.
func (d *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(d.rest) == 0 {
		if d.err == nil {
			d.err = d.next()
		}
		if d.err != nil {
			return 0, d.err
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// next reads one block into rest, or returns io.EOF behind the end.
func (d *Reader) next() error {
	le := binary.LittleEndian
	at := d.offset
	var head [blockHeaderLen]byte
	if err := d.fill(head[:], "the header of a block"); err != nil {
		return err
	}
	length, check := le.Uint32(head[:4]), le.Uint32(head[4:])
	if length == 0 {
		return d.end(at, check)
	}
	if length > MaxBlock {
		return d.damage(at, fmt.Sprintf("a block of at most %d bytes", MaxBlock), fmt.Sprintf("length %d", length))
	}
	if int(length) > cap(d.buf) {
		// No more than was asked for: a damaged length costs MaxBlock at most.
		d.buf = make([]byte, length)
	}
	block := d.buf[:length]
	if err := d.fill(block, fmt.Sprintf("a block of %d bytes", length)); err != nil {
		return err
	}
	if want := chained(d.chain, length, block); want != check {
		return d.damage(at, fmt.Sprintf("check %08x of the block", want), fmt.Sprintf("%08x", check))
	}
	d.chain, d.rest = check, block
	d.payload += uint64(length)
	d.blocks++
	return nil
}

// end checks the end, whose first half stood at the offset at.
func (d *Reader) end(at int64, check uint32) error {
	le := binary.LittleEndian
	var rest [endLen - blockHeaderLen]byte
	if err := d.fill(rest[:], "the end of the snapshot"); err != nil {
		return err
	}
	if want := chained(d.chain, 0, rest[:]); want != check {
		return d.damage(at, fmt.Sprintf("check %08x of the end", want), fmt.Sprintf("%08x", check))
	}
	if payload, blocks := le.Uint64(rest[:8]), le.Uint64(rest[8:]); payload != d.payload || blocks != d.blocks {
		return d.damage(at, fmt.Sprintf("%d bytes in %d blocks", payload, blocks), fmt.Sprintf("%d bytes in %d blocks", d.payload, d.blocks))
	}
	var more [1]byte
	switch n, err := io.ReadFull(d.r, more[:]); {
	case n > 0:
		return d.damage(d.offset, "the end of the file", "more bytes")
	case !errors.Is(err, io.EOF):
		return err
	}
	return io.EOF
}

// fill reads all of b, which should be what is named.
func (d *Reader) fill(b []byte, what string) error {
	n, err := io.ReadFull(d.r, b)
	if err != nil {
		if short(err) {
			return d.damage(d.offset+int64(n), what, "the end of the file")
		}
		return err
	}
	d.offset += int64(n)
	return nil
}

func (d *Reader) damage(offset int64, want, got string) error {
	return &DamageError{File: d.file, Offset: offset, Want: want, Got: got}
}

// in names the file in an error of this package.
func (d *Reader) in(err error) error {
	if e, ok := errors.AsType[*DamageError](err); ok {
		e.File = d.file
	}
	if e, ok := errors.AsType[*FormatError](err); ok {
		e.File = d.file
	}
	return err
}

// short says that err is a file's end, early or not.
func short(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
