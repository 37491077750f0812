package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Turns are how long a daemon's stays in its critical section were, in
// milliseconds. The daemon counts them in buckets that double, so each number
// but the count is the upper bound of a bucket.
type Turns struct {
	Seconds  float64 `json:"seconds"` // of the run
	Count    uint64  `json:"count"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	P9999    float64 `json:"p99.99_ms"`
	Max      float64 `json:"max_ms"`
	CPUP9999 float64 `json:"cpu_p99.99_ms"` // of the processor time in them: what the system's other work took away is not in it
	CPUMax   float64 `json:"cpu_max_ms"`
}

// Names of histograms in a daemon's metrics, for Scrape.
const (
	TurnTimes = "pawl_engine_turn_seconds"     // stays in the critical section
	TurnCPU   = "pawl_engine_turn_cpu_seconds" // processor time of these, with --pprof
	LateTimes = "pawl_engine_late_seconds"     // what time ends, after its time
	SyncTimes = "pawl_log_sync_seconds"        // writes and syncs of a group
)

// Buckets are one histogram of a daemon's metrics: how many values were at most
// so much.
type Buckets struct {
	Upper []float64 // ascending; the last is infinite
	Below []uint64
}

// Scrape reads histograms from a daemon's metrics, by name.
func Scrape(ctx context.Context, adminAddr string) (map[string]Buckets, error) {
	page, err := metricsPage(ctx, adminAddr)
	if err != nil {
		return nil, err
	}
	defer page.Close()
	all := map[string]Buckets{}
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		name, rest, ok := strings.Cut(lines.Text(), `_bucket{le="`)
		if !ok {
			continue
		}
		le, count, _ := strings.Cut(rest, `"} `)
		upper, err1 := strconv.ParseFloat(le, 64)
		below, err2 := strconv.ParseFloat(count, 64) // a million is 1e+06
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", adminAddr, err)
		}
		h := all[name]
		h.Upper, h.Below = append(h.Upper, upper), append(h.Below, uint64(below))
		all[name] = h
	}
	if len(all[TurnTimes].Below) == 0 {
		return nil, fmt.Errorf("metrics of %s have no %s", adminAddr, TurnTimes)
	}
	return all, lines.Err()
}

func metricsPage(ctx context.Context, adminAddr string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+adminAddr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// scrapeSum is the sum of some counters of a daemon's metrics, all of which must
// be there.
func scrapeSum(ctx context.Context, adminAddr string, names ...string) (sum int64, err error) {
	page, err := metricsPage(ctx, adminAddr)
	if err != nil {
		return 0, err
	}
	defer page.Close()
	found := 0
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if !slices.Contains(names, name) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metrics of %s: %w", adminAddr, err)
		}
		sum += int64(n)
		found++
	}
	if err := lines.Err(); err != nil || found == len(names) {
		return sum, err
	}
	return 0, fmt.Errorf("metrics of %s have %d of %v", adminAddr, found, names)
}

// Count is how many values there are.
func (h Buckets) Count() uint64 {
	if len(h.Below) == 0 {
		return 0
	}
	return h.Below[len(h.Below)-1]
}

// Since is what came to h after an earlier reading.
func (h Buckets) Since(before Buckets) Buckets {
	if len(before.Below) != len(h.Below) {
		return h
	}
	d := Buckets{Upper: h.Upper, Below: make([]uint64, len(h.Below))}
	for i := range d.Below {
		d.Below[i] = h.Below[i] - before.Below[i]
	}
	return d
}

// Within is a bound that at least this share of the values keeps, the lowest
// that is known; 0 without values.
func (h Buckets) Within(share float64) float64 {
	for i, n := range h.Below {
		if n > 0 && float64(n) >= share*float64(h.Count()) {
			return h.Upper[i]
		}
	}
	return 0
}

// turns are the stays between two readings.
func turns(before, after map[string]Buckets) Turns {
	h := after[TurnTimes].Since(before[TurnTimes])
	cpu := after[TurnCPU].Since(before[TurnCPU])
	ms := func(h Buckets, share float64) float64 { return h.Within(share) * 1000 }
	return Turns{
		Count: h.Count(), P50: ms(h, 0.5), P99: ms(h, 0.99), P9999: ms(h, 0.9999), Max: ms(h, 1),
		CPUP9999: ms(cpu, 0.9999), CPUMax: ms(cpu, 1),
	}
}

// soak loads the daemon for a time with all that is said to make its critical
// section long: cycles, snapshots one behind the other of all that waits, full
// generations, and 100,000 leases that end at once, again and again.
func (o *FootprintOptions) soak(ctx context.Context, s *Server) (t Turns, err error) {
	before, err := Scrape(ctx, s.adminAddr)
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
	after, err := Scrape(ctx, s.adminAddr)
	if err != nil {
		return t, err
	}
	t = turns(before, after)
	t.Seconds = time.Since(began).Seconds()
	return t, nil
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
