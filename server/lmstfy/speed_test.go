package lmstfy_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/server/servertest"
)

// discard is a ResponseWriter that keeps nothing but the status.
type discard struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return d.body.Write(p) }
func (d *discard) Flush()                      {}

func (d *discard) reset() {
	clear(d.header)
	d.status = 0
	d.body.Reset()
}

// BenchmarkCycle is publish, consume and delete without the network, at one
// connection: every request waits for the disk.
func BenchmarkCycle(b *testing.B) {
	s, err := lmstfy.New(lmstfy.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.SetEngine(servertest.Open(b, b.TempDir(), engine.Options{})); err != nil {
		b.Fatal(err)
	}
	token, err := s.Tokens().Create("", "ns", "", "bench")
	if err != nil {
		b.Fatal(err)
	}
	w := &discard{header: http.Header{}}
	payload := strings.Repeat("x", 200)
	do := func(method, target string, body string, want int) {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header["X-Token"] = []string{token}
		w.reset()
		s.ServeHTTP(w, r)
		if w.status != want {
			b.Fatalf("%s %s: got %d %s, want %d", method, target, w.status, w.body.String(), want)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		do("PUT", "/api/ns/q?tries=3", payload, 201)
		do("GET", "/api/ns/q?ttr=30", "", 200)
		at := strings.Index(w.body.String(), `"job_id":"`) + len(`"job_id":"`)
		do("DELETE", "/api/ns/q/job/"+w.body.String()[at:at+26], "", 204)
	}
}
