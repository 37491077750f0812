package lmstfy_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/server/servertest"
)

// gather are all values of the collector, by name and labels.
func gather(t *testing.T, s *shop) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(s.server.Collector()); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := strings.TrimPrefix(f.GetName(), "infra_lmstfy_") + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.Counter != nil:
				values[name] = m.Counter.GetValue()
			case m.Gauge != nil:
				values[name] = m.Gauge.GetValue()
			case m.Histogram != nil:
				values[name] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return values
}

// TestMetrics: every name and label of lmstfy that has a meaning here, and what
// they say. The census behind some of them is at most a second old.
func TestMetrics(t *testing.T) {
	bubble(t, lmstfy.Options{}, func(t *testing.T, s *shop) {
		token := s.token("ns")
		as := "X-Token: " + token
		if err := s.server.Tokens().SetLimit("ns", token, lmstfy.Limit{Read: 0, Write: 3, Interval: 60}, true); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			send(t, s.public, "PUT", "/api/ns/q?tries=1", "x", as)
		}
		send(t, s.public, "PUT", "/api/ns/q", "x", as)
		send(t, s.public, "GET", "/api/ns/q?count=2&ttr=1", "", as)
		got := send(t, s.public, "GET", "/api/ns/q?ttr=9", "", as)
		id := strings.SplitN(strings.SplitN(got.body, `"job_id":"`, 2)[1], `"`, 2)[0]
		time.Sleep(2 * time.Second)
		send(t, s.public, "PUT", "/api/ns/q/deadletter?limit=1", "", as)
		send(t, s.public, "DELETE", "/api/ns/q/job/"+id, "", as)
		send(t, s.public, "GET", "/api/ns/q/nothing", "", as)
		send(t, s.public, "PUT", "/api/secret/q", "", "X-Token: wrong")
		var polls sync.WaitGroup
		polls.Go(func() { send(t, s.public, "GET", "/api/ns/none?timeout=5", "", as) })
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if n := s.engine.Histograms().LessOwnSync.Count; n != 3 {
			t.Errorf("got the times of %d publishes, want 3", n)
		}
		values := gather(t, s)
		for name, want := range map[string]float64{
			"http_http_codes{api=/api/:namespace/:queue,code=201,method=PUT,namespace=ns,pool=default}":                 3,
			"http_http_codes{api=/api/:namespace/:queue,code=429,method=PUT,namespace=ns,pool=default}":                 1,
			"http_http_codes{api=/api/:namespace/:queue,code=401,method=PUT,namespace=,pool=default}":                   1,
			"http_http_codes{api=/api/:namespace/:queue/peek,code=200,method=GET,namespace=ns,pool=default}":            2,
			"http_http_codes{api=/api/:namespace/:queue/job/:job_id,code=204,method=DELETE,namespace=ns,pool=default}":  1,
			"http_http_codes{api=,code=404,method=GET,namespace=,pool=}":                                                1,
			"http_latency_milliseconds{api=/api/:namespace/:queue,method=PUT,namespace=ns,pool=default}":                3,
			"http_latency_milliseconds{api=/api/:namespace/:queue/peek,method=GET,namespace=ns,pool=default}":           2,
			"http_latency_milliseconds{api=/api/:namespace/:queue/job/:job_id,method=DELETE,namespace=ns,pool=default}": 1,
			"http_rate_limit{action=produce,namespace=ns,pool=default,token=" + token[:10] + "…}":                       1,
			"redis_publish_jobs{pool=default}":                            3,
			"redis_consume_jobs{pool=default}":                            0,
			"redis_consume_multi_jobs{pool=default}":                      3,
			"redis_pool_add_jobs{pool=default}":                           3,
			"redis_pool_get_jobs{pool=default}":                           3,
			"redis_pool_delete_jobs{pool=default}":                        1,
			"redis_timer_add_jobs{pool=default}":                          3,
			"redis_timer_due_jobs{pool=default}":                          2,
			"redis_queue_pop_jobs{pool=default}":                          3,
			"redis_deadletter_respawn_jobs{pool=default}":                 1,
			"redis_timer_sizes{pool=default}":                             0,
			"redis_total_keys{pool=default}":                              2,
			"redis_blocking_connections{pool=default}":                    1,
			"redis_job_elapsed_ms{namespace=ns,pool=default,queue=q}":     3,
			"redis_job_ack_elapsed_ms{namespace=ns,pool=default,queue=q}": 1,
		} {
			if value, ok := values[name]; !ok || value != want {
				t.Errorf("%s is %v (there: %v), want %v", name, value, ok, want)
			}
		}
		if t.Failed() {
			for name, value := range values {
				t.Logf("%s %v", name, value)
			}
		}
		per := map[string]bool{}
		for _, q := range lmstfy.PerQueue {
			per[q.Name] = true
		}
		for _, name := range []string{"publish_queue_jobs", "consume_queue_jobs", "queue_sizes", "deadletter_sizes"} {
			if !per["infra_lmstfy_redis_"+name] {
				t.Errorf("no %s for each queue", name)
			}
		}
		polls.Wait()
	})
}

// TestPoolCountersOnlyRise: also when a queue goes, with all that it has done, and from
// 0 after a restart.
func TestPoolCountersOnlyRise(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		const name = "redis_publish_jobs{pool=default}"
		check := func(want float64) {
			t.Helper()
			time.Sleep(1100 * time.Millisecond) // the census is made anew
			if got := gather(t, s)[name]; got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		for _, q := range []string{"a", "a", "b"} {
			send(t, s.public, "PUT", "/api/ns/"+q, "x")
		}
		check(3)
		gone := &engine.QueueDelete{Queue: []byte("default/ns/a")}
		if err := s.engine.Wait(s.engine.Submit(gone)); err != nil || gone.Err() != nil {
			t.Fatal(err, gone.Err())
		}
		check(3)
		for range 2 { // done and gone between two scrapes
			for range 5 {
				send(t, s.public, "PUT", "/api/ns/a", "x")
			}
			if err := s.engine.Wait(s.engine.Submit(gone)); err != nil || gone.Err() != nil {
				t.Fatal(err, gone.Err())
			}
		}
		check(13)
		send(t, s.public, "PUT", "/api/ns/b", "x")
		check(14)
		servertest.Close(t, s.engine)
		s.open(lmstfy.Options{SkipTokens: true})
		check(0)
		send(t, s.public, "PUT", "/api/ns/b", "x")
		check(1)
	})
}

// TestQueueSeriesGo: with the queue, and when fewer may have series.
func TestQueueSeriesGo(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true, MaxQueueSeries: 4}, func(t *testing.T, s *shop) {
		use := func(queues string) {
			for _, q := range strings.Fields(queues) {
				send(t, s.public, "PUT", "/api/ns/"+q, "x")
				got := send(t, s.public, "GET", "/api/ns/"+q, "")
				id := strings.SplitN(strings.SplitN(got.body, `"job_id":"`, 2)[1], `"`, 2)[0]
				send(t, s.public, "DELETE", "/api/ns/"+q+"/job/"+id, "")
			}
		}
		check := func(want string) {
			t.Helper()
			time.Sleep(1100 * time.Millisecond) // the census is made anew
			values := gather(t, s)
			for _, name := range []string{"redis_job_elapsed_ms", "redis_job_ack_elapsed_ms"} {
				var got []string
				for series, n := range values {
					if labels, ok := strings.CutPrefix(series, name+"{namespace="); ok {
						_, queue, _ := strings.Cut(labels, "queue=")
						got = append(got, fmt.Sprint(strings.TrimSuffix(queue, "}"), ":", n))
					}
				}
				slices.Sort(got)
				if got := strings.Join(got, " "); got != want {
					t.Errorf("%s: got %s, want %s", name, got, want)
				}
			}
		}
		use("d c b a e")
		check("(other):1 a:1 b:1 c:1 d:1")
		s.server.SetMaxQueueSeries(2)
		check("(other):1 a:1 b:1")
		use("a d")
		check("(other):2 a:2 b:1")
		gone := &engine.QueueDelete{Queue: []byte("default/ns/a")}
		if err := s.engine.Wait(s.engine.Submit(gone)); err != nil || gone.Err() != nil {
			t.Fatal(err, gone.Err())
		}
		check("(other):2 a:2 b:1")
		check("(other):2 b:1")
		s.server.SetMaxQueueSeries(3)
		use("d e f")
		check("(other):3 b:1 d:1 e:1")
	})
}

// TestLimiterSeriesGo: with the limiter, also when its token is deleted.
func TestLimiterSeriesGo(t *testing.T) {
	bubble(t, lmstfy.Options{}, func(t *testing.T, s *shop) {
		limited := func() (n int) {
			for name := range gather(t, s) {
				if strings.HasPrefix(name, "http_rate_limit{") {
					n++
				}
			}
			return n
		}
		var tokens []string
		for range 2 {
			token := s.token("ns")
			tokens = append(tokens, token)
			if err := s.server.Tokens().SetLimit("ns", token, lmstfy.Limit{Write: 1, Interval: 60}, true); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				send(t, s.public, "PUT", "/api/ns/q", "x", "X-Token: "+token)
			}
			time.Sleep(time.Second) // tokens of one moment begin alike
		}
		if n := limited(); n != 2 {
			t.Errorf("two tokens over their limits have %d series", n)
		}
		if err := s.server.Tokens().DeleteLimit("ns", tokens[0]); err != nil {
			t.Fatal(err)
		}
		if n := limited(); n != 1 {
			t.Errorf("one limiter has gone, and there are %d series", n)
		}
		if err := s.server.Tokens().Delete("ns", tokens[1]); err != nil {
			t.Fatal(err)
		}
		if n := limited(); n != 0 {
			t.Errorf("no limiter is left, and there are %d series", n)
		}
	})
}

// callSeries counts the series of calls of a namespace, "" for all of them.
func callSeries(t *testing.T, s *shop, namespace string) (n int) {
	t.Helper()
	for name := range gather(t, s) {
		if strings.HasPrefix(name, "http_http_codes{") || strings.HasPrefix(name, "http_latency_milliseconds{") {
			if namespace == "" || strings.Contains(name, "namespace="+namespace+",") {
				n++
			}
		}
	}
	return n
}

// TestNamespaceSeriesGo: with the last token of the namespace, whatever its clients
// still do, and the next namespace has series of its own.
func TestNamespaceSeriesGo(t *testing.T) {
	bubble(t, lmstfy.Options{Pools: []string{"p"}}, func(t *testing.T, s *shop) {
		first, second, other := s.token("ns"), s.token("ns"), s.token("other")
		elsewhere, err := s.server.Tokens().Create("p", "ns", "", "the namespace of the same name in another pool")
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{first, second, elsewhere} {
			send(t, s.public, "PUT", "/api/ns/q", "x", "X-Token: "+token)
			send(t, s.public, "GET", "/api/ns/none", "", "X-Token: "+token)
		}
		send(t, s.public, "PUT", "/api/other/q", "x", "X-Token: "+other)
		drop := func(token string) {
			t.Helper()
			if err := s.server.Tokens().Delete("ns", token); err != nil {
				t.Fatal(err)
			}
		}
		before := callSeries(t, s, "ns")
		if drop(first); callSeries(t, s, "ns") != before {
			t.Errorf("got %d series when a token is left, want %d", callSeries(t, s, "ns"), before)
		}
		var poll sync.WaitGroup
		poll.Go(func() { send(t, s.public, "GET", "/api/ns/none?timeout=5", "", "X-Token: "+second) })
		time.Sleep(time.Second)
		drop(second)
		if got := callSeries(t, s, "ns"); got != before/2 { // those of the other pool
			t.Errorf("got %d series when no token is left, want %d", got, before/2)
		}
		poll.Wait()
		if got := callSeries(t, s, "ns"); got != before/2 {
			t.Errorf("got %d series when a call outlived the last token, want %d", got, before/2)
		}
		drop(elsewhere)
		if got := callSeries(t, s, "ns"); got != 0 {
			t.Errorf("got %d series in the end, want none", got)
		}
		if got := callSeries(t, s, "other"); got != 2 {
			t.Errorf("got %d series of another namespace, want 2", got)
		}
		send(t, s.public, "PUT", "/api/ns/q", "x", "X-Token: "+s.token("ns"))
		if got := callSeries(t, s, "ns"); got != 2 {
			t.Errorf("got %d series of the namespace that is there again, want 2", got)
		}
	})
}

// TestNamespaceSeriesAreBounded: what is one too many shares a series with others
// of its kind, until there is room.
func TestNamespaceSeriesAreBounded(t *testing.T) {
	bubble(t, lmstfy.Options{}, func(t *testing.T, s *shop) {
		var tokens []string
		use := func(i int) {
			t.Helper()
			if got := send(t, s.public, "GET", fmt.Sprintf("/api/ns%d/none", i), "", "X-Token: "+tokens[i]); got.status != 404 {
				t.Fatalf("got %d", got.status)
			}
		}
		for i := range 1010 {
			tokens = append(tokens, s.token(fmt.Sprint("ns", i)))
			use(i)
		}
		const others = "http_http_codes{api=/api/:namespace/:queue/peek,code=404,method=GET,namespace=(other),pool=default}"
		if n, got := callSeries(t, s, ""), gather(t, s)[others]; n != 1001 || got != 10 {
			t.Errorf("got %d series, of which that of the others counts %v, want 1001 and 10", n, got)
		}
		if err := s.server.Tokens().Delete("ns7", tokens[7]); err != nil {
			t.Fatal(err)
		}
		use(1005)
		use(1006)
		if n, got := callSeries(t, s, "ns1005"), gather(t, s)[others]; n != 1 || got != 11 {
			t.Errorf("with room for one more it has %d series, and the others count %v, want 1 and 11", n, got)
		}
	})
}

// TestLimitedCallsOutlive: a refusal that is counted after its limiter has gone
// leaves no series.
func TestLimitedCallsOutlive(t *testing.T) {
	bubble(t, lmstfy.Options{}, func(t *testing.T, s *shop) {
		token := s.token("ns")
		if err := s.server.Tokens().SetLimit("ns", token, lmstfy.Limit{Write: 1, Interval: 60}, true); err != nil {
			t.Fatal(err)
		}
		refuse := lmstfy.RefuseLater(s.server, "ns", token)
		if err := s.server.Tokens().DeleteLimit("ns", token); err != nil {
			t.Fatal(err)
		}
		refuse()
		for name := range gather(t, s) {
			if strings.HasPrefix(name, "http_rate_limit{") {
				t.Errorf("there is %s", name)
			}
		}
	})
}

// TestLabelsAreBounded: whatever callers send, the number of series is.
func TestLabelsAreBounded(t *testing.T) {
	bubble(t, lmstfy.Options{MaxQueueSeries: 10, Pools: []string{"p"}}, func(t *testing.T, s *shop) {
		token := s.token("ns")
		var g sync.WaitGroup
		for worker := range 4 {
			g.Go(func() {
				for i := range 100 {
					name := fmt.Sprintf("x%d-%d", worker, i)
					send(t, s.public, "PUT", "/api/"+name+"/q?token=bad", "x")
					send(t, s.public, "PUT", "/api/ns/q?token="+name+":bad", "x")
					send(t, s.public, "GET", "/api/"+name+"/q/size", "")
					send(t, s.public, strings.ToUpper("M"+name), "/api/ns/q", "")
					send(t, s.public, "GET", "/"+name, "")
					send(t, s.public, "PUT", "/api/ns/"+name, "x", "X-Token: "+token)
					send(t, s.public, "GET", "/api/ns/"+name, "", "X-Token: "+token)
				}
			})
		}
		g.Wait()
		if n := len(gather(t, s)); n > 100 {
			t.Errorf("%d series after calls with 2,000 names", n)
		}
	})
}
