package engine

import (
	"fmt"

	"pawl/state"
)

// MaxMulti bounds the jobs of a transaction, which JobsOf counts: it stays together
// whatever it takes, and nothing else is decided meanwhile.
const MaxMulti = 1024

// JobsOf is about how many jobs a command is: 1, or as many as an Ack has leases, a
// JobDelete IDs, or a Multi altogether; a Fetch, those that it has taken.
func JobsOf(cmds ...Command) (n int) {
	for _, cmd := range cmds {
		switch c := cmd.(type) {
		case *Fetch:
			n += 1 + len(c.Jobs)
		case *Ack:
			n += max(1, len(c.Leases))
		case *JobDelete:
			n += max(1, len(c.IDs))
		case *Multi:
			n += JobsOf(c.Commands...)
		default:
			n++
		}
	}
	return n
}

// multi carries out all commands or none, in one group. First all of them are
// checked, each against the state and what the ones before it will do; then
// they are carried out one by one as if they had come alone, which can fail no
// more. The check is as exact as the commands themselves, but for --max-memory,
// which is an estimate either way.
func (e *Engine) multi(c *Multi) error {
	if JobsOf(c.Commands...) > MaxMulti {
		return ErrTooMany
	}
	n := 0
	for _, cmd := range c.Commands {
		n += multiRoom(cmd)
	}
	if err := e.room(n); err != nil {
		return err
	}
	var o overlay
	for i, cmd := range c.Commands {
		cmd.refuse(nil)
		if err := e.check(cmd, &o); err != nil {
			return &AbortError{Index: i, Err: err}
		}
	}
	// Each command asks for room again. A group that is full by now must not be
	// sealed between two of them, or a crash could leave half.
	e.whole = true
	defer func() { e.whole = false }()
	for _, cmd := range c.Commands {
		if err := e.decide(cmd); err != nil {
			panic(fmt.Sprintf("engine: %T was refused after it had been checked: %v", cmd, err))
		}
	}
	return nil
}

// multiRoom is what the records of one command of a transaction take at most.
func multiRoom(cmd Command) int {
	switch c := cmd.(type) {
	case *Enqueue:
		return enqueueRoom(c)
	case *Ack:
		return len(c.Leases) * recordRoom
	case *Nack, *Bury:
		return recordRoom + state.MaxReasonBytes
	case *Release, *Extend:
		return recordRoom
	case *JobDelete:
		return len(c.IDs) * recordRoom
	}
	panic(fmt.Sprintf("engine: %T is no command of a transaction", cmd))
}

// check is the first half of a command within a transaction.
func (e *Engine) check(cmd Command, o *overlay) error {
	switch c := cmd.(type) {
	case *Enqueue:
		_, err := e.planEnqueue(c, o)
		return err
	case *Ack:
		for _, id := range c.Leases {
			j, err := e.leased(id, o)
			if err == nil {
				o.end(e, &j)
				o.leave(e, &j)
			} else if len(c.Leases) == 1 {
				return err
			}
		}
	case *Nack:
		j, err := e.leased(c.Lease, o)
		if err != nil {
			return err
		}
		o.end(e, &j)
		if usedUp(&j) {
			o.shrink(e, &j)
		}
	case *Release:
		j, err := e.leased(c.Lease, o)
		if err != nil {
			return err
		}
		o.end(e, &j)
	case *Bury:
		j, err := e.leased(c.Lease, o)
		if err != nil {
			return err
		}
		o.end(e, &j)
		o.shrink(e, &j)
	case *Extend:
		j, err := e.leased(c.Lease, o)
		if err != nil {
			return err
		}
		if !validSpan(e.now, c.LeaseMs) {
			return ErrTimeout
		}
		if c.LeaseMs == 0 {
			o.end(e, &j)
		}
	case *JobDelete:
		for _, id := range c.IDs {
			if j, ok := e.ownedBy(id, c.Queue); ok && !o.gone[j.Slot] {
				o.end(e, &j)
				o.leave(e, &j)
			}
		}
	}
	return nil
}

// overlay is what the checked commands of a transaction will have changed, as
// far as a later check may ask. A nil overlay is no transaction.
type overlay struct {
	ended  map[state.Slot]bool // the job's lease is over
	gone   map[state.Slot]bool // the job does not exist any more
	dying  map[state.Slot]bool // the job counts no more: it is gone or dead
	grown  map[string]growth   // by queue key
	keys   map[queueText]bool  // unique keys: held, or free again
	queues map[string]bool     // that will have been made
	joined map[queueText]int64 // jobs that groups gain or lose
	groups int64               // that begin, less those that end
	added  uint64              // jobs
}

type growth struct{ jobs, payload int64 }

// queueText is a unique key or a group of a queue.
type queueText struct {
	queue string
	hash  state.Key
}

// end notes that the job's lease is over.
func (o *overlay) end(e *Engine, j *state.Job) {
	if o.ended == nil {
		o.ended = make(map[state.Slot]bool)
	}
	o.ended[j.Slot] = true
}

// leave notes that the job is gone.
func (o *overlay) leave(e *Engine, j *state.Job) {
	if o.gone == nil {
		o.gone = make(map[state.Slot]bool)
	}
	o.gone[j.Slot] = true
	if j.Group != (state.Key{}) {
		o.join(e, queueText{e.st.QueueKey(j.Queue), j.Group}, j.Queue, -1)
	}
	o.shrink(e, j)
}

// shrink notes that the job counts no more for its queue, and that its unique
// key is free, unless the key's window still holds it.
func (o *overlay) shrink(e *Engine, j *state.Job) {
	if j.Place == state.Dead || o.dying[j.Slot] {
		return
	}
	if o.dying == nil {
		o.dying = make(map[state.Slot]bool)
	}
	o.dying[j.Slot] = true
	queue := e.st.QueueKey(j.Queue)
	o.grow(queue, -1, -int64(j.Size))
	if j.Unique != (state.Key{}) && e.st.KeyUntil(j.Slot) <= e.now {
		o.setKey(queue, j.Unique, false)
	}
}

// join notes that a group has a job more, or less; q is its queue, 0 where the
// transaction makes that.
func (o *overlay) join(e *Engine, group queueText, q state.QueueID, by int64) {
	if o.joined == nil {
		o.joined = make(map[queueText]int64)
	}
	before := o.groupJobs(e, group, q)
	o.joined[group] += by
	switch {
	case before == 0:
		o.groups++
	case before+by == 0:
		o.groups--
	}
}

// groupJobs is how many jobs a group will have.
func (o *overlay) groupJobs(e *Engine, group queueText, q state.QueueID) (n int64) {
	if q != 0 {
		n = int64(e.st.GroupJobs(q, group.hash))
	}
	if o != nil {
		n += o.joined[group]
	}
	return n
}

func (o *overlay) grow(queue string, jobs, payload int64) {
	if o.grown == nil {
		o.grown = make(map[string]growth)
	}
	g := o.grown[queue]
	o.grown[queue] = growth{g.jobs + jobs, g.payload + payload}
}

func (o *overlay) setKey(queue string, key state.Key, held bool) {
	if o.keys == nil {
		o.keys = make(map[queueText]bool)
	}
	o.keys[queueText{queue, key}] = held
}

// enqueued notes a job that will be there.
func (o *overlay) enqueued(e *Engine, c *Enqueue, p *enqueuePlan) {
	if o == nil {
		return
	}
	queue := string(c.Queue)
	o.grow(queue, 1, int64(len(c.Payload)))
	o.added++
	if p.queue == 0 {
		if o.queues == nil {
			o.queues = make(map[string]bool)
		}
		o.queues[queue] = true
	}
	if p.unique != (state.Key{}) {
		o.setKey(queue, p.unique, true)
	}
	if c.Group != nil {
		o.join(e, queueText{queue, p.group}, p.queue, 1)
	}
}

// key says whether a unique key is held, if the transaction has to do with it.
func (o *overlay) key(queue []byte, key state.Key) (held, known bool) {
	if o == nil {
		return false, false
	}
	held, known = o.keys[queueText{string(queue), key}]
	return held, known
}

func (o *overlay) makes(queue []byte) bool { return o != nil && o.queues[string(queue)] }

func (o *overlay) growth(queue []byte) growth {
	if o == nil {
		return growth{}
	}
	return o.grown[string(queue)]
}

func (o *overlay) queueCount() uint64 {
	if o == nil {
		return 0
	}
	return uint64(len(o.queues))
}

func (o *overlay) groupCount() int64 {
	if o == nil {
		return 0
	}
	return o.groups
}

// memory is what the jobs that will be added take, roughly.
func (o *overlay) memory() uint64 {
	if o == nil {
		return 0
	}
	return o.added * 512
}
