package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Replies are what very many queues cost that live for one answer: a job comes,
// is fetched and finished, and nobody uses the queue again.
type Replies struct {
	Queues int   `json:"queues"`
	Right  int64 `json:"rss"` // resident bytes after the last answer
	// And after the rest: how long it was, in seconds, the resident bytes, and how
	// many queues were still there.
	Rest  float64 `json:"rest_seconds"`
	Later int64   `json:"rss_later"`
	Left  int     `json:"left"`
}

// replies has o.Replies queues come and go, each of them used by one connection.
func (o *FootprintOptions) replies(ctx context.Context, s *Server) (r Replies, err error) {
	r.Queues, r.Rest = o.Replies, o.Rest.Seconds()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i := range o.Conns {
		share := o.Replies / o.Conns
		if i < o.Replies%o.Conns {
			share++
		}
		wg.Go(func() {
			if err := answer(ctx, s.Target.(Pawl).Addr, fmt.Sprint("reply-", i), share); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	if r.Right, err = s.rss(); err != nil {
		return r, err
	}
	if !sleep(ctx, nil, o.Rest) {
		return r, context.Cause(ctx)
	}
	if r.Later, err = s.rss(); err != nil {
		return r, err
	}
	r.Left, err = countQueues(ctx, s.Target.(Pawl).Addr)
	return r, err
}

// answer has one connection pass a job through each of so many queues.
func answer(ctx context.Context, addr, name string, queues int) error {
	// One more than are used, so that no queue is used twice.
	c, err := Pawl{Addr: addr, Queues: queues + 1}.Dial(ctx, name)
	if err != nil {
		return err
	}
	defer c.Close()
	for left := queues; left > 0 && ctx.Err() == nil; {
		n := min(left, 64)
		for range n {
			c.Add([]byte("answer"))
			c.Fetch()
		}
		if err := c.Flush(); err != nil {
			return err
		}
		for range n {
			if err := c.ReadAdd(); err != nil {
				return err
			}
			handle, found, err := c.ReadFetch()
			if err != nil {
				return err
			}
			if !found {
				return errors.New("a reply queue was empty")
			}
			c.Ack(handle)
		}
		if err := c.Flush(); err != nil {
			return err
		}
		for range n {
			if err := c.ReadAck(); err != nil {
				return err
			}
		}
		left -= n
	}
	return ctx.Err()
}

// countQueues is how many queues a daemon has.
func countQueues(ctx context.Context, addr string) (int, error) {
	w, err := dial(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	w.command([]byte("QUEUE"), []byte("LIST"))
	if err := w.Flush(); err != nil {
		return 0, err
	}
	_, n, err := w.head()
	return max(n, 0), err
}
