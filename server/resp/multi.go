package resp

import (
	"errors"
	"strings"

	"pawl/engine"
)

// transaction is what a client has queued since MULTI. Its commands are parsed
// when they are queued, into a batch of the transaction's own.
type transaction struct {
	b     *batch
	jobs  int    // that the commands name
	bytes int64  // of the arguments
	why   string // not empty: EXEC is refused
}

// maxQueuedBytes bounds a transaction beside engine.MaxMulti: or it is one command.
const maxQueuedBytes = 1 << 20

const errQueued = "TOOLARGE a transaction has at most 1024 commands, leases and IDs, and 1 MiB, or one command"

// MULTI.
func cmdMulti(c *conn, _ [][]byte) {
	if c.tx != nil {
		c.failNow("ERR MULTI calls can not be nested")
		return
	}
	c.tx = &transaction{b: new(batch)}
	c.setQueued(0)
	c.b.out.ok()
}

// DISCARD.
func cmdDiscard(c *conn, _ [][]byte) {
	if c.tx == nil {
		c.failNow("ERR DISCARD without MULTI")
		return
	}
	c.dropTransaction()
	c.b.out.ok()
}

// dropTransaction forgets what was queued.
func (c *conn) dropTransaction() {
	if c.tx == nil {
		return
	}
	c.srv.release(c, c.tx.bytes)
	c.tx = nil
	c.setQueued(-1)
}

func (c *conn) setQueued(n int) {
	c.mu.Lock()
	c.queued = n
	c.mu.Unlock()
}

// refuseQueued makes EXEC fail because a command was refused when it should
// have been queued.
func (c *conn) refuseQueued() {
	if c.tx != nil && c.tx.why == "" {
		c.tx.why = "previous errors"
	}
}

// queue parses a command into the transaction, or refuses it.
func (c *conn) queue(cmd *command, args [][]byte) {
	tx := c.tx
	if !cmd.is(flagMulti) {
		c.refuseQueued()
		c.fail("ERR '" + cmd.fullName() + "' is not allowed in a transaction")
		return
	}
	jobs, size := jobsNamed(cmd, args), int64(0)
	for _, arg := range args {
		size += int64(len(arg))
	}
	if tx.jobs+jobs > engine.MaxMulti || len(tx.b.cmds) > 0 && tx.bytes+size > maxQueuedBytes {
		c.refuseQueued()
		c.fail(errQueued)
		return
	}
	if !c.srv.reserve(c, size) {
		c.failed = true
		return
	}
	tx.bytes += size

	kept := make([][]byte, len(args))
	for i, arg := range args {
		kept[i] = append([]byte(nil), arg...)
	}
	outer, queued := c.b, len(tx.b.cmds)
	c.b = tx.b
	cmd.run(c, kept)
	c.b = outer
	if len(tx.b.cmds) == queued { // it was refused; its error stands in the inner batch
		line := strings.TrimPrefix(strings.TrimSuffix(string(tx.b.side.buf), "\r\n"), "-")
		tx.b.side.buf, tx.b.side.errs = tx.b.side.buf[:0], 0
		tx.b.entries = tx.b.entries[:queued]
		c.refuseQueued()
		c.fail(line)
		return
	}
	tx.jobs += jobs
	c.setQueued(len(tx.b.cmds))
	c.begin().simple("QUEUED")
	c.end()
}

// jobsNamed is how many jobs a client says that a command of a transaction is about:
// what counts is known to it, and before anything is looked at. It is at least what
// engine.JobsOf says.
func jobsNamed(cmd *command, args [][]byte) int {
	switch cmd.fullName() {
	case "ack":
		return len(args) - 1
	case "job|delete":
		return len(args) - 2
	}
	return 1
}

// EXEC does what was queued in one log entry, or nothing.
func cmdExec(c *conn, _ [][]byte) {
	tx := c.tx
	if tx == nil {
		c.failNow("ERR EXEC without MULTI")
		return
	}
	defer c.dropTransaction()
	switch {
	case tx.why != "":
		c.failNow("EXECABORT Transaction discarded because of " + tx.why + ".")
		return
	case len(tx.b.cmds) == 0:
		c.b.out.array(0)
		return
	}
	multi := engine.Multi{Commands: tx.b.cmds}
	if err := c.wait(c.submit(&multi)); err != nil {
		c.failError(err)
		return
	}
	if err := multi.Err(); err != nil {
		if _, ok := errors.AsType[*engine.AbortError](err); ok {
			c.failError(err)
		} else {
			line, _ := replyError(err)
			c.failNow("EXECABORT Transaction discarded because of " + line)
		}
		return
	}
	c.b.out.array(len(tx.b.entries))
	for i := range tx.b.entries {
		e := &tx.b.entries[i]
		if err := e.cmd.Err(); err != nil {
			c.failError(err)
			continue
		}
		e.render(c, e)
	}
}
