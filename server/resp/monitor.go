package resp

import (
	"fmt"
	"strconv"
	"time"
)

// MONITOR shows all commands from now on, until RESET, QUIT or the end of the
// connection. The connection's goroutine goes on reading commands; another one
// writes the lines, and a client that is too slow for them is closed.
func cmdMonitor(c *conn, _ [][]byte) {
	c.b.out.ok()
	if c.monitor != nil {
		return
	}
	lines := make(chan []byte, maxMonitorLag)
	c.monitor = lines
	c.takeTurn() // the OK stands before the first line, and nothing behind the OK is missed
	c.srv.mu.Lock()
	c.srv.monitors[c] = lines
	c.srv.mu.Unlock()
	c.srv.watched.Add(1)
	c.monitorDone = make(chan struct{})
	go func() {
		defer close(c.monitorDone)
		for line := range lines {
			c.turn.Lock()
			_, err := c.nc.Write(line)
			c.turn.Unlock()
			if err != nil {
				c.condemn(closedWrite)
			}
			c.srv.stats.bytesOut.Add(uint64(len(line)))
		}
	}()
}

// takeTurn keeps the lines of MONITOR out until endTurn: a reply may be written
// in parts, and between two of them a line would be taken for an element of it.
func (c *conn) takeTurn() {
	if c.monitor != nil && !c.hasTurn {
		c.turn.Lock()
		c.hasTurn = true
	}
}

func (c *conn) endTurn() {
	if c.hasTurn {
		c.hasTurn = false
		c.turn.Unlock()
	}
}

// removeMonitor ends MONITOR and waits for the lines that are on their way, so
// that they do not come after the reply of RESET.
func (s *Server) removeMonitor(c *conn) {
	c.endTurn()
	s.mu.Lock()
	delete(s.monitors, c)
	close(c.monitor)
	s.mu.Unlock()
	s.watched.Add(-1)
	if c.closing || c.failed {
		c.nudgeWriter()
	}
	before := phase(c.phase.Load())
	c.enter(phaseWriting) // a client that does not read them is closed
	<-c.monitorDone
	c.enter(before)
	c.monitor = nil
}

// nudgeWriter bounds how long the writer of lines may go on.
func (c *conn) nudgeWriter() { c.nc.SetWriteDeadline(time.Now().Add(lingerTime)) }

// monitorBytes is how much of an argument is shown.
const monitorBytes = 64

// feedMonitors shows a command to all who watch.
func (s *Server) feedMonitors(c *conn, cmd *command, args [][]byte) {
	now := time.Now()
	line := fmt.Appendf(nil, "+%d.%06d [0 %s]", now.Unix(), now.Nanosecond()/1000, c.addr)
	for i, arg := range args {
		if cmd.is(flagSecret) && i > 0 && !(i == 1 && cmd.parent != nil) {
			line = append(line, ` "(redacted)"`...)
			break
		}
		line = append(line, ' ')
		line = strconv.AppendQuoteToASCII(line, string(arg[:min(len(arg), monitorBytes)]))
		if len(arg) > monitorBytes {
			line = fmt.Appendf(line, "...(%d bytes)", len(arg))
		}
		if len(line) > maxHeaderBytes {
			line = append(line, " ..."...)
			break
		}
	}
	line = append(line, '\r', '\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	for m, lines := range s.monitors {
		select {
		case lines <- line:
		default:
			m.condemn(closedSlowMonitor)
		}
	}
}
