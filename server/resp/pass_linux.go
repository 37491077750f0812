package resp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"pawl/engine"
)

// turn is what one connection has in the present pass.
type turn struct {
	c        *conn
	from, to int  // its entries of the batch
	cmds     int  // commands among them
	skipped  bool // the batch was full before
	done     bool // it is not in this pass any more
}

// gather makes the turns of a pass. False: there is nothing left to do, ever.
func (p *poller) gather(events []unix.EpollEvent) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.next {
		p.turns = append(p.turns, turn{c: c})
	}
	clear(p.next)
	p.next = p.next[:0]
	p.join(events)
	if p.closed && len(p.conns) == 0 && !p.standIn {
		p.passing.Store(0) // here, under mu: no stand-in may begin on a set that is gone
		return false
	}
	return true
}

// join makes a turn for each connection that events are about and that has no
// owner yet. The caller holds mu.
func (p *poller) join(events []unix.EpollEvent) {
	for i := range events {
		if c := p.news(&events[i]); c != nil {
			p.turns = append(p.turns, turn{c: c})
		}
	}
}

// latecomers makes turns for those whose commands have come since the pass began,
// so that they need not wait for its sync; how many. A pass has no more turns than
// there are connections: who is answered without a sync may come again and again.
func (p *poller) latecomers(events []unix.EpollEvent) int {
	before := len(p.turns)
	p.mu.Lock()
	more := before < len(p.conns)
	p.mu.Unlock()
	if !more || p.b.full() {
		return 0
	}
	n, err := unix.EpollWait(p.epfd, events, 0)
	if err != nil && err != unix.EINTR {
		panic(fmt.Sprintf("resp: epoll_wait: %v", err)) // a bug: the set is ours alone
	}
	if n > 0 {
		p.mu.Lock()
		p.join(events[:n])
		p.mu.Unlock()
	}
	return len(p.turns) - before
}

// news gives the connection that an event is about, busy from now on; nil when
// it has an owner, who is told. The caller holds mu.
func (p *poller) news(e *unix.EpollEvent) *conn {
	c := p.conns[e.Fd]
	if c == nil {
		return nil // it left after the event, or the event is close's
	}
	if e.Events&^unix.EPOLLIN != 0 {
		c.ended = true // this is told once, and much may stand before the end
	}
	if c.busy {
		c.again = true
		return nil
	}
	c.busy = true
	return c
}

// pass does one command or more of each turn. events is space.
func (p *poller) pass(events []unix.EpollEvent) {
	b := p.b
	for i := 0; i < len(p.turns) || i > 0 && p.latecomers(events) > 0; i++ {
		t := &p.turns[i]
		t.from, t.to = len(b.entries), len(b.entries)
		if b.full() {
			t.skipped = true
			continue
		}
		cmds := len(b.cmds)
		if !p.guard(t.c, p.read) {
			b.entries, b.cmds = b.entries[:t.from], b.cmds[:cmds]
		}
		t.to, t.cmds = len(b.entries), len(b.cmds)-cmds
		if t.cmds == 0 {
			p.finish(t, nil) // whatever the disk does
		}
	}
	for i := range p.turns {
		if t := &p.turns[i]; t.skipped { // they come first the next time
			t.done = true
			p.next = append(p.next, t.c)
		}
	}
	if len(b.cmds) > 0 {
		p.commit()
	}
	clear(p.turns)
	p.turns = p.turns[:0]
	b = p.b
	if p.burnt || cap(b.out.buf) > 4*flushBytes || cap(b.side.buf) > 4*flushBytes || cap(b.keys) > 4*flushBytes {
		p.b, p.burnt = new(batch), false
		return
	}
	b.reset()
}

// guard calls f for c, and marks c as failed if f panics.
func (p *poller) guard(c *conn, f func(*conn)) (ok bool) {
	defer func() {
		if !ok {
			c.srv.recovered(c, recover())
			c.failed = true
		}
	}()
	f(c)
	return true
}

// read reads once from c and puts its commands into the batch.
func (p *poller) read(c *conn) {
	c.b = p.b
	c.b.out.resp3, c.b.side.resp3 = c.resp3, c.resp3
	c.stay++
	c.enter(phaseBusy)
	if c.condemned.Load() != nil {
		c.failed = true
		return
	}
	if !c.makeRoom() {
		c.odd = true // a goroutine may wait for room
		return
	}
	space := c.in.free()
	n, err := unix.Read(c.fd, space)
	switch {
	case n > 0:
		c.in.end += n
		c.srv.stats.bytesIn.Add(uint64(n))
	case n == 0 && err == nil:
		c.eof = true
	case err != unix.EAGAIN && err != unix.EINTR:
		c.failed = true
		return
	}
	c.lastFull = n == len(space)
	for !c.closing && c.step() && !c.b.full() {
	}
	// A FETCH that may wait ends the pass; if it need not, the rest is for the next.
	if c.lastFull || c.b.full() || err == unix.EINTR || c.rest.wait > 0 {
		p.mu.Lock()
		c.again = true
		p.mu.Unlock()
	}
}

// commit has the commands of the pass decided and made durable, and writes the
// replies.
func (p *poller) commit() {
	e := *p.s.engine.Load()
	began := p.s.slow.begin()
	lsn, decided := e.TrySubmit(p.b.cmds...)
	p.b.lsn = lsn
	p.handUndecided(decided, remainder{stage: stageParsed, began: began, lsn: lsn})
	if decided == 0 {
		return
	}
	p.lsn, p.began = lsn, began
	p.beginWait()
	err := e.Wait(lsn)
	if p.endWait() {
		return
	}
	for i := range p.turns {
		t := &p.turns[i]
		if !t.done {
			t.c.noteSlow(began, t.cmds)
			if p.finish(t, err); p.turns == nil {
				return // the others were taken away while it read
			}
		}
	}
	p.b.noteAnswered(e)
}

// beginWait lets others take the connections of the pass away, but for those that are
// done: what the poller does until endWait may wait for the disk.
func (p *poller) beginWait() {
	p.mu.Lock()
	p.waiting = true
	p.mu.Unlock()
}

// endWait says whether they have, and with them turns, next and b.
func (p *poller) endWait() (relieved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	relieved = !p.waiting
	p.waiting = false
	return relieved
}

// handUndecided leaves the turns that are not among the first so many commands to
// goroutines, which can be left waiting. Of one turn some may be decided.
func (p *poller) handUndecided(decided int, r remainder) {
	for i := range p.turns {
		t := &p.turns[i]
		if !t.done && t.cmds > decided {
			p.burnt = true
			r.decided = decided
			p.hand(p.b, t, r)
		}
		decided = max(decided-t.cmds, 0)
	}
}

// finish writes the replies of a turn, and lets its connection wait for the next
// command.
func (p *poller) finish(t *turn, err error) {
	c := t.c
	t.done = true
	if t.to > t.from && !c.failed && !p.answer(t, err) {
		return
	}
	c.b = nil
	if c.did >= deepPipeline {
		c.odd = true
	}
	if c.odd || c.eof || c.closing || c.failed {
		p.leave(c)
		return
	}
	c.did = 0
	c.enterReading()
	p.mu.Lock()
	closed := p.closed
	switch {
	case closed:
	case c.again || c.ended:
		c.again = false
		p.next = append(p.next, c)
	default:
		c.busy = false
	}
	p.mu.Unlock()
	if closed {
		p.leave(c)
	}
}

// answer writes the replies of a turn. False: a goroutine has to.
func (p *poller) answer(t *turn, err error) bool {
	c, b := t.c, p.b
	c.b = b
	b.out.resp3, b.side.resp3 = c.resp3, c.resp3
	entries := b.entries[t.from:t.to]
	if c.rest.wait > 0 {
		if c.mustWait(c.rest.wait, entries, err) > 0 {
			p.burnt = true
			p.hand(b, t, remainder{stage: stageWaited, err: err})
			return false
		}
		c.rest.wait, c.odd = 0, false
	}
	bodies, reads := 0, false
	for i := range entries {
		if f, ok := entries[i].cmd.(*engine.Fetch); ok {
			reads = reads || len(f.Jobs) > 0 && err == nil
			for j := range f.Jobs {
				bodies += f.Jobs[j].Bytes()
			}
		}
	}
	var began time.Time
	if bodies > 0 {
		began = time.Now()
		if bodies > flushBytes || p.cold.is(began) {
			p.burnt = true
			p.hand(b, t, remainder{stage: stageWaited, err: err})
			return false
		}
	}
	var left []entry
	if reads {
		p.beginWait() // what seems to be in memory may be read from the disk
	}
	p.guard(c, func(c *conn) {
		left = c.conclude(entries, err)
		if bodies > 0 {
			now := time.Now()
			p.cold.note(now, now.Sub(began))
		}
		c.push()
	})
	if reads {
		p.endWait()
	}
	if len(left) == 0 && (len(b.out.buf) == 0 || c.failed) {
		b.out.buf, b.out.errs, b.sent = b.out.buf[:0], 0, 0
		b.shipped, b.lost = b.shipped[:0], b.lost[:0] // after a panic
		return true
	}
	// The socket takes no more, or there is a body to read.
	own := b.split(c, left)
	own.out, own.sent, own.shipped, own.lost = b.out, b.sent, b.shipped, b.lost
	b.out, b.sent, b.shipped, b.lost = writer{}, 0, nil, nil
	p.burnt = true
	c.b, c.rest = own, remainder{stage: stageWaited, err: err}
	p.leave(c)
	return false
}

// hand leaves the connection of a turn to a goroutine, with its part of the
// batch, which is burnt.
func (p *poller) hand(b *batch, t *turn, r remainder) {
	t.done = true
	c := t.c
	c.b = b.split(c, b.entries[t.from:t.to])
	r.wait = c.rest.wait
	c.rest = r
	p.leave(c)
}
