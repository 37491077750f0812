package lmstfy_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"pawl/server/lmstfy"
)

// lines joins lines of a head and ends it.
func lines(l ...string) string { return strings.Join(l, "\r\n") + "\r\n\r\n" }

// plainRequests are served by a connection of ours.
var plainRequests = []string{
	lines("GET /api/ns/q HTTP/1.1", "Host: a"),
	lines("GET /api/ns/a,b?timeout=0&ttr=3 HTTP/1.1", "Host: 127.0.0.1:7777", "X-Token: t", "Accept: */*"),
	lines("GET /api/ns/q?%zz&a=%20&token=x?y HTTP/1.1", "Host: [::1]:7777", "User-Agent: Go-http-client/1.1", "Accept-Encoding: gzip"),
	lines("GET /api/../../x HTTP/1.1", "Host: a"),
	lines("GET /api//x/ HTTP/1.1", "host:a", "CONNECTION:\tKeep-Alive "),
	lines("DELETE /api/ns/q/job/01F4CKPFY8XYVH6WVEQB3747CW HTTP/1.1", "Host: a", "X-Token:", "X-Token: second"),
	lines("DELETE /api/ns/q/job/x HTTP/1.1", "Host: a", "Content-Length: 5") + "stale",
	lines("PUT /api/ns/q?delay=1 HTTP/1.1", "Host: a", "Content-Length: 2", "Content-Type: application/x-www-form-urlencoded") + "hi",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 0002") + "hi",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a"),
	lines("PUT /api/ns/q/bulk HTTP/1.1", "Host: a", "content-length: 5", "enable-job-version: yes", "job-attr-HeLLo: wo<rld>", "Job-Attr-Hello: second") + "[1,2]",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 65536") + strings.Repeat("\x00", 65536),
}

// otherRequests are left to net/http, which takes some and refuses others.
var otherRequests = []string{
	lines("HEAD /api/ns/q HTTP/1.1", "Host: a"),
	lines("get /api/ns/q HTTP/1.1", "Host: a"),
	lines("POST /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 1") + "x",
	lines("GET / HTTP/1.1", "Host: a"),
	lines("GET http://a/api/ns/q HTTP/1.1", "Host: b"),
	lines("GET /api/ns/q HTTP/1.0", "Host: a"),
	lines("GET /api/ns/q HTTP/1.1 ", "Host: a"),
	lines("GET /api/ns/q  HTTP/1.1", "Host: a"),
	lines("GET /api/ns/a%2Fb HTTP/1.1", "Host: a"),
	lines("GET /api/ns/\xe9 HTTP/1.1", "Host: a"),
	lines("GET /api/ns/q#x HTTP/1.1", "Host: a"),
	lines("GET /api/ns/q?a\x7f HTTP/1.1", "Host: a"),
	lines("GET /api/ns/q HTTP/1.1"),
	lines("GET /api/ns/q HTTP/1.1", "Host:"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a", "Host: a"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a/b"),
	lines("GET /api/ns/q HTTP/1.1", "Host : a"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a", ": x"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a", "X-A: b", " folded"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a", "X-A\x00: b"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a", "X-A: \x01"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a", "no colon"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a", "Connection: close"),
	lines("GET /api/ns/q HTTP/1.1", "Host: a", "Connection: keep-alive, X-Token"),
	"GET /api/ns/q HTTP/1.1\nHost: a\n\n",
	"GET /api/ns/q HTTP/1.1\r\nHost: a\r\n\n",
	lines("GET /api/ns/q HTTP/1.1", "Host: a", "X-A: "+strings.Repeat("x", 4096)),
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: +2") + "hi",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 2, 2") + "hi",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: -1"),
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length:"),
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 2") + "hi",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 2", "Content-Length: 2") + "hi",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 2", "Transfer-Encoding: chunked") + "0\r\n\r\n",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + "2\r\nhi\r\n0\r\n\r\n",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "transfer-encoding: identity") + "",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 2", "Expect: 100-continue") + "hi",
	lines("PUT /api/ns/q HTTP/1.1", "Host: a", "Content-Length: 65537") + strings.Repeat("x", 65537),
	"*1\r\n$4\r\nPING\r\n",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"\r\n" + lines("GET /api/ns/q HTTP/1.1", "Host: a"),
}

// TestPlainVerdicts: which requests are plain, whatever follows them, and that
// every beginning of one may still become one.
func TestPlainVerdicts(t *testing.T) {
	for _, raw := range plainRequests {
		for _, behind := range []string{"", "x", "GET /"} {
			if r, whole, _ := lmstfy.ParsePlain([]byte(raw + behind)); !whole || r.Size != len(raw) {
				t.Errorf("%.80q: whole %v, %d bytes, want all %d", raw, whole, r.Size, len(raw))
			}
		}
		for n := range min(len(raw), 4096) {
			if _, whole, more := lmstfy.ParsePlain([]byte(raw[:n])); whole || !more {
				t.Fatalf("%.80q cut at %d: whole %v, more %v", raw, n, whole, more)
			}
		}
	}
	for _, raw := range otherRequests {
		if r, whole, more := lmstfy.ParsePlain([]byte(raw)); whole || more {
			t.Errorf("%.80q: whole %v, more %v: %+v", raw, whole, more, r)
		}
	}
}

// FuzzPlain: what is taken as a plain request means the same to net/http, to the
// last byte; and a beginning that cannot become one does not.
func FuzzPlain(f *testing.F) {
	for _, raw := range append(plainRequests, otherRequests...) {
		if len(raw) < 1024 {
			f.Add([]byte(raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, whole, _ := lmstfy.ParsePlain(raw)
		if !whole {
			return
		}
		for n := 0; n < len(raw); n += 1 + len(raw)/64 {
			if early, whole, more := lmstfy.ParsePlain(raw[:n]); whole && early.Size != got.Size || !whole && !more {
				t.Fatalf("cut at %d of %d: whole %v, more %v, size %d", n, len(raw), whole, more, early.Size)
			}
		}
		in := bytes.NewReader(raw)
		buffered := bufio.NewReader(in)
		r, err := http.ReadRequest(buffered)
		if err != nil {
			t.Fatalf("net/http refuses what is plain: %v", err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatalf("body: %v", err)
		}
		if used := len(raw) - in.Len() - buffered.Buffered(); used != got.Size {
			t.Errorf("%d bytes, net/http takes %d", got.Size, used)
		}
		if r.Close || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Header.Get("Expect") != "" || len(r.TransferEncoding) > 0 || r.Host == "" {
			t.Errorf("no plain request: %+v", r)
		}
		want := lmstfy.PlainRequest{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Token: r.Header.Get("X-Token"), Body: string(body), Size: got.Size}
		for name, values := range r.Header {
			if name != "Enable-Job-Version" && !strings.HasPrefix(name, "Job-Attr-") {
				continue
			}
			if strings.Join(values, "\n") != strings.Join(got.Header[name], "\n") {
				t.Errorf("%s is %q, net/http has %q", name, got.Header[name], values)
			}
		}
		got.Header = nil
		if got.Method != want.Method || got.Path != want.Path || got.Query != want.Query || got.Token != want.Token || got.Body != want.Body {
			t.Errorf("got %+v, net/http has %+v", got, want)
		}
	})
}
