package resp

import (
	"os"
	"slices"
	"time"

	"pawl/engine"
)

// Loop is how connections are served while they wait for their next command.
type Loop uint8

const (
	// LoopPortable has a goroutine for every connection.
	LoopPortable Loop = iota
	// LoopPoll has pollers for plain sockets (see poller), on Linux. All other
	// connections, and those that do something out of the ordinary, have a
	// goroutine.
	LoopPoll
)

// seat is a connection's place in its poller, and what the poller needs to know
// to leave it to a goroutine in time.
type seat struct {
	poller *poller // the connection's, for good; nil is none

	// Owned by whoever has the connection.
	polled bool      // the poller has it
	did    int       // commands of the present pass
	odd    bool      // it had one that is not for the poller
	calm   int       // passes without such a one, in a row
	enough int       // calm passes after which the poller may have it
	stay   int       // passes since the poller has it
	fresh  bool      // it has left the poller and not read since
	rest   remainder // what the poller has left undone
	unread bool      // of the present reply, because it needs a body that the poller could not read

	// Guarded by poller.mu.
	taken bool // in the poller's table
	busy  bool // in a pass, or on its way out: nobody else may touch it
	again bool // there was news meanwhile
	ended bool // the client has finished sending, or is gone: read until that is seen
}

// maxEnough bounds how long a connection is kept out of the poller that did not
// stay in it the last times.
const maxEnough = 64

// deepPipeline is how many commands in one pass make a connection one for a
// goroutine: they outweigh what the poller saves, and several such goroutines
// parse at the same time.
const deepPipeline = 16

// polledBytes is how large the input of a connection in the poller may be, and
// what is read of it in one pass: nobody's megabytes stand between two others.
const polledBytes = flushBytes

// isCalm says whether the connection is one for the poller: it has done plain
// commands only for a while, and waits for nothing but its next command.
func (c *conn) isCalm() bool {
	switch {
	case c.poller == nil, c.srv.stopped.Load(), c.engine() == nil,
		c.calm < c.enough, c.fresh, c.eof, c.watching,
		c.user == nil, c.tx != nil, c.monitor != nil, c.reply != replyOn:
		return false
	}
	return len(c.in.bytes()) == 0 && len(c.in.buf) <= polledBytes
}

// endPass counts a pass over the input that has ended.
func (c *conn) endPass() {
	switch {
	case c.odd, c.did >= deepPipeline:
		c.calm = 0
	case c.did > 0:
		c.calm++
	}
	c.did, c.odd = 0, false
}

// remainder is what a goroutine has to do first for a connection that the
// poller leaves to it in the middle of a pass.
type remainder struct {
	stage   stage
	decided int           // stageParsed: so many of the commands, the first of them, are decided
	began   time.Time     // when the commands that are decided went to the engine, for the slow log
	lsn     engine.LSN    // what they wait for
	err     error         // stageWaited: what Wait said
	wait    time.Duration // the last command is a FETCH that waits so long for a job; 0 is none
}

// stage is how far the poller came with the commands of the batch.
type stage uint8

const (
	stageNone    stage = iota // there is no batch
	stageParsed               // they, or the last of them, are to be decided
	stageWaiting              // they are decided, not known to be durable
	stageWaited               // the replies are to be written, behind what stands in the output
)

// resume finishes a pass that the poller has begun.
func (c *conn) resume() {
	r := c.rest
	c.rest = remainder{}
	if r.stage == stageNone {
		return
	}
	c.enter(phaseBusy)
	b := c.b
	switch r.stage {
	case stageParsed:
		c.concludeDecided(&r)
		r.began = c.srv.slow.begin()
		b.lsn = c.submit(b.cmds...)
		r.err = c.wait(b.lsn)
		c.noteSlow(r.began, len(b.cmds))
	case stageWaiting:
		r.err = c.wait(r.lsn)
		c.noteSlow(r.began, len(b.cmds))
	}
	var blocked engine.Fetch
	var fm form
	if r.wait = c.mustWait(r.wait, b.entries, r.err); r.wait > 0 {
		last := b.entries[len(b.entries)-1]
		blocked, fm = lasting(last.cmd.(*engine.Fetch)), last.form
		b.entries = b.entries[:len(b.entries)-1]
	}
	c.conclude(b.entries, r.err)
	c.flush()
	b.reset()
	if r.wait > 0 && !c.failed {
		c.block(&blocked, r.wait, fm)
		c.flush()
	}
	c.dropBatch()
}

// concludeDecided writes the replies of those commands of the batch that the poller has
// had decided, and takes them out of it.
func (c *conn) concludeDecided(r *remainder) {
	if r.decided == 0 {
		return
	}
	b := c.b
	err := c.wait(r.lsn)
	c.noteSlow(r.began, r.decided)
	last := slices.IndexFunc(b.entries, func(e entry) bool { return e.cmd == b.cmds[r.decided-1] })
	c.conclude(b.entries[:last+1], err)
	c.flush() // the others may take their time
	b.entries, b.cmds = b.entries[last+1:], b.cmds[r.decided:]
}

// mustWait gives the time that the last of entries, a FETCH, is to wait for a
// job: none when it has found one.
func (c *conn) mustWait(wait time.Duration, entries []entry, err error) time.Duration {
	if wait == 0 || err != nil || len(entries) == 0 {
		return 0
	}
	f, ok := entries[len(entries)-1].cmd.(*engine.Fetch)
	if !ok || f.Err() != nil || len(f.Jobs) > 0 {
		return 0
	}
	return wait
}

// split copies entries of c, and what they point to in the side output, to a batch of
// their own. Their commands stay where they are.
func (b *batch) split(c *conn, entries []entry) *batch {
	own := new(batch)
	own.came, own.lsn = b.came, b.lsn
	own.out.resp3, own.side.resp3 = c.resp3, c.resp3
	for _, e := range entries {
		if e.cmd == nil {
			from := len(own.side.buf)
			own.side.buf = append(own.side.buf, b.side.buf[e.from:e.to]...)
			e.from, e.to = from, len(own.side.buf)
		} else {
			own.cmds = append(own.cmds, e.cmd)
		}
		own.entries = append(own.entries, e)
	}
	return own
}

// stream is what a goroutine needs of a socket; a net.Conn is one.
type stream interface {
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
	Close() error
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// fileStream is a socket that the poller had.
type fileStream struct{ *os.File }
