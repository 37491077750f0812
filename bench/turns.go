package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Turns are how long a daemon's stays in its critical section were, in
// milliseconds. The daemon counts them in buckets that double, so each number
// but the count is the upper bound of a bucket.
type Turns struct {
	Seconds float64 `json:"seconds"` // of the run
	Count   uint64  `json:"count"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	P9999   float64 `json:"p99.99_ms"`
	Max     float64 `json:"max_ms"`
}

// buckets are how many turns lasted at most so many seconds.
type buckets struct {
	upper []float64
	below []uint64
}

// scrape reads the daemon's histogram of turns from its metrics.
func scrape(ctx context.Context, adminAddr string) (h buckets, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+adminAddr+"/metrics", nil)
	if err != nil {
		return h, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return h, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), `pawl_engine_turn_seconds_bucket{le="`)
		if !ok {
			continue
		}
		le, count, _ := strings.Cut(rest, `"} `)
		upper, err1 := strconv.ParseFloat(le, 64)
		below, err2 := strconv.ParseUint(count, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return h, fmt.Errorf("metrics of %s: %w", adminAddr, err)
		}
		h.upper, h.below = append(h.upper, upper), append(h.below, below)
	}
	if len(h.upper) == 0 {
		return h, fmt.Errorf("metrics of %s have no pawl_engine_turn_seconds", adminAddr)
	}
	return h, nil
}

// since are the turns between an earlier reading and this one.
func (h buckets) since(before buckets) (t Turns) {
	if len(before.below) != len(h.below) {
		return t
	}
	counts := make([]uint64, len(h.below))
	for i := range counts {
		counts[i] = h.below[i] - before.below[i]
	}
	t.Count = counts[len(counts)-1]
	within := func(share float64) float64 {
		for i, n := range counts {
			if n > 0 && float64(n) >= share*float64(t.Count) {
				return h.upper[i] * 1000
			}
		}
		return 0
	}
	t.P50, t.P99, t.P9999, t.Max = within(0.5), within(0.99), within(0.9999), within(1)
	return t
}

// soak loads the daemon for a time with all that is said to make its critical
// section long: cycles, snapshots one behind the other of all that waits, full
// generations, and 100,000 leases that end at once, again and again.
func (o *FootprintOptions) soak(ctx context.Context, s *Server) (t Turns, err error) {
	before, err := scrape(ctx, s.adminAddr)
	if err != nil {
		return t, err
	}
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, load := range []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := Run(ctx, Options{Workload: Cycle, Target: s.Target, Conns: 16, Payload: o.Payload, Duration: o.Soak, Warmup: -1})
			return err
		},
		func(ctx context.Context) error {
			for time.Since(began) < o.Soak {
				if err := doOne(ctx, s.Target.(Pawl).Addr, "SNAPSHOT"); err != nil {
					return err
				}
			}
			return nil
		},
		func(ctx context.Context) error { return o.endLeases(ctx, s, began) },
	} {
		wg.Go(func() {
			if err := load(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return t, context.Cause(ctx)
	}
	after, err := scrape(ctx, s.adminAddr)
	t = after.since(before)
	t.Seconds = time.Since(began).Seconds()
	return t, err
}

// leases is how many end at once in a soak.
const leases = 100_000

// endLeases takes leases that all end in the same second, and waits for it.
func (o *FootprintOptions) endLeases(ctx context.Context, s *Server, began time.Time) error {
	if _, err := o.fill(ctx, s, "leases", leases, 0); err != nil {
		return err
	}
	w, err := dial(ctx, s.Target.(Pawl).Addr)
	if err != nil {
		return err
	}
	defer w.Close()
	const each = 1000 // jobs of one FETCH
	for time.Since(began) < o.Soak {
		end := time.Now().Add(10 * time.Second)
		for range leases / each {
			left := strconv.FormatInt(time.Until(end).Milliseconds(), 10)
			w.command([]byte("FETCH"), []byte("leases"), []byte(left), []byte("COUNT"), []byte(strconv.Itoa(each)))
			if err := w.Flush(); err != nil {
				return err
			}
			if err := w.skip(); err != nil {
				return err
			}
		}
		if !sleep(ctx, nil, time.Until(end)+2*time.Second) {
			return ctx.Err()
		}
	}
	return nil
}

// doOne sends one command over a connection of its own.
func doOne(ctx context.Context, addr string, command string) error {
	w, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer w.Close()
	w.command([]byte(command))
	return errors.Join(w.Flush(), w.skip())
}
