package admin

import (
	"compress/gzip"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/state"
)

// queueMetrics have the labels pool, namespace and queue.
var queueMetrics = append([]lmstfy.QueueSeries{
	{Name: "pawl_queue_oldest_ready_seconds", Help: "Age of the queue's oldest ready job; 0 is none.", Kind: gauge, Value: func(v *engine.QueueView) float64 { return float64(v.OldestReadyMs) / 1000 }},
	{Name: "pawl_queue_bytes", Help: "Payload bytes of the queue's ready, delayed and leased jobs.", Kind: gauge, Value: func(v *engine.QueueView) float64 { return float64(v.Bytes) }},
	{Name: "pawl_queue_paused", Help: "1 while the queue is paused.", Kind: gauge, Value: func(v *engine.QueueView) float64 { return bit(v.Paused) }},
	{Name: "pawl_queue_waiting_fetchers", Help: "Fetchers that wait for the queue.", Kind: gauge, Value: func(v *engine.QueueView) float64 { return float64(v.Waiting) }},
	{Name: "pawl_queue_enqueued_total", Help: "Jobs enqueued since the queue began.", Kind: counter, Value: func(v *engine.QueueView) float64 { return float64(v.Totals.Enqueued) }},
	{Name: "pawl_queue_delivered_total", Help: "Leases given since the queue began.", Kind: counter, Value: func(v *engine.QueueView) float64 { return float64(v.Totals.Delivered) }},
	{Name: "pawl_queue_acked_total", Help: "Jobs finished since the queue began.", Kind: counter, Value: func(v *engine.QueueView) float64 { return float64(v.Totals.Acked) }},
	{Name: "pawl_queue_nacked_total", Help: "Jobs given back as failed since the queue began.", Kind: counter, Value: func(v *engine.QueueView) float64 { return float64(v.Totals.Nacked) }},
	{Name: "pawl_queue_expired_total", Help: "Leases that ran out since the queue began.", Kind: counter, Value: func(v *engine.QueueView) float64 { return float64(v.Totals.Expired) }},
	{Name: "pawl_queue_dead_total", Help: "Jobs that became dead letters since the queue began.", Kind: counter, Value: func(v *engine.QueueView) float64 { return float64(v.Totals.Dead) }},
}, lmstfy.PerQueue...)

// queueJobs is pawl_queue_jobs, which has the label state too.
var queueJobs = []struct {
	state string
	value func(*engine.QueueView) int64
}{
	{state.Ready.String(), func(v *engine.QueueView) int64 { return v.Ready }},
	{state.Delayed.String(), func(v *engine.QueueView) int64 { return v.Delayed }},
	{state.Leased.String(), func(v *engine.QueueView) int64 { return v.Leased }},
	{state.Dead.String(), func(v *engine.QueueView) int64 { return v.Dead }},
}

// maxScrapes bounds the scrapes that are answered at the same time.
const maxScrapes = 4

// metricsHandler serves the registry and, behind it, the series of queues, which
// are written straight from the census: objects for each of the many, as the
// library makes them, take twenty times as long. A collector that fails does not
// hide the others.
func (s *Server) metricsHandler() http.Handler {
	registry := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorHandling:      promhttp.ContinueOnError,
		DisableCompression: true,
		Registry:           s.registry,
	})
	running := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
		default:
			http.Error(w, "too many scrapes at the same time", http.StatusServiceUnavailable)
			return
		}
		page := pages.Get().(*page)
		defer pages.Put(page)
		page.reset()
		// Text is the one form that pieces can be put together of.
		plain := r.Clone(r.Context())
		plain.Header.Set("Accept", "text/plain;version=0.0.4")
		registry.ServeHTTP(page, plain)
		if page.status != http.StatusOK {
			w.WriteHeader(page.status)
			w.Write(page.out)
			return
		}
		w.Header().Set("Content-Type", page.header.Get("Content-Type"))
		page.to = w
		packed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && !isLoopback(r.RemoteAddr)
		if packed {
			w.Header().Set("Content-Encoding", "gzip")
			page.zip.Reset(w)
			page.to = page.zip
		}
		if e := s.currentEngine(); e != nil {
			page.queues(s.queues.take(e, int(s.series.Load())))
		}
		page.flush()
		if packed {
			page.zip.Close()
			page.zip.Reset(io.Discard) // one that waits holds no connection
		}
		page.to = nil
	})
}

// isLoopback: packing costs more than it saves where nothing goes over a wire.
func isLoopback(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	return err == nil && net.ParseIP(host).IsLoopback()
}

// page is a reply in the making. It goes out in pieces: as a whole it may be
// larger than all that the daemon holds besides.
type page struct {
	header http.Header
	status int
	out    []byte    // not gone out yet
	to     io.Writer // nil while everything is kept
	failed error     // of to; nobody wants the rest
	zip    *gzip.Writer
	labels []byte // of all queues, one behind the other
	ends   []int
}

// pieceBytes is how much goes out at a time.
const pieceBytes = 64 << 10

var pages = sync.Pool{New: func() any {
	zip, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil { // cannot happen: the level exists
		panic(err)
	}
	return &page{zip: zip}
}}

func (p *page) reset() {
	p.header, p.status, p.failed = http.Header{}, http.StatusOK, nil
	p.out, p.labels, p.ends = p.out[:0], p.labels[:0], p.ends[:0]
}

// Header, WriteHeader and Write implement http.ResponseWriter.
func (p *page) Header() http.Header    { return p.header }
func (p *page) WriteHeader(status int) { p.status = status }
func (p *page) Write(b []byte) (int, error) {
	p.out = append(p.out, b...)
	return len(b), nil
}

func (p *page) flush() {
	if p.failed == nil {
		_, p.failed = p.to.Write(p.out)
	}
	p.out = p.out[:0]
}

// queues writes the series of queues.
func (p *page) queues(s seriesOf) {
	for _, v := range s.own {
		pool, namespace, name := state.SplitQueueKey(v.Key)
		p.label(pool, namespace, name)
	}
	other := len(s.own)
	if len(s.rest) > 0 {
		p.label("", "", lmstfy.OtherQueues)
	}
	for k := range queueMetrics {
		if p.failed != nil {
			return
		}
		m := &queueMetrics[k]
		p.head(m.Name, m.Help, m.Kind)
		for i, v := range s.own {
			p.line(m.Name, i, "", m.Value(v))
		}
		if len(s.rest) > 0 {
			p.line(m.Name, other, "", s.other[k])
		}
	}
	const jobs = "pawl_queue_jobs"
	p.head(jobs, "Jobs of the queue by state.", gauge)
	for _, place := range queueJobs {
		for i, v := range s.own {
			p.line(jobs, i, place.state, float64(place.value(v)))
		}
		if len(s.rest) > 0 {
			sum := int64(0)
			for _, v := range s.rest {
				sum += place.value(v)
			}
			p.line(jobs, other, place.state, float64(sum))
		}
	}
}

// label adds the labels of the next queue, open for more.
func (p *page) label(pool, namespace, name string) {
	b := append(p.labels, `{namespace="`...)
	b = appendLabel(b, namespace)
	b = append(b, `",pool="`...)
	b = appendLabel(b, pool)
	b = append(b, `",queue="`...)
	b = appendLabel(b, name)
	p.labels = append(b, '"')
	p.ends = append(p.ends, len(p.labels))
}

// appendLabel writes a name as the text format wants it.
func appendLabel(b []byte, name string) []byte {
	for _, c := range []byte(lmstfy.Label(name)) {
		switch c {
		case '\\', '"':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, c)
		}
	}
	return b
}

func (p *page) head(name, help string, kind prometheus.ValueType) {
	word := "gauge"
	if kind == counter {
		word = "counter"
	}
	p.out = append(p.out, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+word+"\n"...)
}

// line writes one series of the i-th queue; place is the label state, empty is
// none.
func (p *page) line(name string, i int, place string, v float64) {
	from := 0
	if i > 0 {
		from = p.ends[i-1]
	}
	b := append(p.out, name...)
	b = append(b, p.labels[from:p.ends[i]]...)
	if place != "" {
		b = append(b, `,state="`...)
		b = append(b, place...)
		b = append(b, '"')
	}
	b = append(b, '}', ' ')
	if whole := int64(v); float64(whole) == v && math.Abs(v) < 1<<53 {
		b = strconv.AppendInt(b, whole, 10)
	} else {
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	if p.out = append(b, '\n'); len(p.out) >= pieceBytes {
		p.flush()
	}
}
