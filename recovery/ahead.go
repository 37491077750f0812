package recovery

import (
	"context"
	"io"
)

// aheadBlocks is how many blocks readAhead holds: one being filled, one being
// read, and one between them.
const (
	aheadBlocks     = 3
	aheadBlockBytes = 256 << 10
)

// ahead reads on one core what is used on another: checksums there, the
// building of the state here.
type ahead struct {
	full   chan aheadBlock
	empty  chan []byte
	cancel context.CancelFunc
	done   chan struct{} // closed when the reading goroutine is gone

	block aheadBlock // the present one
	rest  []byte     // what of it was not read yet
}

// aheadBlock is bytes, or what came instead of more of them.
type aheadBlock struct {
	b   []byte
	err error
}

// readAhead reads r, which has about size bytes, in a goroutine of its own,
// which ends by Close. It calls progress there with how many bytes were read.
func readAhead(ctx context.Context, r io.Reader, size int64, progress func(done uint64)) *ahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{
		full:   make(chan aheadBlock, aheadBlocks),
		empty:  make(chan []byte, aheadBlocks),
		cancel: cancel,
		done:   make(chan struct{}),
	}
	for range aheadBlocks {
		a.empty <- make([]byte, min(size, aheadBlockBytes))
	}
	go a.fill(ctx, r, progress)
	return a
}

func (a *ahead) fill(ctx context.Context, r io.Reader, progress func(uint64)) {
	defer close(a.done)
	defer close(a.full)
	var read uint64
	for {
		var b []byte
		select {
		case b = <-a.empty:
		case <-ctx.Done():
			a.full <- aheadBlock{err: ctx.Err()} // never blocks: no more blocks than places
			return
		}
		n, err := io.ReadFull(r, b[:cap(b)])
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		read += uint64(n)
		progress(read)
		a.full <- aheadBlock{b[:n], err}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.block.err != nil {
			return 0, a.block.err
		}
		if a.block.b != nil {
			a.empty <- a.block.b
		}
		a.block = <-a.full
		a.rest = a.block.b
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// Close ends the reading. Nobody reads r any more when it returns.
func (a *ahead) Close() {
	a.cancel()
	<-a.done
}
