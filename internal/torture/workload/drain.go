package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"pawl/internal/torture/history"
)

// drainLease is the lease of the drain's own fetches. It ends each at once.
const drainLease = time.Minute

// Drain takes and finishes everything that is left, as the end of a history:
// what was acknowledged and is not found now is lost. It returns when all
// queues are empty and nothing is leased or delayed, or with an error if that
// takes longer than patience. All clients must have stopped.
func (c *Crew) Drain(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.rec.Event(history.Event{Kind: history.Drain, Incarnation: c.target.Incarnation()})
	// Side by side, for most of it is waiting for leases to end. Each queue has
	// one client, which sees its order.
	queues := c.queues()
	errs := make([]error, len(queues))
	var drains sync.WaitGroup
	for i, q := range queues {
		drains.Go(func() {
			w := c.client(c.opt.Clients)
			defer w.hangUp()
			if err := w.drain(ctx, q); err != nil {
				errs[i] = fmt.Errorf("drain %s: %w", q.name, err)
				cancel()
			}
		})
	}
	drains.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.rec.Event(history.Event{Kind: history.Drained, Incarnation: c.target.Incarnation()})
	return nil
}

func (w *client) drain(ctx context.Context, q queue) error {
	for {
		if !w.connected(ctx) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		taken := w.take(q, drainLease)
		for _, l := range taken {
			if w.conn != nil {
				w.do(history.Op{Kind: history.Ack, Lease: l.id}, nil, "MOXY.ACK", l.id)
			}
		}
		if len(taken) > 0 || w.conn == nil {
			continue
		}
		waiting, err := w.waiting(q)
		switch {
		case err != nil && !errors.Is(err, errLost):
			return err
		case err == nil && waiting == 0:
			if !w.opt.Basic {
				if err := w.listDead(q); err != nil {
					return err
				}
			}
			if _, outcome := w.stats(q, true); outcome == history.OK {
				return nil
			}
		}
		if pause(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("%d jobs are still leased or delayed: %w", waiting, context.Cause(ctx))
		}
	}
}

// errLost is returned when the connection broke.
var errLost = errors.New("connection lost")

// waiting counts the jobs that a drain must still wait for.
func (w *client) waiting(q queue) (int, error) {
	if w.opt.Basic {
		total, outcome := w.stats(q, false)
		if outcome != history.OK {
			return 0, errLost
		}
		return total, nil
	}
	replies, err := w.conn.exchange(w.opt.Patience, appendCommand(nil, "QUEUE", "INFO", q.name), 1)
	if err != nil {
		w.hangUp()
		return 0, errLost
	}
	if replies[0].isError() {
		return 0, fmt.Errorf("queue info: %s", replies[0].text)
	}
	f := replies[0].fields()
	return int(f["ready"].num + f["delayed"].num + f["leased"].num), nil
}

// listDead records all dead letters of a queue.
func (w *client) listDead(q queue) error {
	op := history.Op{Kind: history.Peek, Queue: q.name, Dead: true}
	cursor := ""
	var failure error
	var shown []uint64
	for {
		args := []string{"QUEUE", "PEEK", q.name, "STATE", "dead", "COUNT", strconv.Itoa(100)}
		if cursor != "" {
			args = append(args, "AFTER", cursor)
		}
		replies, err := w.conn.exchange(w.opt.Patience, appendCommand(nil, args...), 1)
		if err != nil {
			return err
		}
		v := replies[0]
		if v.isError() {
			return fmt.Errorf("peek at the dead letters: %s", v.text)
		}
		if len(v.items) != 2 {
			return fmt.Errorf("peek at the dead letters: an answer of %d parts", len(v.items))
		}
		cursor = v.items[0].text
		for _, item := range v.items[1].items {
			nonce, intact := readPayload(item.fields()["payload"].text)
			if !intact {
				failure = fmt.Errorf("dead letter %q of %s is not what was enqueued", item.fields()["id"].text, q.name)
				continue
			}
			shown = append(shown, nonce)
		}
		if cursor == "" {
			break
		}
	}
	if failure != nil {
		return failure
	}
	op.Client, op.Incarnation = w.number, w.conn.incarnation
	called := w.rec.Call(op)
	called.Shown = shown
	w.rec.Return(called, history.OK)
	return nil
}

// Look reads the counters of all queues at rest, and the dead letters, into the
// history. Nothing must be leased or delayed.
func (c *Crew) Look(ctx context.Context) error {
	return c.visit(ctx, func(w *client, q queue) error {
		if err := w.lookAt(q, true); err != nil || c.opt.Basic {
			return err
		}
		return w.listDead(q)
	})
}

// Glance reads the counters of all queues into the history, for a crew whose
// part of it is over: nothing is done to them any more, so nothing may have
// changed.
func (c *Crew) Glance(ctx context.Context) error {
	return c.visit(ctx, func(w *client, q queue) error {
		q.kind = plain // at rest nothing is delayed
		return w.lookAt(q, false)
	})
}

// visit has a client of its own do something to all queues, one after the other.
func (c *Crew) visit(ctx context.Context, do func(w *client, q queue) error) error {
	w := c.client(c.opt.Clients)
	defer w.hangUp()
	for _, q := range w.queues {
		for !w.connected(ctx) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		if err := do(w, q); err != nil {
			return err
		}
	}
	return nil
}

// lookAt reads the counters of a queue into the history. Quiet is as of stats.
func (w *client) lookAt(q queue, quiet bool) error {
	if _, outcome := w.stats(q, quiet); outcome != history.OK {
		return fmt.Errorf("look at %s: no answer", q.name)
	}
	return nil
}
