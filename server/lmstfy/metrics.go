package lmstfy

import (
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/state"
)

// OtherQueues is the queue label that stands for all queues over
// Options.MaxQueueSeries.
const OtherQueues = "(other)"

// Label values that clients choose are bounded: a namespace is a label only
// behind a good token, at most maxNamespaceSeries of them.
const maxNamespaceSeries = 1000

// metrics are the counters of this edge, under lmstfy's names, so that existing
// dashboards and alerts go on working. It is a prometheus.Collector.
type metrics struct {
	engine    func() Engine
	maxQueues int

	latency   *prometheus.HistogramVec
	codes     *prometheus.CounterVec
	limits    *prometheus.CounterVec
	elapsed   *prometheus.HistogramVec
	acked     *prometheus.HistogramVec
	durations sync.Map // routeKey → prometheus.Observer
	counters  sync.Map // codeKey → prometheus.Counter

	mu         sync.Mutex
	namespaces map[[2]string]bool // guarded by mu; pool and namespace
	queues     map[string]*queueTimes
}

// queueTimes are one queue's histograms, made at its first use over HTTP.
type queueTimes struct{ elapsed, acked prometheus.Observer }

type routeKey struct {
	pool, namespace string
	route           route
}

type codeKey struct {
	routeKey
	method string
	status int
}

func newMetrics(maxQueues int, current func() Engine) *metrics {
	queueLabels := []string{"pool", "namespace", "queue"}
	queueBuckets := prometheus.ExponentialBuckets(15, 3.5, 7)
	return &metrics{
		engine:     current,
		maxQueues:  maxQueues,
		namespaces: make(map[[2]string]bool),
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
}

// observe counts a finished call.
func (m *metrics) observe(c *call, elapsed time.Duration) {
	key := routeKey{c.pool, m.namespaceLabel(c), c.route}
	if c.status < 300 {
		seen, ok := m.durations.Load(key)
		if !ok {
			info := &routes[c.route]
			seen, _ = m.durations.LoadOrStore(key, m.latency.WithLabelValues(key.pool, key.namespace, info.label, info.method))
		}
		seen.(prometheus.Observer).Observe(float64(elapsed) / float64(time.Millisecond))
	}
	code := codeKey{key, methodLabel(c), c.status}
	count, ok := m.counters.Load(code)
	if !ok {
		count, _ = m.counters.LoadOrStore(code, m.codes.WithLabelValues(key.pool, key.namespace, routes[c.route].label, code.method, strconv.Itoa(c.status)))
	}
	count.(prometheus.Counter).Inc()
}

// methodLabel is the route's method; a request without a route may have any.
func methodLabel(c *call) string {
	if c.route != routeNone {
		return routes[c.route].method
	}
	switch c.r.Method {
	case "GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH":
		return c.r.Method
	}
	return "other"
}

// namespaceLabel is empty for a namespace that nobody vouches for.
func (m *metrics) namespaceLabel(c *call) string {
	if !c.known {
		return ""
	}
	key := [2]string{c.pool, c.namespace}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.namespaces[key] {
		if len(m.namespaces) >= maxNamespaceSeries {
			return OtherQueues
		}
		m.namespaces[key] = true
	}
	return c.namespace
}

// limited counts a refusal of the rate limiter. Only tokens with a limiter get
// here, so there are no more series than those.
func (m *metrics) limited(c *call) {
	m.limits.WithLabelValues(c.pool, c.namespace, c.token, c.side.String()).Inc()
}

// consumed and deleted observe a job's age in milliseconds.
func (m *metrics) consumed(key string, ms int64) { m.queue(key).elapsed.Observe(float64(ms)) }
func (m *metrics) deleted(key []byte, ms int64)  { m.queue(string(key)).acked.Observe(float64(ms)) }

func (m *metrics) queue(key string) *queueTimes {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q := m.queues[key]; q != nil {
		return q
	}
	pool, namespace, queue := state.SplitQueueKey(key)
	if len(m.queues) >= m.maxQueues {
		pool, namespace, queue = "", "", OtherQueues
		key = ""
		if q := m.queues[key]; q != nil {
			return q
		}
	}
	q := &queueTimes{
		elapsed: m.elapsed.WithLabelValues(Label(pool), Label(namespace), Label(queue)),
		acked:   m.acked.WithLabelValues(Label(pool), Label(namespace), Label(queue)),
	}
	m.queues[key] = q
	return q
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
	for _, c := range []prometheus.Collector{m.latency, m.codes, m.limits, m.elapsed, m.acked} {
		c.Collect(ch)
	}
	if e := m.engine(); e != nil {
		collectPools(ch, e.Census())
	}
}

// Label makes a name a label value. Names of queues may be any bytes; what is no
// UTF-8, or could be mistaken for a quoted name, is quoted, so that different
// names stay different series.
func Label(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, `"`) {
		return name
	}
	return strconv.Quote(name)
}
