package admin_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"pawl/server/admin"
	"pawl/server/servertest"
)

// TestSlowReaders: clients that ask for metrics and do not read them do not keep
// others from theirs for more than half a minute; one that reads slowly gets all,
// and its connection serves again.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, admin.Options{MaxQueueSeries: 1000}, map[string]string{"op": "secret"})
		s.SetEngine(manyQueues(5000))
		l := servertest.Listen()
		server := s.HTTP()
		go server.Serve(l)
		defer server.Close()
		dial := func() net.Conn {
			c, err := l.Dial(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		const request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
		for range 4 {
			c := dial()
			defer c.Close()
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		dials := 0
		client := &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
			dials++
			return dial(), nil
		}}}
		defer client.CloseIdleConnections()
		get := func(path string) (status int, body io.ReadCloser) {
			t.Helper()
			r, err := client.Get("http://localhost" + path)
			if err != nil {
				t.Fatal(err)
			}
			return r.StatusCode, r.Body
		}
		if status, body := get("/metrics"); status != http.StatusServiceUnavailable {
			t.Errorf("beside four scrapes: got %d, want 503", status)
		} else if _, err := io.Copy(io.Discard, body); err != nil {
			t.Error(err)
		}
		time.Sleep(writeTimeout + time.Second)
		for _, path := range []string{"/metrics", "/info"} {
			status, body := get(path)
			if status != http.StatusOK {
				t.Errorf("after their time, %s: got %d, want 200", path, status)
			}
			size := 0
			for piece := make([]byte, 4<<10); ; time.Sleep(time.Second) {
				n, err := io.ReadFull(body, piece)
				if size += n; err != nil {
					if err != io.EOF && err != io.ErrUnexpectedEOF {
						t.Errorf("a slow reader of %s: %v", path, err)
					}
					break
				}
			}
			if size < 200<<10 {
				t.Errorf("%s has only %d bytes", path, size)
			}
		}
		time.Sleep(writeTimeout + time.Second)
		if status, _ := get("/"); status != http.StatusUnauthorized || dials != 1 { // a reply without a body
			t.Errorf("then: got %d on connection %d, want 401 on the first", status, dials)
		}
	})
}

const writeTimeout = 30 * time.Second
