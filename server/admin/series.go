package admin

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/engine"
	"pawl/server/lmstfy"
)

// queueSeries says which queues have series of their own: the first by name, but
// one that has them keeps them while it lives, for in and out of the sum of the
// others it would take its counts with it. What one did after it was shown last goes
// to the others when it ends.
type queueSeries struct {
	mu     sync.Mutex          // held while a census is taken: none may come behind a later one
	own    map[string]ownQueue // guarded by mu; by key
	newest uint64              // guarded by mu; serial of the youngest queue that has been seen
	rest   lmstfy.Rising       // guarded by mu; counters of all others, in the order of queueMetrics
}

// ownQueue is a queue that has series, as it was shown last.
type ownQueue struct {
	serial uint64    // another one of its name may have come since
	counts []float64 // in the order of queueMetrics
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
		if _, had := q.own[census.Queues[i].Key]; had {
			room--
		}
	}
	var s seriesOf
	s.other = make([]float64, len(queueMetrics))
	own := make(map[string]ownQueue, min(most, len(census.Queues)))
	newest := q.newest
	for i := range census.Queues {
		v := &census.Queues[i]
		newest = max(newest, v.Serial)
		_, had := q.own[v.Key]
		switch {
		case had && len(own) < most:
		case !had && room > 0:
			room--
			if v.Serial <= q.newest { // it was one of the others
				q.rest.Exclude(countsOf(v))
			}
		default:
			s.rest = append(s.rest, v)
			lmstfy.AddCounts(s.other, queueMetrics, v)
			continue
		}
		own[v.Key] = ownQueue{v.Serial, countsOf(v)}
		s.own = append(s.own, v)
	}
	for _, ended := range census.Ended {
		lmstfy.AddCounts(s.other, queueMetrics, &engine.QueueView{Totals: ended})
	}
	for key, was := range q.own {
		if now, still := own[key]; !still || now.serial != was.serial { // it has ended, or there is room for fewer now
			q.rest.Include(was.counts)
		}
	}
	q.own, q.newest = own, newest
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
	lmstfy.AddCounts(values, queueMetrics, v)
	return values
}
