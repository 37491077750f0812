package lmstfy

import (
	"slices"
	"strings"

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
		"timer_sizes":          func(v *view) float64 { return float64(v.Delayed + v.Leased) },
		"total_keys":           func(v *view) float64 { return float64(v.Ready + v.Delayed + v.Leased + v.Dead) },
		"blocking_connections": func(v *view) float64 { return float64(v.Waiting) },
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

// collectPools gives the sums of perPool.
func collectPools(ch chan<- prometheus.Metric, census *engine.Census) {
	pools := map[string][]float64{state.DefaultPool: make([]float64, len(perPool))}
	for i := range census.Queues {
		v := &census.Queues[i]
		pool, _, _ := state.SplitQueueKey(v.Key)
		sums := pools[pool]
		if sums == nil {
			sums = make([]float64, len(perPool))
			pools[pool] = sums
		}
		for k := range perPool {
			sums[k] += perPool[k].Value(v)
		}
	}
	for k := range perPool {
		m := &perPool[k]
		desc := prometheus.NewDesc(m.Name, m.Help, []string{"pool"}, nil)
		for pool, sums := range pools {
			ch <- prometheus.MustNewConstMetric(desc, m.Kind, sums[k], Label(pool))
		}
	}
}
