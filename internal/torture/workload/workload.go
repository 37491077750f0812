// Package workload is the clients of the proofs: they enqueue, fetch, finish,
// fail, vanish and resend as workers do, over plain RESP, and record each call
// and answer for the checker of package history.
//
// Each client draws from its own seeded generator, so a seed fixes what each
// client tries; when it gets its answers is the machine's affair.
package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"pawl/internal/seeds"
	"pawl/internal/torture/history"
)

// Target is the daemon that clients talk to.
type Target interface {
	Addr() string
	Incarnation() int // of the process that was started last, from 1
}

// Options say what the clients do. The zero value of each is its default.
type Options struct {
	Seed    uint64
	Clients int // 16
	First   int // number of the first client; crews on one history must not share numbers
	// Part tells the crews of a long history apart: each has clients and queues
	// of its own. 0 is the first.
	Part   int
	Queues int // 8
	// Lease is the longest lease, 2 s; the shortest is 50 ms.
	Lease time.Duration
	// Payload is the longest filler in a payload, 16 KiB; most are short.
	Payload int
	// Least is the shortest filler, 0.
	Least int
	// Basic leaves out all that Moxy's contract does not have: delays,
	// priorities, groups, transactions, waiting and batch fetches.
	Basic bool
	// Patience is how long a client waits for an answer before it gives up its
	// connection, 30 s.
	Patience time.Duration
	// Pace is a pause between a client's operations; none by default.
	Pace time.Duration
	// Plain makes all queues first in, first out, without options on jobs.
	Plain bool
}

func (o Options) withDefaults() Options {
	if o.Clients == 0 {
		o.Clients = 16
	}
	if o.Queues == 0 {
		o.Queues = 8
	}
	if o.Lease == 0 {
		o.Lease = 2 * time.Second
	}
	if o.Payload == 0 {
		o.Payload = 16 << 10
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	return o
}

// shortest is the shortest lease that clients ask for.
const shortest = 50 * time.Millisecond

// Crew is a set of clients on one target.
type Crew struct {
	opt    Options
	target Target
	rec    *history.Recorder
}

// New makes a crew. It does nothing until Run or Drain.
func New(opt Options, target Target, rec *history.Recorder) *Crew {
	return &Crew{opt.withDefaults(), target, rec}
}

// Run lets all clients work until ctx ends, through any number of deaths of the
// daemon, and returns when they have stopped. It is done once for a crew.
func (c *Crew) Run(ctx context.Context) {
	c.all(func(_ int, w *client) {
		for ctx.Err() == nil {
			w.work(ctx)
		}
	})
}

// all has all clients do something at the same time, and returns when they have.
func (c *Crew) all(do func(i int, w *client)) {
	var clients sync.WaitGroup
	for i := range c.opt.Clients {
		clients.Go(func() {
			w := c.client(i)
			defer w.hangUp()
			do(i, w)
		})
	}
	clients.Wait()
}

// queue is one queue's name and what its jobs are like. Each queue has its own
// kind of trouble, so that the others stay simple enough to judge strictly.
type queue struct {
	name string
	kind kind
}

type kind int

const (
	plain    kind = iota // nothing but Moxy's contract
	ranked               // priorities
	delayed              // delays, tries, backoff
	grouped              // groups
	eventful             // transactions, deletions, edits, burials
	kinds
)

func (c *Crew) queues() []queue {
	qs := make([]queue, c.opt.Queues)
	for i := range qs {
		qs[i] = queue{fmt.Sprintf("q%d", i), kind(i % int(kinds))}
		if c.opt.Part > 0 {
			qs[i].name = fmt.Sprintf("part%d-%s", c.opt.Part, qs[i].name)
		}
		if c.opt.Basic || c.opt.Plain {
			qs[i].kind = plain
		}
	}
	return qs
}

// client is one worker and producer. It is used by one goroutine.
type client struct {
	*Crew
	number int
	rng    *rand.Rand
	queues []queue
	seq    int
	conn   *conn
	held   []lease
	mine   []enqueued // to delete and edit
	// The daemon has answered that it is still reading its log. Workers come
	// back later then: all of them at once, again and again, would make that
	// take ten times as long on a small machine, and fill the history with
	// refusals.
	loading bool
}

type lease struct {
	id    string
	queue queue
}

type enqueued struct {
	nonce   uint64
	id      string
	payload string
}

func (c *Crew) client(number int) *client {
	// Two more than clients: one drains, one places tokens.
	number += c.opt.First + c.opt.Part*(c.opt.Clients+2)
	return &client{
		Crew: c, number: number, queues: c.queues(),
		rng: seeds.New(c.opt.Seed + uint64(number)*0x9e3779b97f4a7c15),
	}
}

func (w *client) hangUp() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// connected makes sure of a connection; while the daemon is down that fails.
// It waits a little if the daemon has said that it is starting.
func (w *client) connected(ctx context.Context) bool {
	if w.loading {
		w.loading = false
		pause(ctx, 20*time.Millisecond)
	}
	if w.conn != nil {
		return true
	}
	conn, err := dial(w.target, w.opt.Patience)
	if err != nil {
		pause(ctx, 2*time.Millisecond)
		return false
	}
	w.conn = conn
	return true
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// do sends one command and records what came of it. Read, if not nil, puts a
// success reply into the operation.
func (w *client) do(op history.Op, read func(*history.Op, value), args ...string) (history.Outcome, value) {
	outcome, replies := w.doAll([]history.Op{op}, func(ops []*history.Op, replies []value) {
		if read != nil {
			read(ops[0], replies[0])
		}
	}, appendCommand(nil, args...), 1)
	if len(replies) == 0 {
		return outcome, value{}
	}
	return outcome, replies[0]
}

// doAll sends one request that stands for several operations and is answered
// by n replies, of which the last tells the outcome.
func (w *client) doAll(ops []history.Op, read func([]*history.Op, []value), request []byte, n int) (history.Outcome, []value) {
	called := make([]*history.Op, len(ops))
	wait := time.Duration(0)
	for i, op := range ops {
		op.Client, op.Incarnation = w.number, w.conn.incarnation
		wait = max(wait, op.Wait)
		called[i] = w.rec.Call(op)
	}
	replies, err := w.conn.exchange(w.opt.Patience+wait, request, n)
	outcome := history.Unknown
	if err == nil {
		last := replies[len(replies)-1]
		outcome = outcomeOf(last)
		w.loading = last.isError() && strings.HasPrefix(last.text, "LOADING")
	}
	for _, op := range called {
		switch {
		case err != nil:
			op.Error = err.Error()
		case outcome != history.OK:
			op.Error = replies[len(replies)-1].text
		}
	}
	if outcome == history.OK {
		read(called, replies)
	}
	for _, op := range called {
		o := outcome
		if o == history.OK && op.Error != "" {
			o = history.No // refused within a reply that holds several answers
		}
		w.rec.Return(op, o)
	}
	if err != nil {
		w.hangUp()
	}
	return outcome, replies
}

// outcomeOf says what a reply lets its reader conclude.
func outcomeOf(v value) history.Outcome {
	if !v.isError() {
		return history.OK
	}
	word, _, _ := strings.Cut(v.text, " ")
	switch {
	case word == "UNKNOWN", strings.Contains(v.text, "internal error"):
		return history.Unknown
	}
	return history.No
}

// Expected tells whether a refusal is one that a correct client can meet here:
// about leases that ended, jobs that are busy or gone, storage, starting and DRAIN.
// Any other is a mistake, of the client or of the daemon.
func Expected(refusal string) bool {
	switch word, _, _ := strings.Cut(refusal, " "); word {
	case "LOADING", "MISCONF", "BUSYJOB", "EXECABORT", "PAUSED":
		return true
	}
	return refusal == history.NoLease || refusal == noJob || refusal == "ERR job does not exist" ||
		strings.Contains(refusal, "shutting down") || strings.Contains(refusal, "closed")
}

// noJob stands for the answer 0 of JOB DELETE.
const noJob = "nothing to delete"

// work does one thing.
func (w *client) work(ctx context.Context) {
	if !w.connected(ctx) {
		return
	}
	if w.opt.Pace > 0 {
		pause(ctx, w.opt.Pace)
	}
	q := w.queues[w.rng.IntN(len(w.queues))]
	switch n := w.rng.IntN(100); {
	case n < 38:
		w.enqueue(q)
	case n < 68:
		w.fetch(q)
	case n < 94 && len(w.held) > 0:
		w.finish()
	case n < 96:
		w.stats(q, false)
	case n < 98 && q.kind == eventful && len(w.mine) > 0:
		w.meddle(q)
	case n < 99 && w.rng.IntN(10) == 0:
		w.hangUp() // a client that comes back later
	default:
		w.fetch(q)
	}
}

// job makes the next job of this client for a queue.
func (w *client) job(q queue) (history.Op, []string, string) {
	w.seq++
	nonce := uint64(w.number+1)<<40 | uint64(w.seq)
	filler := w.rng.IntN(128)
	switch w.rng.IntN(16) {
	case 0:
		filler = w.rng.IntN(w.opt.Payload + 1)
	case 1:
		filler = w.rng.IntN(min(4096, w.opt.Payload) + 1)
	}
	payload := makePayload(w.rng, nonce, w.number, w.seq, max(filler, w.opt.Least))
	op := history.Op{Kind: history.Enqueue, Queue: q.name, Nonce: nonce, Digest: digest(payload)}
	args := []string{"ENQUEUE", q.name, payload}
	if w.opt.Basic {
		args[0] = "MOXY.ENQUEUE"
	}
	switch q.kind {
	case ranked:
		op.Priority = w.rng.IntN(5) - 2
		args = append(args, "PRIORITY", strconv.Itoa(op.Priority))
	case delayed:
		if w.rng.IntN(2) == 0 {
			op.Delay = time.Duration(1+w.rng.IntN(300)) * time.Millisecond
			args = append(args, "DELAY", millis(op.Delay))
		}
		if w.rng.IntN(2) == 0 {
			op.Tries = 1 + w.rng.IntN(4)
			args = append(args, "TRIES", strconv.Itoa(op.Tries))
		}
		if w.rng.IntN(4) == 0 {
			op.Backoff = true
			args = append(args, "BACKOFF", "20", "MAX", "200")
		}
	case grouped:
		op.Unordered = true
		args = append(args, "GROUP", fmt.Sprintf("g%d", w.rng.IntN(5)))
	}
	return op, args, payload
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// readEnqueue takes the task ID out of an answer.
func readEnqueue(op *history.Op, v value) {
	f := v.fields()
	op.Job = f["task_id"].text
	op.Duplicate = f["duplicate"].num == 1
}

func (w *client) enqueue(q queue) {
	op, args, payload := w.job(q)
	outcome, reply := w.do(op, readEnqueue, args...)
	if outcome == history.OK && q.kind == eventful {
		w.mine = append(w.mine, enqueued{op.Nonce, reply.fields()["task_id"].text, payload})
		if len(w.mine) > 8 {
			w.mine = w.mine[1:]
		}
	}
}

func (w *client) fetch(q queue) {
	for _, l := range w.take(q, w.leaseFor()) {
		if len(w.held) < 32 {
			w.held = append(w.held, l) // the others are of workers that vanish
		}
	}
}

func (w *client) leaseFor() time.Duration {
	return shortest + time.Duration(w.rng.Int64N(int64(w.opt.Lease-shortest)+1)).Round(time.Millisecond)
}

// take fetches from a queue.
func (w *client) take(q queue, d time.Duration) (taken []lease) {
	op := history.Op{Kind: history.Fetch, Queue: q.name, LeaseFor: d}
	args := []string{"MOXY.FETCH", q.name, millis(d)}
	batch := false
	if !w.opt.Basic {
		args[0] = "FETCH"
		args = append(args, "META")
		if batch = w.rng.IntN(4) == 0; batch {
			args = append(args, "COUNT", strconv.Itoa(1+w.rng.IntN(8)))
		}
		if w.rng.IntN(6) == 0 {
			op.Wait = time.Duration(1+w.rng.IntN(50)) * time.Millisecond
			args = append(args, "WAIT", millis(op.Wait))
		}
	}
	w.do(op, func(op *history.Op, v value) {
		readFetch(op, v, batch)
		for _, g := range op.Grants {
			taken = append(taken, lease{g.Lease, q})
		}
	}, args...)
	return taken
}

// readFetch takes the deliveries out of an answer.
func readFetch(op *history.Op, v value, batch bool) {
	deliveries := []value{v}
	if batch {
		deliveries = v.items
	} else if v.null {
		deliveries = nil
	}
	for _, d := range deliveries {
		f := d.fields()
		g := history.Grant{Lease: f["lease_id"].text, Job: f["task_id"].text, Attempt: int(f["attempt"].num)}
		g.Nonce, g.Intact = readPayload(f["payload"].text)
		g.Digest = digest(f["payload"].text)
		op.Grants = append(op.Grants, g)
	}
}

// finish does something about one of the leases this client holds.
func (w *client) finish() {
	i := w.rng.IntN(len(w.held))
	l := w.held[i]
	w.held[i] = w.held[len(w.held)-1]
	w.held = w.held[:len(w.held)-1]
	end := func(kind history.Kind, args ...string) {
		w.do(history.Op{Kind: kind, Lease: l.id}, nil, append([]string{strings.ToUpper(string(kind)), l.id}, args...)...)
	}
	if w.opt.Basic {
		if w.rng.IntN(10) > 0 {
			w.do(history.Op{Kind: history.Ack, Lease: l.id}, nil, "MOXY.ACK", l.id)
		}
		return
	}
	switch n := w.rng.IntN(100); {
	case n < 5: // a worker that vanishes
	case n < 10:
		end(history.Release)
	case n < 20:
		if q := l.queue.kind; q == delayed && w.rng.IntN(2) == 0 {
			d := time.Duration(1+w.rng.IntN(200)) * time.Millisecond
			w.do(history.Op{Kind: history.Nack, Lease: l.id, Delay: d}, nil, "NACK", l.id, "DELAY", millis(d), "REASON", "because\r\n+OK")
		} else {
			end(history.Nack)
		}
	case n < 30:
		d := w.leaseFor()
		if outcome, _ := w.do(history.Op{Kind: history.Extend, Lease: l.id, LeaseFor: d}, nil, "EXTEND", l.id, millis(d)); outcome == history.OK {
			w.held = append(w.held, l)
		}
	case n < 33 && l.queue.kind == eventful:
		end(history.Bury, "REASON", "test")
	case n < 60 && l.queue.kind == eventful:
		w.transaction(l, 1+w.rng.IntN(3))
	case n < 70 && len(w.held) > 2:
		w.ackMany(l)
	default:
		end(history.Ack)
	}
}

// ackMany finishes several leases by one command.
func (w *client) ackMany(first lease) {
	args := []string{"ACK", first.id}
	for range 2 {
		args = append(args, w.held[len(w.held)-1].id)
		w.held = w.held[:len(w.held)-1]
	}
	var ops []history.Op
	for _, id := range args[1:] {
		ops = append(ops, history.Op{Kind: history.Ack, Lease: id})
	}
	w.doAll(ops, func(ops []*history.Op, replies []value) {
		for i, done := range replies[0].items {
			if i < len(ops) && done.num != 1 {
				ops[i].Error = history.NoLease
			}
		}
	}, appendCommand(nil, args...), 1)
}

// transaction finishes a job and enqueues its successors, all or nothing.
func (w *client) transaction(l lease, successors int) {
	w.seq++
	batch := (w.number+1)<<32 | w.seq
	ops := []history.Op{{Kind: history.Ack, Lease: l.id, Batch: batch}}
	request := appendCommand(appendCommand(nil, "MULTI"), "ACK", l.id)
	for range successors {
		op, args, _ := w.job(l.queue)
		op.Batch = batch
		ops = append(ops, op)
		request = appendCommand(request, args...)
	}
	w.doAll(ops, func(ops []*history.Op, replies []value) {
		for i, v := range replies[len(replies)-1].items {
			if i > 0 && i < len(ops) {
				readEnqueue(ops[i], v)
			}
		}
	}, appendCommand(request, "EXEC"), len(ops)+2)
}

// meddle is an operator's hand on one of the client's own waiting jobs.
func (w *client) meddle(q queue) {
	i := w.rng.IntN(len(w.mine))
	m := &w.mine[i]
	if w.rng.IntN(2) == 0 {
		op := history.Op{Kind: history.Delete, Nonce: m.nonce, Job: m.id}
		w.do(op, func(op *history.Op, v value) {
			if v.num == 0 {
				op.Error = noJob
			}
		}, "JOB", "DELETE", m.id)
		w.mine = append(w.mine[:i], w.mine[i+1:]...)
		return
	}
	w.seq++
	payload := makePayload(w.rng, m.nonce, w.number, w.seq, w.rng.IntN(256))
	w.do(history.Op{Kind: history.Edit, Nonce: m.nonce, Job: m.id, Digest: digest(payload)}, nil, "JOB", "PAYLOAD", m.id, payload)
}

// stats looks at a queue's counters. Quiet says that nothing can move them.
func (w *client) stats(q queue, quiet bool) (total int, outcome history.Outcome) {
	op := history.Op{Kind: history.Stats, Queue: q.name, Quiet: quiet}
	outcome, _ = w.do(op, func(op *history.Op, v value) {
		f := v.fields()
		op.Count = &history.Counts{
			Ready: int(f["ready"].num), Processing: int(f["processing"].num), Dead: int(f["dead"].num),
			ActiveLeases: int(f["active_leases"].num), Heap: int(f["heap"].num),
			Delayed: -1,
		}
		if quiet || q.kind == plain {
			op.Count.Delayed = 0 // nothing there was ever delayed, or is any more
		}
		total = op.Count.Ready + op.Count.Processing
	}, "MOXY.STATS", q.name)
	return total, outcome
}
