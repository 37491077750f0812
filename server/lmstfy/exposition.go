package lmstfy

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/engine"
	"pawl/state"
)

// QueueSeries is a metric of every queue, for whoever writes them all.
type QueueSeries struct {
	Name  string
	Help  string
	Kind  prometheus.ValueType
	Value func(*engine.QueueView) float64
}

func series(kind prometheus.ValueType, of map[string]func(*view) float64) []QueueSeries {
	var list []QueueSeries
	for name, value := range of {
		name = "infra_lmstfy_redis_" + name
		list = append(list, QueueSeries{name, name, kind, value})
	}
	slices.SortFunc(list, func(a, b QueueSeries) int { return strings.Compare(a.Name, b.Name) })
	return list
}

type view = engine.QueueView

// perPool have the label pool only: sums over its queues. What timed Redis
// itself is left out, for it has no meaning here.
var perPool = append(
	series(prometheus.CounterValue, map[string]func(*view) float64{
		"publish_jobs":            func(v *view) float64 { return float64(v.Totals.Enqueued) },
		"consume_jobs":            func(*view) float64 { return 0 }, // never used by lmstfy either
		"consume_multi_jobs":      func(v *view) float64 { return float64(v.Totals.Delivered) },
		"pool_add_jobs":           func(v *view) float64 { return float64(v.Totals.Enqueued) },
		"pool_get_jobs":           func(v *view) float64 { return float64(v.Totals.Delivered) },
		"pool_delete_jobs":        func(v *view) float64 { return float64(v.Totals.Acked + v.Totals.Deleted) },
		"timer_due_jobs":          func(v *view) float64 { return float64(v.Totals.Expired) },
		"timer_add_jobs":          func(v *view) float64 { return float64(v.Totals.Delivered) },
		"queue_pop_jobs":          func(v *view) float64 { return float64(v.Totals.Delivered) },
		"deadletter_respawn_jobs": func(v *view) float64 { return float64(v.Totals.Redriven) },
	}),
	series(prometheus.GaugeValue, map[string]func(*view) float64{
		"timer_sizes": func(v *view) float64 { return float64(v.Delayed + v.Leased) },
		"total_keys":  func(v *view) float64 { return float64(v.Ready + v.Delayed + v.Leased + v.Dead) },
	})...,
)

// PerQueue are lmstfy's metrics with the labels pool, namespace and queue. They
// are not in Collector: with many queues, objects for each series would cost more
// than all else.
var PerQueue = append(
	series(prometheus.CounterValue, map[string]func(*view) float64{
		"publish_queue_jobs": func(v *view) float64 { return float64(v.Totals.Enqueued) },
		"consume_queue_jobs": func(v *view) float64 { return float64(v.Totals.Delivered) },
	}),
	series(prometheus.GaugeValue, map[string]func(*view) float64{
		"queue_sizes":      func(v *view) float64 { return float64(v.Ready) },
		"deadletter_sizes": func(v *view) float64 { return float64(v.Dead) },
	})...,
)

// pools are the sums of perPool. Those of a start come out of the log; counters
// rise from 0 at the start of the process.
type pools struct {
	mu   sync.Mutex         // held while a census is taken: none may come behind a later one
	sums map[string]*Rising // guarded by mu; in the order of perPool
}

// begin counts from what e has.
func (p *pools) begin(e Engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sums = make(map[string]*Rising)
	for pool, sums := range p.sum(e.Census()) {
		p.sums[pool] = new(Rising)
		p.sums[pool].Take(make([]float64, len(sums)))
		p.sums[pool].Include(sums)
	}
}

// sum adds up what the queues of each pool have, of those that had any too, and what
// those did that have ended.
func (p *pools) sum(census *engine.Census) map[string][]float64 {
	now := map[string][]float64{state.DefaultPool: make([]float64, len(perPool))}
	for pool := range p.sums {
		now[pool] = make([]float64, len(perPool))
	}
	of := func(pool string) []float64 {
		if now[pool] == nil {
			now[pool] = make([]float64, len(perPool))
		}
		return now[pool]
	}
	for i := range census.Queues {
		v := &census.Queues[i]
		pool, _, _ := state.SplitQueueKey(v.Key)
		AddCounts(of(pool), perPool, v)
	}
	for pool, totals := range census.Ended {
		AddCounts(of(pool), perPool, &view{Totals: totals})
	}
	return now
}

// AddCounts adds the values that a queue has of series to sums.
func AddCounts(sums []float64, series []QueueSeries, v *engine.QueueView) {
	for k := range series {
		sums[k] += series[k].Value(v)
	}
}

// collect gives the sums of all pools, and the census that they are of.
func (p *pools) collect(ch chan<- prometheus.Metric, e Engine) *engine.Census {
	p.mu.Lock()
	defer p.mu.Unlock()
	census := e.Census()
	now := p.sum(census)
	for pool, sums := range now {
		if p.sums[pool] == nil {
			p.sums[pool] = new(Rising)
		}
		p.sums[pool].Take(sums)
	}
	for k := range perPool {
		m := &perPool[k]
		desc := prometheus.NewDesc(m.Name, m.Help, []string{"pool"}, nil)
		for pool, sums := range now {
			value := sums[k]
			if m.Kind == prometheus.CounterValue {
				value = p.sums[pool].Value(k)
			}
			ch <- prometheus.MustNewConstMetric(desc, m.Kind, value, Label(pool))
		}
	}
	return census
}
