package admin

import (
	"context"
	"sync"
	"time"

	"pawl/engine"
	"pawl/state"
)

// The dashboard shows the last minutes without anybody having watched them: the
// server samples the engine's published numbers, and of some queues their depth and
// deliveries. It does so without a census, for most of the time nobody looks.
const (
	sampleEvery  = 5 * time.Second
	maxSamples   = 120 // ten minutes
	maxSampled   = 1000
	queueSamples = 60
)

// sample is one reading of the engine.
type sample struct {
	At        int64    `json:"at" doc:"Unix ms"`
	Ready     int64    `json:"ready"`
	Delayed   int64    `json:"delayed"`
	Leased    int64    `json:"leased"`
	Dead      int64    `json:"dead"`
	Enqueued  float64  `json:"enqueued" doc:"a second, since the sample before"`
	Delivered float64  `json:"delivered"`
	Acked     float64  `json:"acked"`
	Failed    float64  `json:"failed" doc:"NACKs and leases that ran out"`
	SyncMs    float64  `json:"sync_ms" doc:"mean write and sync of a group since the sample before"`
	WaitP50   float64  `json:"wait_p50_ms" doc:"from ready to the first delivery, since the sample before; 0 is none"`
	WaitP95   float64  `json:"wait_p95_ms"`
	WaitP99   float64  `json:"wait_p99_ms"`
	RunP50    float64  `json:"run_p50_ms" doc:"from a delivery to its acknowledgement"`
	RunP95    float64  `json:"run_p95_ms"`
	RunP99    float64  `json:"run_p99_ms"`
	totals    [4]int64 // enqueued, delivered, acked, failed
	wait, run engine.Histogram
	sync      engine.Histogram
}

// latency is how long something took, in the last minute or so.
type latency struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_ms" doc:"half took no longer; 0 without any"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
}

// latencySamples is how many samples latency looks back: a minute.
const latencySamples = 12

// history is a ring of samples.
type history struct {
	mu      sync.Mutex
	samples []sample               // guarded by mu; oldest first
	queues  map[string]*queueTrack // guarded by mu; by key
}

type queueTrack struct {
	ready     []int64
	rate      []float64
	delivered uint64
	seen      time.Time
}

func newHistory() *history { return &history{queues: make(map[string]*queueTrack)} }

// Run samples the engine until ctx ends. Without it the dashboard has no past.
func (s *Server) Run(ctx context.Context) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		s.Sample()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Sample takes one sample now, if there is an engine.
func (s *Server) Sample() {
	if e := s.currentEngine(); e != nil {
		s.history.take(e, time.Now())
	}
}

// take adds one sample.
func (h *history) take(e Engine, now time.Time) {
	n, hist, queues := e.Numbers(), e.Histograms(), e.SomeQueues(maxSampled)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takeNumbers(&n, &hist, now)
	h.takeQueues(queues, now)
}

func (h *history) takeNumbers(n *engine.Numbers, hist *engine.Histograms, now time.Time) {
	s := sample{
		At:    now.UnixMilli(),
		Ready: n.Jobs[state.Ready], Delayed: n.Jobs[state.Delayed], Leased: n.Jobs[state.Leased], Dead: n.Jobs[state.Dead],
		totals: [4]int64{int64(n.Enqueued), int64(n.Delivered), int64(n.Acked), int64(n.Nacked + n.Expired)},
		wait:   hist.WaitSeconds, run: hist.RunSeconds, sync: hist.SyncSeconds,
	}
	if len(h.samples) > 0 {
		last := &h.samples[len(h.samples)-1]
		if seconds := float64(s.At-last.At) / 1000; seconds > 0 {
			rate := func(i int) float64 { return float64(s.totals[i]-last.totals[i]) / seconds }
			s.Enqueued, s.Delivered, s.Acked, s.Failed = rate(0), rate(1), rate(2), rate(3)
		}
		if sync := s.sync.Since(last.sync); sync.Count > 0 {
			s.SyncMs = sync.Sum * 1000 / float64(sync.Count)
		}
		wait, run := latencyOf(s.wait, last.wait), latencyOf(s.run, last.run)
		s.WaitP50, s.WaitP95, s.WaitP99 = wait.P50, wait.P95, wait.P99
		s.RunP50, s.RunP95, s.RunP99 = run.P50, run.P95, run.P99
	}
	h.samples = append(h.samples, s)
	if over := len(h.samples) - maxSamples; over > 0 {
		h.samples = append(h.samples[:0], h.samples[over:]...)
	}
}

func (h *history) takeQueues(queues []engine.QueueView, now time.Time) {
	for i := range queues {
		v := &queues[i]
		q := h.queues[v.Key]
		if q == nil {
			q = &queueTrack{delivered: v.Totals.Delivered, seen: now}
			h.queues[v.Key] = q
		}
		rate := 0.0
		if seconds := now.Sub(q.seen).Seconds(); seconds > 0 && v.Totals.Delivered >= q.delivered {
			rate = float64(v.Totals.Delivered-q.delivered) / seconds
		}
		q.ready = push(q.ready, v.Ready)
		q.rate = push(q.rate, rate)
		q.delivered, q.seen = v.Totals.Delivered, now
	}
	for key, q := range h.queues {
		if q.seen != now { // it has gone, or others have come before it
			delete(h.queues, key)
		}
	}
}

func push[T any](list []T, v T) []T {
	if len(list) == queueSamples {
		list = append(list[:0], list[1:]...)
	}
	return append(list, v)
}

// all copies the samples.
func (h *history) all() []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]sample{}, h.samples...)
}

// latencies are those of the last minute; before two samples were taken, those
// since the start.
func (h *history) latencies(now engine.Histograms) (wait, run, sync latency) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var then sample
	if n := len(h.samples); n > 0 {
		then = h.samples[max(0, n-latencySamples)]
	}
	return latencyOf(now.WaitSeconds, then.wait), latencyOf(now.RunSeconds, then.run), latencyOf(now.SyncSeconds, then.sync)
}

func latencyOf(now, then engine.Histogram) latency {
	d := now.Since(then)
	ms := func(q float64) float64 { return d.Quantile(q) * 1000 }
	return latency{d.Count, ms(0.5), ms(0.95), ms(0.99)}
}

// queue copies what is known of one.
func (h *history) queue(key string) (ready []int64, rate []float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q := h.queues[key]; q != nil {
		return append([]int64{}, q.ready...), append([]float64{}, q.rate...)
	}
	return []int64{}, []float64{}
}
