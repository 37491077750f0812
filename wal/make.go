package wal

import (
	"fmt"
	"syscall"
	"time"
)

// runMaker prepares generations until Close, so that Open never has to wait for
// one: making takes a disk some milliseconds a MiB.
func (l *Log) runMaker() {
	defer l.finished.Done()
	for {
		if l.makeAll() != nil {
			select {
			case <-time.After(l.opt.RetryEvery):
			case <-l.stop:
				return
			}
			continue
		}
		select {
		case <-l.kick:
		case <-l.stop:
			return
		}
	}
}

// kickMaker tells the maker to look again.
func (l *Log) kickMaker() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// makeAll prepares what is lacking, up to the first failure.
func (l *Log) makeAll() error {
	for {
		select {
		case <-l.stop:
			return nil
		default:
		}
		size := l.lack()
		if size == 0 || l.Failure() != nil {
			return nil
		}
		if err := l.prepare(size); err != nil {
			return err
		}
	}
}

// lack says how large a generation to make next; 0 is none.
//
// A birth witnesses the newest linked generation, so one is best made when
// there is a new one to witness: where some are left they wait for that.
func (l *Log) lack() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.prepared); n == 0 || n < l.opt.Ahead && l.at == l.linked {
		return l.opt.GenerationBytes
	}
	if l.want == 0 {
		return 0
	}
	for _, gen := range l.prepared {
		if gen.fits(l.want) {
			l.want = 0
			return 0
		}
	}
	return sizeFor(l.opt.GenerationBytes, l.want)
}

// prepare makes one generation and offers it to Open. A failure is told and
// leaves everything as it was, so it can be tried again.
func (l *Log) prepare(size int) error {
	l.mu.Lock()
	l.highest++
	number, linked := l.highest, l.linked.number
	var image []byte
	if len(l.spare) == size {
		image, l.spare = l.spare, nil
	}
	l.mu.Unlock()

	gen, err := l.makeIfRoom(number, size, linked, image)

	l.mu.Lock()
	before := l.cause
	l.cause = err
	if err == nil {
		l.images.add(gen)
		l.prepared = append(l.prepared, gen)
	} else if l.spare == nil {
		l.spare = image
	}
	l.tell()
	l.mu.Unlock()
	if err != nil {
		l.counts.failures.Add(1)
	}
	if (err == nil) != (before == nil) {
		l.opt.Notify(err)
	}
	return err
}

// makeIfRoom asks the file system first: on a full disk there is no need to
// write until it stops.
func (l *Log) makeIfRoom(number uint32, size int, linked uint32, image []byte) (*generation, error) {
	free, err := l.opt.FS.Available(l.opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("make generation %d: %w", number, err)
	}
	if free < int64(size) {
		return nil, fmt.Errorf("make generation %d: %d bytes wanted, %d free: %w", number, size, free, syscall.ENOSPC)
	}
	gen, err := makeGeneration(l.opt, l.store, number, size, linked, l.Durable(), image)
	if err == nil {
		l.counts.zeros.Add(uint64(size))
	}
	return gen, err
}
