package admin

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/engine"
	"pawl/server/lmstfy"
)

// queueSeries says which queues have series of their own: the first by name, but
// one that has them keeps them while it lives, for in and out of the sum of the
// others it would take its counts with it.
type queueSeries struct {
	mu   sync.Mutex      // held while a census is taken: none may come behind a later one
	own  map[string]bool // guarded by mu; by key
	rest lmstfy.Rising   // guarded by mu; counters of all others, in the order of queueMetrics
}

// seriesOf is what one scrape shows.
type seriesOf struct {
	own, rest []*engine.QueueView // by name
	other     []float64           // what rest comes to, in the order of queueMetrics
}

// take divides the queues of e.
func (q *queueSeries) take(e Engine, most int) seriesOf {
	q.mu.Lock()
	defer q.mu.Unlock()
	census := e.Census()
	room := most
	for i := range census.Queues {
		if q.own[census.Queues[i].Key] {
			room--
		}
	}
	var s seriesOf
	own := make(map[string]bool, min(most, len(census.Queues)))
	for i := range census.Queues {
		v := &census.Queues[i]
		had := q.own[v.Key]
		switch {
		case had && len(own) < most:
		case !had && room > 0:
			room--
		default:
			if s.rest = append(s.rest, v); had { // there is room for fewer now
				q.rest.Include(countsOf(v))
			}
			continue
		}
		own[v.Key] = true
		s.own = append(s.own, v)
	}
	q.own = own
	s.other = make([]float64, len(queueMetrics))
	for k := range queueMetrics {
		for _, v := range s.rest {
			s.other[k] += queueMetrics[k].Value(v)
		}
	}
	q.rest.Take(s.other)
	for k := range s.other {
		if queueMetrics[k].Kind == prometheus.CounterValue {
			s.other[k] = q.rest.Value(k)
		}
	}
	return s
}

// countsOf are the values of queueMetrics.
func countsOf(v *engine.QueueView) []float64 {
	values := make([]float64, len(queueMetrics))
	for k := range queueMetrics {
		values[k] = queueMetrics[k].Value(v)
	}
	return values
}
