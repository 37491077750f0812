package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Unlimited as Job.Tries lets a job fail for ever, also in a queue whose default
// says otherwise.
const Unlimited = -1

// Job is what Enqueue takes. Only Queue is needed; zero values leave it to the
// queue's settings, and these are no limit if nobody has set them. Times are cut
// to milliseconds.
type Job struct {
	Queue   string
	Payload []byte // at most 1 MiB if the daemon has its defaults

	Delay    time.Duration // until it can be delivered
	At       time.Time     // instead of Delay: wall time on the daemon's machine
	TTL      time.Duration // until it goes if nobody has finished it
	Priority int           // -128 to 127, larger first
	Tries    int           // failures until it is dead, or Unlimited

	Backoff    time.Duration // after the first failure, doubled by each further one
	MaxBackoff time.Duration // at most this; 0 is one hour

	// Unique, while a live job with the same key exists in the queue, and for
	// UniqueFor (0 is one minute) from its enqueue, adds nothing and answers
	// that job's ID. It makes repeating an Enqueue safe.
	Unique    string
	UniqueFor time.Duration

	Group string            // jobs of one group run one after the other
	Attrs map[string]string // at most 16, 255 bytes a part
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// args are the words of the ENQUEUE command.
func (j *Job) args() []string {
	return append([]string{"ENQUEUE", j.Queue, string(j.Payload)}, j.Options()...)
}

// Options are the job's options as the words that ENQUEUE and CRON SET take
// behind queue and payload.
func (j *Job) Options() (args []string) {
	add := func(words ...string) { args = append(args, words...) }
	switch {
	case !j.At.IsZero():
		add("AT", strconv.FormatInt(j.At.UnixMilli(), 10))
	case j.Delay > 0:
		add("DELAY", millis(j.Delay))
	}
	if j.TTL > 0 {
		add("TTL", millis(j.TTL))
	}
	if j.Priority != 0 {
		add("PRIORITY", strconv.Itoa(j.Priority))
	}
	if j.Tries != 0 {
		add("TRIES", strconv.Itoa(max(j.Tries, 0)))
	}
	if j.Backoff > 0 {
		add("BACKOFF", millis(j.Backoff))
		if j.MaxBackoff > 0 {
			add("MAX", millis(j.MaxBackoff))
		}
	}
	if j.Unique != "" {
		add("UNIQUE", j.Unique)
		if j.UniqueFor > 0 {
			add("FOR", millis(j.UniqueFor))
		}
	}
	if j.Group != "" {
		add("GROUP", j.Group)
	}
	for _, name := range slices.Sorted(maps.Keys(j.Attrs)) {
		add("ATTR", name, j.Attrs[name])
	}
	return args
}

// Enqueued is the answer to an Enqueue.
type Enqueued struct {
	ID string
	// Duplicate: a live job with the same Unique key exists, ID is that job's.
	Duplicate bool
	// Err is why this job of an EnqueueAll was refused.
	Err error
}

func parseEnqueued(v Value) (e Enqueued) {
	if e.Err = v.Err(); e.Err != nil {
		return e
	}
	e.ID = v.Field("task_id").Text
	e.Duplicate = v.Field("duplicate").Number() != 0
	if e.ID == "" {
		e.Err = fmt.Errorf("%w to ENQUEUE", ErrProtocol)
	}
	return e
}

// Enqueue adds one job. When it returns nil the job is on disk.
func (c *Client) Enqueue(ctx context.Context, job Job) (Enqueued, error) {
	v, err := c.one(ctx, 0, appendCommand(nil, job.args()...))
	if err != nil {
		return Enqueued{}, err
	}
	e := parseEnqueued(v)
	return e, e.Err
}

// EnqueueAll adds many jobs in one round trip. Each is taken or refused by
// itself: see Enqueued.Err. The error is for the exchange as a whole.
func (c *Client) EnqueueAll(ctx context.Context, jobs []Job) ([]Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	var request []byte
	for i := range jobs {
		request = appendCommand(request, jobs[i].args()...)
	}
	replies, err := c.exchange(ctx, 0, request, len(jobs))
	if err != nil {
		return nil, err
	}
	results := make([]Enqueued, len(jobs))
	for i, v := range replies {
		results[i] = parseEnqueued(v)
	}
	return results, nil
}
