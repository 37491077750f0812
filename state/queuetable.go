package state

// queueTable is the slab of queues. Its entries only lead to them: what very many
// queues took that lived for a moment goes back to the system when they are gone,
// wherever those that stay stand among them, and a number that is free costs 16
// bytes. Numbers stand in the log and in jobs, so nothing may move.
type queueTable struct {
	slab[queueEntry, *queueEntry]
}

// queueEntry is one number of the table.
type queueEntry struct {
	*queue        // nil for a free entry
	next   uint32 // the next free entry
}

func (e *queueEntry) link() *uint32 { return &e.next }

// zeroQueue is what lies behind a free entry. Nobody writes to it.
var zeroQueue queue

// at is a queue to read, a zero one for a free entry.
func (t *queueTable) at(i uint32) *queue { return t.slab.at(i).orZero() }

func (e *queueEntry) orZero() *queue {
	if e.queue == nil {
		return &zeroQueue
	}
	return e.queue
}

// edit is a queue to read and write, until the next view; it must not be free. The
// first to ask for it after a view makes a copy, of the queue and not of its page.
func (t *queueTable) edit(i uint32) *queue {
	if q := t.slab.at(i).queue; q.epoch >= t.frozen {
		return q
	}
	e := t.slab.edit(i)
	fresh := *e.queue
	fresh.epoch = t.epoch
	e.queue = &fresh
	return e.queue
}

// alloc makes a queue.
func (t *queueTable) alloc() (uint32, *queue) {
	i, e := t.slab.alloc()
	e.queue = &queue{epoch: t.epoch}
	return i, e.queue
}

func (t *queueTable) view() queueTable { return queueTable{t.slab.view()} }

// each calls f for all queues.
func (t *queueTable) each(f func(uint32, *queue)) {
	each(&t.slab, func(i uint32, e *queueEntry) {
		if e.queue != nil {
			f(i, e.queue)
		}
	})
}

// walk writes one that is not free. In version 1 of a snapshot a free one is a queue
// that is zero but for the link.
func (e *queueEntry) walk(c *coder) {
	if c.mode != reading {
		e.queue.walk(c, &e.queue.idleNext)
		return
	}
	q := new(queue)
	q.walk(c, &q.idleNext)
	if *q == (queue{idleNext: q.idleNext}) {
		e.next = q.idleNext
		return
	}
	e.queue = q
}
