package workload

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"pawl/internal/torture/history"
)

// uniqueFor is the window of the keys of EnqueueOnce, longer than any run.
const uniqueFor = time.Hour

// EnqueueOnce enqueues keys jobs, each under a unique key of its own, by
// clients that lose their connection between request and answer half of the
// time and resend until they have had one. However often that was, and
// whatever happens to the daemon meanwhile, there must be exactly that many
// jobs. It returns how many requests were sent.
func (c *Crew) EnqueueOnce(ctx context.Context, keys int) (sent int, err error) {
	var next, total atomic.Int64
	c.all(func(_ int, w *client) {
		for ctx.Err() == nil {
			key := int(next.Add(1))
			if key > keys {
				return
			}
			total.Add(int64(w.insist(ctx, key)))
		}
	})
	return int(total.Load()), context.Cause(ctx)
}

// insist sends the enqueue of one key until it is answered.
func (w *client) insist(ctx context.Context, key int) (sent int) {
	q := w.queues[key%len(w.queues)]
	payload := makePayload(w.rng, uint64(key), w.number, key, w.rng.IntN(200))
	name := fmt.Sprintf("key%d", key)
	op := history.Op{
		Kind: history.Enqueue, Queue: q.name, Nonce: uint64(key), Digest: digest(payload),
		Unique: name, For: uniqueFor, Unordered: true,
	}
	args := []string{"ENQUEUE", q.name, payload, "UNIQUE", name, "FOR", millis(uniqueFor)}
	for ctx.Err() == nil {
		if !w.connected(ctx) {
			continue
		}
		sent++
		if w.rng.IntN(2) == 0 {
			w.cutOff(op, args)
			continue
		}
		if outcome, _ := w.do(op, readEnqueue, args...); outcome == history.OK {
			return sent
		}
	}
	return sent
}

// cutOff sends a request and loses the connection before the answer.
func (w *client) cutOff(op history.Op, args []string) {
	op.Client, op.Incarnation = w.number, w.conn.incarnation
	called := w.rec.Call(op)
	if err := w.conn.SetDeadline(time.Now().Add(w.opt.Patience)); err == nil {
		w.conn.Write(appendCommand(nil, args...)) // whether it arrived is what nobody knows
	}
	w.hangUp()
	called.Error = "cut off"
	w.rec.Return(called, history.Unknown)
}

// Place enqueues the tokens that PassOn passes on. The daemon must be up.
func (c *Crew) Place(ctx context.Context, tokens int) error {
	first := c.client(c.opt.Clients + 1)
	defer first.hangUp()
	for placed := 0; placed < tokens; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !first.connected(ctx) {
			continue
		}
		op, args, _ := first.job(first.queues[placed%len(first.queues)])
		if outcome, v := first.do(op, readEnqueue, args...); outcome != history.OK {
			return fmt.Errorf("place token %d: %s", placed, v.text)
		}
		placed++
	}
	return nil
}

// PassOn passes tokens on until ctx ends: each client fetches a job and, in one
// transaction, finishes it and enqueues its successor. Whatever happens to the
// daemon, there are as many jobs at the end as at the beginning.
func (c *Crew) PassOn(ctx context.Context) {
	c.all(func(_ int, w *client) {
		for ctx.Err() == nil {
			w.passOn(ctx)
		}
	})
}

func (w *client) passOn(ctx context.Context) {
	if !w.connected(ctx) {
		return
	}
	taken := w.take(w.queues[w.rng.IntN(len(w.queues))], w.leaseFor())
	if len(taken) == 0 {
		pause(ctx, time.Millisecond)
	}
	for _, l := range taken {
		if w.conn == nil {
			return
		}
		if w.rng.IntN(20) > 0 {
			w.transaction(l, 1)
		}
	}
}
