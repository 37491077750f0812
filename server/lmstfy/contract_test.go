package lmstfy_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/server/servertest"
)

// shop is the two HTTP edges on a real engine.
type shop struct {
	t             testing.TB
	dir           string
	engine        *engine.Engine
	server        *lmstfy.Server
	public, admin *http.Client
}

// openShop must be called inside a bubble: its time is what the tests wait for.
func openShop(t testing.TB, o lmstfy.Options) *shop {
	t.Helper()
	s := &shop{t: t, dir: t.TempDir()}
	s.open(o)
	return s
}

func (s *shop) open(o lmstfy.Options) {
	s.t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	s.engine = servertest.Open(s.t, s.dir, engine.Options{})
	var err error
	if s.server, err = lmstfy.New(o); err != nil {
		s.t.Fatal(err)
	}
	if err := s.server.SetEngine(s.engine); err != nil {
		s.t.Fatal(err)
	}
	s.public = servertest.Serve(s.t, s.server.HTTP())
	s.admin = servertest.Serve(s.t, &http.Server{Handler: s.server.Admin()})
}

// token makes a token for ns in the default pool.
func (s *shop) token(namespace string) string {
	s.t.Helper()
	text, err := s.server.Tokens().Create("", namespace, "", "test")
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// reply is what came back.
type reply struct {
	status int
	body   string
	header http.Header
}

// send sends one request. Headers are lines "Name: value".
func send(t testing.TB, client *http.Client, method, target, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+target, strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	got, err := client.Do(r)
	if err != nil {
		t.Errorf("%s %s: %v", method, target, err)
		return reply{}
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Errorf("%s %s: %v", method, target, err)
	}
	return reply{got.StatusCode, string(text), got.Header}
}

var masks = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "<ID>"},
	{regexp.MustCompile(`\b1[0-9A-HJKMNP-TV-Z]{26}\b`), "<ID27>"},
	{regexp.MustCompile(`"elapsed_ms":[0-9]+`), `"elapsed_ms":N`},
	{regexp.MustCompile(`"ttl":(863[0-9]{2}|86400)`), `"ttl":~86400`},
}

func mask(s string) string {
	for _, m := range masks {
		s = m.find.ReplaceAllString(s, m.put)
	}
	return s
}

// TestContract sends what testdata/*.txt says and compares every reply, byte for
// byte but for masked IDs and times. The replies are those that a real lmstfy
// gave to the same requests; where ours differs on purpose, a line beginning with
// "differs:" in front of it says what the real one does and why.
//
// A line is one of
//
//	# text             a heading
//	differs: text      explains the next reply
//	wait 2s            lets time pass
//	let NAME           keeps the ID of the reply before as $NAME
//	background 400ms   sends the next request in the background after that time
//	join               waits for it
//	> METHOD URL       a request; an URL beginning with ADMIN goes to the admin API
//	header NAME: VALUE one more header of the request before
//	body TEXT          its body; @size:N is N zero bytes
//	< STATUS TEXT      its reply; further lines until an empty one belong to it
//
// Requests of the public API carry the token $TK unless a header X-Token or a
// parameter token is there, or the line begins with ">>".
func TestContract(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []string{"front", "standard"} {
			t.Run(filepath.Base(file)+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := openShop(t, lmstfy.Options{Pools: []string{"meipai"}})
					if way == "standard" {
						s.public = servertest.Serve(t, s.server.HTTP().Standard())
					}
					d := &dialogue{shop: s, names: map[string]string{}}
					d.names["TK"] = s.token("ns")
					pool, err := s.server.Tokens().Create("meipai", "ns", "", "x")
					if err != nil {
						t.Fatal(err)
					}
					d.names["PT"] = pool
					d.run(t, string(text))
				})
			})
		}
	}
}

type dialogue struct {
	*shop
	names      map[string]string
	last       reply
	background sync.WaitGroup
}

func (d *dialogue) run(t *testing.T, text string) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "", "#", "differs:":
			i++
		case "wait":
			pause, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			i++
		case "let":
			id := regexp.MustCompile(`"(?:job_id|token)": ?"([^"]*)"`).FindStringSubmatch(d.last.body)
			if id == nil {
				t.Fatalf("line %d: no ID in %s", i+1, d.last.body)
			}
			d.names[rest] = id[1]
			i++
		case "join":
			d.background.Wait()
			i++
		case "background":
			pause, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			ask, next := d.request(t, lines, i+1)
			d.background.Go(func() {
				time.Sleep(pause)
				ask()
			})
			i = next
		case ">", ">>":
			ask, next := d.request(t, lines, i)
			d.last = ask()
			i = next
		default:
			t.Fatalf("line %d: what is %q?", i+1, line)
		}
	}
	d.background.Wait()
}

// request reads a request and its reply, and gives what sends and compares them.
func (d *dialogue) request(t *testing.T, lines []string, i int) (ask func() reply, next int) {
	at := i + 1
	word, rest, _ := strings.Cut(d.expand(lines[i]), " ")
	method, target, _ := strings.Cut(rest, " ")
	var body string
	var headers []string
	client := d.public
	if admin, ok := strings.CutPrefix(target, "ADMIN"); ok {
		client, target = d.admin, admin
	} else if word == ">" && !strings.Contains(target, "token=") {
		headers = []string{"X-Token: " + d.names["TK"]}
	}
	for i++; ; i++ {
		line := d.expand(lines[i])
		if text, ok := strings.CutPrefix(line, "header "); ok {
			if strings.HasPrefix(text, "X-Token") {
				headers = headers[:0]
			}
			headers = append(headers, text)
		} else if text, ok := strings.CutPrefix(line, "body "); ok {
			var n int
			if _, err := fmt.Sscanf(text, "@size:%d", &n); err == nil {
				text = string(make([]byte, n))
			}
			body = text
		} else {
			break
		}
	}
	want, ok := strings.CutPrefix(lines[i], "< ")
	if !ok {
		t.Fatalf("line %d: want a reply", i+1)
	}
	for i++; i < len(lines) && lines[i] != ""; i++ {
		want += "\n" + lines[i]
	}
	return func() reply {
		got := send(t, client, method, target, body, headers...)
		if text := strings.TrimSuffix(fmt.Sprintf("%d %s", got.status, mask(got.body)), " "); text != want {
			t.Errorf("line %d: %s %s\n got %s\nwant %s", at, method, target, text, want)
		}
		if id := got.header.Get("X-Request-Id"); len(id) != 26 {
			t.Errorf("line %d: request ID %q, want a ULID", at, id)
		}
		return got
	}, i
}

func (d *dialogue) expand(s string) string {
	return os.Expand(s, func(name string) string { return d.names[name] })
}
