package resp

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// slowLog keeps the commands that took longest, as Redis does. A pipeline that
// went to the engine at once is one entry, under its first command: its time
// includes the wait for the disk.
type slowLog struct {
	micros atomic.Int64 // threshold; negative is off
	most   atomic.Int64 // entries kept

	mu      sync.Mutex
	entries []slowEntry // guarded by mu, oldest first
	nextID  int64       // guarded by mu
	worst   int64       // guarded by mu: longest since LATENCY RESET
}

type slowEntry struct {
	id         int64
	at         time.Time
	micros     int64
	args       []string
	addr, name string
}

// What is kept of the arguments of one entry.
const (
	slowArgs     = 32
	slowArgBytes = 128
)

func (l *slowLog) setDefaults() {
	l.micros.Store(10_000)
	l.most.Store(128)
}

// begin is the time a command began; zero when the log is off.
func (l *slowLog) begin() time.Time {
	if l.micros.Load() < 0 {
		return time.Time{}
	}
	return time.Now()
}

// end notes a command if it was slow.
func (l *slowLog) end(began time.Time, c *conn, cmd *command, args [][]byte, count int) {
	limit := l.micros.Load()
	if began.IsZero() || limit < 0 {
		return
	}
	took := time.Since(began).Microseconds()
	if took < limit || cmd == nil {
		return
	}
	e := slowEntry{at: began, micros: took, addr: c.addr}
	c.mu.Lock()
	e.name = c.name
	c.mu.Unlock()
	switch {
	case args == nil:
		e.args = []string{cmd.fullName()}
	case cmd.is(flagSecret):
		e.args = []string{cmd.fullName(), "(redacted)"}
	default:
		for i, arg := range args {
			if i == slowArgs-1 && len(args) > slowArgs {
				e.args = append(e.args, "... ("+decimal(int64(len(args)-i))+" more arguments)")
				break
			}
			text := string(arg[:min(len(arg), slowArgBytes)])
			if more := len(arg) - slowArgBytes; more > 0 {
				text += "... (" + decimal(int64(more)) + " more bytes)"
			}
			e.args = append(e.args, text)
		}
	}
	if count > 1 {
		e.args = append(e.args, "(+"+decimal(int64(count-1))+" more commands)")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.nextID
	l.nextID++
	l.worst = max(l.worst, took)
	l.entries = append(l.entries, e)
	if extra := len(l.entries) - int(l.most.Load()); extra > 0 {
		l.entries = slices.Delete(l.entries, 0, extra)
	}
}

// noteSlow notes a pipeline that went to the engine.
func (c *conn) noteSlow(began time.Time, commands int) {
	c.srv.slow.end(began, c, c.lastCmd.Load(), nil, commands)
}

// SLOWLOG GET [count].
func cmdSlowlogGet(c *conn, args [][]byte) {
	count := int64(10)
	if len(args) > 2 {
		n, ok := parseInt(args[2])
		if !ok || n < -1 {
			c.failNow("ERR count should be greater than or equal to -1")
			return
		}
		count = n
	}
	l := &c.srv.slow
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.entries
	if count >= 0 && count < int64(len(entries)) {
		entries = entries[len(entries)-int(count):]
	}
	w := &c.b.out
	w.array(len(entries))
	for _, e := range slices.Backward(entries) {
		w.array(6)
		w.integer(e.id)
		w.integer(e.at.Unix())
		w.integer(e.micros)
		w.array(len(e.args))
		for _, arg := range e.args {
			w.bulkString(arg)
		}
		w.bulkString(e.addr)
		w.bulkString(e.name)
	}
}

// SLOWLOG LEN.
func cmdSlowlogLen(c *conn, _ [][]byte) {
	c.srv.slow.mu.Lock()
	defer c.srv.slow.mu.Unlock()
	c.b.out.integer(int64(len(c.srv.slow.entries)))
}

// SLOWLOG RESET.
func cmdSlowlogReset(c *conn, _ [][]byte) {
	c.srv.slow.mu.Lock()
	defer c.srv.slow.mu.Unlock()
	c.srv.slow.entries = nil
	c.b.out.ok()
}

// LATENCY LATEST: one event, command, from the slow log.
func cmdLatencyLatest(c *conn, _ [][]byte) {
	l, w := &c.srv.slow, &c.b.out
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		w.array(0)
		return
	}
	last := l.entries[len(l.entries)-1]
	w.array(1)
	w.array(4)
	w.bulkString("command")
	w.integer(last.at.Unix())
	w.integer(last.micros / 1000)
	w.integer(l.worst / 1000)
}

// LATENCY HISTORY event.
func cmdLatencyHistory(c *conn, args [][]byte) {
	l, w := &c.srv.slow, &c.b.out
	if !equalFold(args[2], "COMMAND") {
		w.array(0)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.array(len(l.entries))
	for _, e := range l.entries {
		w.array(2)
		w.integer(e.at.Unix())
		w.integer(e.micros / 1000)
	}
}

// LATENCY RESET: how many events were forgotten.
func cmdLatencyReset(c *conn, _ [][]byte) {
	l := &c.srv.slow
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(0)
	if len(l.entries) > 0 {
		n = 1
	}
	l.entries, l.worst = nil, 0
	c.b.out.integer(n)
}
