package lmstfy_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/server/servertest"
	"pawl/state"
)

// bubble runs f on a shop in a bubble.
func bubble(t *testing.T, o lmstfy.Options, f func(t *testing.T, s *shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, openShop(t, o)) })
}

func (s *shop) want(got reply, status int, body string) reply {
	s.t.Helper()
	if got.status != status || mask(got.body) != body {
		s.t.Errorf("got %d %s, want %d %s", got.status, mask(got.body), status, body)
	}
	return got
}

const (
	published = `{"job_id":"<ID>","msg":"published"}`
	noJob     = `{"msg":"no job available"}`
)

// TestWaitIsExact: the deadline counts from the request, and not a nanosecond is
// missing at its end.
func TestWaitIsExact(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		for _, seconds := range []int{1, 3, 40, 86400} {
			start := time.Now()
			s.want(send(t, s.public, "GET", fmt.Sprintf("/api/ns/q?timeout=%d", seconds), ""), 404, noJob)
			if waited, want := time.Since(start), time.Duration(seconds)*time.Second; waited != want {
				t.Errorf("timeout %d s: waited %s", seconds, waited)
			}
		}
	})
}

// TestWaitOutlivesReadTimeout: the limits of an open port are for requests. With a
// body that nobody asked for the same holds.
func TestWaitOutlivesReadTimeout(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		for _, body := range []string{"", "stale"} {
			var g sync.WaitGroup
			g.Go(func() {
				time.Sleep(50 * time.Second)
				send(t, s.public, "PUT", "/api/ns/q", "x")
			})
			got := send(t, s.public, "GET", "/api/ns/q?timeout=60", body)
			if got.status != 200 {
				t.Errorf("body %q: got %d %s, want the job that came after 50 s", body, got.status, got.body)
			}
			g.Wait()
		}
	})
}

// TestHungUpConsumerTakesNoJob: the next job goes to who is still there, and costs
// no try.
func TestHungUpConsumerTakesNoJob(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		ctx, hangUp := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1/api/ns/q?timeout=100", nil)
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error)
		go func() {
			_, err := s.public.Do(r)
			gone <- err
		}()
		synctest.Wait()
		if n := s.engine.Numbers().Waiting; n != 1 {
			t.Fatalf("%d fetchers wait, want 1", n)
		}
		hangUp()
		if err := <-gone; err == nil {
			t.Fatal("the request that was given up had a reply")
		}
		synctest.Wait()
		if n := s.engine.Numbers().Waiting; n != 0 {
			t.Errorf("%d fetchers wait after the hang-up, want 0", n)
		}
		s.want(send(t, s.public, "PUT", "/api/ns/q?tries=2", "precious"), 201, published)
		s.want(send(t, s.public, "GET", "/api/ns/q/size", ""), 200, `{"namespace":"ns","queue":"q","size":1}`)
		got := send(t, s.public, "GET", "/api/ns/q", "")
		if !strings.Contains(got.body, `"remain_tries":1`) {
			t.Errorf("the hang-up cost a try: %s", got.body)
		}
	})
}

// TestOneJobWakesOne of many long polls; the others wait on, and get the next.
func TestOneJobWakesOne(t *testing.T) {
	const polls = 200
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		var g sync.WaitGroup
		replies := make(chan reply, polls)
		for range polls {
			g.Go(func() { replies <- send(t, s.public, "GET", "/api/ns/a,b?timeout=600", "") })
		}
		synctest.Wait()
		for i := range 3 {
			s.want(send(t, s.public, "PUT", "/api/ns/b", "x"), 201, published)
			synctest.Wait()
			if len(replies) != i+1 {
				t.Fatalf("after %d jobs %d polls have ended", i+1, len(replies))
			}
		}
		s.server.Shutdown()
		g.Wait()
		count := map[int]int{}
		for range polls {
			count[(<-replies).status]++
		}
		if count[200] != 3 || count[503] != polls-3 {
			t.Errorf("got %v, want 3 jobs and %d refusals at the shutdown", count, polls-3)
		}
		if n := s.engine.Numbers().Waiting; n != 0 {
			t.Errorf("%d fetchers wait after the shutdown", n)
		}
	})
}

// TestShutdown: what waits is told to come back, at once and with when.
func TestShutdown(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		start := time.Now()
		time.AfterFunc(time.Second, s.server.Shutdown)
		got := s.want(send(t, s.public, "GET", "/api/ns/q?timeout=600", ""), 503, `{"error":"shutting down"}`)
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %s, want 1 s", waited)
		}
	})
}

// TestWhileLoading: what needs no engine is answered as ever.
func TestWhileLoading(t *testing.T) {
	s, err := lmstfy.New(lmstfy.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	client := servertest.Serve(t, s.HTTP())
	admin := servertest.Serve(t, &http.Server{Handler: s.Admin()})
	for _, tt := range []struct {
		client         *http.Client
		method, target string
		status         int
	}{
		{client, "PUT", "/api/ns/q", 503},
		{client, "GET", "/api/ns/q/size", 503},
		{client, "PUT", "/api/n.s/q", 400},
		{client, "GET", "/nothing", 404},
		{admin, "POST", "/token/ns?description=x", 503},
		{admin, "GET", "/info", 503},
		{admin, "GET", "/pools", 200},
	} {
		got := send(t, tt.client, tt.method, tt.target, "")
		if got.status != tt.status {
			t.Errorf("%s %s: got %d %s, want %d", tt.method, tt.target, got.status, got.body, tt.status)
		}
		if got.status == 503 && got.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: no Retry-After", tt.method, tt.target)
		}
	}
}

// TestTokensSurvive a restart, limiters and deletions too.
func TestTokensSurvive(t *testing.T) {
	bubble(t, lmstfy.Options{Pools: []string{"p"}}, func(t *testing.T, s *shop) {
		kept, deleted := s.token("ns"), s.token("ns")
		pooled, err := s.server.Tokens().Create("p", "ns", "", "of p")
		if err != nil {
			t.Fatal(err)
		}
		limit := lmstfy.Limit{Read: 1, Interval: 60}
		if err := s.server.Tokens().SetLimit("ns", kept, limit, true); err != nil {
			t.Fatal(err)
		}
		if err := s.server.Tokens().SetLimit("ns", deleted, limit, true); err != nil {
			t.Fatal(err)
		}
		if err := s.server.Tokens().Delete("ns", deleted); err != nil {
			t.Fatal(err)
		}
		s.want(send(t, s.public, "PUT", "/api/ns/q", "x", "X-Token: "+pooled), 201, published)
		all := func() string {
			text, err := json.Marshal([]any{s.server.Tokens().List(), s.server.Tokens().Limits()})
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		before := all()
		servertest.Close(t, s.engine)
		s.open(lmstfy.Options{Pools: []string{"p"}})
		if after := all(); after != before {
			t.Errorf("after the restart %s, want %s", after, before)
		}
		s.want(send(t, s.public, "GET", "/api/ns/q", "", "X-Token: "+deleted), 401, `{"error":"invalid token"}`)
		s.want(send(t, s.public, "GET", "/api/ns/q", "", "X-Token: "+kept), 404, noJob)
		if got := send(t, s.public, "GET", "/api/ns/q", "", "X-Token: "+pooled); got.status != 200 {
			t.Errorf("pool p: got %d %s, want the job", got.status, got.body)
		}
		if got, ok := s.server.Tokens().Limit("ns", kept); !ok || got != limit {
			t.Errorf("limit: got %v %t, want %v", got, ok, limit)
		}
		if _, ok := s.server.Tokens().Limit("ns", deleted); ok {
			t.Error("the limiter of the deleted token is back")
		}
	})
}

// TestFixedTokens are good without a record, and stay.
func TestFixedTokens(t *testing.T) {
	o := lmstfy.Options{FixedTokens: []lmstfy.FixedToken{{Namespace: "ns", Token: "01F4CKPFY8XYVH6WVEQB3747CW", Description: "x"}}}
	bubble(t, o, func(t *testing.T, s *shop) {
		s.want(send(t, s.public, "PUT", "/api/ns/q?token=01F4CKPFY8XYVH6WVEQB3747CW", "x"), 201, published)
		s.want(send(t, s.admin, "DELETE", "/token/ns/01F4CKPFY8XYVH6WVEQB3747CW", ""), 400, `{"error":"the token is fixed in the configuration"}`)
	})
}

// TestMigration: publishes go to the new pool, everything else sees both, the old
// one first.
func TestMigration(t *testing.T) {
	o := lmstfy.Options{Pools: []string{"old"}, MigrateTo: map[string]string{"old": "default"}, SkipTokens: true}
	bubble(t, o, func(t *testing.T, s *shop) {
		before := &engine.Enqueue{Queue: []byte("old/ns/q"), Payload: []byte("before"), Tries: engine.Some[uint16](1)}
		if err := s.engine.Do(before); err != nil || before.Err() != nil {
			t.Fatal(err, before.Err())
		}
		token := "X-Token: old:t"
		s.want(send(t, s.public, "PUT", "/api/ns/q", "after", token), 201, published)
		stats := &engine.Stats{Queue: []byte("default/ns/q")}
		if err := s.engine.Do(stats); err != nil || stats.Ready != 1 {
			t.Fatalf("the new pool has %d jobs (%v), want 1", stats.Ready, err)
		}
		s.want(send(t, s.public, "GET", "/api/ns/q/size", "", token), 200, `{"namespace":"ns","queue":"q","size":2}`)
		got := send(t, s.public, "GET", "/api/ns/q?count=5&ttr=1", "", token)
		first, second := strings.Index(got.body, "YmVmb3Jl"), strings.Index(got.body, "YWZ0ZXI=")
		if first < 0 || second < first {
			t.Errorf("got %s, want the old job before the new one", got.body)
		}
		time.Sleep(2 * time.Second)
		s.want(send(t, s.public, "GET", "/api/ns/q/deadletter/size", "", token), 200, `{"namespace":"ns","queue":"q","size":2}`)
		s.want(send(t, s.public, "PUT", "/api/ns/q/deadletter?limit=5", "", token), 200, `{"count":2,"msg":"respawned"}`)
		s.want(send(t, s.public, "DELETE", "/api/ns/q/job/"+before.ID.String(), "", token), 204, "")
		s.want(send(t, s.public, "GET", "/api/ns/q/size", "", token), 200, `{"namespace":"ns","queue":"q","size":1}`)
	})
}

// TestSharedWithRESP: jobs of other protocols have no limit of tries, attributes
// in any order, and a queue of the same key.
func TestSharedWithRESP(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		add := &engine.Enqueue{Queue: []byte("default/ns/q"), Payload: []byte("x"), Attrs: []engine.Attr{{Name: []byte("B"), Value: []byte("1")}, {Name: []byte("a"), Value: []byte("2")}}}
		if err := s.engine.Do(add); err != nil || add.Err() != nil {
			t.Fatal(err, add.Err())
		}
		s.want(send(t, s.public, "GET", "/api/ns/q", ""), 200,
			`{"attributes":{"B":"1","a":"2"},"data":"eA==","elapsed_ms":N,"job_id":"<ID27>","msg":"new job","namespace":"ns","queue":"q","remain_tries":65535,"ttl":0}`)
		s.want(send(t, s.public, "PUT", "/api/ns/q?tries=3&ttl=60&delay=1", "y"), 201, published)
		time.Sleep(1001 * time.Millisecond)
		fetch := &engine.Fetch{Queues: [][]byte{[]byte("default/ns/q")}, LeaseMs: 1000}
		if err := s.engine.Do(fetch); err != nil || len(fetch.Jobs) != 1 {
			t.Fatalf("got %d jobs (%v), want 1", len(fetch.Jobs), err)
		}
		d := &fetch.Jobs[0]
		if err := s.engine.Load(d); err != nil || string(d.Payload) != "y" || d.Tries != 3 || len(d.Attrs) != 0 {
			t.Errorf("got %q, %d tries, %d attributes (%v)", d.Payload, d.Tries, len(d.Attrs), err)
		}
		// A DELETE needs no lease, and ends one.
		s.want(send(t, s.public, "DELETE", "/api/ns/q/job/"+d.ID.String(), ""), 204, "")
		ack := &engine.Ack{Leases: []state.LeaseID{d.Lease}}
		if err := s.engine.Do(ack); err != nil || ack.Err() != engine.ErrNoLease {
			t.Errorf("ack after the delete: %v %v, want %v", err, ack.Err(), engine.ErrNoLease)
		}
	})
}

// TestRefusalsOfTheEngine say that trying again may help.
func TestRefusalsOfTheEngine(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		s.want(send(t, s.public, "PUT", "/api/ns/q", "x"), 201, published)
		full := &engine.QueueSet{Queue: []byte("default/ns/q"), Settings: state.Settings{MaxLen: 1}, Which: state.SetMaxLen}
		if err := s.engine.Do(full); err != nil || full.Err() != nil {
			t.Fatal(err, full.Err())
		}
		got := s.want(send(t, s.public, "PUT", "/api/ns/q", "x"), 503, `{"error":"queue is full"}`)
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		s.want(send(t, s.public, "PUT", "/api/ns/q/bulk", "[1,2]"), 503, `{"error":"queue is full"}`)
		s.want(send(t, s.public, "GET", "/api/ns/q/size", ""), 200, `{"namespace":"ns","queue":"q","size":1}`)
		if err := s.engine.Do(&engine.Drain{On: true}); err != nil {
			t.Fatal(err)
		}
		s.want(send(t, s.public, "PUT", "/api/ns/other", "x"), 503, `{"error":"draining"}`)
		if got := send(t, s.public, "GET", "/api/ns/q", ""); got.status != 200 {
			t.Errorf("consume while draining: got %d %s, want the job", got.status, got.body)
		}
		servertest.Close(t, s.engine)
		s.want(send(t, s.public, "GET", "/api/ns/q", ""), 503, `{"error":"shutting down"}`)
	})
}

// TestBulk: as many as fit one transaction are all or none, and a long body is
// taken too.
func TestBulk(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		array := func(n, size int) string {
			return "[" + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("a", size-2)+`",`, n), ",") + "]"
		}
		if got := send(t, s.public, "PUT", "/api/ns/q/bulk", array(64, 10)); got.status != 201 {
			t.Errorf("64 jobs: got %d %s", got.status, got.body)
		}
		s.want(send(t, s.public, "PUT", "/api/ns/q/bulk", array(65, 10)), 400, `{"error":"too many jobs"}`)
		s.want(send(t, s.public, "PUT", "/api/ns/q/bulk", array(1, 1<<20+1)), 413, `{"error":"job too large"}`)
		if got := send(t, s.public, "PUT", "/api/ns/q/bulk", array(3, 1<<20)); got.status != 201 {
			t.Errorf("3 MiB: got %d %s", got.status, got.body)
		}
		if got := send(t, s.public, "PUT", "/api/ns/large/bulk", array(5, 1<<20)); got.status != 201 {
			t.Errorf("5 MiB: got %d %s", got.status, got.body)
		}
		s.want(send(t, s.public, "GET", "/api/ns/large/size", ""), 200, `{"namespace":"ns","queue":"large","size":5}`)
		limit := &engine.QueueSet{Queue: []byte("default/ns/q"), Settings: state.Settings{MaxLen: 70}, Which: state.SetMaxLen}
		if err := s.engine.Do(limit); err != nil || limit.Err() != nil {
			t.Fatal(err, limit.Err())
		}
		for _, size := range []int{10, 1 << 20} { // all or none, whatever they weigh
			s.want(send(t, s.public, "PUT", "/api/ns/q/bulk", array(4, size)), 503, `{"error":"queue is full"}`)
		}
		s.want(send(t, s.public, "GET", "/api/ns/q/size", ""), 200, `{"namespace":"ns","queue":"q","size":67}`)
	})
}

// TestBatchIsBounded: a hundred large jobs come in several replies, in order.
func TestBatchIsBounded(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		const jobs = 8
		for i := range jobs {
			s.want(send(t, s.public, "PUT", "/api/ns/q", strings.Repeat(string(rune('a'+i)), 1<<20)), 201, published)
		}
		seen, replies := 0, 0
		for ; seen < jobs && replies < jobs; replies++ {
			got := send(t, s.public, "GET", "/api/ns/q?count=100", "")
			if got.status != 200 {
				t.Fatalf("got %d %s after %d jobs", got.status, got.body, seen)
			}
			if len(got.body) > 8<<20 {
				t.Errorf("a reply of %d bytes", len(got.body))
			}
			seen += strings.Count(got.body, `"msg":"new job"`)
		}
		if seen != jobs {
			t.Errorf("got %d jobs in %d replies, want %d", seen, replies, jobs)
		}
	})
}

// TestChunkedBody has no announced length: memory and limit follow what comes.
func TestChunkedBody(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		chunked := func(n int) *http.Response {
			t.Helper()
			body := io.MultiReader(bytes.NewReader(make([]byte, n)))
			r, err := http.NewRequestWithContext(t.Context(), "PUT", "http://127.0.0.1/api/ns/q", body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Expect", "100-continue")
			got, err := s.public.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			return got
		}
		if got := chunked(1 << 20); got.StatusCode != 201 {
			t.Errorf("1 MiB: got %s", got.Status)
		}
		if got := chunked(1<<20 + 1); got.StatusCode != 413 {
			t.Errorf("a byte more: got %s", got.Status)
		}
		if got := chunked(0); got.StatusCode != 201 {
			t.Errorf("nothing: got %s", got.Status)
		}
	})
}

// TestAccessLog: a line a request while it is on, and never a token.
func TestAccessLog(t *testing.T) {
	var log lockedBuffer
	bubble(t, lmstfy.Options{AccessLog: &log, AccessLogJSON: true}, func(t *testing.T, s *shop) {
		token := s.token("ns")
		send(t, s.public, "PUT", "/api/ns/quiet?token="+token, "x")
		send(t, s.admin, "POST", "/accesslog?status=enable", "")
		send(t, s.public, "PUT", "/api/ns/loud?tries=3&token="+token, "payload")
		send(t, s.admin, "POST", "/accesslog?status=disable", "")
		send(t, s.public, "PUT", "/api/ns/quiet?token="+token, "x")
		synctest.Wait()
		text := log.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, `"path":"/api/ns/loud"`) || !strings.Contains(text, `"status":201`) || !strings.Contains(text, `"tries":"3"`) {
			t.Errorf("got %q, want the one request", text)
		}
		if strings.Contains(text, token) || strings.Contains(text, "payload") {
			t.Errorf("the log has a secret: %q", text)
		}
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// flaky is an engine whose first Load or LoadView fails.
type flaky struct {
	*engine.Engine
	err error
}

// errRotten is the kind of error that a rotten body makes.
var errRotten = fmt.Errorf("%w: generation 1 at 4711: checksum", engine.ErrDamaged)

func (f *flaky) LoadView(v *engine.JobView) error {
	err := f.err
	if f.err = nil; err == nil {
		return f.Engine.LoadView(v)
	}
	f.Engine.ForgetView(v)
	if v.Place != state.Dead {
		take := &engine.Fetch{Queues: [][]byte{[]byte(v.Queue)}, LeaseMs: 1000}
		f.Engine.Do(take)
		f.Engine.Forget(&take.Jobs[0])
		f.Engine.Do(&engine.Bury{Lease: take.Jobs[0].Lease, Reason: []byte("DAMAGED")})
	}
	return err
}

func (f *flaky) Load(d *engine.Delivery) error {
	err := f.err
	if f.err = nil; err == nil {
		return f.Engine.Load(d)
	}
	if errors.Is(err, engine.ErrDamaged) {
		f.Engine.Forget(d)
		f.Engine.Do(&engine.Bury{Lease: d.Lease, Reason: []byte("DAMAGED")})
	} else {
		f.Engine.Undeliver([]engine.Delivery{*d})
	}
	return err
}

// TestBodyThatCannotBeRead: a rotten one is passed over; for anything else the job
// goes back, without a lost try.
func TestBodyThatCannotBeRead(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		for _, body := range []string{"a", "b", "c"} {
			s.want(send(t, s.public, "PUT", "/api/ns/q?tries=1", body), 201, published)
		}
		f := &flaky{Engine: s.engine}
		if err := s.server.SetEngine(f); err != nil {
			t.Fatal(err)
		}
		data := func(got reply) string {
			text := ""
			for _, part := range strings.Split(got.body, `"data":"`)[1:] {
				raw, err := base64.StdEncoding.DecodeString(part[:strings.Index(part, `"`)])
				if err != nil {
					t.Fatal(err)
				}
				text += string(raw)
			}
			return text
		}
		f.err = errors.New("too many open files")
		got := s.want(send(t, s.public, "GET", "/api/ns/q", ""), 503, `{"error":"storage failed"}`)
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		f.err = errRotten
		if got := data(send(t, s.public, "GET", "/api/ns/q", "")); got != "b" {
			t.Errorf("got %q, want the job behind the damaged one", got)
		}
		if got := data(send(t, s.public, "GET", "/api/ns/q?count=3", "")); got != "c" {
			t.Errorf("got %q, want the last one", got)
		}
	})
}

// refusing is an engine that refuses all commands, as one does that has too many
// waiting.
type refusing struct {
	*engine.Engine
	closed *engine.Engine // says how; nil refuses none
}

func (r *refusing) Submit(cmds ...engine.Command) engine.LSN {
	if r.closed == nil {
		return r.Engine.Submit(cmds...)
	}
	r.closed.Submit(cmds...)
	return 0
}

// TestRefusedLook: a look that is refused is not one at a job that is not there.
func TestRefusedLook(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		id := strings.Split(s.want(send(t, s.public, "PUT", "/api/ns/q", "x"), 201, published).body, `"`)[3]
		r := &refusing{Engine: s.engine}
		if err := s.server.SetEngine(r); err != nil {
			t.Fatal(err)
		}
		closed := servertest.Open(t, t.TempDir(), engine.Options{})
		servertest.Close(t, closed)
		r.closed = closed
		for _, path := range []string{"peek", "job/" + id, "deadletter", "size"} {
			s.want(send(t, s.public, "GET", "/api/ns/q/"+path, ""), 503, `{"error":"shutting down"}`)
		}
		s.want(send(t, s.public, "DELETE", "/api/ns/q/job/"+id, ""), 503, `{"error":"shutting down"}`)
		s.want(send(t, s.public, "GET", "/api/ns/q?timeout=0", ""), 503, `{"error":"shutting down"}`)
	})
}

// TestPeekAtRottenBody: a peek passes over a job that turns out to be rotten, and
// shows one that is dead already by its ID.
func TestPeekAtRottenBody(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		for _, body := range []string{"rotten", "sound"} {
			s.want(send(t, s.public, "PUT", "/api/ns/q", body), 201, published)
		}
		f := &flaky{Engine: s.engine, err: errRotten}
		if err := s.server.SetEngine(f); err != nil {
			t.Fatal(err)
		}
		if got := send(t, s.public, "GET", "/api/ns/q/peek", ""); got.status != 200 || !strings.Contains(got.body, `"data":"c291bmQ="`) {
			t.Errorf("got %d %s, want the job behind the rotten one", got.status, got.body)
		}
		f.err = errRotten
		if got := send(t, s.public, "GET", "/api/ns/q/deadletter", ""); got.status != 200 || !strings.Contains(got.body, `"deadletter_size":1`) {
			t.Errorf("got %d %s, want the rotten one among the dead", got.status, got.body)
		}
	})
}
