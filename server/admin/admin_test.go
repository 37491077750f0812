package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/server/admin"
	"pawl/server/lmstfy"
	"pawl/server/resp"
	"pawl/state"
)

var update = flag.Bool("update", false, "rewrite the files in docs that are made from code")

// published is an engine of which only the published numbers can be read: a test
// that waits for anything else meets a nil pointer.
type published struct {
	admin.Engine
	numbers engine.Numbers
	census  engine.Census
	failure error
}

func (p *published) Numbers() engine.Numbers { return p.numbers }
func (p *published) Census() *engine.Census  { return &p.census }
func (p *published) Failure() error          { return p.failure }
func (p *published) SomeQueues(n int) []engine.QueueView {
	return p.census.Queues[:min(n, len(p.census.Queues))]
}
func (p *published) Histograms() engine.Histograms {
	h := engine.Histogram{Upper: []float64{0.001, 0.01}, Below: []uint64{5, 9}, Count: 10, Sum: 0.5}
	return engine.Histograms{SyncSeconds: h, GroupRecords: h, GroupBytes: h, WaitSeconds: h, RunSeconds: h, TurnSeconds: h, TurnCPUSeconds: h, LateSeconds: h, LessOwnSync: h, LessAllSyncs: h}
}

func (p *published) JobHistory(context.Context, state.JobID, engine.LSN) (engine.JobHistory, error) {
	return engine.JobHistory{}, nil
}

// Submit and Wait let the public edge read that there are no tokens.
func (p *published) Submit(...engine.Command) engine.LSN { return 0 }
func (p *published) Wait(engine.LSN) error               { return nil }

// pair is the admin server with the public edge behind it.
type pair struct {
	*admin.Server
	public *lmstfy.Server
	t      testing.TB
}

func (p *pair) SetEngine(e admin.Engine) {
	p.t.Helper()
	if err := p.public.SetEngine(e); err != nil {
		p.t.Fatal(err)
	}
	p.Server.SetEngine(e)
}

func newServer(t testing.TB, o admin.Options, accounts ...map[string]string) *pair {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	logins := map[string]string{}
	for _, more := range accounts {
		maps.Copy(logins, more)
	}
	public, err := lmstfy.New(lmstfy.Options{Pools: []string{"other"}, Accounts: logins, Log: log, Version: o.Version, MaxQueueSeries: o.MaxQueueSeries})
	if err != nil {
		t.Fatal(err)
	}
	o.Lmstfy, o.Log = public, log
	s, err := admin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{s, public, t}
}

// ask sends one request to a handler; mod may change it before.
func ask(h http.Handler, method, target string, mod ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:7778"
	for _, m := range mod {
		m(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestHealth(t *testing.T) {
	ready := func(s http.Handler) (int, []string) {
		t.Helper()
		w := ask(s, "GET", "/readyz")
		var body struct {
			Ready   bool
			Reasons []admin.Reason
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("readyz: %v in %s", err, w.Body)
		}
		if body.Ready != (w.Code == 200) {
			t.Errorf("readyz: status %d says ready %t", w.Code, body.Ready)
		}
		codes := []string{}
		for _, r := range body.Reasons {
			if r.Detail == "" {
				t.Errorf("reason %s has no sentence", r.Code)
			}
			codes = append(codes, r.Code)
		}
		return w.Code, codes
	}
	s := newServer(t, admin.Options{Loading: func() (int64, int64) { return 10, 40 }})
	if w := ask(s, "GET", "/livez"); w.Code != 200 {
		t.Errorf("livez while loading: got %d, want 200", w.Code)
	}
	if code, codes := ready(s); code != 503 || !slices.Equal(codes, []string{"loading"}) {
		t.Errorf("while loading: got %d %v, want 503 loading", code, codes)
	}
	if w := ask(s, "GET", "/readyz"); !strings.Contains(w.Body.String(), "10 of 40 bytes") {
		t.Errorf("while loading: no progress in %s", w.Body)
	}
	e := &published{}
	s.SetEngine(e)
	if code, codes := ready(s); code != 200 || len(codes) != 0 {
		t.Errorf("at work: got %d %v, want 200", code, codes)
	}
	e.numbers = engine.Numbers{Full: true, Draining: true, OldestUnsyncedMs: 10_000}
	e.failure = errors.New("write: input/output error")
	if code, codes := ready(s); code != 503 || !slices.Equal(codes, []string{"failed", "full", "draining", "hung"}) {
		t.Errorf("with everything wrong: got %d %v", code, codes)
	}
	e.numbers, e.failure = engine.Numbers{OldestUnsyncedMs: 9_999}, nil
	if code, _ := ready(s); code != 200 {
		t.Errorf("a slow disk: got %d, want 200", code)
	}
	s.Shutdown()
	if code, codes := ready(s); code != 503 || !slices.Equal(codes, []string{"stopping"}) {
		t.Errorf("at shutdown: got %d %v, want 503 stopping", code, codes)
	}
}

func TestGuard(t *testing.T) {
	s := newServer(t, admin.Options{Hosts: []string{"queue.example"}})
	s.SetEngine(&published{})
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, tt := range []struct {
		name, method, path string
		mod                func(*http.Request)
		want               int
	}{
		{"address", "GET", "/api/v1/overview", host("127.0.0.1:7778"), 200},
		{"IPv6 address", "GET", "/api/v1/overview", host("[::1]:7778"), 200},
		{"localhost", "GET", "/api/v1/overview", host("LOCALHOST"), 200},
		{"allowed name", "GET", "/api/v1/overview", host("Queue.Example:7778"), 200},
		{"rebound name", "GET", "/api/v1/overview", host("evil.example"), 403},
		{"rebound name, dashboard", "GET", "/", host("evil.example"), 403},
		{"rebound name, tokens", "GET", "/token/ns", host("evil.example"), 403},
		{"no name", "GET", "/api/v1/overview", host(""), 403},
		{"scraper by any name", "GET", "/metrics", host("pawl.svc.cluster"), 200},
		{"probe by any name", "GET", "/livez", host("pawl.svc.cluster"), 200},
		{"cross-site POST", "POST", "/api/v1/drain", header("Origin", "http://evil.example"), 403},
		{"cross-site POST by another mark", "POST", "/token/ns?description=x", header("Sec-Fetch-Site", "cross-site"), 403},
		{"cross-site GET shows nothing to its page", "GET", "/api/v1/overview", header("Origin", "http://evil.example"), 200},
		{"POST without a type", "POST", "/api/v1/drain", func(*http.Request) {}, 415},
		{"POST as a form", "POST", "/api/v1/drain", header("Content-Type", "application/x-www-form-urlencoded"), 415},
		{"POST as text", "POST", "/api/v1/drain", header("Content-Type", "text/plain"), 415},
		{"unknown route", "GET", "/api/v1/nothing", func(*http.Request) {}, 404},
		{"wrong method", "DELETE", "/api/v1/drain", func(*http.Request) {}, 404},
		{"unknown parameter", "GET", "/api/v1/overview?x=1", func(*http.Request) {}, 400},
		{"missing parameter", "GET", "/api/v1/queue", func(*http.Request) {}, 400},
		{"parameter of another type", "GET", "/api/v1/queues?count=x", func(*http.Request) {}, 400},
		{"pprof is off", "GET", "/debug/pprof/", func(*http.Request) {}, 404},
	} {
		w := ask(s, tt.method, tt.path, tt.mod)
		if w.Code != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, w.Code, w.Body, tt.want)
		}
		if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: no nosniff", tt.name)
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s: lets %s read it", tt.name, got)
		}
	}
}

func TestAccounts(t *testing.T) {
	s := newServer(t, admin.Options{Pprof: true}, map[string]string{"op": "secret"})
	s.SetEngine(&published{})
	login := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	for i, path := range []string{"/", "/assets/app.js", "/api/v1/overview", "/api/v1/openapi.json", "/token/ns", "/limits", "/debug/pprof/"} {
		from := func(r *http.Request) { r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1234", i+1) }
		w := ask(s, "GET", path, from)
		if w.Code != 401 || w.Header().Get("WWW-Authenticate") != `Basic realm="Authorization Required"` || w.Body.Len() != 0 {
			t.Errorf("GET %s without a login: got %d %q", path, w.Code, w.Body)
		}
		for _, mod := range []func(*http.Request){login("op", "wrong"), login("nobody", ""), login("nobody", "secret"), login("", "")} {
			if w := ask(s, "GET", path, from, mod); w.Code != 401 {
				t.Errorf("GET %s with a wrong login: got %d, want 401", path, w.Code)
			}
		}
		if w := ask(s, "GET", path, from, login("op", "secret")); w.Code != 200 {
			t.Errorf("GET %s with the login: got %d %s, want 200", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/metrics", "/livez", "/readyz", "/version", "/pools", "/accesslog"} {
		if w := ask(s, "GET", path); w.Code == 401 {
			t.Errorf("GET %s: needs a login, want open", path)
		}
	}
	if w := ask(s, "POST", "/accesslog?status=enable"); w.Code != 401 {
		t.Errorf("POST /accesslog without a login: got %d, want 401", w.Code)
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/symbol"} {
		if w := ask(s, "GET", path, login("op", "secret")); w.Code != 404 {
			t.Errorf("GET %s: got %d, want 404", path, w.Code)
		}
	}
}

// TestGuessing: an address that has been wrong too often is refused without a
// look, even when it is right at last; others, and whoever was right before from
// the same address, go on.
func TestGuessing(t *testing.T) {
	s := newServer(t, admin.Options{}, map[string]string{"op": "secret", "boss": "hidden"})
	s.SetEngine(&published{})
	from := func(addr, user, password string) int {
		return ask(s, "GET", "/api/v1/overview", func(r *http.Request) {
			r.RemoteAddr = addr
			if user != "" {
				r.SetBasicAuth(user, password)
			}
		}).Code
	}
	const evil, other = "[2001:db8::1]:1234", "192.0.2.1:1234"
	if got := from(evil, "boss", "hidden"); got != 200 {
		t.Fatalf("the first login: got %d, want 200", got)
	}
	for i := range 10 {
		if got := from(evil, "op", fmt.Sprint("guess", i)); got != 401 {
			t.Fatalf("guess %d: got %d, want 401", i, got)
		}
	}
	for range 20 { // these cost nothing
		if got := from(evil, "", ""); got != 401 {
			t.Fatalf("without a login: got %d, want 401", got)
		}
	}
	// The whole network of an IPv6 address is one, and the token routes count too.
	neighbour := "[2001:db8::2]:9"
	w := ask(s, "GET", "/token/ns", func(r *http.Request) { r.RemoteAddr = neighbour; r.SetBasicAuth("op", "secret") })
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || w.Body.Len() != 0 {
		t.Errorf("the right password after ten wrong ones: got %d, Retry-After %q, %q", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
	if got := from(evil, "boss", "hidden"); got != 200 {
		t.Errorf("who was logged in before from there: got %d, want 200", got)
	}
	if got := from(other, "op", "secret"); got != 200 {
		t.Errorf("from another address: got %d, want 200", got)
	}
	text := scrape(t, s)
	for _, want := range []string{"pawl_admin_auth_failures_total 10", "pawl_admin_auth_locked_total 1"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	// Accounts that are changed hold at once.
	s.public.Accounts().Set(map[string]string{"op": "new"})
	if got := from(other, "op", "secret"); got != 401 {
		t.Errorf("the old password: got %d, want 401", got)
	}
	if got := from(other, "op", "new"); got != 200 {
		t.Errorf("the new password: got %d, want 200", got)
	}
	s.public.Accounts().Set(nil)
	if got := from(evil, "", ""); got != 200 {
		t.Errorf("without accounts: got %d, want 200", got)
	}
}

// TestDashboardIsStrict: nothing inline, nothing from elsewhere, not too much.
func TestDashboardIsStrict(t *testing.T) {
	s := newServer(t, admin.Options{})
	s.SetEngine(&published{})
	total := 0
	for _, path := range []string{"/", "/assets/app.js", "/assets/app.css"} {
		w := ask(s, "GET", path)
		if w.Code != 200 {
			t.Fatalf("GET %s: got %d", path, w.Code)
		}
		csp := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("GET %s: policy %q", path, csp)
		}
		body := w.Body.String()
		total += len(body)
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://", " style=\"", "onclick=", "<style"} {
			if i := strings.Index(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), bad); i >= 0 {
				t.Errorf("GET %s has %q", path, bad)
			}
		}
		tag := w.Header().Get("ETag")
		if w := ask(s, "GET", path, header("If-None-Match", tag)); tag == "" || w.Code != 304 || w.Body.Len() != 0 {
			t.Errorf("GET %s again: got %d and %d bytes, want 304 without any", path, w.Code, w.Body.Len())
		}
	}
	if total > 200_000 {
		t.Errorf("the dashboard has %d bytes, want at most 200,000", total)
	}
}

// edge is a RESP edge with something of each number.
type edge struct{ admin.RESP }

func (*edge) Numbers() resp.Numbers {
	return resp.Numbers{PerCommand: map[string]uint64{"PING": 1}, Closed: map[string]uint64{"idle": 1}}
}

// sampleEngine has something of everything, and more queues than have series.
func sampleEngine() *published {
	e := &published{numbers: engine.Numbers{QueueCount: 3}}
	for _, key := range []string{"default/default/mail", "default/n\"s/\xff", "other/ns/q"} {
		e.census.Queues = append(e.census.Queues, engine.QueueView{Key: key, Ready: 2, Dead: 1, Totals: state.Totals{Enqueued: 5}})
	}
	return e
}

func scrape(t *testing.T, s http.Handler) string {
	t.Helper()
	w := ask(s, "GET", "/metrics")
	if w.Code != 200 {
		t.Fatalf("GET /metrics: got %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetricsOfQueues(t *testing.T) {
	s := newServer(t, admin.Options{MaxQueueSeries: 2})
	e := sampleEngine()
	queues := e.census.Queues
	e.census.Queues = nil // lmstfy's counters begin at 0 with the engine
	s.SetEngine(e)
	e.census.Queues = queues
	text := scrape(t, s)
	for _, want := range []string{
		`pawl_queue_jobs{namespace="default",pool="default",queue="mail",state="ready"} 2`,
		`pawl_queue_jobs{namespace="\"n\\\"s\"",pool="default",queue="\"\\xff\"",state="dead"} 1`,
		`pawl_queue_enqueued_total{namespace="",pool="",queue="(other)"} 5`,
		`pawl_queues 3`,
		`pawl_ready 1`,
		`pawl_log_sync_seconds_bucket{le="0.01"} 9`,
		`infra_lmstfy_redis_queue_sizes{namespace="default",pool="default",queue="mail"} 2`,
		`infra_lmstfy_redis_publish_jobs{pool="other"} 5`,
		`infra_lmstfy_redis_publish_jobs{pool="default"} 10`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	if strings.Contains(text, `queue="q"`) {
		t.Errorf("the third queue has series, want only two")
	}
}

func TestMetricsWhileLoading(t *testing.T) {
	s := newServer(t, admin.Options{Loading: func() (int64, int64) { return 10, 40 }})
	text := scrape(t, s)
	for _, want := range []string{"pawl_ready 0", "pawl_replay_done_bytes 10", "pawl_replay_total_bytes 40"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
}

// TestMetricsAreDocumented holds docs/metrics.md to what is served, both ways.
func TestMetricsAreDocumented(t *testing.T) {
	s := newServer(t, admin.Options{
		MaxQueueSeries: 2,
		Loading:        func() (int64, int64) { return 1, 2 },
		Resp:           &edge{},
	})
	served := map[string]bool{}
	collect := func() {
		for line := range strings.Lines(scrape(t, s)) {
			if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
				served[strings.Fields(name)[0]] = true
			}
		}
	}
	collect()
	s.SetEngine(sampleEngine())
	collect()

	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(rest, "`")
			documented[name] = true
		}
	}
	ours := func(name string) bool {
		return strings.HasPrefix(name, "pawl_") || strings.HasPrefix(name, "infra_lmstfy_")
	}
	for name := range served {
		if ours(name) && !documented[name] {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
	for name := range documented {
		// These have no series before the first request.
		if !served[name] && !strings.HasPrefix(name, "infra_lmstfy_http_") && !strings.Contains(name, "elapsed_ms") {
			t.Errorf("docs/metrics.md has %s, which is not served", name)
		}
	}
}

// TestOpenAPI keeps docs/openapi.json, and every route in it alive.
func TestOpenAPI(t *testing.T) {
	s := newServer(t, admin.Options{})
	s.SetEngine(&published{})
	w := ask(s, "GET", "/api/v1/openapi.json")
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters  []struct{ Name string }
			RequestBody *struct{}
			Responses   map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Paths) < 25 {
		t.Fatalf("only %d paths", len(doc.Paths))
	}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			// An unknown parameter is refused before anything is done, by the route
			// itself: the router would say 404.
			w := ask(s, strings.ToUpper(method), path+"?no-such-parameter=1", header("Content-Type", "application/json"))
			if w.Code != 400 || !strings.Contains(w.Body.String(), "no-such-parameter") {
				t.Errorf("%s %s: got %d %s, want it to be there and refuse a parameter", method, path, w.Code, w.Body)
			}
			if (method == "post") != (op.RequestBody != nil) {
				t.Errorf("%s %s: body in the description is %t", method, path, op.RequestBody != nil)
			}
			if _, ok := op.Responses["200"]; !ok {
				t.Errorf("%s %s: no description of its reply", method, path)
			}
		}
	}
	var indented strings.Builder
	enc := json.NewEncoder(&indented)
	enc.SetIndent("", "  ")
	var any map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &any); err != nil {
		t.Fatal(err)
	}
	if err := enc.Encode(any); err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/openapi.json"
	if *update {
		if err := os.WriteFile(file, []byte(indented.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != indented.String() {
		t.Errorf("%s is not what is served; go test -run TestOpenAPI -update ./server/admin", file)
	}
}

func TestLoadingRefusesJobs(t *testing.T) {
	s := newServer(t, admin.Options{})
	w := ask(s, "GET", "/api/v1/overview")
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d, Retry-After %q, want 503 with one", w.Code, w.Header().Get("Retry-After"))
	}
	body, _ := io.ReadAll(w.Body)
	if !strings.Contains(string(body), `"code":"loading"`) {
		t.Errorf("got %s", body)
	}
}
