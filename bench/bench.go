// Package bench loads a queue server over sockets and measures what it does:
// throughput, and latency percentiles from HDR histograms. It has drivers for
// Pawl (RESP and HTTP) and for what people would use instead, so that the same
// generator with the same workload measures all of them.
//
// The load is closed: every connection keeps Pipeline requests in flight and
// sends the next when these are answered. A latency is the time from the write
// that carried the request to the reply read. Fewer connections than processors
// wait for replies in read(2) itself, past Go's runtime.
package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Workload is what the connections do.
type Workload string

// The workloads. A worker is a cycle in which the ack of one job and the fetch
// of the next travel in one write.
const (
	Enqueue Workload = "enqueue" // add jobs
	Cycle   Workload = "cycle"   // add, fetch, ack; counted by finished jobs
	Worker  Workload = "worker"  // add; ack and fetch in one write; counted by finished jobs
	Mixed   Workload = "mixed"   // a random half adds, a random half fetches and acks; counted by requests
	Backlog Workload = "backlog" // fetch and ack until a deep queue is empty; counted by finished jobs
)

// Workloads in the order in which they are explained.
var Workloads = []Workload{Enqueue, Cycle, Worker, Mixed, Backlog}

// Options of one run.
type Options struct {
	Workload Workload
	Target   Target
	Conns    int           // connections; 0 is 16
	Pipeline int           // requests in flight on each; 0 is 1
	Payload  int           // bytes; 0 is 100
	Duration time.Duration // measured; 0 is 10 s; Backlog ends when the queue is empty
	Warmup   time.Duration // before it, not counted; below 0 is none, 0 is 1 s
	Jobs     int           // of Backlog: enqueued beforehand; 0 is 200,000
	Seed     uint64        // of the random choices and payloads
	// Every is how far apart the beginnings of a connection's rounds are at least;
	// one that is late does not hurry those behind it. 0 is as fast as they go.
	Every time.Duration
	// Live, when set, is called once a second with the requests done so far.
	Live func(elapsed time.Duration, done int64)
}

func (o Options) withDefaults() Options {
	if o.Conns == 0 {
		o.Conns = 16
	}
	if o.Pipeline == 0 {
		o.Pipeline = 1
	}
	if o.Payload == 0 {
		o.Payload = 100
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
	}
	if o.Warmup == 0 {
		o.Warmup = time.Second
	}
	if o.Jobs == 0 {
		o.Jobs = 200_000
	}
	return o
}

// Result of one run. Latencies are milliseconds.
type Result struct {
	Target    string             `json:"target"`
	Workload  Workload           `json:"workload"`
	Conns     int                `json:"conns"`
	Pipeline  int                `json:"pipeline"`
	Payload   int                `json:"payload_bytes"`
	Seconds   float64            `json:"seconds"`
	Done      int64              `json:"done"` // see Workload for what is counted
	PerSecond float64            `json:"per_second"`
	Empty     int64              `json:"empty_fetches"`
	Steps     map[string]Latency `json:"latency_ms"` // by request: enqueue, fetch, ack
}

// Latency of one kind of request, in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99.9"`
	P9999 float64 `json:"p99.99"`
	Max   float64 `json:"max"`
}

// ErrSetup is in the error of a run whose connections could not be made.
var ErrSetup = errors.New("could not set up the load")

// Run does one run. A connection that fails ends it with an error: a number
// with failures in it measures nothing.
func Run(ctx context.Context, o Options) (Result, error) {
	o = o.withDefaults()
	queue := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	if err := o.Target.Prepare(ctx, queue); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrSetup, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Options: o, queue: queue}
	r.loaders = make([]*loader, o.Conns)
	for i := range r.loaders {
		c, err := o.Target.Dial(ctx, queue)
		if t, ok := c.(interface{ ownThread() error }); ok && o.Conns < runtime.GOMAXPROCS(0) {
			// There are processors for all of them to wait on, so that what is measured
			// is the server, and as little as can be of the generator.
			if err = t.ownThread(); err != nil {
				c.Close()
			}
		}
		if err != nil {
			for _, l := range r.loaders[:i] {
				l.conn.Close()
			}
			return Result{}, fmt.Errorf("%w: %w", ErrSetup, err)
		}
		r.loaders[i] = newLoader(r, i, c)
	}
	// A run that is broken off must not hang in a read.
	stop := context.AfterFunc(ctx, func() {
		for _, l := range r.loaders {
			l.conn.Close()
		}
	})
	defer stop()
	defer func() {
		for _, l := range r.loaders {
			l.conn.Close()
		}
	}()
	if o.Workload == Backlog {
		if err := r.each(ctx, cancel, (*loader).fill); err != nil {
			return Result{}, err
		}
	}
	if o.Workload == Backlog || o.Warmup < 0 {
		r.phase.Store(measuring)
	}
	done := make(chan struct{})
	var clock sync.WaitGroup
	var begun, ended time.Time
	clock.Go(func() { begun, ended = r.clock(ctx, done) })
	err := r.each(ctx, cancel, (*loader).work)
	last := time.Now()
	close(done)
	clock.Wait()
	if err != nil {
		return Result{}, err
	}
	if ended.IsZero() {
		ended = last
	}
	return r.result(ended.Sub(begun)), nil
}

// run is the state of one Run.
type run struct {
	Options
	queue   string
	loaders []*loader

	phase atomic.Int32
}

// The phases of a run. One store ends the counting and the work, so that at most
// one round of each connection is done and not counted.
const (
	warming   = iota // nothing counts yet
	measuring        // what is done now counts
	stopping         // finish the round and return
)

// each runs f on all loaders at once and returns the first error.
func (r *run) each(ctx context.Context, cancel context.CancelCauseFunc, f func(*loader) error) error {
	var wg sync.WaitGroup
	for _, l := range r.loaders {
		wg.Go(func() {
			if err := f(l); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// clock lets the warm-up and the measured time go by, and says when the latter
// began and ended; ended is zero when the loaders were done first.
func (r *run) clock(ctx context.Context, done <-chan struct{}) (begun, ended time.Time) {
	if r.phase.Load() == warming {
		if !sleep(ctx, done, r.Warmup) {
			return time.Now(), time.Time{}
		}
		r.phase.Store(measuring)
	}
	begun = time.Now()
	for r.Workload == Backlog || time.Since(begun) < r.Duration {
		step := time.Second
		if r.Workload != Backlog {
			step = min(step, r.Duration-time.Since(begun))
		}
		if !sleep(ctx, done, step) {
			return begun, time.Time{}
		}
		if r.Live != nil {
			r.Live(time.Since(begun), r.done())
		}
	}
	r.phase.Store(stopping)
	return begun, time.Now()
}

// sleep says whether the whole time went by.
func sleep(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-done:
	}
	return false
}

func (r *run) done() (n int64) {
	for _, l := range r.loaders {
		n += l.done.Load()
	}
	return n
}

func (r *run) result(took time.Duration) Result {
	res := Result{
		Target: r.Target.Name(), Workload: r.Workload, Conns: r.Conns, Pipeline: r.Pipeline, Payload: r.Payload,
		Seconds: took.Seconds(), Done: r.done(), Steps: map[string]Latency{},
	}
	res.PerSecond = float64(res.Done) / res.Seconds
	merged := map[string]*hdrhistogram.Histogram{}
	for _, l := range r.loaders {
		res.Empty += l.empty
		for step, h := range l.steps {
			if merged[stepNames[step]] == nil {
				merged[stepNames[step]] = newHistogram()
			}
			merged[stepNames[step]].Merge(h)
		}
	}
	for name, h := range merged {
		if h.TotalCount() > 0 {
			res.Steps[name] = latency(h)
		}
	}
	return res
}

// newHistogram covers 1 µs to a minute at three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 60e6, 3) }

func latency(h *hdrhistogram.Histogram) Latency {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Latency{
		Count: h.TotalCount(), Mean: h.Mean() / 1000, Max: ms(h.Max()),
		P50: ms(h.ValueAtQuantile(50)), P90: ms(h.ValueAtQuantile(90)), P99: ms(h.ValueAtQuantile(99)),
		P999: ms(h.ValueAtQuantile(99.9)), P9999: ms(h.ValueAtQuantile(99.99)),
	}
}
