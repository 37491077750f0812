package resp

import (
	"sync"

	"pawl/engine"
)

// batch is the workspace of one pass over a connection's input: the commands
// that go to the engine in one Submit, and what is to be answered, in order.
// Idle connections have none; they come from a pool.
type batch struct {
	cmds    []engine.Command
	entries []entry
	bytes   int    // of the arguments so far
	keys    []byte // queue keys of the commands
	args    [][]byte
	payload []byte // space to read a job's body into
	side    writer // replies that are known already, behind commands that are not
	out     writer // replies that may go out
	sent    int    // bytes of out that are out

	shipped []shipment        // deliveries whose reply stands in out
	lost    []engine.Delivery // deliveries that cannot reach the client

	came     engine.Arrival // of the first enqueue that is not noted
	lsn      engine.LSN     // that the commands wait for
	answered int            // enqueues whose reply is made, not noted

	enqueues arena[engine.Enqueue]
	fetches  arena[engine.Fetch]
	acks     arena[engine.Ack]
	nacks    arena[engine.Nack]
	releases arena[engine.Release]
	buries   arena[engine.Bury]
	extends  arena[engine.Extend]
	stats    arena[engine.Stats]
	multis   arena[engine.Multi]
}

// entry is one answer to come.
type entry struct {
	cmd    engine.Command // nil: the answer is side[from:to]
	render render
	form   form
	mute   bool // CLIENT REPLY
	from   int
	to     int
}

// render writes the reply of a command that was carried out.
type render func(c *conn, e *entry)

// form is how the client wants its reply.
type form uint8

const (
	formUnique form = 1 << iota // ENQUEUE UNIQUE: say whether it is a duplicate
	formCount                   // FETCH COUNT: an array of jobs
	formMeta                    // FETCH META: say all about a job
)

// shipment is a delivery whose reply ends at end of the output.
type shipment struct {
	job *engine.Delivery
	end int
}

var batchPool = sync.Pool{New: func() any { return new(batch) }}

func takeBatch(c *conn) *batch {
	b := batchPool.Get().(*batch)
	b.came, b.answered = engine.Arrival{}, 0 // of one that ended early
	b.out.resp3, b.side.resp3 = c.resp3, c.resp3
	return b
}

// dropBatch gives the workspace back. What one large command made of it is left
// to the garbage collector.
func (c *conn) dropBatch() {
	b := c.b
	c.b = nil
	if cap(b.out.buf) > 4*flushBytes || cap(b.side.buf) > flushBytes || cap(b.keys) > flushBytes {
		return
	}
	batchPool.Put(b)
}

// full says whether the commands should go to the engine before more are taken.
func (b *batch) full() bool {
	return len(b.entries) >= maxBatch || b.bytes >= maxBatchBytes || len(b.out.buf) >= flushBytes
}

// reset forgets the commands, not the output.
func (b *batch) reset() {
	clear(b.cmds)
	clear(b.entries)
	b.cmds, b.entries, b.keys, b.bytes = b.cmds[:0], b.entries[:0], b.keys[:0], 0
	b.side.buf, b.side.errs = b.side.buf[:0], 0
	b.enqueues.reset()
	b.fetches.reset()
	b.acks.reset()
	b.nacks.reset()
	b.releases.reset()
	b.buries.reset()
	b.extends.reset()
	b.stats.reset()
	b.multis.reset()
}

// arena hands out values that stay where they are until reset.
type arena[T any] struct {
	chunks [][]T
	used   int
}

const arenaChunk = 16

// next gives a value as its last user left it.
func (a *arena[T]) next() *T {
	i := a.used / arenaChunk
	if i == len(a.chunks) {
		a.chunks = append(a.chunks, make([]T, arenaChunk))
	}
	a.used++
	return &a.chunks[i][(a.used-1)%arenaChunk]
}

// reset takes all values back; after a large batch most are let go.
func (a *arena[T]) reset() {
	a.used = 0
	if len(a.chunks) > maxBatch/arenaChunk {
		a.chunks = a.chunks[:1:1]
	}
}

// add has the engine do cmd, and r write its reply.
func (c *conn) add(cmd engine.Command, r render, f form) {
	b := c.b
	b.cmds = append(b.cmds, cmd)
	b.entries = append(b.entries, entry{cmd: cmd, render: r, form: f, mute: c.muted()})
}

// muted says whether CLIENT REPLY drops the reply of the present command.
func (c *conn) muted() bool { return c.reply == replyOff || c.reply == replySkip }

// begin gives the place for a reply that is known already; end must follow.
func (c *conn) begin() *writer { return &c.b.side }

// end finishes what begin began.
func (c *conn) end() {
	b := c.b
	from := 0
	for i := len(b.entries) - 1; i >= 0; i-- {
		if b.entries[i].cmd == nil {
			from = b.entries[i].to
			break
		}
	}
	b.entries = append(b.entries, entry{from: from, to: len(b.side.buf), mute: c.muted()})
}

// fail answers with an error line, in its turn.
func (c *conn) fail(text string) {
	c.begin().fail(errorLine(text))
	c.end()
}

// failNow is fail when nothing else waits for its turn.
func (c *conn) failNow(text string) {
	c.b.out.fail(errorLine(text))
}

// settle has the engine do what was collected, waits until that is durable, and
// writes the replies to the output.
func (c *conn) settle() {
	b := c.b
	if len(b.entries) == 0 {
		return
	}
	var err error
	if len(b.cmds) > 0 {
		began := c.srv.slow.begin()
		b.lsn = c.submit(b.cmds...)
		err = c.wait(b.lsn)
		c.noteSlow(began, len(b.cmds))
	}
	c.conclude(b.entries, err)
	if len(b.shipped) > 0 || len(b.lost) > 0 {
		c.push() // they point into what is reset now
	}
	b.reset()
}

// conclude writes the replies of entries, whose commands have been carried out
// and waited for with err. Some may be left, by the poller only, for which a goroutine
// has to read a body.
func (c *conn) conclude(entries []entry, err error) (left []entry) {
	b := c.b
	b.out.errs += b.side.errs
	b.side.errs = 0
	for i := range entries {
		e := &entries[i]
		mark := len(b.out.buf)
		switch {
		case e.cmd == nil:
			b.out.buf = append(b.out.buf, b.side.buf[e.from:e.to]...)
		case err != nil:
			c.abandon(e.cmd)
			c.failError(err)
		case e.cmd.Err() != nil:
			c.failError(e.cmd.Err())
		default:
			if _, ok := e.cmd.(*engine.Enqueue); ok {
				b.answered++
			}
			if e.render(c, e); c.unread {
				c.unread = false
				return entries[i:]
			}
		}
		if e.mute {
			b.out.buf = b.out.buf[:mark]
		}
		c.spill()
	}
	return nil
}

// noteAnswered has the engine note how long the enqueues took whose replies have
// just been handed over.
func (b *batch) noteAnswered(e Engine) {
	if b.answered > 0 {
		e.Answered(b.came, b.lsn, b.answered)
	}
	b.came, b.answered = engine.Arrival{}, 0
}

// failError answers with what the engine said, now.
func (c *conn) failError(err error) {
	line, known := replyError(err)
	if !known {
		c.srv.log.Error("a command failed for a reason that clients have no word for", "client", c.id, "error", err)
	}
	c.b.out.fail(line)
}

// spill writes the output when there is enough of it. Call it between the
// elements of replies that can be long.
func (c *conn) spill() {
	if len(c.b.out.buf) >= flushBytes && !c.polled {
		c.push()
	}
}
