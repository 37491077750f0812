package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Pawl is a Pawl daemon over RESP.
type Pawl struct {
	Addr     string
	User     string // empty is default
	Password string // empty does not log in
}

// Name implements Target.
func (Pawl) Name() string { return "pawl" }

// Prepare implements Target; queues are made by their first job.
func (Pawl) Prepare(context.Context, string) error { return nil }

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
	return &pawlConn{
		wire: w, enqueue: []byte("ENQUEUE"), fetch: []byte("FETCH"), ack: []byte("ACK"),
		queue: []byte(queue), lease: []byte(strconv.FormatInt(benchLease.Milliseconds(), 10)),
	}, nil
}

type pawlConn struct {
	*wire
	enqueue, fetch, ack, queue, lease []byte
	handle                            [64]byte
}

func (c *pawlConn) Add(payload []byte) { c.command(c.enqueue, c.queue, payload) }
func (c *pawlConn) Fetch()             { c.command(c.fetch, c.queue, c.lease) }
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
