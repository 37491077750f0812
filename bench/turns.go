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

// Times are how long enqueues took in the daemon, from when they were read until
// their replies were handed over, in milliseconds: upper bounds of buckets that
// double, 20 ms among them.
type Times struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	P9999 float64 `json:"p99.99_ms"`
	Max   float64 `json:"max_ms"`
}

// Soak is what a daemon did to itself and to others while it was watched under
// load.
type Soak struct {
	Turns
	LessOwnSync  Times   `json:"enqueue_less_own_sync"`  // enqueues, without the write and sync of their own group
	LessAllSyncs Times   `json:"enqueue_less_all_syncs"` // enqueues, without all writes and syncs meanwhile
	Cycles       float64 `json:"cycles_per_second"`
	Snapshots    int     `json:"snapshots"`     // of all that waited
	Cleaned      int64   `json:"cleaned_bytes"` // carried out of generations that were mostly dead
	Leases       int     `json:"leases_ended"`  // by time, 100,000 at once
}

// Names of histograms in a daemon's metrics, for Scrape.
const (
	TurnTimes = "pawl_engine_turn_seconds"     // stays in the critical section
	TurnCPU   = "pawl_engine_turn_cpu_seconds" // processor time of these, with --pprof
	LateTimes = "pawl_engine_late_seconds"     // what time ends, after its time
	SyncTimes = "pawl_log_sync_seconds"        // writes and syncs of a group

	EnqueueLessOwnSync  = "pawl_enqueue_less_own_sync_seconds"  // enqueues, without the sync of their group
	EnqueueLessAllSyncs = "pawl_enqueue_less_all_syncs_seconds" // enqueues, without all syncs meanwhile
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
	t := times(h)
	return Turns{
		Count: t.Count, P50: t.P50, P99: t.P99, P9999: t.P9999, Max: t.Max,
		CPUP9999: cpu.Within(0.9999) * 1000, CPUMax: cpu.Within(1) * 1000,
	}
}

// times are what came to a histogram, in milliseconds.
func times(h Buckets) Times {
	ms := func(share float64) float64 { return h.Within(share) * 1000 }
	return Times{Count: h.Count(), P50: ms(0.5), P99: ms(0.99), P9999: ms(0.9999), Max: ms(1)}
}
