package admin

import (
	"context"
	"sync"
	"time"

	"pawl/engine"
	"pawl/state"
)

// The dashboard shows the last minutes without anybody having watched them: the
// server samples the engine's published numbers, and for the first queues of the
// census their depth and deliveries.
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
	totals    [4]int64 // enqueued, delivered, acked, failed
	syncs     uint64
	syncSum   float64
}

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
	n, hist, census := e.Numbers(), e.Histograms(), e.Census()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takeNumbers(&n, &hist, now)
	h.takeQueues(census, now)
}

func (h *history) takeNumbers(n *engine.Numbers, hist *engine.Histograms, now time.Time) {
	s := sample{
		At:    now.UnixMilli(),
		Ready: n.Jobs[state.Ready], Delayed: n.Jobs[state.Delayed], Leased: n.Jobs[state.Leased], Dead: n.Jobs[state.Dead],
		totals: [4]int64{int64(n.Enqueued), int64(n.Delivered), int64(n.Acked), int64(n.Nacked + n.Expired)},
		syncs:  hist.SyncSeconds.Count, syncSum: hist.SyncSeconds.Sum,
	}
	if len(h.samples) > 0 {
		last := &h.samples[len(h.samples)-1]
		if seconds := float64(s.At-last.At) / 1000; seconds > 0 {
			rate := func(i int) float64 { return float64(s.totals[i]-last.totals[i]) / seconds }
			s.Enqueued, s.Delivered, s.Acked, s.Failed = rate(0), rate(1), rate(2), rate(3)
		}
		if syncs := s.syncs - last.syncs; syncs > 0 {
			s.SyncMs = (s.syncSum - last.syncSum) * 1000 / float64(syncs)
		}
	}
	h.samples = append(h.samples, s)
	if over := len(h.samples) - maxSamples; over > 0 {
		h.samples = append(h.samples[:0], h.samples[over:]...)
	}
}

func (h *history) takeQueues(census *engine.Census, now time.Time) {
	for i := range census.Queues {
		if i == maxSampled {
			break
		}
		v := &census.Queues[i]
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
		if q.seen != now { // it has gone, or is too far down
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

// queue copies what is known of one.
func (h *history) queue(key string) (ready []int64, rate []float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q := h.queues[key]; q != nil {
		return append([]int64{}, q.ready...), append([]float64{}, q.rate...)
	}
	return []int64{}, []float64{}
}
