package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pawl/internal/torture/history"
)

// Marked is one acknowledged enqueue: what stands in its payload and nowhere
// else, and the task ID in its reply.
type Marked struct{ Nonce, Job string }

// EnqueueMarked enqueues n small jobs over each client's connection, one after
// the other, and fetches and finishes some between. The daemon must be up.
func (c *Crew) EnqueueMarked(ctx context.Context, n int) ([]Marked, error) {
	marks := make([][]Marked, c.opt.Clients)
	errs := make([]error, c.opt.Clients)
	c.all(func(i int, w *client) { marks[i], errs[i] = w.enqueueMarked(ctx, n) })
	return slices.Concat(marks...), errors.Join(errs...)
}

func (w *client) enqueueMarked(ctx context.Context, n int) ([]Marked, error) {
	var marks []Marked
	for range n {
		if !w.connected(ctx) {
			return nil, errors.New("enqueue marked jobs: no connection")
		}
		op, args, _ := w.job(w.queues[w.rng.IntN(len(w.queues))])
		outcome, v := w.do(op, readEnqueue, args...)
		if outcome != history.OK {
			return nil, fmt.Errorf("enqueue marked jobs: %s %s", outcome, v.text)
		}
		marks = append(marks, Marked{fmt.Sprintf("%016x|", op.Nonce), v.fields()["task_id"].text})
		if w.rng.IntN(3) == 0 {
			w.fetch(w.queues[w.rng.IntN(len(w.queues))])
			if len(w.held) > 0 && w.conn != nil {
				w.finish()
			}
		}
	}
	return marks, nil
}

// Churn enqueues, fetches and finishes n jobs with payloads of size bytes over
// each client's connection, in pipelines of depth, in one queue of its own, and
// leaves nothing behind. It records nothing.
func (c *Crew) Churn(ctx context.Context, n, size, depth int) error {
	errs := make([]error, c.opt.Clients)
	c.all(func(i int, w *client) { errs[i] = w.churn(ctx, n, size, depth) })
	return errors.Join(errs...)
}

func (w *client) churn(ctx context.Context, n, size, depth int) error {
	if !w.connected(ctx) {
		return errors.New("churn: no connection")
	}
	name := fmt.Sprintf("churn%d", w.number)
	for done := 0; done < n && ctx.Err() == nil; {
		batch := min(depth, n-done)
		var request []byte
		for range batch {
			w.seq++
			request = appendCommand(request, "ENQUEUE", name, makePayload(w.rng, uint64(w.seq), w.number, w.seq, size))
		}
		replies, err := w.conn.exchange(w.opt.Patience, request, batch)
		if err != nil {
			return fmt.Errorf("churn: %w", err)
		}
		if i := slices.IndexFunc(replies, value.isError); i >= 0 {
			return fmt.Errorf("churn: enqueue: %s", replies[i].text)
		}
		request = nil
		for range batch {
			request = appendCommand(request, "FETCH", name, "60000")
		}
		if replies, err = w.conn.exchange(w.opt.Patience, request, batch); err != nil {
			return fmt.Errorf("churn: %w", err)
		}
		request = nil
		for _, v := range replies {
			if v.isError() || v.null {
				return fmt.Errorf("churn: a fetch of what was enqueued brought %q", v.text)
			}
			request = appendCommand(request, "ACK", v.fields()["lease_id"].text)
		}
		if replies, err = w.conn.exchange(w.opt.Patience, request, batch); err != nil {
			return fmt.Errorf("churn: %w", err)
		}
		if i := slices.IndexFunc(replies, value.isError); i >= 0 {
			return fmt.Errorf("churn: ack: %s", replies[i].text)
		}
		done += batch
	}
	return context.Cause(ctx)
}
