package client

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// FetchOptions say what to fetch.
type FetchOptions struct {
	// Queues in order of preference: the first that has a job gives it.
	Queues []string
	// Lease is how long the job is yours; 0 is 30 s. Not acknowledged or
	// extended until then, it goes to somebody else.
	Lease time.Duration
	// Wait is how long to wait for a job; 0 does not wait.
	Wait time.Duration
	// Count is the largest number of jobs to take; 0 is 1.
	Count int
}

// DefaultLease is FetchOptions.Lease when it is 0.
const DefaultLease = 30 * time.Second

func (o *FetchOptions) lease() time.Duration {
	if o.Lease == 0 {
		return DefaultLease
	}
	return o.Lease
}

func (o *FetchOptions) args() ([]string, error) {
	if len(o.Queues) == 0 {
		return nil, fmt.Errorf("fetch: no queue named")
	}
	args := []string{"FETCH", o.Queues[0], millis(o.lease()), "COUNT", strconv.Itoa(max(o.Count, 1)), "META"}
	if o.Wait > 0 {
		args = append(args, "WAIT", millis(o.Wait))
	}
	if len(o.Queues) > 1 {
		args = append(append(args, "OR"), o.Queues[1:]...)
	}
	return args, nil
}

// Delivery is a job that is yours until Deadline.
type Delivery struct {
	Lease   string // for Ack and the like; new for every delivery
	ID      string // of the job
	Queue   string
	Payload []byte
	Attrs   map[string]string // nil when there are none

	Attempt  int // from 1; every delivery counts
	Failures int // how often it failed before
	Tries    int // failures until it is dead; 0 is no limit
	Priority int

	EnqueuedAt time.Time // by the daemon's clock
	Deadline   time.Time // by the daemon's clock
}

func parseDelivery(v Value) (Delivery, error) {
	d := Delivery{
		Lease:      v.Field("lease_id").Text,
		ID:         v.Field("task_id").Text,
		Queue:      v.Field("queue").Text,
		Payload:    []byte(v.Field("payload").Text),
		Attempt:    int(v.Field("attempt").Number()),
		Failures:   int(v.Field("failures").Number()),
		Tries:      int(v.Field("tries").Number()),
		Priority:   int(v.Field("priority").Number()),
		EnqueuedAt: time.UnixMilli(v.Field("enqueued_at").Number()),
		Deadline:   time.UnixMilli(v.Field("deadline").Number()),
	}
	d.Attrs = parseAttrs(v.Field("attrs"))
	if d.Lease == "" || d.ID == "" {
		return d, fmt.Errorf("%w to FETCH", ErrProtocol)
	}
	return d, nil
}

func parseAttrs(v Value) (attrs map[string]string) {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if attrs == nil {
			attrs = make(map[string]string, len(v.Elems)/2)
		}
		attrs[v.Elems[i].Text] = v.Elems[i+1].Text
	}
	return attrs
}

func parseDeliveries(v Value) ([]Delivery, error) {
	if err := v.Err(); err != nil {
		return nil, err
	}
	jobs := make([]Delivery, 0, len(v.Elems))
	for _, e := range v.Elems {
		d, err := parseDelivery(e)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, d)
	}
	return jobs, nil
}

// Fetch takes leases on jobs, none if there are none in time. A context that
// ends while it waits takes no job along.
func (c *Client) Fetch(ctx context.Context, o FetchOptions) ([]Delivery, error) {
	args, err := o.args()
	if err != nil {
		return nil, err
	}
	v, err := c.one(ctx, o.Wait, appendCommand(nil, args...))
	if err != nil {
		return nil, err
	}
	return parseDeliveries(v)
}

// AckAndFetch finishes one job and fetches the next in one round trip, the
// fastest way to work. acked is the outcome for the first (see Ack); when err is
// ErrUnknown both outcomes are open.
func (c *Client) AckAndFetch(ctx context.Context, lease string, o FetchOptions) (jobs []Delivery, acked, err error) {
	args, err := o.args()
	if err != nil {
		return nil, nil, err
	}
	request := appendCommand(appendCommand(nil, "ACK", lease), args...)
	replies, err := c.exchange(ctx, o.Wait, request, 2)
	if err != nil {
		return nil, err, err
	}
	jobs, err = parseDeliveries(replies[1])
	return jobs, replies[0].Err(), err
}

// Ack finishes a job. ErrNoLease: it is done already, or the lease has ended
// and the job is somebody else's.
func (c *Client) Ack(ctx context.Context, lease string) error {
	_, err := c.Do(ctx, "ACK", lease)
	return err
}

// AckAll finishes many jobs in one log entry and says which leases held.
func (c *Client) AckAll(ctx context.Context, leases []string) ([]bool, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	v, err := c.Do(ctx, append([]string{"ACK"}, leases...)...)
	if len(leases) == 1 {
		// The daemon answers a single one as OK or as an error.
		if noLease(err) {
			return []bool{false}, nil
		}
		return []bool{err == nil}, err
	}
	if err != nil {
		return nil, err
	}
	done := make([]bool, len(v.Elems))
	for i, e := range v.Elems {
		done[i] = e.Number() == 1
	}
	return done, nil
}

// Nack gives a job back as failed. A negative delay leaves it to the job's
// backoff. The reason is kept with the job, cut to 255 bytes.
func (c *Client) Nack(ctx context.Context, lease string, delay time.Duration, reason string) error {
	args := []string{"NACK", lease}
	if delay >= 0 {
		args = append(args, "DELAY", millis(delay))
	}
	return c.reasoned(ctx, args, reason)
}

// Bury sends a job straight to the dead letters.
func (c *Client) Bury(ctx context.Context, lease, reason string) error {
	return c.reasoned(ctx, []string{"BURY", lease}, reason)
}

func (c *Client) reasoned(ctx context.Context, args []string, reason string) error {
	if reason != "" {
		args = append(args, "REASON", reason)
	}
	_, err := c.Do(ctx, args...)
	return err
}

// Release gives a job back untouched, to the head of its queue; no failure is
// counted.
func (c *Client) Release(ctx context.Context, lease string) error {
	_, err := c.Do(ctx, "RELEASE", lease)
	return err
}

// Extend moves a lease's deadline to d from now and returns it, by the daemon's
// clock.
func (c *Client) Extend(ctx context.Context, lease string, d time.Duration) (time.Time, error) {
	v, err := c.Do(ctx, "EXTEND", lease, millis(d))
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(v.Number()), nil
}
