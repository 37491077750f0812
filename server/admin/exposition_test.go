package admin_test

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/server/admin"
	"pawl/state"
)

// manyQueues is an engine with n queues.
func manyQueues(n int) *published {
	e := &published{numbers: engine.Numbers{QueueCount: int64(n)}}
	for i := range n {
		e.census.Queues = append(e.census.Queues, engine.QueueView{
			Key: fmt.Sprintf("default/tenant-%05d/mail", i), Ready: int64(i), OldestReadyMs: state.Millis(i), Totals: state.Totals{Enqueued: uint64(i) * 1000},
		})
	}
	return e
}

// TestMetricsArePacked: over a wire the page is packed when the scraper takes
// that, and says the same; on one machine it is not.
func TestMetricsArePacked(t *testing.T) {
	s := newServer(t, admin.Options{MaxQueueSeries: 50})
	s.SetEngine(manyQueues(60))
	get := func(remote string) *httptest.ResponseRecorder {
		return ask(s, "GET", "/metrics", func(r *http.Request) {
			r.RemoteAddr = remote
			r.Header.Set("Accept-Encoding", "gzip")
			r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,text/plain;version=0.0.4;q=0.3")
		})
	}
	near, far := get("127.0.0.1:1"), get("192.0.2.1:1")
	if near.Header().Get("Content-Encoding") != "" || far.Header().Get("Content-Encoding") != "gzip" || far.Body.Len() > near.Body.Len()/4 {
		t.Fatalf("near %q %d bytes, far %q %d bytes", near.Header().Get("Content-Encoding"), near.Body.Len(), far.Header().Get("Content-Encoding"), far.Body.Len())
	}
	unpacked, err := gzip.NewReader(far.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{near.Body.String(), string(text)} {
		for _, want := range []string{
			`pawl_queue_oldest_ready_seconds{namespace="tenant-00049",pool="default",queue="mail"} 0.049`,
			`pawl_queue_enqueued_total{namespace="tenant-00049",pool="default",queue="mail"} 49000`,
			`pawl_queue_jobs{namespace="",pool="",queue="(other)",state="ready"} 545`,
		} {
			if !strings.Contains(page, want+"\n") {
				t.Errorf("no line %s", want)
			}
		}
		if strings.Contains(page, "tenant-00050") {
			t.Error("the 51st queue has series")
		}
	}
	if kind := far.Header().Get("Content-Type"); !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("got content type %s", kind)
	}
}

// TestOtherQueuesOnlyRise: a queue that has series keeps them while it lives, and
// the counters of the others neither fall nor leap, whichever come and go.
func TestOtherQueuesOnlyRise(t *testing.T) {
	s := newServer(t, admin.Options{MaxQueueSeries: 3})
	e := manyQueues(5)
	s.SetEngine(e)
	queue := func(name string) int {
		return slices.IndexFunc(e.census.Queues, func(v engine.QueueView) bool { return v.Key == "default/"+name+"/mail" })
	}
	does := func(name string, n uint64) { e.census.Queues[queue(name)].Totals.Enqueued += n }
	leaves := func(name string) engine.QueueView {
		v := e.census.Queues[queue(name)]
		e.census.Queues = slices.Delete(e.census.Queues, queue(name), queue(name)+1)
		return v
	}
	e.census.Ended = map[string]state.Totals{}
	goes := func(name string) {
		ended := e.census.Ended["default"]
		ended.Enqueued += leaves(name).Totals.Enqueued
		e.census.Ended["default"] = ended
	}
	for i := range e.census.Queues {
		e.census.Queues[i].Serial = uint64(i + 1)
	}
	check := func(when, want string) {
		t.Helper()
		var got []string
		for line := range strings.Lines(scrape(t, s)) {
			if labels, ok := strings.CutPrefix(line, `pawl_queue_enqueued_total{namespace="`); ok {
				name, _, _ := strings.Cut(labels, `"`)
				got = append(got, cmp.Or(name, "(other)")+":"+strings.TrimSpace(labels[strings.LastIndex(labels, " "):]))
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	check("first", "tenant-00000:0 tenant-00001:1000 tenant-00002:2000 (other):7000")
	e.census.Queues = slices.Insert(e.census.Queues, 0, engine.QueueView{Key: "default/a/mail", Serial: 6, Totals: state.Totals{Enqueued: 500}})
	check("one comes that is first by name", "tenant-00000:0 tenant-00001:1000 tenant-00002:2000 (other):7500")
	does("tenant-00004", 7)
	goes("tenant-00004")
	check("one of the others has jobs and goes", "tenant-00000:0 tenant-00001:1000 tenant-00002:2000 (other):7507")
	does("tenant-00003", 10)
	check("one of the others has a job", "tenant-00000:0 tenant-00001:1000 tenant-00002:2000 (other):7517")
	does("tenant-00001", 20)
	does("tenant-00003", 1)
	goes("tenant-00001")
	check("one that has series has jobs and goes: there is room", "a:500 tenant-00000:0 tenant-00002:2000 (other):7538")
	e.census.Queues = append(e.census.Queues, engine.QueueView{Key: "default/z/mail", Serial: 7})
	away := leaves("tenant-00003")
	check("one of the others is in no table for a moment", "a:500 tenant-00000:0 tenant-00002:2000 (other):7538")
	e.census.Queues = append(e.census.Queues, away)
	does("tenant-00003", 2)
	check("it is back", "a:500 tenant-00000:0 tenant-00002:2000 (other):7540")
	does("tenant-00000", 4)
	goes("tenant-00000")
	e.census.Queues = slices.Insert(e.census.Queues, 1, engine.QueueView{Key: "default/tenant-00000/mail", Serial: 8, Totals: state.Totals{Enqueued: 30}})
	check("one goes, and another comes by its name", "a:500 tenant-00000:30 tenant-00002:2000 (other):7544")
	does("tenant-00002", 5)
	s.SetMaxQueueSeries(1)
	check("one that had series has a job, and fewer may have them", "a:500 (other):7549")
	does("tenant-00002", 5)
	check("one that had series has a job", "a:500 (other):7554")
}

// BenchmarkScrape is one scrape of 10,000 queues that all have series, 180,000 of
// them.
func BenchmarkScrape(b *testing.B) {
	s := newServer(b, admin.Options{MaxQueueSeries: 10_000})
	s.SetEngine(manyQueues(10_000))
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	b.ReportAllocs()
	for b.Loop() {
		w := countingWriter{header: http.Header{}}
		s.ServeHTTP(&w, r)
		b.SetBytes(w.bytes)
	}
}

// countingWriter is a reader that is never slow.
type countingWriter struct {
	header http.Header
	bytes  int64
}

func (w *countingWriter) Header() http.Header { return w.header }
func (w *countingWriter) WriteHeader(int)     {}
func (w *countingWriter) Write(b []byte) (int, error) {
	w.bytes += int64(len(b))
	return len(b), nil
}
