package engine

import (
	"sync/atomic"
	"time"

	"pawl/state"
)

// A Waiter is one blocked Fetch.
type Waiter struct {
	// C receives once, when Fetch has its answer and LSN says what to Wait for.
	C     chan struct{}
	Fetch *Fetch
	LSN   LSN

	places []place // one in the line of each of Fetch's queues; nil once served
}

// waiters are the lines before the queues: one for each queue that somebody
// waits for, first come, first served. A line is keyed by name, for the queue
// may not exist yet. Guarded by the engine's critical section.
type waiters struct {
	lines map[string]*line
	dirty []*line      // lines whose queue may have something for them
	again state.Millis // the earliest of the lines' again; Forever is never
	count atomic.Int64 // of waiters
	work  int          // since serve looked at the clock: lines and jobs
	all   bool         // every line is dirty
	keys  [][]byte     // scratch of firstIn
}

// line is who waits for one queue.
type line struct {
	key         string
	first, last *place
	length      int64
	dirty       bool
	// again is when to look again although nothing happened: the end of a pause,
	// the moment the rate allows. Log time; 0 is never.
	again state.Millis
}

// place is one waiter's place in one line.
type place struct {
	w          *Waiter
	line       *line
	key        []byte // of the line, as the Fetch has it
	prev, next *place
}

// join puts w at the end of the line of each of its queues.
func (ws *waiters) join(w *Waiter) {
	if ws.lines == nil {
		ws.lines = make(map[string]*line)
	}
	w.places = make([]place, 0, len(w.Fetch.Queues))
next:
	for _, key := range w.Fetch.Queues {
		l := ws.lines[string(key)]
		if l == nil {
			l = &line{key: string(key)}
			ws.lines[l.key] = l
		}
		for i := range w.places {
			if w.places[i].line == l {
				continue next // named twice
			}
		}
		w.places = append(w.places, place{w: w, line: l, key: key, prev: l.last})
		p := &w.places[len(w.places)-1]
		if l.last == nil {
			l.first = p
		} else {
			l.last.next = p
		}
		l.last = p
		l.length++
	}
	ws.count.Add(1)
}

// leave takes w out of all its lines at once; false if it had left before.
func (ws *waiters) leave(w *Waiter) bool {
	if w.places == nil {
		return false
	}
	for i := range w.places {
		p := &w.places[i]
		l := p.line
		if p.prev == nil {
			l.first = p.next
		} else {
			p.prev.next = p.next
		}
		if p.next == nil {
			l.last = p.prev
		} else {
			p.next.prev = p.prev
		}
		l.length--
		if l.first == nil {
			delete(ws.lines, l.key)
			l.again = 0
		}
	}
	w.places = nil
	ws.count.Add(-1)
	return true
}

// touch notes that the queue may have something for its line.
func (ws *waiters) touch(key string) {
	if len(ws.lines) == 0 {
		return
	}
	if l := ws.lines[key]; l != nil {
		ws.markDirty(l)
	}
}

func (ws *waiters) markDirty(l *line) {
	if !l.dirty {
		l.dirty = true
		ws.dirty = append(ws.dirty, l)
	}
}

// due notes the lines whose time to look again has come.
func (ws *waiters) due(now state.Millis) {
	ws.again = state.Forever
	for _, l := range ws.lines {
		switch {
		case l.again == 0:
		case l.again <= now:
			l.again = 0
			ws.markDirty(l)
		default:
			ws.again = min(ws.again, l.again)
		}
	}
}

// length is how many wait for the queue.
func (ws *waiters) length(key string) int64 {
	if l := ws.lines[key]; l != nil {
		return l.length
	}
	return 0
}

// Await tries f at once. Where there is a job, or f is refused, the waiter is
// nil and lsn counts. Else f joins the waiting of all its queues, first come,
// first served, until Cancel or until there is a job; f belongs to the engine
// until then. At most Limits.MaxWaiters wait; beyond it f is refused with
// ErrBusy.
func (e *Engine) Await(f *Fetch) (w *Waiter, lsn LSN) {
	if err := e.backpressure(); err != nil {
		f.refuse(err)
		return nil, lsnNothing
	}
	if !e.enter() {
		return nil, e.refuseAll([]Command{f})
	}
	defer func() { lsn = e.leave() }()
	err := e.fetch(f)
	if err == nil && len(f.Jobs) == 0 {
		switch {
		case e.down.Load() != 0:
			err = e.refusal()
		case e.waiters.count.Load() >= e.limits.waiters.Load():
			err = ErrBusy
		default:
			w = &Waiter{C: make(chan struct{}, 1), Fetch: f}
			e.waiters.join(w)
			for i := range w.places {
				e.waiters.markDirty(w.places[i].line) // for when to look again
			}
		}
	}
	f.refuse(err)
	if err != nil {
		e.tally.refused++
	}
	return w, 0
}

// Cancel ends the waiting. False: a job was handed to the waiter before; C has
// it, and the caller must take it or Undeliver it. After true w.LSN is what the
// answer, that there was no job, must wait for.
func (e *Engine) Cancel(w *Waiter) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.waiters.leave(w) {
		return false
	}
	w.LSN = e.last
	return true
}

// touched notes that q may have something for those who wait for it.
func (e *Engine) touched(q state.QueueID) {
	if len(e.waiters.lines) != 0 {
		e.waiters.touch(e.st.QueueKey(q))
	}
}

// touchedAll is for records that may concern any queue.
func (e *Engine) touchedAll() {
	ws := &e.waiters
	if ws.all {
		return
	}
	for _, l := range ws.lines {
		ws.markDirty(l)
	}
	ws.all = true
}

// serve hands what has come in to those who wait for it. It stops after about a
// millisecond; the rest is for the next stay, which announce asks for.
func (e *Engine) serve() {
	ws := &e.waiters
	ws.all = false
	for len(ws.dirty) > 0 && e.down.Load() == 0 {
		last := len(ws.dirty) - 1
		l := ws.dirty[last]
		ws.dirty[last], ws.dirty, l.dirty = nil, ws.dirty[:last], false
		if !e.serveLine(l) {
			ws.markDirty(l)
			return
		}
	}
}

// serveLine serves one line until its queue has nothing more for it. False: the
// time is over.
func (e *Engine) serveLine(l *line) bool {
	ws := &e.waiters
	for l.first != nil {
		if ws.work++; ws.work >= clockEvery {
			if ws.work = 0; time.Since(e.entered) > maxStay {
				return false
			}
		}
		q, ok := e.st.QueueByKey([]byte(l.key))
		if !ok {
			return true
		}
		if !e.roomNow(recordRoom) {
			ws.lookAgain(l, e.now+retryMs)
			return true
		}
		slot, block := e.st.NextReady(q, e.now)
		if slot == 0 {
			if _, due := e.overdue(q, block); !due {
				if block.Until != 0 && block.Until != state.Forever {
					ws.lookAgain(l, max(block.Until, e.now+1))
				}
				return true
			}
		}
		w := l.first.w
		switch e.take(w.Fetch, ws.firstIn(w), e.roomNow) {
		case tookEnough:
		case metMany, noRoom:
			if len(w.Fetch.Jobs) == 0 {
				ws.lookAgain(l, e.now+1)
				return true
			}
		}
		if len(w.Fetch.Jobs) == 0 {
			continue // the one that was there was past its time to live
		}
		ws.work += len(w.Fetch.Jobs)
		ws.leave(w)
		w.LSN = e.last
		w.C <- struct{}{}
	}
	return true
}

// firstIn is the queues in whose lines w is the first, in the order in which it
// wants them: what comes into the others is for those who came before it. The
// slice is good until the next call.
func (ws *waiters) firstIn(w *Waiter) [][]byte {
	ws.keys = ws.keys[:0]
	for i := range w.places {
		if p := &w.places[i]; p.prev == nil {
			ws.keys = append(ws.keys, p.key)
		}
	}
	return ws.keys
}

// retryMs is how soon those who wait are tried again when the log had no room.
const retryMs state.Millis = 10

// lookAgain has the line looked at again at a time, if nothing happens before.
func (ws *waiters) lookAgain(l *line, at state.Millis) {
	l.again = at
	ws.again = min(ws.again, at)
}
