package engine

import (
	"container/heap"
	"sync/atomic"

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
	most  int // lines there were since the map was made, whose memory it keeps
	// dirty are the lines whose queue may have something for them, the one that
	// has been it for longest first.
	dirty, dirtyLast *line
	timed            alarms
	count            atomic.Int64 // of waiters
	work             int          // since serve looked at the clock: lines and jobs
	keys             [][]byte     // scratch of firstIn
}

// manyLines is of how many the map of lines is made anew when nobody waits any more.
const manyLines = 1000

// line is who waits for one queue.
type line struct {
	key         string
	first, last *place
	length      int64
	dirty       bool
	nextDirty   *line // behind this one in waiters.dirty
	// again is when to look again although nothing happened: the end of a pause,
	// the moment the rate allows. Log time; 0 is never, and the line is not in
	// waiters.timed.
	again state.Millis
	alarm int // place in waiters.timed
}

// alarms are the lines that are to be looked at again at a time, a heap with the
// earliest at its top.
type alarms []*line

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].again < a[j].again }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i]; a[i].alarm, a[j].alarm = i, j }

// Push implements heap.Interface.
func (a *alarms) Push(x any) {
	l := x.(*line)
	l.alarm = len(*a)
	*a = append(*a, l)
}

// Pop implements heap.Interface.
func (a *alarms) Pop() any {
	last := len(*a) - 1
	l := (*a)[last]
	(*a)[last], *a = nil, (*a)[:last]
	return l
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
			ws.most = max(ws.most, len(ws.lines))
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
			ws.lookAgain(l, 0)
			if len(ws.lines) == 0 && ws.most > manyLines {
				ws.lines, ws.timed, ws.most = nil, nil, 0
			}
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
	switch {
	case l.dirty:
		return
	case ws.dirty == nil:
		ws.dirty = l
	default:
		ws.dirtyLast.nextDirty = l
	}
	l.dirty, ws.dirtyLast = true, l
}

// take gives the line to look at next, which is dirty no more; nil is none. A line
// whose time to look again has come is dirty: for each that goes one such comes
// in, so however many there are, none takes long.
func (ws *waiters) take(now state.Millis) *line {
	if len(ws.timed) > 0 && ws.timed[0].again <= now {
		l := ws.timed[0]
		ws.lookAgain(l, 0)
		ws.markDirty(l)
	}
	l := ws.dirty
	if l != nil {
		ws.dirty, l.nextDirty, l.dirty = l.nextDirty, nil, false
	}
	return l
}

// next is when to look at the lines: now, later, or Forever.
func (ws *waiters) next(now state.Millis) state.Millis {
	switch {
	case ws.dirty != nil:
		return now
	case len(ws.timed) > 0:
		return ws.timed[0].again
	}
	return state.Forever
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

// serve hands what has come in to those who wait for it. It stops after about a
// millisecond; the rest is for the next stay, which announce asks for.
func (e *Engine) serve() {
	ws := &e.waiters
	for e.down.Load() == 0 {
		l := ws.take(e.now)
		if l == nil || !e.serveLine(l) {
			return
		}
	}
}

// serveLine serves one line until its queue has nothing more for it. False: the
// time is over, and the line is dirty.
func (e *Engine) serveLine(l *line) bool {
	ws := &e.waiters
	for l.first != nil {
		if ws.work++; ws.work >= clockEvery {
			if ws.work = 0; e.stayed() > maxStay {
				ws.markDirty(l)
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
		switch e.take(w.Fetch, ws.firstIn(w), e.mayHand) {
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

// mayHand is take's may for those who wait.
func (e *Engine) mayHand([]byte) took {
	if !e.roomNow(recordRoom) {
		return noRoom
	}
	return goOn
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

// lookAgain has the line looked at again at a time, if nothing happens before; 0
// is never.
func (ws *waiters) lookAgain(l *line, at state.Millis) {
	was := l.again
	l.again = at
	switch {
	case was == 0 && at == 0:
	case was == 0:
		heap.Push(&ws.timed, l)
	case at == 0:
		heap.Remove(&ws.timed, l.alarm)
	default:
		heap.Fix(&ws.timed, l.alarm)
	}
}
