package migrate_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"pawl/engine"
	"pawl/migrate"
	"pawl/server/admin"
	"pawl/server/lmstfy"
	"pawl/server/servertest"
	"pawl/state"
)

// target is a daemon's admin address with its engine.
type target struct {
	t      *testing.T
	engine *engine.Engine
	tokens *lmstfy.Tokens
	url    string
}

func newTarget(t *testing.T) *target {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	public, err := lmstfy.New(lmstfy.Options{Pools: []string{"p"}, Accounts: map[string]string{"op": "secret"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := admin.New(admin.Options{Lmstfy: public, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	e := servertest.Open(t, t.TempDir(), engine.Options{})
	if err := public.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	s.SetEngine(e)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return &target{t, e, public.Tokens(), srv.URL}
}

func (g *target) run(o migrate.Options) migrate.Report {
	g.t.Helper()
	o.Admin, o.User, o.Password = g.url, "op", "secret"
	r, err := migrate.Run(g.t.Context(), o)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// jobs describes the jobs of a queue in one place, in order.
func (g *target) jobs(key string, place state.Place) []string {
	g.t.Helper()
	got := []string{}
	var after []byte
	for {
		p := &engine.QueuePeek{Queue: []byte(key), Place: place, Count: 100, After: after}
		if err := g.engine.Do(p); err != nil || p.Err() != nil {
			g.t.Fatal(err, p.Err())
		}
		for i := range p.Jobs {
			v := &p.Jobs[i]
			if err := g.engine.LoadView(v); err != nil {
				g.t.Fatal(err)
			}
			text := fmt.Sprintf("%s tries=%d", v.Payload, v.Tries)
			for _, a := range v.Attrs {
				text += fmt.Sprintf(" %s=%s", a.Name, a.Value)
			}
			if v.Reason != "" {
				text += " reason=" + v.Reason
			}
			got = append(got, text)
		}
		if after = p.Next; after == nil {
			return got
		}
	}
}

func (g *target) want(key string, place state.Place, want ...string) {
	g.t.Helper()
	if got := g.jobs(key, place); !slices.Equal(got, want) {
		g.t.Errorf("%s %s:\n got %q\nwant %q", key, place, got, want)
	}
}

// sources are the kinds of Redis that the tests read from.
func sources(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("fake", func(t *testing.T) {
		_, url := startFake(t)
		f(t, url)
	})
	t.Run("real", func(t *testing.T) { f(t, startRealRedis(t)) })
}

func listed(tries int, id string) string {
	b := binary.LittleEndian.AppendUint16(nil, uint16(tries))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(id)))
	return string(b) + id
}

func timed(namespace, queue string, tries int, id string) string {
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(namespace)))
	b = append(b, namespace...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(queue)))
	return string(append(b, queue...)) + listed(tries, id)
}

// lmstfyShop is a source in lmstfy's layout.
type lmstfyShop struct {
	t *testing.T
	c *redis.Client
}

func (s lmstfyShop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s lmstfyShop) body(namespace, queue, id, body string, ttl time.Duration) {
	s.t.Helper()
	s.must(s.c.Set(s.t.Context(), "j/"+namespace+"/"+queue+"/"+id, body, ttl).Err())
}

func (s lmstfyShop) ready(namespace, queue, id, body string, tries int, ttl time.Duration) {
	s.t.Helper()
	s.body(namespace, queue, id, body, ttl)
	s.must(s.c.LPush(s.t.Context(), "q/"+namespace+"/"+queue, listed(tries, id)).Err())
}

func (s lmstfyShop) dead(namespace, queue, id, body string) {
	s.t.Helper()
	s.body(namespace, queue, id, body, 0)
	s.must(s.c.LPush(s.t.Context(), "d/"+namespace+"/"+queue, listed(1, id)).Err())
}

func (s lmstfyShop) timer(namespace, queue, id, body string, tries int, due time.Time, ttl time.Duration) {
	s.t.Helper()
	s.body(namespace, queue, id, body, ttl)
	s.must(s.c.ZAdd(s.t.Context(), "timer_set", redis.Z{Score: float64(due.Unix()), Member: timed(namespace, queue, tries, id)}).Err())
}

func id(n int) string { return fmt.Sprintf("01F4CKPFY8XYVH6WVEQB37%04d", n) }

// Jobs that come due while the timer is read leave it, and none of the others is
// passed over for that.
func TestTimerFiresMeanwhile(t *testing.T) {
	f, url := startFake(t)
	s := lmstfyShop{t, open(t, url)}
	const jobs = 1200 // three pages
	for i := range jobs {
		s.timer("ns", "later", id(i), "x", 2, time.Now().Add(time.Duration(i+1)*time.Hour), 0)
	}
	f.ranged = func() {
		for range 100 { // the earliest
			set := f.zsets["timer_set"]
			first := ""
			for member, score := range set {
				if first == "" || score < set[first] {
					first = member
				}
			}
			delete(set, first)
		}
	}
	g := newTarget(t)
	o := migrate.Options{Layout: "lmstfy", From: url}
	first := g.run(o)
	f.mu.Lock()
	f.ranged = nil
	f.mu.Unlock()
	if second := g.run(o); second.Added != 0 || second.Duplicates == 0 || first.Added < jobs/2 {
		t.Errorf("got %+v, and %+v the second time, want nothing that was passed over", first, second)
	}
}

func TestLmstfy(t *testing.T) {
	sources(t, func(t *testing.T, url string) {
		s := lmstfyShop{t, open(t, url)}
		s.ready("ns", "mail", id(1), "first", 3, time.Hour)
		s.ready("ns", "mail", id(2), "second", 1, 0)
		s.ready("ns", "mail", "1"+id(3), "\x0a\x05third\x12\x08\x0a\x01a\x12\x03b c", 2, 0)
		s.ready("ns", "mail", "1"+id(4), "\x0a\x06fourth", 2, 0)
		s.must(s.c.LPush(t.Context(), "q/ns/mail", listed(3, id(5))).Err()) // its body has gone
		s.must(s.c.LPush(t.Context(), "q/ns/mail", "junk").Err())
		s.dead("ns", "mail", id(6), "oldest dead")
		s.dead("ns", "mail", id(7), "newer dead")
		s.timer("ns", "later", id(8), "in an hour", 2, time.Now().Add(time.Hour), 2*time.Hour)
		s.timer("ns", "later", id(9), "overdue", 2, time.Now().Add(-time.Minute), 0)
		s.timer("ns", "later", id(10), "on its last try", 0, time.Now().Add(time.Minute), 0)
		s.must(s.c.HSet(t.Context(), "tk/default/ns", "01F4CKPFY8XYVH6WVEQB3747CW", "the shop").Err())
		s.must(s.c.HSet(t.Context(), "tk/p/ns", "01F4CKPFY8XYVH6WVEQB3747CX", "of p").Err())
		s.must(s.c.HSet(t.Context(), "tk/unknown/ns", "01F4CKPFY8XYVH6WVEQB3747CY", "of nothing").Err())
		s.must(s.c.HSet(t.Context(), "__throttler_keys__", "p/ns/01F4CKPFY8XYVH6WVEQB3747CX", `{"read":5,"write":6,"interval":7}`).Err())

		g := newTarget(t)
		o := migrate.Options{Layout: "lmstfy", From: url, DryRun: true}
		dry := g.run(o)
		if dry.Ready != 5 || dry.Delayed != 1 || dry.Dead != 3 || dry.Gone != 1 || dry.Unreadable != 1 || dry.Added != 9 || dry.Refused != 1 {
			t.Errorf("dry run: got %+v", dry)
		}
		if n := g.engine.Numbers().Enqueued; n != 0 {
			t.Fatalf("the dry run enqueued %d jobs", n)
		}
		o.DryRun = false
		calls := 0
		o.Progress = func(migrate.Report) { calls++ }
		first := g.run(o)
		if first.Added != 9 || first.Duplicates != 0 || first.Tokens != 2 || first.Limits != 1 || first.Refused != 1 || calls == 0 {
			t.Errorf("first run: got %+v and %d calls", first, calls)
		}
		if len(first.Refusals) != 1 || !strings.Contains(first.Refusals[0], "pool") {
			t.Errorf("got refusals %q, want the token of the unknown pool", first.Refusals)
		}
		look := func() {
			t.Helper()
			g.want("default/ns/mail", state.Ready, "first tries=3", "second tries=1", "third tries=2 a=b c", "fourth tries=2 =1")
			g.want("default/ns/mail", state.Dead, "oldest dead tries=1 reason=dead in lmstfy", "newer dead tries=1 reason=dead in lmstfy")
			g.want("default/ns/later", state.Delayed, "in an hour tries=2")
			g.want("default/ns/later", state.Ready, "overdue tries=2")
			g.want("default/ns/later", state.Dead, "on its last try tries=1 reason=was in work on its last try at the import")
			if text, err := json.Marshal(g.tokens.List()); err != nil || strings.Count(string(text), `"token":`) != 2 || !strings.Contains(string(text), `{"read":5,"write":6,"interval":7}`) {
				t.Errorf("got tokens %s (%v)", text, err)
			}
		}
		look()
		p := &engine.QueuePeek{Queue: []byte("default/ns/later"), Place: state.Delayed}
		if err := g.engine.Do(p); err != nil || len(p.Jobs) != 1 {
			t.Fatal(err, len(p.Jobs))
		}
		left := time.Until(time.UnixMilli(int64(p.Jobs[0].DueAt)))
		if left < 30*time.Minute || left > time.Hour {
			t.Errorf("the delayed job is due in %s, want what was left of an hour", left)
		}
		if left := time.Until(time.UnixMilli(int64(p.Jobs[0].ExpiresAt))); left < 90*time.Minute || left > 2*time.Hour {
			t.Errorf("the delayed job expires in %s, want what was left of two hours", left)
		}
		g.engine.ForgetView(&p.Jobs[0])

		second := g.run(o)
		if second.Added != 0 || second.Tokens != 0 || second.Limits != 0 || second.Duplicates != 9+2+1 {
			t.Errorf("second run: got %+v, want only duplicates", second)
		}
		look()
		if n := len(g.engine.Census().Queues); n > 4 {
			t.Errorf("%d queues are left", n)
		}
	})
}

// TestFinishedJobsStayFinished: what was imported and done does not come again.
func TestFinishedJobsStayFinished(t *testing.T) {
	_, url := startFake(t)
	s := lmstfyShop{t, open(t, url)}
	s.ready("ns", "q", id(1), "x", 1, 0)
	g := newTarget(t)
	o := migrate.Options{Layout: "lmstfy", From: url}
	g.run(o)
	f := &engine.Fetch{Queues: [][]byte{[]byte("default/ns/q")}, LeaseMs: 60_000}
	if err := g.engine.Do(f); err != nil || len(f.Jobs) != 1 {
		t.Fatal(err, len(f.Jobs))
	}
	if err := g.engine.Load(&f.Jobs[0]); err != nil {
		t.Fatal(err)
	}
	if err := g.engine.Do(&engine.Ack{Leases: []state.LeaseID{f.Jobs[0].Lease}}); err != nil {
		t.Fatal(err)
	}
	s.ready("ns", "q", id(2), "came later", 1, 0)
	if r := g.run(o); r.Added != 1 || r.Duplicates != 1 {
		t.Errorf("got %+v, want the new job only", r)
	}
	g.want("default/ns/q", state.Ready, "came later tries=1")
}

// TestManyPages crosses every page and batch, in order, and only reads.
func TestManyPages(t *testing.T) {
	const jobs = 1203
	fake, url := startFake(t)
	s := lmstfyShop{t, open(t, url)}
	want := make([]string, jobs)
	for i := range jobs {
		s.ready("ns", "q", id(i), fmt.Sprint("job ", i), 1, 0)
		want[i] = fmt.Sprintf("job %d tries=1", i)
	}
	written := fake.written
	g := newTarget(t)
	if r := g.run(migrate.Options{Layout: "lmstfy", From: url, Pool: "p"}); r.Added != jobs {
		t.Errorf("got %+v, want %d added", r, jobs)
	}
	g.want("p/ns/q", state.Ready, want...)
	if fake.written != written {
		t.Errorf("the import wrote to its source")
	}
}

func TestMoxy(t *testing.T) {
	for _, hash := range []bool{false, true} {
		sources(t, func(t *testing.T, url string) {
			c := open(t, url)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			task := func(id, payload string) string {
				text, err := json.Marshal(map[string]any{"id": id, "payload": []byte(payload), "attempts": 1})
				must(err)
				return string(text)
			}
			must(c.LPush(t.Context(), "moxy:{mail}:ready", task("a", "first")).Err())
			must(c.LPush(t.Context(), "moxy:{mail}:ready", task("b", "second \x00\xff")).Err())
			must(c.LPush(t.Context(), "moxy:{mail}:ready", "junk").Err())
			if hash {
				must(c.HSet(t.Context(), "moxy:{mail}:processing", "c", task("c", "in work")).Err())
			} else {
				must(c.LPush(t.Context(), "moxy:{mail}:processing", task("c", "in work")).Err())
			}
			must(c.LPush(t.Context(), "moxy:{shop/orders}:dead", `{"task":`+task("d", "dead")+`,"reason":"no such order","dead_at":"2026-01-01T00:00:00Z"}`).Err())

			g := newTarget(t)
			o := migrate.Options{Layout: "moxy", From: url}
			if r := g.run(o); r.Added != 4 || r.Ready != 3 || r.Dead != 1 || r.Unreadable != 1 {
				t.Errorf("got %+v", r)
			}
			if r := g.run(o); r.Added != 0 || r.Duplicates != 4 {
				t.Errorf("second run: got %+v", r)
			}
			g.want("default/default/mail", state.Ready, "in work tries=0", "first tries=0", "second \x00\xff tries=0")
			g.want("default/shop/orders", state.Dead, "dead tries=0 reason=no such order")
		})
	}
}

func TestRefuses(t *testing.T) {
	_, url := startFake(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	g := newTarget(t)
	for _, tt := range []struct {
		name string
		o    migrate.Options
		want string
	}{
		{"layout", migrate.Options{Layout: "celery", From: url}, "layout"},
		{"source", migrate.Options{Layout: "moxy", From: "http://x"}, "source"},
		{"login", migrate.Options{Layout: "lmstfy", From: url, Admin: g.url, User: "op", Password: "wrong"}, "401"},
	} {
		lmstfyShop{t, open(t, url)}.ready("ns", "q", id(1), "x", 1, 0)
		if _, err := migrate.Run(ctx, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}
