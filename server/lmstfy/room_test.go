package lmstfy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pawl/server/lmstfy"
)

// small are options of a port with little room, for payloads of 1 MiB.
var small = lmstfy.Options{SkipTokens: true, MaxBuffers: 4 << 20}

// slow sends text on a connection of its own, and nothing more. Replies are counted
// by status when the server closes.
func slow(p port, t *testing.T, text string, replies *[600]atomic.Int64) net.Conn {
	nc := p.dial(t)
	go io.WriteString(nc, text)
	go func() {
		got, _ := io.ReadAll(nc)
		var status int
		if fmt.Sscanf(string(got), "HTTP/1.1 %d", &status); status < len(replies) {
			replies[status].Add(1)
		}
	}()
	return nc
}

// TestSlowBodiesAreBounded: bodies that come slowly fill the room and not more, by
// either way, and keep nobody from publishing, neither little nor much.
func TestSlowBodiesAreBounded(t *testing.T) {
	for name, body := range map[string]struct{ announced, sent int }{
		"net/http": {1 << 20, 200 << 10},
		"ours":     {64 << 10, 60 << 10},
	} {
		bubble(t, small, func(t *testing.T, s *shop) {
			p := openPort(t, s.server.HTTP())
			part := lines("PUT /api/ns/slow HTTP/1.1", "Host: a", fmt.Sprintf("Content-Length: %d", body.announced)) + strings.Repeat("x", body.sent)
			var replies [600]atomic.Int64
			const clients = 200
			for range clients {
				slow(p, t, part, &replies)
				synctest.Wait()
				if used, _ := s.server.Buffers(); used > small.MaxBuffers {
					t.Fatalf("%s: %d bytes are held, of %d", name, used, small.MaxBuffers)
				}
			}
			if used, _ := s.server.Buffers(); used < small.MaxBuffers/2 {
				t.Fatalf("%s: only %d bytes are held: the test is none", name, used)
			}
			time.Sleep(5 * time.Second)
			for range 5 {
				s.want(send(t, s.public, "PUT", "/api/ns/q", "little"), 201, published)
				s.want(send(t, s.public, "PUT", "/api/ns/q", strings.Repeat("x", 1<<20)), 201, published)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			_, refused := s.server.Buffers()
			if n := replies[503].Load(); n == 0 || uint64(n) > refused {
				t.Errorf("%s: %d were told that there is no room, %d are counted", name, n, refused)
			}
			if used, _ := s.server.Buffers(); used > 4<<10 { // of the client that goes on
				t.Errorf("%s: %d bytes are held by nobody", name, used)
			}
		})
	}
}

// TestIdleConnectionsKeepLittle: what connections keep between requests is half of
// the room at most, though each could keep its buffers.
func TestIdleConnectionsKeepLittle(t *testing.T) {
	bubble(t, small, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		put := lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 12000") + strings.Repeat("x", 12000)
		for range 400 {
			nc := p.dial(t)
			go io.WriteString(nc, put)
			if n, err := nc.Read(make([]byte, 4<<10)); n == 0 {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if used, _ := s.server.Buffers(); used < small.MaxBuffers/4 || used > small.MaxBuffers/2+32<<10 {
			t.Errorf("idle connections hold %d bytes, want up to half of %d", used, small.MaxBuffers)
		}
		s.want(send(t, s.public, "PUT", "/api/ns/q", strings.Repeat("x", 1<<20)), 201, published)
	})
}

// TestUnreadJobsGoBack: replies that nobody reads fill the room and not more; their
// jobs go back, and a client that reads has them all.
func TestUnreadJobsGoBack(t *testing.T) {
	bubble(t, small, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		const jobs = 20
		for range jobs {
			s.want(send(t, s.public, "PUT", "/api/ns/q?tries=1&ttl=0", strings.Repeat("x", 300<<10)), 201, published)
		}
		for i := range jobs {
			target := "/api/ns/q"
			if i%2 == 0 {
				target = "/api/ns/%71"
			}
			nc := p.dial(t)
			io.WriteString(nc, lines("GET "+target+"?ttr=3600 HTTP/1.1", "Host: a"))
			synctest.Wait()
			if used, _ := s.server.Buffers(); used > small.MaxBuffers {
				t.Fatalf("%d bytes are held, of %d", used, small.MaxBuffers)
			}
		}
		if used, _ := s.server.Buffers(); used < small.MaxBuffers/2 {
			t.Errorf("only %d bytes are held: unread replies are not counted", used)
		}
		got := map[string]bool{}
		for range 100 * jobs {
			r := send(t, s.public, "GET", "/api/ns/q?ttr=3600&timeout=40", "")
			if r.status == http.StatusServiceUnavailable {
				time.Sleep(time.Second)
				continue
			}
			if r.status != http.StatusOK {
				t.Fatalf("after %d jobs: got %d %.100s", len(got), r.status, r.body)
			}
			_, id, _ := strings.Cut(r.body, `"job_id":"`)
			if got[id[:26]] = true; len(got) == jobs {
				break
			}
		}
		if len(got) != jobs {
			t.Errorf("got %d jobs, want %d", len(got), jobs)
		}
		synctest.Wait()
		if used, _ := s.server.Buffers(); used > 32<<10 {
			t.Errorf("%d bytes are held by nobody", used)
		}
	})
}

// TestUnreadPeeksEnd: net/http has no limit of time for a reply that hands out
// nothing, but there is one.
func TestUnreadPeeksEnd(t *testing.T) {
	bubble(t, small, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		s.want(send(t, s.public, "PUT", "/api/ns/q", strings.Repeat("x", 300<<10)), 201, published)
		for _, target := range []string{"/api/ns/q/peek", "/api/ns/%71/peek"} {
			nc := p.dial(t)
			io.WriteString(nc, lines("GET "+target+" HTTP/1.1", "Host: a"))
			time.Sleep(31 * time.Second)
			synctest.Wait()
			if got, err := io.ReadAll(nc); len(got) > 8<<10 || err != nil {
				t.Errorf("%s: after 31 s there were %d bytes to be read, and %v", target, len(got), err)
			}
		}
	})
}

// TestWaitingConsumesHoldLittle: what stands in the buffer of a consume that waits is
// part of the room, and those who hold most of it end when others need it.
func TestWaitingConsumesHoldLittle(t *testing.T) {
	bubble(t, small, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		wait := lines("GET /api/ns/none?timeout=3600 HTTP/1.1", "Host: a")
		behind := lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 60000") + strings.Repeat("x", 60000)
		for range 100 {
			nc := p.dial(t)
			go io.WriteString(nc, behind+wait+behind+behind)
			go io.Copy(io.Discard, nc)
			synctest.Wait()
			if used, _ := s.server.Buffers(); used > small.MaxBuffers {
				t.Fatalf("%d bytes are held, of %d", used, small.MaxBuffers)
			}
		}
		if n := s.engine.Numbers().Waiting; n < 10 {
			t.Fatalf("%d wait: the test is none", n)
		}
		s.want(send(t, s.public, "PUT", "/api/ns/q", strings.Repeat("x", 40<<10)), 201, published)
	})
}
