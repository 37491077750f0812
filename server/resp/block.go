package resp

import (
	"errors"
	"io"
	"os"
	"time"

	"pawl/engine"
)

// block is a FETCH that may wait: until there is a job, the time is over, the
// client goes away or finishes sending, CLIENT UNBLOCK, or the server stops.
// While it waits, a second goroutine reads on.
func (c *conn) block(f *engine.Fetch, wait time.Duration, fm form) {
	w, lsn := c.engine().Await(f)
	if w == nil {
		c.answerFetch(f, lsn, fm)
		return
	}
	c.odd = true
	// Whoever waits for an hour must have all earlier replies, and holds no
	// workspace meanwhile.
	c.flush()
	if !c.failed {
		c.dropBatch()
	}
	c.srv.stats.blocked.Add(1)
	select { // an unblocking that came too late for an earlier FETCH
	case <-c.unblock:
	default:
	}
	c.blocked.Store(true)
	c.enter(phaseBlocked)
	end := c.awaitJob(w, wait)
	c.blocked.Store(false)
	c.srv.stats.blocked.Add(-1)
	c.enter(phaseBusy)
	if c.b == nil {
		c.b = takeBatch(c)
	}

	handed := end == endJob
	if !handed {
		handed = !c.engine().Cancel(w)
		if handed {
			<-w.C
		} else if err := c.wait(w.LSN); err != nil && end != endGone {
			// That there was no job may rest on what is not durable yet.
			c.failError(err)
			return
		}
	}
	switch {
	case handed && (end == endGone || end == endEOF):
		// A client that went away takes no job with it. The decision may not be
		// durable yet, but giving back is behind it in the log.
		c.b.lost = append(c.b.lost, w.Fetch.Jobs...)
	case handed:
		c.answerFetch(w.Fetch, w.LSN, fm)
		return
	}
	switch end {
	case endGone:
		c.failed = true
	case endError:
		c.b.out.fail("UNBLOCKED client unblocked via CLIENT UNBLOCK")
	case endFailed:
		c.failError(engine.ErrFailed)
	default:
		c.answerNothing(fm)
	}
	if len(c.b.lost) > 0 {
		c.push()
	}
}

// answerFetch replies with what f was given, once that is durable.
func (c *conn) answerFetch(f *engine.Fetch, lsn engine.LSN, fm form) {
	if err := c.wait(lsn); err != nil {
		c.abandon(f)
		c.failError(err)
		return
	}
	if f.Err() != nil {
		c.failError(f.Err())
		return
	}
	c.renderJobs(f, fm)
	c.flush() // deliveries may not wait in the output
}

func (c *conn) answerNothing(fm form) {
	if fm&formCount != 0 {
		c.b.out.array(0)
		return
	}
	c.b.out.null()
}

// ending is why a blocked FETCH waits no longer.
type ending uint8

const (
	endJob     ending = iota // there is an answer
	endTime                  // the time is over
	endStop                  // the server stops
	endEOF                   // the client has finished sending
	endGone                  // the connection is broken
	endUnblock               // CLIENT UNBLOCK id TIMEOUT
	endError                 // CLIENT UNBLOCK id ERROR
	endFailed                // the storage has failed
)

func (c *conn) awaitJob(w *engine.Waiter, wait time.Duration) ending {
	if c.failed {
		return endGone
	}
	if c.eof {
		return endEOF
	}
	failed := c.engine().Failed()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	c.startWatch()
	for {
		select {
		case <-w.C:
			return endJob
		case <-timer.C:
			return endTime
		case <-c.srv.stop:
			return endStop
		case <-failed:
			return endFailed
		case withError := <-c.unblock:
			if withError {
				return endError
			}
			return endUnblock
		case r := <-c.watch:
			c.watched(r)
			c.srv.stats.bytesIn.Add(uint64(r.n))
			switch {
			case errors.Is(r.err, io.EOF):
				c.eof = true
				return endEOF
			case errors.Is(r.err, os.ErrDeadlineExceeded):
				c.nc.SetReadDeadline(time.Time{}) // a nudge
			case r.err != nil:
				return endGone
			}
			// When the input is full, the client is not watched any more: its
			// keep-alive and the write of the reply are left.
			c.startWatch()
		}
	}
}
