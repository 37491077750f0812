package lmstfy_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/server/lmstfy"
)

const tooManyConnections = `{"error":"too many connections"}`

// TestTooManyConnections: who comes when all places are taken is told so, and each
// way in which a connection ends makes a place free.
func TestTooManyConnections(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true, MaxClients: 3}, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		ask := func(nc net.Conn, text string) string {
			t.Helper()
			go io.WriteString(nc, text)
			b := make([]byte, 4<<10)
			n, err := nc.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			return string(b[:n])
		}
		plain := lines("GET /api/ns/q/size HTTP/1.1", "Host: a")
		kinds := map[string]string{"of ours": plain, "of net/http": lines("GET /api/ns/%71/size HTTP/1.1", "Host: a"), "silent": ""}
		refused := uint64(0)
		for range 3 {
			var open []net.Conn
			for _, text := range kinds {
				nc := p.dial(t)
				if open = append(open, nc); text != "" && !strings.HasPrefix(ask(nc, text), "HTTP/1.1 200 ") {
					t.Fatal("not served")
				}
			}
			late := p.dial(t)
			got := ask(late, plain)
			if refused++; !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "Retry-After: 1\r\n") || !strings.Contains(got, "Connection: close\r\n") ||
				!strings.HasSuffix(got, "\r\n\r\n"+tooManyConnections) {
				t.Errorf("one too many: got %s", got)
			}
			if n, err := late.Read(make([]byte, 1)); n > 0 || err != io.EOF {
				t.Errorf("the refused connection goes on: %d bytes, %v", n, err)
			}
			for _, nc := range open {
				nc.Close()
				synctest.Wait()
				again := p.dial(t)
				if got := ask(again, plain); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
					t.Errorf("with a place free: got %s", got)
				}
				again.Close()
				synctest.Wait()
			}
			if n := s.server.Connections(); n.Open != 0 || n.Refused != refused || n.Accepted != 6*refused {
				t.Errorf("round %d: counted %+v", refused, n)
			}
		}
	})
}

// TestRefusedCostLittle: however many come at once and say nothing, all of them are
// closed, and those who have a place are served.
func TestRefusedCostLittle(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true, MaxClients: 1}, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		s.server.SetMaxClients(2)
		idle, busy := p.dial(t), p.dial(t)
		synctest.Wait()
		s.server.SetMaxClients(1) // who is there stays
		const crowd = 300
		closed := make(chan error, crowd)
		for range crowd {
			nc := p.dial(t)
			go func() {
				_, err := io.Copy(io.Discard, nc)
				closed <- err
			}()
		}
		go io.WriteString(busy, goodbye)
		if got, _ := io.ReadAll(busy); !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
			t.Errorf("who was there is not served: %s", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(closed) != crowd {
			t.Errorf("%d of %d refused connections were closed", len(closed), crowd)
		}
		if n := s.server.Connections(); n.Open != 1 || n.Refused != crowd {
			t.Errorf("counted %+v, want 1 open and %d refused", n, crowd)
		}
		idle.Close()
	})
}

// TestPlacesAtTheEnd: connections that meet the end of the port give their places
// back too.
func TestPlacesAtTheEnd(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		p := openPort(t, s.server.HTTP())
		first, second := p.dial(t), p.dial(t)
		go io.WriteString(first, "GET /api/ns/%71")
		go io.WriteString(second, "GET /api/ns/q")
		synctest.Wait()
		if n := s.server.Connections(); n.Open != 2 {
			t.Fatalf("counted %+v, want 2 open", n)
		}
		p.server.Close()
		synctest.Wait()
		if n := s.server.Connections(); n.Open != 0 {
			t.Errorf("counted %+v after the end", n)
		}
	})
}
