package wal

import (
	"fmt"
	"slices"
)

// Idle writes the idle mark now, unless groups are open or waiting, or there is
// nothing new to mark. With Foreground it also syncs. The log does this by itself
// otherwise.
func (l *Log) Idle() error {
	_, err := l.idle()
	return err
}

// idle is Idle, and says whether groups stand still.
func (l *Log) idle() (still bool, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if still, err = l.mark(kindIdle); err != nil || !still || !l.opt.Foreground {
		return still, err
	}
	return true, l.syncMark()
}

// syncMark makes the last mark durable, in both places. The caller holds
// writing.
func (l *Log) syncMark() error {
	if err := l.sync(l.current); err != nil {
		return err
	}
	if witness := l.standingWitness(); witness != nil {
		return l.sync(witness)
	}
	return nil
}

// standingWitness is the witness if it is still a prepared generation: else a
// group has been written to it and synced, or it was passed over and may be
// closed. The caller holds writing, and is who would close it.
func (l *Log) standingWitness() *generation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.prepared, l.witness) {
		return l.witness
	}
	return nil
}

// mark writes a mark if groups stand still, which it says. There is room: a group leaves that of
// two, one idle mark at most follows it, and then another group or the closed mark.
// The caller holds writing.
func (l *Log) mark(k kind) (still bool, err error) {
	if err := l.Failure(); err != nil {
		return false, err
	}
	if k == kindIdle && !l.unmarked {
		return true, nil
	}
	gen := l.current
	l.mu.Lock()
	if l.waiting > 0 {
		l.mu.Unlock()
		return false, nil
	}
	at := gen.tail
	gen.tail += markEntryBytes // a group that is opened now goes behind it
	l.mu.Unlock()
	entry := gen.image[at : at+markEntryBytes]
	h := l.header(k, gen)
	encodeEntry(entry, &h, 0)
	gen.dirty = true
	if err := gen.segment.append(entry, len(entry)); err != nil {
		return false, l.fail(fmt.Errorf("mark %s: %w", gen.path, err))
	}
	l.chain, l.written, l.unmarked = h.sum, at+markEntryBytes, false
	l.counts.marks.Add(1)
	l.counts.bytes.Add(markEntryBytes)
	l.mu.Lock()
	l.members[len(l.members)-1].Length = int64(l.written)
	l.witness = nil
	if n := len(l.prepared); n > 0 {
		l.witness = l.prepared[n-1]
	}
	l.mu.Unlock()
	if err := l.testify(k); err != nil {
		return false, l.fail(fmt.Errorf("mark %s: %w", l.witness.path, err))
	}
	return true, nil
}

// testify writes a mark a second time, where the link of a prepared generation
// will be: one bad sector can take the last group and the mark behind it, but
// not this one too. Nothing else is written there while writing is held.
func (l *Log) testify(k kind) error {
	if l.witness == nil {
		return nil
	}
	h := l.header(k, l.witness)
	entry := l.witness.image[birthEntryBytes : birthEntryBytes+markEntryBytes]
	encodeEntry(entry, &h, 0)
	l.witness.dirty = true
	_, err := l.witness.file.WriteAt(entry, birthEntryBytes)
	return err
}
