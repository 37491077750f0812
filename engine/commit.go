package engine

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"pawl/wal"
)

// commits is who writes the next group and who waits for which. At any time at
// most one goroutine leads: it alone calls the log's Commit. Whoever must wait
// and finds nobody leading leads for one group, releases all who waited for it
// in one act, and names one of those who wait for a later group as the next
// leader. There is no goroutine of its own for this: at one connection the
// hand-over would cost more than the system calls.
//
// Group commit: DeWitt et al., "Implementation Techniques for Main Memory
// Database Systems", SIGMOD 1984.
type commits struct {
	safe   atomic.Uint64 // last LSN that may be spoken of: the log's Commit has returned
	busy   atomic.Bool   // somebody leads
	began  atomic.Int64  // when the present write began, nanoseconds since start; 0 is none
	count  atomic.Int64  // len(waiting)
	quiet  quietClock
	writes recentWrites

	mu      sync.Mutex
	waiting []*wait // in order of arrival
	company int     // how many the last commit released
	armed   bool    // the watch will look at waiting within a second
	cause   error   // why the log failed; set once, before failed is closed

	failed chan struct{} // closed once cause is set

	// waits is not shared between engines, so that one in a testing/synctest
	// bubble never meets a channel of another bubble.
	waits sync.Pool // of *wait
}

func (c *commits) newWait() *wait {
	if w, ok := c.waits.Get().(*wait); ok {
		return w
	}
	return &wait{wake: make(chan signal, 1)}
}

// wait is one stay of one goroutine. It is pooled; the channel holds the one
// signal that ends the stay.
type wait struct {
	lsn   LSN
	since time.Time
	wake  chan signal
}

type signal uint8

const (
	released signal = iota + 1 // the group is safe
	lead                       // write the next group
	lost                       // the log failed
	hung                       // the disk has not answered for HungAfter
)

// LSNs that no group has: what Submit answers when it decided nothing.
const (
	lsnNothing LSN = 0           // refused at the door, nothing to wait for
	lsnFailed  LSN = ^LSN(0)     // after the log failed
	lsnClosed  LSN = ^LSN(0) - 1 // after Close
)

// HungAfter is how long Wait waits for a disk that does not answer.
const HungAfter = 10 * time.Second

// Wait returns nil when lsn is durable (written, under the log's policies
// interval and never). ErrUnknown: the log failed while this waited. ErrFailed:
// it had failed before the commands came. ErrUnanswered: the disk has not answered
// for ten seconds; the outcome is as open as with ErrUnknown. ErrClosed: the
// engine was closed before the commands came.
//
// The caller may write the group of everybody who waits meanwhile.
//
// BUG(engine): the goroutine that leads when the disk hangs is inside the
// system call, and returns only with it.
func (e *Engine) Wait(lsn LSN) error {
	c := &e.commits
	for {
		if lsn <= LSN(c.safe.Load()) {
			return nil
		}
		switch lsn {
		case lsnFailed:
			return ErrFailed
		case lsnClosed:
			return ErrClosed
		}
		c.mu.Lock()
		switch {
		case lsn <= LSN(c.safe.Load()):
			c.mu.Unlock()
			return nil
		case c.cause != nil:
			c.mu.Unlock()
			return ErrUnknown
		case !c.busy.Load():
			c.busy.Store(true)
			c.mu.Unlock()
			e.commit()
			continue
		}
		w := e.join(lsn)
		c.mu.Unlock()
		s := <-w.wake
		c.waits.Put(w)
		switch s {
		case released:
			return nil
		case lost:
			return ErrUnknown
		case hung:
			return ErrUnanswered
		}
		e.commit()
	}
}

// join puts a new wait behind the others. The caller holds commits.mu.
func (e *Engine) join(lsn LSN) *wait {
	c := &e.commits
	w := c.newWait()
	w.lsn, w.since = lsn, time.Now()
	c.waiting = append(c.waiting, w)
	c.count.Store(int64(len(c.waiting)))
	if !c.armed {
		c.armed = true
		e.watch.Reset(time.Second)
	}
	return w
}

// commit writes one group, the oldest that is not written, and passes the lead
// on. The caller leads.
func (e *Engine) commit() {
	c := &e.commits
	if c.company >= companyThatYields {
		// The others are about to submit: let them into this group. At 256
		// connections this gave 16 % more; at one it never happens.
		runtime.Gosched()
	}
	e.mu.Lock()
	g := e.takeGroup()
	e.mu.Unlock()
	if g != nil {
		if err := e.write(g); err != nil {
			e.poison(err)
			return
		}
	}
	c.mu.Lock()
	c.passLead()
	c.mu.Unlock()
}

// companyThatYields is how many a commit must have released for the next leader
// to expect them back at once.
const companyThatYields = 4

// write commits one group and makes it safe.
func (e *Engine) write(g *wal.Group) error {
	lsn, records, bytes := g.LSN(), g.Records(), g.Bytes()
	c := &e.commits
	began := time.Since(e.clock.start)
	c.began.Store(int64(began) + 1)
	c.quiet.stop(began)
	err := e.log.Commit(g)
	over := time.Since(e.clock.start)
	c.quiet.goOn(over)
	c.began.Store(0)
	if err != nil {
		return fmt.Errorf("commit group %d: %w", lsn, err)
	}
	c.writes.note(lsn, over-began)
	e.syncTime.add(uint64((over - began) / (10 * time.Microsecond)))
	e.groupRecords.add(uint64(records))
	e.groupBytes.add(uint64(bytes))
	e.pending.Add(-int64(bytes))
	c.safe.Store(uint64(lsn))
	e.keeper.wrote(bytes)
	return nil
}

// passLead releases those whose group is safe, all in one act, and names the
// first of the others as the next leader. The caller leads and holds c.mu.
func (c *commits) passLead() {
	safe := LSN(c.safe.Load())
	rest := c.waiting[:0]
	var next *wait
	c.company = 0
	for _, w := range c.waiting {
		switch {
		case w.lsn <= safe:
			w.wake <- released
			c.company++
		case next == nil:
			next = w
		default:
			rest = append(rest, w)
		}
	}
	clear(c.waiting[len(rest):])
	c.waiting = rest
	c.count.Store(int64(len(rest)))
	c.busy.Store(next != nil)
	if next != nil {
		next.wake <- lead
	}
}

// takeLead makes the caller the leader for good: nobody commits after it. If the
// log has failed by then, there is nothing to lead.
func (e *Engine) takeLead() {
	c := &e.commits
	c.mu.Lock()
	if c.cause != nil || !c.busy.Swap(true) {
		c.mu.Unlock()
		return
	}
	w := e.join(lsnClosed)
	c.mu.Unlock()
	<-w.wake
	c.waits.Put(w)
}

// noticeFailure is for a log that failed while nobody committed, in a sync that
// it makes by itself: without it the engine would go on until the next commit.
func (e *Engine) noticeFailure() {
	e.takeLead()
	if e.Failure() == nil {
		e.poison(fmt.Errorf("beside the commits: %w", e.log.Failure()))
	}
}

// poison ends everything after the first error of the log: what is on disk is
// unknown now, so nobody may be told more, and nothing may be written behind
// it. The caller leads, and nobody leads after it.
func (e *Engine) poison(err error) {
	e.down.Store(uint64(lsnFailed))
	c := &e.commits
	c.mu.Lock()
	c.cause = err
	close(c.failed)
	for _, w := range c.waiting {
		w.wake <- lost
	}
	c.waiting = nil
	c.count.Store(0)
	c.mu.Unlock()
	e.opt.Logger.Error("the log failed, nothing is taken any more", "err", err)
}

// watchWaiting gives up on a disk that hangs. It runs at most once a second, and
// only while somebody waits.
func (e *Engine) watchWaiting() {
	c := &e.commits
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	rest := c.waiting[:0]
	for _, w := range c.waiting {
		if now.Sub(w.since) >= HungAfter && w.lsn != lsnClosed {
			w.wake <- hung
			continue
		}
		rest = append(rest, w)
	}
	clear(c.waiting[len(rest):])
	c.waiting = rest
	c.count.Store(int64(len(rest)))
	c.armed = len(rest) > 0
	if c.armed {
		e.watch.Reset(time.Second)
	}
}
