package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// Pawl is a Pawl daemon over RESP.
type Pawl struct {
	Addr     string
	User     string // empty is default
	Password string // empty does not log in
	// Queues, above 1, are what the jobs of a run are spread over; one more job
	// waits in each.
	Queues int
}

// Name implements Target.
func (Pawl) Name() string { return "pawl" }

// Prepare implements Target; queues are made by their first job.
func (p Pawl) Prepare(ctx context.Context, queue string) error {
	if p.Queues < 2 {
		return nil
	}
	c, err := p.Dial(ctx, queue)
	if err != nil {
		return err
	}
	defer c.Close()
	for left := p.Queues; left > 0; {
		n := min(left, 256)
		for range n {
			c.Add([]byte("x"))
		}
		if err := c.Flush(); err != nil {
			return err
		}
		for range n {
			if err := c.ReadAdd(); err != nil {
				return err
			}
		}
		left -= n
	}
	return nil
}

// benchLease is the lease of a fetched job: longer than any run holds one.
const benchLease = 60 * time.Second

// Dial implements Target.
func (p Pawl) Dial(ctx context.Context, queue string) (Conn, error) {
	w, err := dial(ctx, p.Addr)
	if err != nil {
		return nil, err
	}
	if p.Password != "" {
		user := p.User
		if user == "" {
			user = "default"
		}
		w.command([]byte("AUTH"), []byte(user), []byte(p.Password))
		err := w.Flush()
		if err == nil {
			err = w.skip()
		}
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("log in: %w", err)
		}
	}
	from := rand.IntN(max(p.Queues, 1))
	return &pawlConn{
		wire: w, queues: p.Queues, added: from, fetched: from, enqueue: []byte("ENQUEUE"), fetch: []byte("FETCH"), ack: []byte("ACK"),
		queue: []byte(queue), lease: []byte(strconv.FormatInt(benchLease.Milliseconds(), 10)),
	}, nil
}

type pawlConn struct {
	*wire
	enqueue, fetch, ack, queue, lease []byte
	handle                            [64]byte

	// With several queues, the numbers of those that are next to add to and to
	// fetch from: each connection goes round in both, from a place of its own.
	queues, added, fetched int
	name                   []byte
}

// next is the queue of a number, which it counts on.
func (c *pawlConn) next(number *int) []byte {
	if c.queues < 2 {
		return c.queue
	}
	c.name = strconv.AppendInt(append(append(c.name[:0], c.queue...), '-'), int64(*number), 10)
	*number = (*number + 1) % c.queues
	return c.name
}

func (c *pawlConn) Add(payload []byte) { c.command(c.enqueue, c.next(&c.added), payload) }
func (c *pawlConn) Fetch()             { c.command(c.fetch, c.next(&c.fetched), c.lease) }
func (c *pawlConn) Ack(handle []byte)  { c.command(c.ack, handle) }
func (c *pawlConn) ReadAdd() error     { return c.skip() }
func (c *pawlConn) ReadAck() error     { return c.skip() }

func (c *pawlConn) ReadFetch() (handle []byte, found bool, err error) {
	kind, n, err := c.head()
	if err != nil {
		return nil, false, err
	}
	if kind == '_' || n < 0 {
		return nil, false, nil
	}
	if kind != '*' || n < 4 {
		return nil, false, fmt.Errorf("unexpected reply to FETCH: %c%d", kind, n)
	}
	for i := range n {
		_, size, err := c.head()
		if err != nil {
			return nil, false, err
		}
		b, err := c.bulk(size)
		if err != nil {
			return nil, false, err
		}
		if i == 1 { // behind "lease_id"
			handle = c.handle[:copy(c.handle[:], b)]
		}
	}
	return handle, true, nil
}
