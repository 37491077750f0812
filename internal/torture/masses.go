//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

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
	sup, leave, err := l.openDaemon(ctx)
	if err != nil {
		return err
	}
	defer leave()
	admin, err := l.port()
	if err != nil {
		return err
	}
	sup.SetOptions(func(o *daemon.Options) { o.Args = []string{"--admin-addr", admin} })
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	m := masses{addr: sup.Addr(), end: time.Now().Add(*ahead)}
	empty := resident(sup.Pid())
	if err := m.fill(*jobs, *leases); err != nil {
		return err
	}
	if time.Until(m.end) < time.Second {
		return fmt.Errorf("%w: the enqueues took too long, give more with -ahead", errImpossible)
	}
	full := resident(sup.Pid())
	before, err := turnTimes(ctx, admin)
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
	after, err := turnTimes(ctx, admin)
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
	stays, p9999, most := after.since(before)
	text := fmt.Sprintf("all over after %.1f s; critical section: %d stays, p99.99 at most %.3f ms, longest at most %.3f; cycles of others: %d, p99 %.1f ms, longest %.0f; resident %d MB, %d when full, %d before",
		took.Seconds(), stays, p9999*1000, most*1000, all.TotalCount(), float64(all.ValueAtQuantile(99))/1000, float64(all.Max())/1000, resident(sup.Pid())>>20, full>>20, empty>>20)
	if *l.bounds && p9999 > 0.002048 {
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

// histogramOf is the cumulative counts of a Prometheus histogram by bound.
type histogramOf map[float64]float64

// turnTimes reads how long the critical section was held.
func turnTimes(ctx context.Context, admin string) (histogramOf, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	h := histogramOf{}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), `pawl_engine_turn_seconds_bucket{le="`)
		if !ok {
			continue
		}
		bound, count, _ := strings.Cut(rest, `"} `)
		upper, err := strconv.ParseFloat(strings.Replace(bound, "+Inf", "Inf", 1), 64)
		if err != nil {
			return nil, err
		}
		if h[upper], err = strconv.ParseFloat(count, 64); err != nil {
			return nil, err
		}
	}
	if len(h) == 0 {
		return nil, errors.New("no pawl_engine_turn_seconds in the metrics")
	}
	return h, nil
}

// since is what was added since before: how many, and the bounds of the buckets
// in which the 99.99th percentile and the longest lie, in seconds.
func (h histogramOf) since(before histogramOf) (n int64, p9999, most float64) {
	total := h[math.Inf(1)] - before[math.Inf(1)]
	p9999, most = math.Inf(1), math.Inf(1)
	for upper, count := range h {
		count -= before[upper]
		if count >= total*0.9999 {
			p9999 = min(p9999, upper)
		}
		if count >= total {
			most = min(most, upper)
		}
	}
	return int64(total), p9999, most
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
