package wal

import (
	"fmt"
	"time"
)

// Commit makes a sealed group durable as the sync policy says. Groups come in
// LSN order. It costs one write and at most one fdatasync, but for the first
// group of a generation, which may have to sync the one before. After an error,
// which is final, the group may or may not be in the log.
//
// Group commit: DeWitt et al., "Implementation Techniques for Main Memory
// Database Systems", SIGMOD 1984.
func (l *Log) Commit(g *Group) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.Failure(); err != nil {
		return err
	}
	if !g.sealed || g.lsn != l.committed+1 {
		panic(fmt.Sprintf("wal: commit of group %d (sealed: %t) after group %d", g.lsn, g.sealed, l.committed))
	}
	turned := g.gen != l.current
	if err := l.write(g, turned); err != nil {
		return l.fail(fmt.Errorf("commit group %d to %s: %w", g.lsn, g.gen.path, err))
	}
	if turned {
		l.turn(g.gen)
	}
	l.noteGroup(g)
	l.keeper.groupWritten(time.Since(l.started))
	if turned {
		l.keeper.generationFull()
		l.kickMaker()
		if l.opt.Foreground {
			l.tidy()
			l.makeAll()
		}
	}
	return nil
}

// write puts g, and before it the link if it is the first of its generation,
// into the file, and syncs if that is due.
func (l *Log) write(g *Group, first bool) error {
	gen, from, split := g.gen, g.offset, g.size()
	if first {
		// The link vouches for all that it follows, marks too.
		if err := l.sync(l.current); err != nil {
			return err
		}
		l.putLink(gen, l.current.number, l.written)
		from, split = birthEntryBytes, linkEntryBytes
	}
	end := g.offset + g.size()
	h := l.header(kindGroup, gen)
	h.lsn, h.logTime, h.wallTime, h.records = g.lsn, g.logTime, g.wallTime, uint32(g.count)
	encodeEntry(gen.image[g.offset:end], &h, len(g.buf))
	gen.dirty = true
	if err := gen.segment.append(gen.image[from:end], split); err != nil {
		return err
	}
	l.chain, l.written, l.committed = h.sum, end, g.lsn
	l.logTime, l.wallTime, l.unmarked = g.logTime, g.wallTime, true
	l.counts.bytes.Add(uint64(end - from))
	if first || l.opt.Sync == SyncAlways {
		return l.sync(gen)
	}
	return nil
}

// sync makes what was written to gen durable. The caller holds writing.
func (l *Log) sync(gen *generation) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if !gen.dirty {
		return nil
	}
	if err := l.Failure(); err != nil {
		return err
	}
	if err := gen.file.Datasync(); err != nil {
		return l.fail(err)
	}
	gen.dirty = false
	l.counts.syncs.Add(1)
	l.raiseDurable(l.committed)
	return nil
}

// Sync makes durable what has been committed, whatever the policy says.
func (l *Log) Sync() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.Failure(); err != nil {
		return err
	}
	return l.sync(l.current)
}

// raiseDurable is called with syncing held.
func (l *Log) raiseDurable(lsn LSN) {
	l.durable.Store(uint64(max(lsn, l.Durable())))
}

// turn makes gen the generation that is written. Its link is durable.
func (l *Log) turn(gen *generation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addMember(gen, l.committed-1)
	l.retired = append(l.retired, l.current)
	l.entered = l.entered[1:]
	l.current, l.linked = gen, gen
}

// noteGroup keeps the list of generations and the counters.
func (l *Log) noteGroup(g *Group) {
	l.mu.Lock()
	l.waiting--
	m := l.members[len(l.members)-1]
	m.LastLSN, m.Length = g.lsn, int64(l.written)
	m.LogTime, m.WallTime = g.logTime, g.wallTime
	l.mu.Unlock()
	l.counts.groups.Add(1)
	l.counts.records.Add(uint64(g.count))
}

// Durable is the highest LSN that is certainly on disk.
func (l *Log) Durable() LSN { return LSN(l.durable.Load()) }

// Failed is closed when a write or sync has failed, also one that nobody waits
// for; Failure says how.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Failure is nil while the log works.
func (l *Log) Failure() error {
	if f := l.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

type failure struct{ err error }

// fail poisons the log and returns what did it first.
func (l *Log) fail(err error) error {
	if l.failure.CompareAndSwap(nil, &failure{err}) {
		close(l.failed)
		l.mu.Lock()
		l.tell()
		l.mu.Unlock()
	}
	return l.Failure()
}

// tell wakes who waits for Prepared. The caller holds mu.
func (l *Log) tell() {
	close(l.news)
	l.news = make(chan struct{})
}
