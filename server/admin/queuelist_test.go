package admin_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/server/admin"
	"pawl/state"
)

// scattered are n queues whose numbers are in no order, with many ties.
func scattered(n int) *published {
	e := manyQueues(n)
	for i := range e.census.Queues {
		v := &e.census.Queues[i]
		v.Ready, v.OldestReadyMs = int64(i*7919%97), state.Millis(i*31%n)
	}
	return e
}

type queuePage struct {
	Total  int
	Queues []struct{ Display string }
}

func pageOf(t testing.TB, s http.Handler, query string) (p queuePage) {
	t.Helper()
	w := ask(s, "GET", "/api/v1/queues?"+query)
	if w.Code != 200 {
		t.Fatalf("%s: got %d %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestQueuePages: each page is what sorting all queues gives, however few are
// sorted.
func TestQueuePages(t *testing.T) {
	const queues = 3000
	s := newServer(t, admin.Options{})
	e := scattered(queues)
	s.SetEngine(e)
	some := func(v engine.QueueView) bool { return strings.Contains(v.Key, "7") }
	for _, list := range []struct {
		query string
		want  func(engine.QueueView) bool
		cmp   func(a, b engine.QueueView) int
	}{
		{"sort=name", nil, func(a, b engine.QueueView) int { return strings.Compare(a.Key, b.Key) }},
		{"sort=ready", nil, func(a, b engine.QueueView) int { return cmp.Compare(b.Ready, a.Ready) }},
		{"sort=age", nil, func(a, b engine.QueueView) int { return cmp.Compare(b.OldestReadyMs, a.OldestReadyMs) }},
		{"sort=ready&match=7", some, func(a, b engine.QueueView) int { return cmp.Compare(b.Ready, a.Ready) }},
		{"match=*7*&pool=default", some, func(a, b engine.QueueView) int { return strings.Compare(a.Key, b.Key) }},
		{"pool=other", func(engine.QueueView) bool { return false }, func(a, b engine.QueueView) int { return 0 }},
	} {
		all := slices.Clone(e.census.Queues)
		if list.want != nil {
			all = slices.DeleteFunc(all, func(v engine.QueueView) bool { return !list.want(v) })
		}
		slices.SortStableFunc(all, list.cmp)
		for _, page := range []struct{ from, count int }{{0, 1}, {0, 100}, {30, 80}, {950, 50}, {1000, 100}, {2950, 100}, {queues, 10}, {1 << 40, 10}} {
			got := pageOf(t, s, fmt.Sprintf("%s&from=%d&count=%d", list.query, page.from, page.count))
			if got.Total != len(all) {
				t.Fatalf("%s %+v: got %d in all, want %d", list.query, page, got.Total, len(all))
			}
			from := min(page.from, len(all))
			want := all[from:min(from+page.count, len(all))]
			if len(got.Queues) != len(want) {
				t.Fatalf("%s %+v: got %d queues, want %d", list.query, page, len(got.Queues), len(want))
			}
			for i, v := range want {
				if got.Queues[i].Display != state.DisplayName(v.Key) {
					t.Fatalf("%s %+v: got %s at %d, want %s", list.query, page, got.Queues[i].Display, i, v.Key)
				}
			}
		}
	}
}

// BenchmarkQueuePage is the first page of very many queues, by depth.
func BenchmarkQueuePage(b *testing.B) {
	const queues = 100_000
	s := newServer(b, admin.Options{})
	s.SetEngine(scattered(queues))
	for b.Loop() {
		if got := pageOf(b, s, "sort=ready&count=50"); got.Total != queues {
			b.Fatal(got.Total)
		}
	}
}
