package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// Handler does one job. nil finishes the job. Retry and Discard say more than a
// plain error, which is a failed try: the daemon runs the job again after its
// backoff, or keeps it as dead when its tries are used up.
//
// The context ends when the lease is lost (its cause is ErrNoLease: somebody
// else may have the job) or when the worker has to stop. A job may come more
// than once; a handler has to be able to take that.
type Handler func(ctx context.Context, job *Delivery) error

// Middleware puts something around a Handler: metrics, tracing, a time limit.
type Middleware func(Handler) Handler

// Retry makes a failed try whose next one comes after delay, whatever the job's
// backoff says.
func Retry(delay time.Duration, err error) error { return &verdict{err, max(delay, 0), false} }

// Discard sends the job to the dead letters: no further try will help.
func Discard(err error) error { return &verdict{err, 0, true} }

type verdict struct {
	err   error
	delay time.Duration
	bury  bool
}

func (v *verdict) Error() string {
	if v.err == nil {
		return "no reason given"
	}
	return v.err.Error()
}
func (v *verdict) Unwrap() error { return v.err }

// Worker takes jobs from queues and runs a handler on them, until its context
// ends. Fill the fields, then call Run.
type Worker struct {
	Client  *Client
	Queues  []string // in order of preference
	Handler Handler

	// Concurrency is how many jobs run at the same time; 0 is 1. Each has a
	// connection of its own.
	Concurrency int
	// Lease is how long a job is held before it is extended again; 0 is 30 s.
	// It is extended every third of that for as long as the handler runs. A
	// worker that dies gives its jobs back after this time.
	Lease time.Duration
	// Grace is how long handlers may go on after the context has ended; then
	// their context ends, and jobs they have not finished are given back
	// untouched. 0 is 30 s.
	Grace time.Duration
	// Middleware, the first is the outermost.
	Middleware []Middleware
	// Log gets one line for each failed job and lost connection; nil is
	// slog.Default.
	Log *slog.Logger
}

// pollFor is how long one FETCH waits at the daemon. The number trades idle
// traffic against nothing: a new job ends the wait at once.
const pollFor = 20 * time.Second

// Run works until ctx ends, then lets running handlers finish and returns nil.
// It returns early only where going on makes no sense: no queue or handler is
// named, or the daemon refuses the login or the queue for this user. A daemon
// that is away, loading or full is waited for.
func (w *Worker) Run(ctx context.Context) error {
	if w.Client == nil || w.Handler == nil || len(w.Queues) == 0 {
		return errors.New("worker: Client, Queues and Handler are needed")
	}
	run := &workerRun{
		client: w.Client,
		fetch:  FetchOptions{Queues: w.Queues, Lease: w.Lease, Wait: pollFor},
		grace:  w.Grace,
		log:    w.Log,
	}
	if run.grace == 0 {
		run.grace = 30 * time.Second
	}
	if run.log == nil {
		run.log = slog.Default()
	}
	run.handler = w.Handler
	for i := len(w.Middleware) - 1; i >= 0; i-- {
		run.handler = w.Middleware[i](run.handler)
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Handlers outlive ctx by the time of grace.
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	done := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-done:
			return
		}
		select {
		case <-time.After(run.grace):
			stopWork()
		case <-done:
		}
	}()
	var wg sync.WaitGroup
	var fatal error
	var once sync.Once
	for range max(w.Concurrency, 1) {
		wg.Go(func() {
			if err := run.loop(ctx, work); err != nil {
				once.Do(func() { fatal = err })
				cancel(err)
			}
		})
	}
	wg.Wait()
	close(done)
	return fatal
}

// workerRun is what the loops of one Run share; nothing in it changes.
type workerRun struct {
	client  *Client
	handler Handler
	fetch   FetchOptions
	grace   time.Duration
	log     *slog.Logger
}

// loop fetches and works, one job at a time. A job that succeeded is finished in
// the same round trip that fetches the next.
func (r *workerRun) loop(ctx, work context.Context) error {
	var finished *Delivery // succeeded, not acknowledged yet
	pause := backoff{}
	for {
		if ctx.Err() != nil {
			if finished != nil {
				r.ack(work, finished)
			}
			return nil
		}
		jobs, err := r.next(ctx, work, &finished)
		if err != nil {
			if ctx.Err() != nil {
				continue
			}
			if permanent(err) {
				return fmt.Errorf("worker: %w", err)
			}
			r.log.Warn("cannot fetch jobs, trying again", "queues", r.fetch.Queues, "error", err)
			pause.sleep(ctx)
			continue
		}
		pause.reset()
		for i := range jobs {
			if r.work(work, &jobs[i]) {
				finished = &jobs[i]
			}
		}
	}
}

// next fetches, and acknowledges what is finished on the way.
func (r *workerRun) next(ctx, work context.Context, finished **Delivery) ([]Delivery, error) {
	job := *finished
	if job == nil {
		return r.client.Fetch(ctx, r.fetch)
	}
	*finished = nil
	// The wait of the FETCH would hold back the news that the ACK has failed,
	// and a stop would leave its outcome open. So first without waiting.
	quick := r.fetch
	quick.Wait = 0
	jobs, acked, err := r.client.AckAndFetch(work, job.Lease, quick)
	switch {
	case acked != nil && acked == err:
		// The exchange broke: the job may be finished, or not.
		r.settle(work, job, "ack", errors.Is(err, ErrUnknown), func(ctx context.Context) error { return r.client.Ack(ctx, job.Lease) })
		return nil, err
	case noLease(acked):
		r.log.Warn("the lease had ended before the job was acknowledged, it will run again", "job", job.ID, "queue", job.Queue)
	case acked != nil:
		r.ack(work, job)
	}
	if err == nil && len(jobs) == 0 && ctx.Err() == nil {
		return r.client.Fetch(ctx, r.fetch)
	}
	return jobs, err
}

// ack acknowledges until the daemon has answered.
func (r *workerRun) ack(ctx context.Context, job *Delivery) {
	r.settle(ctx, job, "ack", false, func(ctx context.Context) error { return r.client.Ack(ctx, job.Lease) })
}

// settleTime is how long the last word about a job is tried to be said. After
// that the lease ends by itself.
const settleTime = 10 * time.Second

// settle repeats call until the daemon has answered it, for settleTime at most.
// Repeating is safe: all it is used for answers ErrNoLease the second time. again
// says that there was a first time whose outcome is open.
func (r *workerRun) settle(ctx context.Context, job *Delivery, what string, again bool, call func(context.Context) error) {
	// The last word about a job is sent even when the worker has to stop now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	pause := backoff{}
	for {
		err := call(ctx)
		var refused *Error
		switch {
		case err == nil, again && noLease(err):
			return
		case noLease(err), errors.As(err, &refused) && !refused.Temporary() && !errors.Is(err, ErrUnknown):
			r.log.Warn("could not settle a job, it will run again", "what", what, "job", job.ID, "queue", job.Queue, "error", err)
			return
		}
		again = again || errors.Is(err, ErrUnknown)
		pause.sleep(ctx)
		if ctx.Err() != nil {
			r.log.Warn("could not settle a job in time, it will run again", "what", what, "job", job.ID, "queue", job.Queue, "error", err)
			return
		}
	}
}

// work runs the handler on one job under an extended lease. True: it succeeded
// and has to be acknowledged. Everything else is settled.
func (r *workerRun) work(work context.Context, job *Delivery) bool {
	ctx, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	extender := make(chan struct{})
	go func() {
		defer close(extender)
		r.extend(ctx, cancel, job)
	}()
	err := r.call(ctx, job)
	lost := noLease(context.Cause(ctx))
	cancel(nil)
	<-extender // so that no EXTEND comes after the job is settled
	if err == nil {
		return true // also with a lost lease: ACK says so, and logs it
	}
	if lost {
		r.log.Warn("a job failed after its lease was lost", "job", job.ID, "queue", job.Queue, "error", err)
		return false
	}
	var v *verdict
	switch errors.As(err, &v); {
	case v != nil && v.bury:
		r.log.Warn("a job was discarded", "job", job.ID, "queue", job.Queue, "attempt", job.Attempt, "error", err)
		r.settle(work, job, "bury", false, func(ctx context.Context) error { return r.client.Bury(ctx, job.Lease, err.Error()) })
	case work.Err() != nil && v == nil:
		// We broke it off: no fault of the job.
		r.settle(work, job, "release", false, func(ctx context.Context) error { return r.client.Release(ctx, job.Lease) })
	default:
		delay := time.Duration(-1)
		if v != nil {
			delay = v.delay
		}
		r.log.Warn("a job failed", "job", job.ID, "queue", job.Queue, "attempt", job.Attempt, "error", err)
		r.settle(work, job, "nack", false, func(ctx context.Context) error { return r.client.Nack(ctx, job.Lease, delay, err.Error()) })
	}
	return false
}

// call runs the handler and makes a panic a failed try.
func (r *workerRun) call(ctx context.Context, job *Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("a handler panicked", "job", job.ID, "queue", job.Queue, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.handler(ctx, job)
}

// extend keeps the lease until ctx ends, or ends it with ErrNoLease when the
// lease is lost.
func (r *workerRun) extend(ctx context.Context, cancel context.CancelCauseFunc, job *Delivery) {
	lease := r.fetch.lease()
	every := max(lease/3, time.Millisecond)
	heldUntil := time.Now().Add(lease) // by our clock, which ran on since the delivery
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := time.Now()
		call, stop := context.WithDeadline(ctx, heldUntil)
		_, err := r.client.Extend(call, job.Lease, lease)
		stop()
		switch {
		case err == nil:
			heldUntil = asked.Add(lease)
		case ctx.Err() != nil:
			return
		case noLease(err), !time.Now().Before(heldUntil):
			cancel(ErrNoLease)
			return
		}
		// Any other failure: there is time for another try.
	}
}

// permanent says whether a failed FETCH will fail for ever.
func permanent(err error) bool {
	var refused *Error
	if !errors.As(err, &refused) || refused.Temporary() {
		return false
	}
	switch refused.Word {
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return true
	}
	return false
}

// backoff is a growing pause, 100 ms to 5 s, of which a random half is left out
// so that many workers do not come back at the same moment.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) sleep(ctx context.Context) {
	b.next = min(max(2*b.next, 100*time.Millisecond), 5*time.Second)
	wait := b.next/2 + rand.N(b.next/2+1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
