package lmstfy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawl/server/lmstfy"
)

// wire is a client's connection, which it keeps for all of its requests.
type wire struct {
	t  *testing.T
	nc net.Conn
	in *bufio.Reader
}

// ask sends the pieces of one request, as many writes, and wants this reply.
// IDs are masked in it. It returns the job's ID if there is one.
func (w *wire) ask(status int, body string, pieces ...string) (id string) {
	w.t.Helper()
	go func() {
		for _, piece := range pieces {
			io.WriteString(w.nc, piece)
		}
	}()
	reply, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatalf("%.60q: %v", pieces[0], err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != status || mask(string(text)) != body || reply.Close {
		w.t.Errorf("%.60q:\n got %d %s (%v, close %v)\nwant %d %s", pieces[0], reply.StatusCode, mask(string(text)), err, reply.Close, status, body)
	}
	if len(reply.Header.Get("X-Request-Id")) != 26 || reply.Header.Get("Date") == "" {
		w.t.Errorf("%.60q: headers %v", pieces[0], reply.Header)
	}
	if _, rest, ok := strings.Cut(string(text), `"job_id":"`); ok {
		id, _, _ = strings.Cut(rest, `"`)
	}
	return id
}

// consumed is the reply to a consume of one job.
func consumed(queue, data, ttl, attributes string, remain int) string {
	return fmt.Sprintf(`{"attributes":%s,"data":"%s","elapsed_ms":N,"job_id":"<ID>","msg":"new job","namespace":"ns","queue":"%s","remain_tries":%d,"ttl":%s}`, attributes, data, queue, remain, ttl)
}

// clientTest runs f on a connection to the port, and again on one that net/http
// serves.
func clientTest(t *testing.T, f func(t *testing.T, w *wire, token string)) {
	for _, way := range []string{"front", "standard"} {
		t.Run(way, func(t *testing.T) {
			bubble(t, lmstfy.Options{}, func(t *testing.T, s *shop) {
				p := openPort(t, s.server.HTTP())
				if way == "standard" {
					p = openPort(t, s.server.HTTP().Standard())
				}
				nc := p.dial(t)
				f(t, &wire{t, nc, bufio.NewReader(nc)}, s.token("ns"))
			})
		})
	}
}

// TestGoClient: the requests of lmstfy's Go client, as net/http puts them on the
// wire.
func TestGoClient(t *testing.T) {
	clientTest(t, func(t *testing.T, w *wire, token string) {
		request := func(method, path, body string, more ...string) string {
			l := []string{method + " /api/ns/" + path + " HTTP/1.1", "Host: 127.0.0.1:7777", "User-Agent: Go-http-client/1.1"}
			if method == "PUT" {
				l = append(l, fmt.Sprintf("Content-Length: %d", len(body)))
			}
			l = append(l, more...)
			return lines(append(l, "X-Token: "+token, "Accept-Encoding: gzip")...) + body
		}
		const msg = `{"job_id":"<ID>","msg":"published"}`
		id := w.ask(201, msg, request("PUT", "q?delay=0&tries=3&ttl=10", "hello"))
		w.ask(200, `{"namespace":"ns","queue":"q","size":1}`, request("GET", "q/size", ""))
		w.ask(200, `{"attributes":null,"data":"aGVsbG8=","elapsed_ms":N,"job_id":"<ID>","namespace":"ns","queue":"q","remain_tries":3,"ttl":10}`, request("GET", "q/peek", ""))
		w.ask(200, `{"attributes":null,"data":"aGVsbG8=","elapsed_ms":N,"job_id":"<ID>","namespace":"ns","queue":"q","remain_tries":0,"ttl":10}`, request("GET", "q/job/"+id, ""))
		if got := w.ask(200, consumed("q", "aGVsbG8=", "10", "null", 2), request("GET", "q?freeze_tries=false&timeout=3&ttr=3", "")); got != id {
			t.Errorf("consumed %s, published %s", got, id)
		}
		republished := w.ask(201, msg, request("PUT", "q/job/"+id+"?delay=0&tries=1&ttl=0", "again"))
		w.ask(404, `{"error":"job not found"}`, request("GET", "q/job/"+id, ""))
		w.ask(200, consumed("q", "YWdhaW4=", "0", "null", 0), request("GET", "none,q?freeze_tries=true&timeout=1&ttr=3", ""))
		w.ask(204, "", request("DELETE", "q/job/"+republished, ""))

		start := time.Now()
		w.ask(404, `{"msg":"no job available"}`, request("GET", "q?freeze_tries=false&timeout=3&ttr=10", ""))
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %s, want 3 s", waited)
		}
		w.ask(201, `{"job_ids":["<ID>","<ID>","<ID>"],"msg":"published"}`, request("PUT", "b/bulk?delay=0&tries=1&ttl=0", `["a",{"k":1},2]`))
		w.ask(200, "["+consumed("b", "ImEi", "0", "null", 0)+","+consumed("b", "eyJrIjoxfQ==", "0", "null", 0)+"]", request("GET", "b?count=2&freeze_tries=false&timeout=0&ttr=1", ""))
		time.Sleep(2 * time.Second)
		w.ask(200, `{"deadletter_head":"<ID>","deadletter_size":2,"namespace":"ns","queue":"b"}`, request("GET", "b/deadletter", ""))
		w.ask(200, `{"count":1,"msg":"respawned"}`, request("PUT", "b/deadletter?limit=1&ttl=10", ""))
		w.ask(204, "", request("DELETE", "b/deadletter?limit=10", ""))
		w.ask(200, `{"namespace":"ns","queue":"b","size":2}`, request("GET", "b/size", ""))

		w.ask(201, `{"job_id":"<ID27>","msg":"published"}`, request("PUT", "v?delay=0&tries=1&ttl=0", "x", "Enable-Job-Version: YES", "Job-Attr-Flag: 1", "Job-Attr-Label: abc"))
		w.ask(200, strings.Replace(consumed("v", "eA==", "0", `{"flag":"1","label":"abc"}`, 0), "<ID>", "<ID27>", 1), request("GET", "v?freeze_tries=false&timeout=0&ttr=10", ""))
	})
}

// TestPHPClient: the requests of lmstfy's PHP client, as its curl puts them on the
// wire: a body comes in a write of its own, with a type that is not its own; once
// it has been set, it goes along with everything that follows; and the consume of
// several queues has an array where its query should be.
func TestPHPClient(t *testing.T) {
	clientTest(t, func(t *testing.T, w *wire, token string) {
		request := func(method, path, body string) []string {
			l := []string{method + " /api/ns/" + path + " HTTP/1.1", "Host: 127.0.0.1:7777", "Accept: */*", "X-Token:" + token}
			if body != "" {
				l = append(l, fmt.Sprintf("Content-Length: %d", len(body)), "Content-Type: application/x-www-form-urlencoded")
			}
			if body == "" {
				return []string{lines(l...)}
			}
			return []string{lines(l...), body}
		}
		w.ask(404, `{"msg":"no job available"}`, request("GET", "q?ttr=120&timeout=0", "")...)
		id := w.ask(201, `{"job_id":"<ID>","msg":"published"}`, request("PUT", "q?ttl=0&tries=2&delay=0", "a=b&c")...)
		w.ask(200, `{"namespace":"ns","queue":"q","size":1}`, request("GET", "q/size", "a=b&c")...)
		w.ask(200, `{"attributes":null,"data":"YT1iJmM=","elapsed_ms":N,"job_id":"<ID>","namespace":"ns","queue":"q","remain_tries":0,"ttl":0}`, request("GET", "q/job/"+id, "a=b&c")...)
		w.ask(200, consumed("q", "YT1iJmM=", "0", "null", 1), request("GET", "q?ttr=1&timeout=5", "a=b&c")...)
		time.Sleep(2 * time.Second)
		w.ask(200, consumed("q", "YT1iJmM=", "0", "null", 0), request("GET", "none,q?Array", "a=b&c")...)
		w.ask(204, "", request("DELETE", "q/job/"+id, "a=b&c")...)
		start := time.Now()
		w.ask(404, `{"msg":"no job available"}`, request("GET", "q?ttr=120&timeout=300", "a=b&c")...)
		if waited := time.Since(start); waited != 300*time.Second {
			t.Errorf("waited %s, want 300 s", waited)
		}
		w.ask(201, `{"job_id":"<ID>","msg":"published"}`, request("PUT", "q?ttl=0&tries=1&delay=0", "dies")...)
		w.ask(200, consumed("q", "ZGllcw==", "0", "null", 0), request("GET", "q?ttr=1&timeout=0", "dies")...)
		time.Sleep(2 * time.Second)
		w.ask(200, `{"deadletter_head":"<ID>","deadletter_size":1,"namespace":"ns","queue":"q"}`, request("GET", "q/deadletter", "dies")...)
		w.ask(200, `{"count":1,"msg":"respawned"}`, request("PUT", "q/deadletter", "dies")...)
		w.ask(200, `{"attributes":null,"data":"ZGllcw==","elapsed_ms":N,"job_id":"<ID>","namespace":"ns","queue":"q","remain_tries":1,"ttl":~86400}`, request("GET", "q/peek", "dies")...)
	})
}

// TestExpectContinue: curl asks before it sends a large body.
func TestExpectContinue(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		nc := openPort(t, s.server.HTTP()).dial(t)
		in := bufio.NewReader(nc)
		const size = 100_000
		io.WriteString(nc, lines("PUT /api/ns/q HTTP/1.1", "Host: a", fmt.Sprintf("Content-Length: %d", size), "Expect: 100-continue"))
		if reply, err := http.ReadResponse(in, nil); err != nil || reply.StatusCode != 100 {
			t.Fatal(reply, err)
		}
		w := &wire{t, nc, in}
		w.ask(201, `{"job_id":"<ID>","msg":"published"}`, strings.Repeat("x", size))
		w.ask(200, `{"namespace":"ns","queue":"q","size":1}`, lines("GET /api/ns/q/size HTTP/1.1", "Host: a"))
	})
}
