//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"pawl/bench"
	"pawl/internal/record"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/pipe"
)

// runDelayed: very many jobs become due within one second while workers wait for
// them, half by DELAY and half by AT. None may come before its time; how late
// they come is reported, and judged with -bounds.
func runDelayed(ctx context.Context, args []string) error {
	l := newLab("delayed", args)
	jobs := l.flags.Int("jobs", 100_000, "jobs, spread evenly over the second")
	clients := l.flags.Int("clients", 32, "connections that wait for jobs: each has 100 at a time, from one sync of the log to the next")
	ahead := l.flags.Duration("ahead", 5*time.Second, "from the first enqueue to the first job that is due")
	sup, admin, leave, err := l.startMeasured(ctx)
	if err != nil {
		return err
	}
	defer leave()

	// A payload is the time, in microseconds, before which nobody may see the job.
	from := time.Now().Add(*ahead).Truncate(time.Millisecond)
	filler, err := pipe.Dial(sup.Addr(), daemon.Patience)
	if err != nil {
		return err
	}
	defer filler.Close()
	err = filler.All(*jobs, func(i int) {
		due := from.Add(time.Duration(i) * time.Second / time.Duration(*jobs)).Truncate(time.Millisecond)
		if i%2 == 0 {
			filler.Add("ENQUEUE", "q", strconv.FormatInt(due.UnixMicro(), 10), "AT", strconv.FormatInt(due.UnixMilli(), 10))
			return
		}
		// The delay counts from when the daemon reads it, which is not before now.
		now := time.Now()
		delay := max(1, due.Sub(now).Milliseconds())
		filler.Add("ENQUEUE", "q", strconv.FormatInt(now.UnixMicro()+delay*1000, 10), "DELAY", strconv.FormatInt(delay, 10))
	}, nil)
	if err != nil {
		return err
	}
	if time.Now().After(from) {
		return fmt.Errorf("%w: the enqueues took too long, give more with -ahead", errImpossible)
	}

	before, err := bench.Scrape(ctx, admin)
	if err != nil {
		return err
	}
	var got atomic.Int64
	var early atomic.Pointer[string]
	late := make([]*hdrhistogram.Histogram, *clients)
	failures := make([]error, *clients)
	var workers sync.WaitGroup
	for i := range *clients {
		late[i] = hdrhistogram.New(1, 600_000_000, 3) // microseconds
		workers.Go(func() {
			failures[i] = drainDelayed(sup.Addr(), late[i], &got, int64(*jobs), &early)
		})
	}
	workers.Wait()
	all := late[0]
	for i, err := range failures {
		if err != nil {
			return err
		}
		if i > 0 {
			all.Merge(late[i])
		}
	}
	if what := early.Load(); what != nil {
		return l.broken("%s", *what)
	}
	if n := all.TotalCount(); n != int64(*jobs) {
		return l.broken("%d jobs came, %d were enqueued", n, *jobs)
	}
	after, err := bench.Scrape(ctx, admin)
	if err != nil {
		return err
	}
	due, syncs := after[bench.LateTimes].Since(before[bench.LateTimes]), after[bench.SyncTimes].Since(before[bench.SyncTimes])
	ms := func(q float64) float64 { return float64(all.ValueAtQuantile(q)) / 1000 }
	text := fmt.Sprintf("ready after the due time: p50 at most %.1f ms, p99 %.1f, p99.9 %.1f, max %.1f; with a worker: p50 %.1f ms, p99 %.1f, p99.9 %.1f, max %.1f; %d syncs of the log, p50 at most %.1f ms, p99 %.1f, max %.1f",
		due.Within(0.5)*1000, due.Within(0.99)*1000, due.Within(0.999)*1000, due.Within(1)*1000, ms(50), ms(99), ms(99.9), ms(100),
		syncs.Count(), syncs.Within(0.5)*1000, syncs.Within(0.99)*1000, syncs.Within(1)*1000)
	if *l.bounds && due.Within(0.999) > 0.010 {
		return l.broken("%s", text)
	}
	return l.account(record.Run{Cases: *jobs}, text)
}

// clockSlack is by how much the daemon's clock, which counts whole milliseconds
// from its start, may differ from the client's, which somebody may be slewing.
const clockSlack = 5 * time.Millisecond

// drainDelayed waits for jobs until all are there, and notes how late each is.
func drainDelayed(addr string, late *hdrhistogram.Histogram, got *atomic.Int64, all int64, early *atomic.Pointer[string]) error {
	c, err := pipe.Dial(addr, daemon.Patience)
	if err != nil {
		return err
	}
	defer c.Close()
	ack := []string{"ACK"}
	for got.Load() < all {
		acks := len(ack) > 1
		if acks {
			c.Add(ack...)
		}
		c.Add("FETCH", "q", "60000", "COUNT", "100", "WAIT", "1000")
		if err := c.Flush(); err != nil {
			return err
		}
		if acks {
			if _, err := c.Read(); err != nil {
				return err
			}
		}
		reply, err := c.Read()
		if err != nil {
			return err
		}
		now := time.Now()
		jobs, _ := reply.([]any)
		ack = ack[:1]
		for _, job := range jobs {
			lease, _ := pipe.Field(job, "lease_id").(string)
			ack = append(ack, lease)
			payload, _ := pipe.Field(job, "payload").(string)
			notBefore, err := strconv.ParseInt(payload, 10, 64)
			if err != nil {
				return err
			}
			after := now.UnixMicro() - notBefore
			if after < -clockSlack.Microseconds() {
				what := fmt.Sprintf("a job came %d µs before its time", -after)
				early.Store(&what)
			}
			if err := late.RecordValue(max(after, 0)); err != nil {
				return err
			}
		}
		got.Add(int64(len(jobs)))
	}
	return nil
}
