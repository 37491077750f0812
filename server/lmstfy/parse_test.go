package lmstfy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pawl/engine"
	"pawl/state"
)

func TestMatch(t *testing.T) {
	long := strings.Repeat("a", 256)
	for _, tt := range []struct {
		name, method, path string
		want               route
		refusal            string
	}{
		{"publish", "PUT", "/api/ns/q", routePublish, ""},
		{"consume", "GET", "/api/ns/q", routeConsume, ""},
		{"several queues", "GET", "/api/ns/a,b", routeConsume, ""},
		{"destroy", "DELETE", "/api/ns/q", routeDestroy, ""},
		{"bulk", "PUT", "/api/ns/q/bulk", routeBulk, ""},
		{"republish", "PUT", "/api/ns/q/job/x", routeRepublish, ""},
		{"peek job", "GET", "/api/ns/q/job/x", routePeekJob, ""},
		{"delete job", "DELETE", "/api/ns/q/job/x", routeDeleteJob, ""},
		{"peek", "GET", "/api/ns/q/peek", routePeek, ""},
		{"size", "GET", "/api/ns/q/size", routeSize, ""},
		{"dead letter", "GET", "/api/ns/q/deadletter", routeDeadLetter, ""},
		{"dead letter size", "GET", "/api/ns/q/deadletter/size", routeDeadLetterSize, ""},
		{"respawn", "PUT", "/api/ns/q/deadletter", routeRespawn, ""},
		{"delete dead", "DELETE", "/api/ns/q/deadletter", routeDeleteDead, ""},
		{"queue named like a route", "PUT", "/api/ns/size", routePublish, ""},

		{"HEAD takes no job", "HEAD", "/api/ns/q", routeNone, ""},
		{"POST", "POST", "/api/ns/q", routeNone, ""},
		{"lower-case method", "get", "/api/ns/q", routeNone, ""},
		{"trailing slash", "GET", "/api/ns/q/", routeNone, ""},
		{"trailing slash after a route", "GET", "/api/ns/q/peek/", routeNone, ""},
		{"empty namespace", "GET", "/api//q", routeNone, ""},
		{"empty queue", "GET", "/api/ns//q", routeNone, ""},
		{"no queue", "GET", "/api/ns", routeNone, ""},
		{"empty job", "DELETE", "/api/ns/q/job/", routeNone, ""},
		{"slash in a job", "DELETE", "/api/ns/q/job/a/b", routeNone, ""},
		{"bulk by GET", "GET", "/api/ns/q/bulk", routeNone, ""},
		{"root", "GET", "/", routeNone, ""},
		{"empty", "GET", "", routeNone, ""},

		{"underscore first", "PUT", "/api/ns/_q", routePublish, "queue name contains forbidden characters"},
		{"underscore first in a consume", "GET", "/api/ns/_q", routeConsume, ""},
		{"comma in a publish", "PUT", "/api/ns/a,b", routePublish, "queue name contains forbidden characters"},
		{"dot", "PUT", "/api/ns/q.1", routePublish, "queue name contains forbidden characters"},
		{"dots", "PUT", "/api/ns/..", routePublish, "queue name contains forbidden characters"},
		{"namespace first", "PUT", "/api/n.s/q.1", routePublish, "namespace name contains forbidden characters"},
		{"namespace in a consume", "GET", "/api/n.s/q", routeConsume, "namespace name contains forbidden characters"},
		{"not ASCII", "PUT", "/api/ns/\u968a", routePublish, "queue name contains forbidden characters"},
		{"255 bytes", "PUT", "/api/ns/" + long[:255], routePublish, ""},
		{"256 bytes", "PUT", "/api/ns/" + long, routePublish, "namespace or queue name too long"},
		{"length comes before characters", "PUT", "/api/n.s/" + long, routePublish, "namespace or queue name too long"},
		{"long namespace", "PUT", "/api/" + long + "/q", routePublish, "namespace or queue name too long"},
		{"long name in a consume", "GET", "/api/ns/" + long, routeConsume, ""},
	} {
		got, namespace, queue, _ := match(tt.method, tt.path)
		if got != tt.want {
			t.Errorf("%s: got route %d, want %d", tt.name, got, tt.want)
			continue
		}
		if got == routeNone {
			continue
		}
		if refusal := badName(got, namespace, queue); refusal != tt.refusal {
			t.Errorf("%s: got refusal %q, want %q", tt.name, refusal, tt.refusal)
		}
	}
}

func TestQueryValue(t *testing.T) {
	for _, tt := range []struct {
		name, raw, want string
		given           bool
	}{
		{"absent", "b=1", "", false},
		{"empty query", "", "", false},
		{"present", "a=1", "1", true},
		{"empty", "a=", "", true},
		{"without a sign", "a", "", true},
		{"first wins", "a=1&a=2", "1", true},
		{"case counts", "A=1", "", false},
		{"escaped name", "%61=1", "1", true},
		{"escaped value", "a=%2B3", "+3", true},
		{"plus is a space", "a=+3", " 3", true},
		{"bad escape is absent", "a=%zz&a=2", "2", true},
		{"bad escape in the name", "%zz=1&a=2", "2", true},
		{"semicolon is absent", "a=1;b=2", "", false},
		{"stray flag before", "Array&a=2", "2", true},
	} {
		if got, given := queryValue(tt.raw, "a"); got != tt.want || given != tt.given {
			t.Errorf("%s: got %q %t, want %q %t", tt.name, got, given, tt.want, tt.given)
		}
	}
}

func TestPublishQuery(t *testing.T) {
	d := Defaults{}.filled()
	for _, tt := range []struct {
		raw     string
		want    publishOptions
		refusal string
	}{
		{"", publishOptions{0, 86400, 1}, ""},
		{"delay=5&ttl=0&tries=3", publishOptions{5, 0, 3}, ""},
		{"tries=003", publishOptions{0, 86400, 3}, ""},
		{"Tries=0", publishOptions{0, 86400, 1}, ""},
		{"delay=4294967295&ttl=4294967295", publishOptions{1<<32 - 1, 1<<32 - 1, 1}, ""},
		{"ttl=10&delay=10", publishOptions{10, 10, 1}, ""},
		{"delay=11&ttl=10", publishOptions{}, "ttl is shorter than delay"},
		{"delay=", publishOptions{}, "invalid delay"},
		{"delay=-1", publishOptions{}, "invalid delay"},
		{"ttl=4294967296", publishOptions{}, "invalid ttl"},
		{"tries=65536", publishOptions{}, "invalid tries"},
		{"tries=%2B3", publishOptions{}, "invalid tries"},
		{"tries=1_0", publishOptions{}, "invalid tries"},
		{"tries=0", publishOptions{}, "tries shouldn't be zero"},
		{"delay=x&ttl=x&tries=x", publishOptions{}, "invalid delay"},
	} {
		got, refusal := publishQuery(tt.raw, d)
		if refusal != tt.refusal || refusal == "" && got != tt.want {
			t.Errorf("%q: got %v %q, want %v %q", tt.raw, got, refusal, tt.want, tt.refusal)
		}
	}
}

func TestConsumeQuery(t *testing.T) {
	d := Defaults{}.filled()
	for _, tt := range []struct {
		raw     string
		want    consumeOptions
		refusal string
	}{
		{"", consumeOptions{120, 0, 1}, ""},
		{"ttr=0&timeout=4294967295&count=100", consumeOptions{0, 1<<32 - 1, 100}, ""},
		{"freeze_tries=bogus", consumeOptions{120, 0, 1}, ""},
		{"ttr=x", consumeOptions{}, "invalid ttr"},
		{"timeout=-1", consumeOptions{}, "invalid timeout"},
		{"count=0", consumeOptions{}, "invalid count"},
		{"count=101", consumeOptions{}, "invalid count"},
		{"count=", consumeOptions{}, "invalid count"},
	} {
		got, refusal := consumeQuery(tt.raw, d)
		if refusal != tt.refusal || refusal == "" && got != tt.want {
			t.Errorf("%q: got %v %q, want %v %q", tt.raw, got, refusal, tt.want, tt.refusal)
		}
	}
}

// TestJobTTL: the engine wants a TTL longer than the delay, lmstfy takes equal
// ones, and longer ones than the engine can represent.
func TestJobTTL(t *testing.T) {
	for _, o := range []publishOptions{
		{delay: 0, ttl: 1}, {delay: 10, ttl: 10}, {delay: 1<<32 - 1, ttl: 1<<32 - 1}, {delay: 1<<32 - 2, ttl: 1<<32 - 1},
	} {
		if ttl, delay := jobTTL(o), millis(o.delay); ttl <= delay {
			t.Errorf("delay %d ttl %d: got %d ms, want over %d", o.delay, o.ttl, ttl, delay)
		}
	}
	if got := jobTTL(publishOptions{delay: 10}); got != 0 {
		t.Errorf("ttl 0: got %d ms, want 0 for ever", got)
	}
}

func TestSplitToken(t *testing.T) {
	for _, tt := range []struct{ text, pool, token, joined string }{
		{"T", "default", "T", "T"},
		{"default:T", "default", "T", "T"},
		{":T", "default", "T", "T"},
		{"p:T", "p", "T", "p:T"},
		{"p:T:U", "p", "T:U", "p:T:U"},
		{"", "default", "", ""},
	} {
		pool, token := SplitToken(tt.text)
		if pool != tt.pool || token != tt.token {
			t.Errorf("%q: got %q %q, want %q %q", tt.text, pool, token, tt.pool, tt.token)
		}
		if joined := JoinToken(pool, token); joined != tt.joined {
			t.Errorf("%q: joined again %q, want %q", tt.text, joined, tt.joined)
		}
	}
}

func TestAttributes(t *testing.T) {
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	many := header("Enable-Job-Version", "YES")
	for _, c := range "abcdefghijklmnop" {
		many.Add("Job-Attr-"+string(c), "x")
	}
	tooMany := many.Clone()
	tooMany.Add("Job-Attr-q", "x")
	merging := many.Clone()
	delete(merging, "Job-Attr-A")
	merging.Add("Job-Attr-"+strings.Repeat("k", 40), "1")
	merging.Add("Job-Attr-"+strings.Repeat("k", 41), "2")

	for _, tt := range []struct {
		name string
		h    http.Header
		want string
		ok   bool
	}{
		{"none", header(), "null", true},
		{"without the version they are dropped", header("Job-Attr-A", "1"), "null", true},
		{"true is not yes", header("Enable-Job-Version", "true", "Job-Attr-A", "1"), "null", true},
		{"any case of yes", header("enable-job-version", "yEs", "job-attr-Hello", "wo<rld>&"), `{"hello":"wo\u003crld\u003e\u0026"}`, true},
		{"sorted and lower-case", header("Enable-Job-Version", "YES", "Job-Attr-ABC_def", "1", "Job-Attr-A", "2"), `{"a":"2","abc_def":"1"}`, true},
		{"first value only", header("Enable-Job-Version", "YES", "Job-Attr-A", "1", "Job-Attr-A", "2"), `{"a":"1"}`, true},
		{"empty values are skipped", header("Enable-Job-Version", "YES", "Job-Attr-A", ""), "null", true},
		{"cut", header("Enable-Job-Version", "YES", "Job-Attr-"+strings.Repeat("K", 40), strings.Repeat("v", 200)), `{"` + strings.Repeat("k", 32) + `":"` + strings.Repeat("v", 128) + `"}`, true},
		{"17", tooMany, "", false},
	} {
		attrs, ok := attributes(nil, tt.h)
		if ok != tt.ok {
			t.Errorf("%s: got ok %t, want %t", tt.name, ok, tt.ok)
			continue
		}
		if got := string(appendAttributes(nil, attrs)); ok && got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
	if attrs, ok := attributes(nil, many); !ok || len(attrs) != 16 {
		t.Errorf("16 attributes: got %d %t, want all", len(attrs), ok)
	}
	if attrs, ok := attributes(nil, merging); !ok || len(attrs) != 16 {
		t.Errorf("17 headers, two of one name when cut: got %d %t, want 16", len(attrs), ok)
	}
	if attrs, _ := attributes(nil, header("Enable-Job-Version", "YES")); !versioned(attrs) {
		t.Errorf("a version without attributes: the ID must show it")
	}
}

// TestAttributesOfOthers: RESP clients may repeat names and choose their order.
func TestAttributesOfOthers(t *testing.T) {
	attrs := []engine.Attr{
		{Name: []byte("b"), Value: []byte("1")},
		{Name: []byte("a"), Value: []byte("\xff\x01\"")},
		{Name: []byte("b"), Value: []byte("2")},
	}
	if got, want := string(appendAttributes(nil, attrs)), `{"a":"\ufffd\u0001\"","b":"2"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestJobIDText(t *testing.T) {
	id := state.NewJobID(1_600_000_000_000, 7, 3, 60)
	plain, version := string(appendJobID(nil, id, false)), string(appendJobID(nil, id, true))
	if len(plain) != 26 || len(version) != 27 || version != "1"+plain {
		t.Fatalf("got %q and %q, want 26 characters and the same behind a 1", plain, version)
	}
	for _, text := range []string{plain, version, "2" + plain, strings.ToLower(plain)} {
		if got, ok := parseJobID(text); !ok || got != id {
			t.Errorf("%q: got %v %t, want the ID", text, got, ok)
		}
	}
	for _, text := range []string{"", "abc", plain[1:], "11" + plain, strings.Replace(plain, "0", "U", 1)} {
		if _, ok := parseJobID(text); ok {
			t.Errorf("%q: was taken for an ID", text)
		}
	}
}

func TestShownJob(t *testing.T) {
	id := state.NewJobID(1_600_000_000_000, 7, 3, 0)
	j := shownJob{id: id, namespace: "ns", queue: "q", payload: []byte("hi"), remainTries: 2, ttlLeft: 9_500, msg: true, elapsed: 12}
	want := `{"attributes":null,"data":"aGk=","elapsed_ms":12,"job_id":"` + id.String() + `","msg":"new job","namespace":"ns","queue":"q","remain_tries":2,"ttl":10}`
	if got := string(j.append(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	j.msg, j.payload, j.ttlLeft = false, nil, 499
	want = `{"attributes":null,"data":"","elapsed_ms":12,"job_id":"` + id.String() + `","namespace":"ns","queue":"q","remain_tries":2,"ttl":0}`
	if got := string(j.append(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTriesLeft(t *testing.T) {
	for _, tt := range []struct {
		tries uint16
		used  uint32
		want  uint16
	}{{1, 0, 1}, {1, 1, 0}, {1, 2, 0}, {65535, 1, 65534}, {0, 9, 65535}, {2, 70000, 0}} {
		if got := triesLeft(tt.tries, tt.used); got != tt.want {
			t.Errorf("%d tries, %d used: got %d, want %d", tt.tries, tt.used, got, tt.want)
		}
	}
}

func TestWindow(t *testing.T) {
	start := time.Unix(1_600_000_000, 0)
	w := &window{limit: Limit{Read: 2, Write: 1, Interval: 3}}
	must := func(s side, at time.Duration, want bool) ticket {
		t.Helper()
		got, ok := w.take(s, start.Add(at))
		if ok != want {
			t.Fatalf("%s at %s: got %t, want %t", s, at, ok, want)
		}
		return got
	}
	must(consume, 0, true)
	second := must(consume, time.Second, true)
	must(consume, 2*time.Second, false)
	must(produce, 2*time.Second, true) // the sides count apart
	must(produce, 2*time.Second, false)
	w.giveBack(consume, second)
	must(consume, 2*time.Second, true)
	must(consume, 3*time.Second-1, false)
	must(consume, 3*time.Second, true) // a new window
	w.giveBack(consume, second)        // of the window before: nothing to give
	must(consume, 4*time.Second, true)
	must(consume, 4*time.Second, false)

	unlimited := &window{limit: Limit{Write: 1, Interval: 1}}
	for range 5 {
		if got, ok := unlimited.take(consume, start); !ok || got != 0 {
			t.Fatalf("a limit of 0: got %d %t, want not counted", got, ok)
		}
	}
	var none *window
	if _, ok := none.take(consume, start); !ok {
		t.Fatal("no limiter refused")
	}
	none.giveBack(consume, 1)
}
