package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawl/client"
	"pawl/config"
	"pawl/server/admin"
)

// No port can take the descriptors that another one or the store needs.
func TestDescriptorsAreShared(t *testing.T) {
	for _, test := range []struct {
		files, redis, http  int // what there is
		wantRedis, wantHTTP int
		noHTTP              bool
	}{
		{files: 1 << 20, redis: 10_000, http: 10_000, wantRedis: 10_000, wantHTTP: 10_000},
		{files: 16_000, redis: 10_000, http: 10_000, wantRedis: 10_000, wantHTTP: 5680},
		{files: 1024, redis: 10_000, http: 10_000, wantRedis: 576, wantHTTP: 192},
		{files: 1024, redis: 10_000, http: 100, wantRedis: 668, wantHTTP: 100},
		{files: 1024, redis: 10, http: 10_000, wantRedis: 10, wantHTTP: 758},
		{files: 1024, redis: 10_000, http: 10_000, wantRedis: 768, wantHTTP: 10_000, noHTTP: true},
	} {
		c := config.Config{MaxClients: test.redis, MaxHTTPClients: test.http, HTTPAddr: "x:1"}
		if test.noHTTP {
			c.HTTPAddr = ""
		}
		redis, http := shareDescriptors(&c, test.files)
		if redis != test.wantRedis || http != test.wantHTTP {
			t.Errorf("%+v: got %d and %d", test, redis, http)
		}
		if left := test.files - redis - http; !test.noHTTP && left < min(admin.MaxClients+storeFiles, test.files/4) {
			t.Errorf("%+v: %d files are left", test, left)
		}
	}
}

// Clients of the HTTP API that take every place keep neither operators nor Redis
// clients out.
func TestFullHTTPPortKeepsNobodyElseOut(t *testing.T) {
	const places = 20
	s := serveIn(t, t.TempDir(), "--sync", "never", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--max-http-clients", fmt.Sprint(places)).ready(t)
	api := s.stderr.wait(t, `for="lmstfy clients" addr=(127[^\s]+)`)
	operators := s.stderr.wait(t, `for=operators addr=(127[^\s]+)`)
	var all []net.Conn
	for range 10 * places {
		nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", api)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		all = append(all, nc)
	}
	nc := all[len(all)-1]                            // it was accepted after all others
	nc.SetDeadline(time.Now().Add(30 * time.Second)) // only one that is served is open for so long
	io.WriteString(nc, "GET /api/ns/q/size HTTP/1.1\r\nHost: a\r\n\r\n")
	// An error: the refusal may be followed by a reset.
	if got, _ := io.ReadAll(nc); !strings.HasPrefix(string(got), "HTTP/1.1 503 ") {
		t.Errorf("one too many: got %q", got)
	}
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("a Redis client: %v", err)
	}
	reply, err := http.Get("http://" + operators + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("pawl_http_connections %d\n", places), fmt.Sprintf("pawl_http_refused_total %d\n", 9*places), "pawl_admin_connections 1\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q among the metrics", want)
		}
	}
	s.end(t)
}

// Bodies that come slowly fill --max-http-buffers and nothing else: Redis clients and
// operators are served, and so is whoever publishes at once.
func TestSlowBodiesKeepNobodyElseOut(t *testing.T) {
	const limit = 16 << 20
	s := serveIn(t, t.TempDir(), "--sync", "never", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--max-http-buffers", fmt.Sprint(limit)).ready(t)
	api := s.stderr.wait(t, `for="lmstfy clients" addr=(127[^\s]+)`)
	operators := s.stderr.wait(t, `for=operators addr=(127[^\s]+)`)
	ask := func(method, url, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
	const token = "a-token-of-20-characters"
	if status, text := ask(http.MethodPost, "http://"+operators+"/api/v1/tokens", `{"namespace":"ns","token":"`+token+`","description":"a test"}`); status != http.StatusOK {
		t.Fatalf("no token: %d %s", status, text)
	}
	metric := func(name string) (value int64) {
		t.Helper()
		_, text := ask(http.MethodGet, "http://"+operators+"/metrics", "")
		_, text, _ = strings.Cut(text, "\n"+name+" ")
		var f float64
		if _, err := fmt.Sscan(text, &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return int64(f)
	}
	part := "PUT /api/ns/q HTTP/1.1\r\nHost: a\r\nX-Token: " + token + "\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 600_000)
	var slow []net.Conn
	for range 60 { // 60 MiB, were they all taken
		nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", api)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		slow = append(slow, nc)
		go io.WriteString(nc, part) // not all of it is read
		if used := metric("pawl_http_buffer_bytes"); used > limit {
			t.Fatalf("%d bytes are held, of %d", used, limit)
		}
	}
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("a Redis client: %v", err)
	}
	if status, text := ask(http.MethodPut, "http://"+api+"/api/ns/q?token="+token, "x"); status != http.StatusCreated {
		t.Errorf("who publishes at once: got %d %s", status, text)
	}
	for end := time.Now().Add(30 * time.Second); metric("pawl_http_buffers_refused_total") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody was refused: the test is none")
		}
	}
	for _, nc := range slow {
		nc.Close() // the end would wait for them
	}
	s.end(t)
}
