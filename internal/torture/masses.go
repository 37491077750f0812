//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"pawl/bench"
	"pawl/internal/record"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/pipe"
)

// runMasses: the times to live of very many jobs, very many leases, and a PURGE
// of as many jobs come at the same moment, while others work. A FETCH never
// comes back empty while a live job waits behind those that have ended, nothing
// is lost or left, and the daemon's own histogram says how long its critical
// section was held; with -bounds that is judged.
func runMasses(ctx context.Context, args []string) error {
	l := newLab("masses", args)
	jobs := l.flags.Int("jobs", 1_000_000, "jobs whose time to live ends, and again as many that are purged")
	leases := l.flags.Int("leases", 100_000, "leases that run out")
	load := l.flags.Int("load", 8, "connections that enqueue, fetch and ack all the time")
	ahead := l.flags.Duration("ahead", 40*time.Second, "from the first enqueue to the moment when all ends")
	sup, admin, leave, err := l.startMeasured(ctx)
	if err != nil {
		return err
	}
	defer leave()
	m := masses{addr: sup.Addr(), end: time.Now().Add(*ahead)}
	empty := resident(sup.Pid())
	if err := m.fill(*jobs, *leases); err != nil {
		return err
	}
	if time.Until(m.end) < time.Second {
		return fmt.Errorf("%w: the enqueues took too long, give more with -ahead", errImpossible)
	}
	full := resident(sup.Pid())
	before, err := bench.Scrape(ctx, admin)
	if err != nil {
		return err
	}

	var crew sync.WaitGroup
	working, stop := context.WithCancel(ctx)
	defer stop()
	cycles := make([]*hdrhistogram.Histogram, *load)
	failures := make(chan error, *load+2)
	for i := range *load {
		cycles[i] = hdrhistogram.New(1, 600_000_000, 3)
		crew.Go(func() { failures <- m.work(working, i, cycles[i]) })
	}
	if err := sleep(ctx, time.Until(m.end)); err != nil {
		return err
	}
	began := time.Now()
	var purged int64
	crew.Go(func() {
		var err error
		purged, err = m.purge()
		failures <- err
	})
	nulls, looks, err := m.watch(ctx, *leases)
	took := time.Since(began)
	stop()
	crew.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	if err != nil {
		return err
	}
	after, err := bench.Scrape(ctx, admin)
	if err != nil {
		return err
	}
	if nulls > 0 {
		return l.broken("FETCH came back empty %d of %d times while %d live jobs were ready behind those that had ended", nulls, looks, liveJobs)
	}
	if purged != int64(*jobs) {
		return l.broken("PURGE removed %d of %d jobs", purged, *jobs)
	}
	all := cycles[0]
	for _, h := range cycles[1:] {
		all.Merge(h)
	}
	turns, cpu := after[bench.TurnTimes].Since(before[bench.TurnTimes]), after[bench.TurnCPU].Since(before[bench.TurnCPU])
	late := after[bench.LateTimes].Since(before[bench.LateTimes])
	text := fmt.Sprintf("all over after %.1f s; critical section: %d stays, p99.99 at most %.3f ms, longest at most %.3f, in processor time %.3f and %.3f; ended after their time at most %.0f ms; cycles of others: %d, p99 %.1f ms, longest %.0f; resident %d MB, %d when full, %d before",
		took.Seconds(), turns.Count(), turns.Within(0.9999)*1000, turns.Within(1)*1000, cpu.Within(0.9999)*1000, cpu.Within(1)*1000, late.Within(1)*1000,
		all.TotalCount(), float64(all.ValueAtQuantile(99))/1000, float64(all.Max())/1000, resident(sup.Pid())>>20, full>>20, empty>>20)
	if *l.bounds && turns.Within(0.9999) > 0.002048 {
		return l.broken("%s", text)
	}
	return l.account(record.Run{Cases: 2**jobs + *leases}, text)
}

// liveJobs are ready behind those that end.
const liveJobs = 100

type masses struct {
	addr string
	end  time.Time // when all ends
}

// fill makes the masses: queue ended holds jobs whose time to live ends, and
// behind them liveJobs that stay; leased holds leases; purged holds jobs.
func (m *masses) fill(jobs, leases int) error {
	fillers := make(chan error, 3)
	left := func() string { return strconv.FormatInt(max(1, time.Until(m.end).Milliseconds()), 10) }
	fill := func(what func(c *pipe.Conn) error) {
		c, err := pipe.Dial(m.addr, 4*daemon.Patience)
		if err == nil {
			err = what(c)
			err = errors.Join(err, c.Close())
		}
		fillers <- err
	}
	go fill(func(c *pipe.Conn) error {
		err := c.All(jobs, func(int) { c.Add("ENQUEUE", "ended", "x", "TTL", left()) }, nil)
		if err != nil {
			return err
		}
		return c.All(liveJobs, func(int) { c.Add("ENQUEUE", "ended", "live") }, nil)
	})
	go fill(func(c *pipe.Conn) error {
		return c.All(jobs, func(int) { c.Add("ENQUEUE", "purged", "x") }, nil)
	})
	go fill(func(c *pipe.Conn) error {
		if err := c.All(leases, func(int) { c.Add("ENQUEUE", "leased", "x") }, nil); err != nil {
			return err
		}
		return c.All(leases, func(int) { c.Add("FETCH", "leased", left()) }, func(i int, reply any) error {
			if reply == nil {
				return fmt.Errorf("FETCH %d of %d came back empty", i, leases)
			}
			return nil
		})
	})
	return errors.Join(<-fillers, <-fillers, <-fillers)
}

// work is one client of a queue of its own.
func (m *masses) work(ctx context.Context, i int, cycles *hdrhistogram.Histogram) error {
	c, err := pipe.Dial(m.addr, 4*daemon.Patience)
	if err != nil {
		return err
	}
	defer c.Close()
	queue := "load" + strconv.Itoa(i)
	for ctx.Err() == nil {
		began := time.Now()
		if _, err := c.Do("ENQUEUE", queue, "x"); err != nil {
			return err
		}
		job, err := c.Do("FETCH", queue, "60000")
		if err != nil {
			return err
		}
		lease, _ := pipe.Field(job, "lease_id").(string)
		if _, err := c.Do("ACK", lease); err != nil {
			return err
		}
		if err := cycles.RecordValue(time.Since(began).Microseconds()); err != nil {
			return err
		}
	}
	return nil
}

func (m *masses) purge() (int64, error) {
	c, err := pipe.Dial(m.addr, 4*daemon.Patience)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	reply, err := c.Do("QUEUE", "PURGE", "purged")
	n, _ := reply.(int64)
	return n, err
}

// watch fetches from the queue of those that end, and gives back what it got,
// until all has ended. It counts how often it got nothing.
func (m *masses) watch(ctx context.Context, leases int) (nulls, looks int, err error) {
	c, err := pipe.Dial(m.addr, 4*daemon.Patience)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	for ; ctx.Err() == nil; looks++ {
		job, err := c.Do("FETCH", "ended", "60000")
		if err != nil {
			return nulls, looks, err
		}
		if job == nil {
			nulls++
		} else {
			lease, _ := pipe.Field(job, "lease_id").(string)
			_, err := c.Do("RELEASE", lease)
			if _, refused := errors.AsType[pipe.Error](err); err != nil && !refused { // its time to live may have ended
				return nulls, looks, err
			}
		}
		if looks%100 != 0 {
			continue
		}
		over := true
		for queue, want := range map[string]int64{"ended": liveJobs, "leased": int64(leases), "purged": 0} {
			stats, err := c.Do("STATS", queue)
			if err != nil {
				return nulls, looks, err
			}
			over = over && pipe.Field(stats, "ready") == want && pipe.Field(stats, "processing") == int64(0)
		}
		if over {
			return nulls, looks, nil
		}
	}
	return nulls, looks, context.Cause(ctx)
}

// resident is how many bytes of memory a process has, 0 when it cannot be read.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
