package lmstfy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/server/servertest"
)

// port is a Front, or what it hands connections to, on a listener of the tests.
type port struct {
	*servertest.Listener
	server interface {
		servertest.HTTPServer
		Shutdown(ctx context.Context) error
	}
}

func openPort(t *testing.T, server interface {
	servertest.HTTPServer
	Shutdown(ctx context.Context) error
}) port {
	p := port{servertest.Listen(), server}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(p)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return p
}

func (p port) dial(t *testing.T) net.Conn {
	t.Helper()
	nc, err := p.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// talk sends pieces, one write each, and reads until the server closes.
func (p port) talk(t *testing.T, pieces ...string) string {
	t.Helper()
	nc := p.dial(t)
	go func() {
		for _, piece := range pieces {
			if _, err := io.WriteString(nc, piece); err != nil {
				return // the server has refused what came before
			}
		}
	}()
	text, err := io.ReadAll(nc)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	return dateLine.ReplaceAllString(mask(string(text)), "Date: D")
}

var dateLine = regexp.MustCompile(`Date: [^\r]*`)

// goodbye is a request after which the server closes.
var goodbye = lines("GET /api/ns/q/size HTTP/1.1", "Host: a", "Connection: close")

// TestFrontIsStandard: whatever is sent, in whatever pieces, the answer is the
// one of net/http, byte for byte.
func TestFrontIsStandard(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		other := openShop(t, lmstfy.Options{SkipTokens: true})
		front, standard := openPort(t, s.server.HTTP()), openPort(t, other.server.HTTP().Standard())
		put := lines("PUT /api/ns/q?tries=3 HTTP/1.1", "Host: a", "Content-Length: 5") + "hello"
		get := lines("GET /api/ns/q?ttr=600000 HTTP/1.1", "Host: a")
		cut := func(raw string) (pieces []string) {
			for i := range len(raw) {
				pieces = append(pieces, raw[i:i+1])
			}
			return pieces
		}
		requests := append(append([]string{}, plainRequests...), otherRequests...)
		requests = append(requests, put+get+put, put+"PUT", get+otherRequests[0]+get, put+strings.Repeat(get, 80)+put, strings.Repeat(put, 3)+lines("GET /api/ns/q?count=5 HTTP/1.1", "Host: a"))
		for _, raw := range requests {
			scripts := [][]string{{raw + goodbye}, {put, raw, get, goodbye}}
			if len(raw) < 512 {
				scripts = append(scripts, cut(raw+goodbye))
			}
			for i, pieces := range scripts {
				got, want := front.talk(t, pieces...), standard.talk(t, pieces...)
				if got != want {
					t.Errorf("%.200q, way %d: got\n%s\nnet/http answers\n%s", raw, i, got, want)
				}
			}
		}
	})
}

// TestFrontLimits: 5 s for a head, 30 s for a request, 60 to 65 s between two; who goes
// on in time is served for ever.
func TestFrontLimits(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		get := lines("GET /api/ns/q HTTP/1.1", "Host: a")
		head := lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 9")
		closedAfter := func(nc net.Conn) time.Duration {
			start := time.Now()
			io.Copy(io.Discard, nc)
			return time.Since(start)
		}
		for _, test := range []struct {
			send string
			want time.Duration
		}{
			{"", 5 * time.Second},
			{get[:20], 5 * time.Second},
			{head + "x", 30 * time.Second},
			{get, 65 * time.Second},
			{get + get[:20], 5 * time.Second},
			{get + head + "x", 30 * time.Second},
		} {
			nc := p.dial(t)
			go io.WriteString(nc, test.send)
			if got := closedAfter(nc); got != test.want {
				t.Errorf("%.60q: closed after %s, want %s", test.send, got, test.want)
			}
		}

		nc := p.dial(t)
		replies := make(chan int, 1)
		go func() {
			n, _ := io.Copy(io.Discard, nc)
			replies <- int(n)
		}()
		const rounds = 40
		for i := range rounds { // never idle: always the rest of one and the start of the next
			text := get[10:] + get[:10]
			if i == 0 {
				text = get + get[:10]
			}
			if _, err := io.WriteString(nc, text); err != nil {
				t.Fatalf("after %d s: %v", 4*i, err)
			}
			time.Sleep(4 * time.Second)
		}
		io.WriteString(nc, get[10:])
		for _, pause := range []time.Duration{4, 4, 50, 59, 2, 60} {
			time.Sleep(pause * time.Second)
			if _, err := io.WriteString(nc, get); err != nil {
				t.Fatalf("idle for %d s: %v", pause, err)
			}
		}
		synctest.Wait()
		start := time.Now()
		<-replies
		if idle := time.Since(start); idle > 65*time.Second || idle < 60*time.Second {
			t.Errorf("closed after %s idle, want 60 to 65", idle)
		}
	})
}

// TestFrontWait: a waiting consume is free of the limits, and so is what follows
// it on the connection; bytes behind it are the next request; an end of the input
// is a hang-up.
func TestFrontWait(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		wait := lines("GET /api/ns/q?timeout=600 HTTP/1.1", "Host: a")
		put := lines("PUT /api/ns/q?tries=1 HTTP/1.1", "Host: a", "Content-Length: 1") + "x"
		for _, padding := range []int{0, 2048 - len(wait) - len("X-A: \r\n")} { // a full buffer
			wait := strings.Replace(wait, "Host: a\r\n", "Host: a\r\nX-A: "+strings.Repeat("x", padding)+"\r\n", 1)
			start := time.Now()
			got := p.talk(t, wait, put, goodbye)
			if strings.Count(got, "HTTP/1.1 ") != 3 || !strings.Contains(got, `{"msg":"no job available"}HTTP/1.1 201`) || !strings.HasSuffix(got, `"size":1}`) {
				t.Errorf("got %s", got)
			}
			if waited := time.Since(start); waited != 600*time.Second {
				t.Errorf("waited %s", waited)
			}
			s.want(send(t, s.public, "DELETE", "/api/ns/q", ""), 204, "")

			nc := p.dial(t)
			io.WriteString(nc, wait)
			synctest.Wait()
			if n := s.engine.Numbers().Waiting; n != 1 {
				t.Fatalf("%d wait, want 1", n)
			}
			nc.Close()
			synctest.Wait()
			if n := s.engine.Numbers().Waiting; n != 0 {
				t.Errorf("%d wait after the hang-up", n)
			}
		}
	})
}

// TestFrontShutdown: idle connections are closed at once, requests under way have
// their replies, and waiting ones are told to come back.
func TestFrontShutdown(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		get := lines("GET /api/ns/none HTTP/1.1", "Host: a")
		results := make(chan string, 3)
		for _, text := range []string{"", get, get + get[:len(get)-2]} {
			nc := p.dial(t)
			go func() {
				io.WriteString(nc, text)
				if rest, ok := strings.CutPrefix(text, get); ok && rest != "" {
					time.Sleep(3 * time.Second)
					io.WriteString(nc, "\r\n")
				}
			}()
			go func() {
				all, _ := io.ReadAll(nc)
				results <- string(all)
			}()
		}
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := p.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if took := time.Since(start); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("took %s, want until the last request had its reply", took)
		}
		count := 0
		for range 3 {
			all := <-results
			count += strings.Count(all, "HTTP/1.1 404")
			if strings.Count(all, "HTTP/1.1") == 2 && !strings.Contains(all, "Connection: close") {
				t.Errorf("the last reply does not say that the connection ends: %s", all)
			}
		}
		if count != 3 {
			t.Errorf("%d replies, want 3", count)
		}
		if err := p.server.Serve(servertest.Listen()); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve after Shutdown: %v", err)
		}
	})
}

// TestFrontShutdownOfWaiting: see TestShutdown; here the connection ends too, and
// Shutdown does not wait longer than its context.
func TestFrontShutdownOfWaiting(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		nc := p.dial(t)
		io.WriteString(nc, lines("GET /api/ns/q?timeout=600 HTTP/1.1", "Host: a"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a waiting consume: %v", err)
		}
		s.server.Shutdown()
		all, err := io.ReadAll(nc)
		if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 503 ") || !strings.Contains(string(all), "Connection: close") {
			t.Errorf("got %s, %v", all, err)
		}
		if err := p.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestFrontLargeReplies goes through all sizes of buffers.
func TestFrontLargeReplies(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		for _, size := range []int{0, 1, 1400, 1600, 5000, 12 << 10, 40 << 10, 64 << 10, 64<<10 + 1, 1 << 20} {
			for range 2 {
				s.want(send(t, s.public, "PUT", "/api/ns/q", strings.Repeat("x", size)), 201, published)
			}
			got := send(t, s.public, "GET", "/api/ns/q?count=2", "")
			if got.status != 200 || strings.Count(got.body, strings.Repeat("eHh4", size/3)) < 2 {
				t.Errorf("%d bytes: got %d and %d bytes", size, got.status, len(got.body))
			}
		}
	})
}

// brokenEngine panics when it is to decide something.
type brokenEngine struct{ *engine.Engine }

func (brokenEngine) Submit(...engine.Command) engine.LSN { panic("a bug in the engine") }

// TestEnginePanicEndsTheProcess: after one the state may be half changed, so that
// neither net/http nor a connection of ours may go on.
func TestEnginePanicEndsTheProcess(t *testing.T) {
	const mark = "PAWL_TEST_ENGINE_PANIC"
	if way := os.Getenv(mark); way != "" {
		s := openShop(t, lmstfy.Options{SkipTokens: true})
		server, err := lmstfy.New(lmstfy.Options{SkipTokens: true})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { recover() }() // tokens are read through Submit, too
			server.SetEngine(s.engine)
		}()
		lmstfy.BreakEngine(server, brokenEngine{s.engine})
		target := "/api/ns/q"
		if way == "standard" {
			target = "/api/ns/%71"
		}
		got := send(t, servertest.Serve(t, server.HTTP()), "PUT", target, "x")
		fmt.Println("answered", got.status)
		return
	}
	for _, way := range []string{"front", "standard"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestEnginePanicEndsTheProcess$")
		cmd.Env = append(os.Environ(), mark+"="+way)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: a bug in the engine") || !strings.Contains(string(out), "brokenEngine") || strings.Contains(string(out), "answered") {
			t.Errorf("%s: the process goes on: %v\n%s", way, err, out)
		}
	}
}
