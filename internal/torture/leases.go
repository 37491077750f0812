//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"pawl/internal/record"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/pipe"
)

// runLeases: the daemon is killed while very many leases are open, and started
// after no time, half a lease and three leases: no job may be delivered again
// before its lease is over, and each is, once, with its second attempt. Then
// very many leases end at one moment while their workers acknowledge them: each
// job is finished or delivered again, and never both.
func runLeases(ctx context.Context, args []string) error {
	l := newLab("leases", args)
	jobs := l.flags.Int("jobs", 10_000, "leases that are open")
	lease := l.flags.Duration("lease", 4*time.Second, "how long they last")
	sup, leave, err := l.openDaemon(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	slowest := time.Duration(0)
	for i, away := range []time.Duration{0, *lease / 2, 3 * *lease} {
		took, err := l.openLeases(ctx, sup, *jobs, *lease, away, "q"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		slowest = max(slowest, took)
	}
	finished, err := l.lastMoment(ctx, sup, *jobs, *lease)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("all delivered again at most %.1f s after the start or the end of their leases; %d of %d finished at the last moment",
		slowest.Seconds(), finished, *jobs)
	if *l.bounds && slowest > 2*time.Second {
		return l.broken("%s", text)
	}
	return l.account(record.Run{Cases: 4 * *jobs, Faults: 3}, text)
}

// openLeases is one kill. It returns how long after the start, or the end of the
// leases if that was later, the last job came.
func (l *lab) openLeases(ctx context.Context, sup *daemon.Supervisor, jobs int, lease, away time.Duration, queue string) (time.Duration, error) {
	before := time.Now()
	first, err := l.take(sup.Addr(), queue, jobs, lease)
	if err != nil {
		return 0, err
	}
	if time.Since(before) > lease {
		return 0, fmt.Errorf("%w: the first leases were over before the last were taken, give them longer with -lease", errImpossible)
	}
	if err := sup.Kill(); err != nil {
		return 0, err
	}
	if err := sleep(ctx, away); err != nil {
		return 0, err
	}
	if err := l.start(ctx, sup); err != nil {
		return 0, err
	}
	started := time.Now()
	latest := first[0]
	for _, at := range first {
		if at.After(latest) {
			latest = at
		}
	}
	if over := latest.Add(lease); over.After(started) {
		started = over
	}
	seen := make([]bool, jobs)
	c, err := pipe.Dial(sup.Addr(), 2*daemon.Patience)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for left := jobs; left > 0; {
		reply, err := c.Do("FETCH", queue, "600000", "COUNT", "500", "META", "WAIT", "30000")
		if err != nil {
			return 0, err
		}
		now := time.Now()
		items, _ := reply.([]any)
		if len(items) == 0 {
			return 0, l.broken("%d jobs whose leases were open are not delivered again", left)
		}
		for _, item := range items {
			i, err := payloadNumber(item, jobs)
			if err != nil {
				return 0, err
			}
			switch early := first[i].Add(lease).Sub(now); {
			case seen[i]:
				return 0, l.broken("job %d is delivered again while its second lease holds", i)
			case early > clockSlack:
				return 0, l.broken("job %d is delivered again %v before its lease is over, after %v away", i, early, away)
			case pipe.Field(item, "attempt") != int64(2) || pipe.Field(item, "failures") != int64(1):
				return 0, l.broken("job %d comes with attempt %v and %v failures, want 2 and 1", i, pipe.Field(item, "attempt"), pipe.Field(item, "failures"))
			}
			seen[i] = true
			left--
		}
	}
	return time.Since(started), nil
}

func payloadNumber(job any, below int) (int, error) {
	payload, _ := pipe.Field(job, "payload").(string)
	i, err := strconv.Atoi(payload)
	if err != nil || i < 0 || i >= below {
		return 0, fmt.Errorf("a payload that nobody sent: %q", payload)
	}
	return i, nil
}

// take enqueues jobs and takes a lease on each. It returns for each the moment
// before its FETCH was sent: the lease is not over before that and its time.
func (l *lab) take(addr, queue string, jobs int, lease time.Duration) ([]time.Time, error) {
	c, err := pipe.Dial(addr, 2*daemon.Patience)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.All(jobs, func(i int) { c.Add("ENQUEUE", queue, strconv.Itoa(i)) }, nil); err != nil {
		return nil, err
	}
	sent := make([]time.Time, jobs)
	taken := make([]time.Time, jobs)
	err = c.All(jobs, func(i int) {
		sent[i] = time.Now()
		c.Add("FETCH", queue, strconv.FormatInt(lease.Milliseconds(), 10))
	}, func(i int, reply any) error {
		n, err := payloadNumber(reply, jobs)
		if err == nil {
			taken[n] = sent[i]
		}
		return err
	})
	return taken, err
}

// ackAtOnce is how many leases are acknowledged in one write.
const ackAtOnce = 10

// lastMoment has all leases end at the same time, within what a clock can say,
// while their workers acknowledge them around that time.
func (l *lab) lastMoment(ctx context.Context, sup *daemon.Supervisor, jobs int, lease time.Duration) (int, error) {
	const workers = 4
	each := jobs / workers
	end := time.Now().Add(lease)
	finished := make([]bool, jobs)
	failures := make(chan error, workers)
	var crew sync.WaitGroup
	for w := range workers {
		crew.Go(func() {
			failures <- func() error {
				c, err := pipe.Dial(sup.Addr(), 2*daemon.Patience)
				if err != nil {
					return err
				}
				defer c.Close()
				queue := "last" + strconv.Itoa(w)
				if err := c.All(each, func(i int) { c.Add("ENQUEUE", queue, strconv.Itoa(w*each+i)) }, nil); err != nil {
					return err
				}
				leases, owner := make([]string, each), make([]int, each)
				err = c.All(each, func(int) {
					c.Add("FETCH", queue, strconv.FormatInt(max(1, time.Until(end).Milliseconds()), 10))
				}, func(i int, reply any) (err error) {
					leases[i], _ = pipe.Field(reply, "lease_id").(string)
					owner[i], err = payloadNumber(reply, jobs)
					return err
				})
				if err != nil {
					return err
				}
				if err := sleep(ctx, time.Until(end.Add(-200*time.Millisecond))); err != nil {
					return err
				}
				for first := 0; first < each; first += ackAtOnce {
					some := leases[first:min(each, first+ackAtOnce)]
					for _, lease := range some {
						c.Add("ACK", lease)
					}
					if err := c.Flush(); err != nil {
						return err
					}
					for i := range some {
						_, err := c.Read()
						if _, refused := errors.AsType[pipe.Error](err); err != nil && !refused {
							return err
						}
						finished[owner[first+i]] = err == nil
					}
				}
				return nil
			}()
		})
	}
	crew.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return 0, err
		}
	}
	c, err := pipe.Dial(sup.Addr(), 2*daemon.Patience)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	n := 0
	for _, done := range finished {
		if done {
			n++
		}
	}
	again := make([]bool, jobs)
	for left := workers*each - n; left > 0; left-- {
		reply, err := c.Do("FETCH", "last0", "600000", "WAIT", "30000", "OR", "last1", "last2", "last3")
		if err != nil {
			return 0, err
		}
		if reply == nil {
			return 0, l.broken("%d jobs are neither finished nor delivered again", left)
		}
		i, err := payloadNumber(reply, jobs)
		switch {
		case err != nil:
			return 0, err
		case finished[i]:
			return 0, l.broken("job %d is finished and delivered again", i)
		case again[i]:
			return 0, l.broken("job %d is delivered again twice", i)
		}
		again[i] = true
	}
	if reply, err := c.Do("FETCH", "last0", "1000", "OR", "last1", "last2", "last3"); err != nil || reply != nil {
		return 0, l.broken("a job too many at the end: %v, %v", reply, err)
	}
	return n, nil
}
