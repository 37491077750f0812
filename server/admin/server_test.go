package admin_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"pawl/server/admin"
	"pawl/server/servertest"
)

// TestTooManyOperators: the listener has places of its own, and one that ends makes
// room for the next.
func TestTooManyOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front := newServer(t, admin.Options{}).HTTP()
		l := servertest.Listen()
		done := make(chan struct{})
		go func() {
			defer close(done)
			front.Serve(l)
		}()
		defer func() {
			front.Close()
			<-done
		}()
		ask := func() (string, net.Conn) {
			t.Helper()
			nc, err := l.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go io.WriteString(nc, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
			b := make([]byte, 4<<10)
			n, err := nc.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			return string(b[:n]), nc
		}
		var open []net.Conn
		for range admin.MaxClients {
			got, nc := ask()
			if open = append(open, nc); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
				t.Fatalf("connection %d: got %s", len(open), got)
			}
		}
		if got, _ := ask(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
			t.Errorf("one too many: got %s", got)
		}
		open[0].Close()
		synctest.Wait()
		got, nc := ask()
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("with a place free: got %s", got)
		}
		for _, nc := range append(open, nc) {
			nc.Close()
		}
	})
}
