package client

import (
	"context"
	"errors"
)

func noLease(err error) bool { return errors.Is(err, ErrNoLease) }

// Ping asks whether the daemon is there and lets us in.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.Do(ctx, "PING")
	return err
}

// Stats are the counts of one queue. A queue nobody has used has zeros.
type Stats struct {
	Ready, Processing, Dead, ActiveLeases int64
}

// Stats counts the jobs of a queue.
func (c *Client) Stats(ctx context.Context, queue string) (Stats, error) {
	v, err := c.Do(ctx, "STATS", queue)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Ready:        v.Field("ready").Number(),
		Processing:   v.Field("processing").Number(),
		Dead:         v.Field("dead").Number(),
		ActiveLeases: v.Field("active_leases").Number(),
	}, nil
}

// Queues are the names of the queues that match a glob, sorted; an empty one
// matches all.
func (c *Client) Queues(ctx context.Context, glob string) ([]string, error) {
	args := []string{"QUEUE", "LIST"}
	if glob != "" {
		args = append(args, "MATCH", glob)
	}
	v, err := c.Do(ctx, args...)
	if err != nil {
		return nil, err
	}
	return v.Strings(), nil
}

// QueueInfo is all that is known of a queue, as an array of names and values;
// see Value.Field.
func (c *Client) QueueInfo(ctx context.Context, queue string) (Value, error) {
	return c.Do(ctx, "QUEUE", "INFO", queue)
}

// QueueInfos is QueueInfo of many queues in one round trip. A queue that has
// gone meanwhile has a Null or a Failure in its place.
func (c *Client) QueueInfos(ctx context.Context, queues []string) ([]Value, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	var request []byte
	for _, q := range queues {
		request = appendCommand(request, "QUEUE", "INFO", q)
	}
	return c.exchange(ctx, 0, request, len(queues))
}

// Job is all that is known of a job, as names and values; Null when there is no
// such job.
func (c *Client) Job(ctx context.Context, id string) (Value, error) {
	return c.Do(ctx, "JOB", "GET", id)
}
