package lmstfy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/engine"
	"pawl/state"
)

// OtherQueues is the queue label that stands for all queues over
// Options.MaxQueueSeries.
const OtherQueues = "(other)"

// Label values that clients choose are bounded: a namespace is a label only
// behind a good token and while it has any, at most maxNamespaceSeries of them.
const maxNamespaceSeries = 1000

// metrics are the counters of this edge, under lmstfy's names, so that existing
// dashboards and alerts go on working. It is a prometheus.Collector.
type metrics struct {
	engine    func() Engine
	tokens    *Tokens
	maxQueues atomic.Int64

	latency *prometheus.HistogramVec
	codes   *prometheus.CounterVec
	limits  *prometheus.CounterVec
	elapsed *prometheus.HistogramVec
	acked   *prometheus.HistogramVec

	waiting map[string]*atomic.Int64 // consumes that wait, by pool; the map is read only
	pools   pools

	mu         sync.RWMutex
	calls      map[callKey]callSeries // guarded by mu; by labels
	namespaces map[space]bool         // guarded by mu; those that are labels
	queues     map[string]*queueTimes // guarded by mu; by key
	others     *queueTimes            // guarded by mu; of all over maxQueues, nil until there is one
	census     state.Millis           // guarded by mu; of when the last one is that forget looked at
}

// queueTimes are one queue's histograms, made at its first use over HTTP.
type queueTimes struct {
	elapsed, acked prometheus.Observer
	missed         int // guarded by metrics.mu; how many censuses running did not have the queue
}

// callKey is one kind of calls. The namespace is empty when nobody vouches for
// it, and OtherQueues when it is one too many.
type callKey struct {
	pool, namespace string
	route           route
	method          string
	status          int
}

// callSeries are its series; latency is nil for those that failed.
type callSeries struct {
	count   prometheus.Counter
	latency prometheus.Observer
}

func newMetrics(maxQueues int, tokens *Tokens, current func() Engine) *metrics {
	waiting := make(map[string]*atomic.Int64)
	for _, pool := range tokens.pools {
		waiting[pool] = new(atomic.Int64)
	}
	queueLabels := []string{"pool", "namespace", "queue"}
	queueBuckets := prometheus.ExponentialBuckets(15, 3.5, 7)
	m := &metrics{
		engine:     current,
		tokens:     tokens,
		waiting:    waiting,
		calls:      make(map[callKey]callSeries),
		namespaces: make(map[space]bool),
		queues:     make(map[string]*queueTimes),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "infra_lmstfy_http_latency_milliseconds",
			Help:    "infra_lmstfy_http_latency_milliseconds",
			Buckets: prometheus.ExponentialBuckets(15, 2.5, 9),
		}, []string{"pool", "namespace", "api", "method"}),
		codes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_lmstfy_http_http_codes",
			Help: "infra_lmstfy_http_http_codes",
		}, []string{"pool", "namespace", "api", "method", "code"}),
		limits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "infra_lmstfy_http_rate_limit",
			Help: "infra_lmstfy_http_rate_limit",
		}, []string{"pool", "namespace", "token", "action"}),
		elapsed: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "infra_lmstfy_redis_job_elapsed_ms",
			Help:    "infra_lmstfy_redis_job_elapsed_ms",
			Buckets: queueBuckets,
		}, queueLabels),
		acked: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "infra_lmstfy_redis_job_ack_elapsed_ms",
			Help:    "infra_lmstfy_redis_job_ack_elapsed_ms",
			Buckets: queueBuckets,
		}, queueLabels),
	}
	m.maxQueues.Store(int64(maxQueues))
	return m
}

// observe counts a finished call.
func (m *metrics) observe(c *call, elapsed time.Duration) {
	key := callKey{pool: c.pool, route: c.route, method: methodLabel(c), status: c.status}
	if c.known {
		key.namespace = c.namespace
	}
	m.mu.RLock()
	seen, ok := m.calls[m.labels(key)]
	m.mu.RUnlock()
	if !ok {
		seen = m.call(key)
	}
	seen.count.Inc()
	if seen.latency != nil {
		seen.latency.Observe(float64(elapsed) / float64(time.Millisecond))
	}
}

// labels are those of a kind of calls: beyond maxNamespaceSeries namespaces the
// others share one. The caller holds mu.
func (m *metrics) labels(key callKey) callKey {
	if key.namespace != "" && len(m.namespaces) >= maxNamespaceSeries && !m.namespaces[space{key.pool, key.namespace}] {
		key.namespace = OtherQueues
	}
	return key
}

// call makes the series of one kind of calls. A call may have outlived the last
// token of its namespace, for which emptied has been called or will be.
func (m *metrics) call(key callKey) callSeries {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own := (space{key.pool, key.namespace}); key.namespace != "" && !m.tokens.has(own) {
		key.namespace = ""
	} else if key = m.labels(key); key.namespace != "" && key.namespace != OtherQueues {
		m.namespaces[own] = true
	}
	seen, ok := m.calls[key]
	if ok {
		return seen
	}
	info := &routes[key.route]
	seen.count = m.codes.WithLabelValues(key.pool, key.namespace, info.label, key.method, strconv.Itoa(key.status))
	if key.status < 300 {
		seen.latency = m.latency.WithLabelValues(key.pool, key.namespace, info.label, info.method)
	}
	m.calls[key] = seen
	return seen
}

// emptied takes the series of a namespace that has no token any more: tenants come
// and go, and the next one finds room.
func (m *metrics) emptied(s space) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.namespaces, s)
	for key := range m.calls {
		if key.pool == s.pool && key.namespace == s.namespace {
			delete(m.calls, key)
		}
	}
	its := prometheus.Labels{"pool": s.pool, "namespace": s.namespace}
	m.codes.DeletePartialMatch(its)
	m.latency.DeletePartialMatch(its)
}

// methodLabel is the route's method; a request without a route may have any.
func methodLabel(c *call) string {
	if c.route != routeNone {
		return routes[c.route].method
	}
	switch c.method {
	case "GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH":
		return c.method
	}
	return "other"
}

// limited counts a refusal of the rate limiter. Only tokens with a limiter get
// here, so there are no more series than those; a call may have outlived its own,
// of which unlimited has been told or will be.
func (m *metrics) limited(c *call) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.tokens.window(c.pool, c.namespace, c.token) != nil {
		m.limits.WithLabelValues(c.pool, c.namespace, shortToken(c.token), c.side.String()).Inc()
	}
}

// unlimited takes the series of a token whose limiter has gone: tokens that are
// changed every day would leave one each.
func (m *metrics) unlimited(s scope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limits.DeletePartialMatch(prometheus.Labels{"pool": s.pool, "namespace": s.namespace, "token": shortToken(s.token)})
}

// shownToken is how many bytes of a token are shown: enough to tell tokens apart.
const shownToken = 10

// shortToken is a token as a label: whoever may read metrics may not use it.
func shortToken(token string) string {
	if len(token) <= shownToken {
		return token
	}
	return token[:shownToken] + "…"
}

// consumed and deleted observe a job's age in milliseconds.
func (m *metrics) consumed(key string, ms int64) {
	m.mu.RLock()
	q := m.orOthers(m.queues[key])
	m.mu.RUnlock()
	if q == nil {
		q = m.queue(key)
	}
	q.elapsed.Observe(float64(ms))
}

func (m *metrics) deleted(key []byte, ms int64) {
	m.mu.RLock()
	q := m.orOthers(m.queues[string(key)])
	m.mu.RUnlock()
	if q == nil {
		q = m.queue(string(key))
	}
	q.acked.Observe(float64(ms))
}

// orOthers is q or, where there is none and no room for one, what all the others
// have, nil if that is to be made. The caller holds mu.
func (m *metrics) orOthers(q *queueTimes) *queueTimes {
	if q == nil && int64(len(m.queues)) >= m.maxQueues.Load() {
		return m.others
	}
	return q
}

func (m *metrics) queue(key string) *queueTimes {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q := m.orOthers(m.queues[key]); q != nil {
		return q
	}
	pool, namespace, queue := state.SplitQueueKey(key)
	other := int64(len(m.queues)) >= m.maxQueues.Load()
	if other {
		pool, namespace, queue = "", "", OtherQueues
	}
	q := &queueTimes{
		elapsed: m.elapsed.WithLabelValues(Label(pool), Label(namespace), Label(queue)),
		acked:   m.acked.WithLabelValues(Label(pool), Label(namespace), Label(queue)),
	}
	if other {
		m.others = q
	} else {
		m.queues[key] = q
	}
	return q
}

// setMaxQueues takes the series of queues that are beyond it, the last by name.
func (m *metrics) setMaxQueues(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.maxQueues.Store(int64(n))
	own := slices.Sorted(maps.Keys(m.queues))
	for _, key := range own[min(n, len(own)):] {
		m.drop(key)
	}
}

// forget takes the series of queues that have gone, and so makes room for others.
// A census may be older than a queue; the next one then has it.
func (m *metrics) forget(census *engine.Census) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if census.At == m.census {
		return
	}
	m.census = census.At
	for key, q := range m.queues {
		_, there := slices.BinarySearchFunc(census.Queues, key, func(v engine.QueueView, key string) int { return strings.Compare(v.Key, key) })
		if q.missed++; there {
			q.missed = 0
		}
		if q.missed == 2 {
			m.drop(key)
		}
	}
}

// drop takes the series of one queue. The caller holds mu.
func (m *metrics) drop(key string) {
	pool, namespace, queue := state.SplitQueueKey(key)
	m.elapsed.DeleteLabelValues(Label(pool), Label(namespace), Label(queue))
	m.acked.DeleteLabelValues(Label(pool), Label(namespace), Label(queue))
	delete(m.queues, key)
}

// Collector gives the metrics under lmstfy's names, but for those of PerQueue.
// What it says of pools comes from the engine's census, whichever protocol the
// jobs came by; collecting never waits for the engine.
func (s *Server) Collector() prometheus.Collector { return s.metrics }

// Describe implements prometheus.Collector. The series of queues come and go, so
// the collector is an unchecked one.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	if e := m.engine(); e != nil {
		m.forget(m.pools.collect(ch, e))
	}
	for _, c := range []prometheus.Collector{m.latency, m.codes, m.limits, m.elapsed, m.acked} {
		c.Collect(ch)
	}
	for pool, n := range m.waiting {
		ch <- prometheus.MustNewConstMetric(blocking, prometheus.GaugeValue, float64(n.Load()), Label(pool))
	}
}

var blocking = prometheus.NewDesc("infra_lmstfy_redis_blocking_connections", "infra_lmstfy_redis_blocking_connections", []string{"pool"}, nil)

// Label makes a name a label value. Names of queues may be any bytes; what is no
// UTF-8, or could be mistaken for a quoted name, is quoted, so that different
// names stay different series.
func Label(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, `"`) {
		return name
	}
	return strconv.Quote(name)
}
