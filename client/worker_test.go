package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawl/acl"
	"pawl/client"
	"pawl/server/resp"
)

// awaited is how long anything may take that has to happen.
const awaited = 30 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// running is a Worker that runs.
type running struct {
	stop context.CancelFunc
	done chan error
}

func run(t *testing.T, w *client.Worker) *running {
	t.Helper()
	if w.Log == nil {
		w.Log = quiet
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel, make(chan error, 1)}
	go func() { r.done <- w.Run(ctx) }()
	t.Cleanup(cancel)
	return r
}

// end stops the worker and wants no error.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := wait(t, r.done, "the worker to end"); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func wait[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(awaited):
		t.Fatalf("waited %v for %s", awaited, what)
		panic("not reached")
	}
}

// until asks again and again.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > awaited {
			t.Fatalf("waited %v for %s", awaited, what)
		}
	}
}

func enqueue(t *testing.T, c *client.Client, job client.Job) string {
	t.Helper()
	got, err := c.Enqueue(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return got.ID
}

func job(t *testing.T, c *client.Client, id string) client.Value {
	t.Helper()
	v, err := c.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWorkerDoesEveryJobOnce(t *testing.T) {
	c := startDaemon(t).client(t)
	const n = 200
	jobs := make([]client.Job, n)
	for i := range jobs {
		jobs[i] = client.Job{Queue: []string{"a", "b"}[i%2], Payload: fmt.Append(nil, i)}
	}
	if _, err := c.EnqueueAll(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	all := make(chan struct{})
	w := run(t, &client.Worker{Client: c, Queues: []string{"a", "b"}, Concurrency: 4, Handler: func(_ context.Context, job *client.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		seen[string(job.Payload)]++
		if len(seen) == n {
			close(all)
		}
		return nil
	}})
	wait(t, all, "all jobs")
	w.end(t) // acknowledges what was finished last
	for payload, times := range seen {
		if times != 1 {
			t.Errorf("job %s ran %d times", payload, times)
		}
	}
	for _, queue := range []string{"a", "b"} {
		info, err := c.QueueInfo(t.Context(), queue)
		if err != nil {
			t.Fatal(err)
		}
		if acked := info.Field("totals").Field("acked").Number(); acked != n/2 {
			t.Errorf("queue %s: %d acknowledged, want %d", queue, acked, n/2)
		}
	}
}

func TestWorkerVerdicts(t *testing.T) {
	c := startDaemon(t).client(t)
	verdicts := map[string]error{
		"fail":    errors.New("no luck"),
		"retry":   client.Retry(time.Hour, errors.New("come back later")),
		"discard": fmt.Errorf("wrapped: %w", client.Discard(errors.New("hopeless"))),
	}
	ids := map[string]string{}
	for _, payload := range []string{"fail", "retry", "discard", "panic"} {
		ids[payload] = enqueue(t, c, client.Job{Queue: "q", Payload: []byte(payload), Tries: 2, Backoff: 2 * time.Hour, MaxBackoff: 2 * time.Hour})
	}
	w := run(t, &client.Worker{Client: c, Queues: []string{"q"}, Handler: func(_ context.Context, job *client.Delivery) error {
		if string(job.Payload) == "panic" {
			panic("ouch")
		}
		return verdicts[string(job.Payload)]
	}})
	for payload, want := range map[string]struct{ state, reason string }{
		"fail":    {"delayed", "no luck"},
		"retry":   {"delayed", "come back later"},
		"discard": {"dead", "wrapped: hopeless"},
		"panic":   {"delayed", "panic: ouch"},
	} {
		until(t, payload+" to be settled", func() bool { return job(t, c, ids[payload]).Field("reason").Text != "" })
		v := job(t, c, ids[payload])
		if v.Field("state").Text != want.state || v.Field("reason").Text != want.reason {
			t.Errorf("%s: got %s because of %q, want %s because of %q", payload, v.Field("state").Text, v.Field("reason").Text, want.state, want.reason)
		}
	}
	// Retry's delay of one hour stands instead of the backoff, one to two hours.
	retry, fail := job(t, c, ids["retry"]).Field("due_at").Number(), job(t, c, ids["fail"]).Field("due_at").Number()
	if limit := time.Now().Add(time.Hour).UnixMilli(); retry > limit {
		t.Errorf("retry is due at %d, later than an hour from now (%d)", retry, limit)
	}
	if fail == 0 || retry == 0 {
		t.Errorf("due_at is missing: %d, %d", fail, retry)
	}
	w.end(t)
}

func TestWorkerExtendsLeases(t *testing.T) {
	c := startDaemon(t).client(t)
	id := enqueue(t, c, client.Job{Queue: "q"})
	extended := make(chan struct{}, 1)
	w := run(t, &client.Worker{Client: c, Queues: []string{"q"}, Lease: 3 * time.Second, Handler: func(ctx context.Context, d *client.Delivery) error {
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			v, err := c.Job(ctx, d.ID)
			if err == nil && v.Field("lease_id").Text == d.Lease && v.Field("deadline").Number() > d.Deadline.UnixMilli() {
				extended <- struct{}{}
				return nil
			}
		}
		return ctx.Err() // a machine too slow even for this: the job comes again
	}})
	wait(t, extended, "a later deadline of the same lease")
	until(t, "the job to be done", func() bool { return job(t, c, id).Kind == client.Null })
	w.end(t)
}

func TestWorkerHearsOfALostLease(t *testing.T) {
	c := startDaemon(t).client(t)
	id := enqueue(t, c, client.Job{Queue: "q"})
	started, lost := make(chan struct{}), make(chan error, 1)
	w := run(t, &client.Worker{Client: c, Queues: []string{"q"}, Lease: 600 * time.Millisecond, Handler: func(ctx context.Context, _ *client.Delivery) error {
		close(started)
		<-ctx.Done()
		lost <- context.Cause(ctx)
		return ctx.Err()
	}})
	wait(t, started, "the handler to start")
	if _, err := c.Do(t.Context(), "JOB", "DELETE", id); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, lost, "the handler's context to end"); !errors.Is(err, client.ErrNoLease) {
		t.Errorf("the context's cause is %v, want ErrNoLease", err)
	}
	w.end(t)
}

func TestWorkerLetsHandlersFinish(t *testing.T) {
	c := startDaemon(t).client(t)
	id := enqueue(t, c, client.Job{Queue: "q"})
	second := enqueue(t, c, client.Job{Queue: "q"})
	started, proceed := make(chan struct{}), make(chan struct{})
	w := run(t, &client.Worker{Client: c, Queues: []string{"q"}, Handler: func(ctx context.Context, _ *client.Delivery) error {
		close(started) // a second job would panic here
		<-proceed
		return ctx.Err()
	}})
	wait(t, started, "the handler to start")
	w.stop()
	close(proceed)
	w.end(t)
	if v := job(t, c, id); v.Kind != client.Null {
		t.Errorf("the job that was running when the worker stopped is %s, want it done", v.Field("state").Text)
	}
	if state := job(t, c, second).Field("state").Text; state != "ready" {
		t.Errorf("the next job is %s, want ready", state)
	}
}

func TestWorkerGivesBackWhatItBreaksOff(t *testing.T) {
	c := startDaemon(t).client(t)
	id := enqueue(t, c, client.Job{Queue: "q", Tries: 1})
	started := make(chan struct{})
	w := run(t, &client.Worker{Client: c, Queues: []string{"q"}, Grace: 10 * time.Millisecond, Handler: func(ctx context.Context, _ *client.Delivery) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}})
	wait(t, started, "the handler to start")
	w.end(t)
	v := job(t, c, id)
	if v.Field("state").Text != "ready" || v.Field("failures").Number() != 0 {
		t.Errorf("got %s with %d failures, want ready with none", v.Field("state").Text, v.Field("failures").Number())
	}
}

func TestWorkerOutlivesARestart(t *testing.T) {
	d := startDaemon(t)
	c := d.client(t)
	handled := make(chan string, 10)
	w := run(t, &client.Worker{Client: c, Queues: []string{"q"}, Handler: func(_ context.Context, job *client.Delivery) error {
		handled <- string(job.Payload)
		return nil
	}})
	enqueue(t, c, client.Job{Queue: "q", Payload: []byte("before")})
	if got := wait(t, handled, "the first job"); got != "before" {
		t.Errorf("got %q", got)
	}
	d.stop()
	d.start(t, resp.Options{})
	enqueue(t, c, client.Job{Queue: "q", Payload: []byte("after")})
	for got := ""; got != "after"; { // before may come again if its ack was cut off
		got = wait(t, handled, "the job after the restart")
	}
	w.end(t)
}

func TestWorkerEndsWhereItMayNotWork(t *testing.T) {
	d := startDaemon(t)
	d.stop()
	user, err := acl.Parse("producer", "on", ">secret", "~*", "+@produce")
	if err != nil {
		t.Fatal(err)
	}
	d.start(t, resp.Options{Users: []acl.User{user}})
	never := func(context.Context, *client.Delivery) error { t.Error("a job came"); return nil }
	for _, test := range []struct {
		name, want string
		o          client.Options
	}{
		{"no login", "NOAUTH", client.Options{}},
		{"wrong password", "WRONGPASS", client.Options{User: "producer", Password: "x"}},
		{"no right", "NOPERM", client.Options{User: "producer", Password: "secret"}},
	} {
		test.o.Addr = d.sock
		c := client.New(test.o)
		err := wait(t, run(t, &client.Worker{Client: c, Queues: []string{"q"}, Handler: never, Concurrency: 2}).done, test.name)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
		c.Close()
	}
}

func TestWorkerNeedsItsFields(t *testing.T) {
	if err := new(client.Worker).Run(t.Context()); err == nil {
		t.Error("a worker without anything runs")
	}
}

func TestMiddlewareOrder(t *testing.T) {
	c := startDaemon(t).client(t)
	enqueue(t, c, client.Job{Queue: "q"})
	var said []string
	done := make(chan struct{})
	say := func(word string) client.Middleware {
		return func(next client.Handler) client.Handler {
			return func(ctx context.Context, job *client.Delivery) error {
				said = append(said, word)
				return next(ctx, job)
			}
		}
	}
	w := run(t, &client.Worker{Client: c, Queues: []string{"q"}, Middleware: []client.Middleware{say("outer"), say("inner")},
		Handler: func(context.Context, *client.Delivery) error { close(done); return nil }})
	wait(t, done, "the job")
	w.end(t)
	if got := strings.Join(said, " "); got != "outer inner" {
		t.Errorf("got %q, want outer inner", got)
	}
}

// The connection breaks between an ACK and its reply. The worker asks again,
// and ErrNoLease then means that the first ACK had worked.
func TestWorkerRepeatsAnOpenAck(t *testing.T) {
	var acks, fetches atomic.Int64
	repeated := make(chan struct{})
	f := newFake(t, func(args []string) (string, bool) {
		switch args[0] {
		case "FETCH":
			if fetches.Add(1) == 1 {
				return "*1\r\n*4\r\n$8\r\nlease_id\r\n$1\r\nL\r\n$7\r\ntask_id\r\n$1\r\nJ\r\n", true
			}
			return "*0\r\n", true
		case "ACK":
			switch acks.Add(1) {
			case 1:
				return "", false
			case 2:
				close(repeated)
			}
			return "-ERR lease does not exist\r\n", true
		}
		return "-ERR unexpected " + args[0] + "\r\n", true
	})
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	w := run(t, &client.Worker{Client: f.client(t), Queues: []string{"q"}, Log: log, Handler: func(context.Context, *client.Delivery) error { return nil }})
	wait(t, repeated, "the second ACK")
	w.end(t)
	if strings.Contains(lines.String(), "will run again") {
		t.Errorf("the worker says that the job runs again:\n%s", lines.String())
	}
}
