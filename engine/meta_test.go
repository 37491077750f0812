package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pawl/engine"
)

// A list of very many values lets others in after every thousand. What they change
// meanwhile is listed once, as it is; and what is listed belongs to who asked.
func TestMetaListInPieces(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		const values = 3000
		var cmds []engine.Command
		for i := range values {
			cmds = append(cmds, &engine.MetaSet{Key: fmt.Sprintf("user/%04d", (i*7)%values), Value: []byte("old")})
		}
		if err := s.e.Do(cmds...); err != nil {
			t.Fatal(err)
		}
		s.during(func() {
			s.e.Between(
				&engine.MetaSet{Key: "user/0007"}, &engine.MetaSet{Key: "zone/x", Value: []byte("x")}, // has its number now
				&engine.MetaSet{Key: "user/0007", Value: []byte("new")},
			)
		})
		before := s.e.Histograms().TurnSeconds.Count
		list := &engine.MetaList{Prefix: "user/"}
		s.must(list)
		if stays := s.e.Histograms().TurnSeconds.Count - before; stays < values/1024 {
			t.Errorf("%d values took %d stays", values, stays)
		}
		if len(list.Pairs) != values || !slices.IsSortedFunc(list.Pairs, func(a, b engine.MetaPair) int { return strings.Compare(a.Key, b.Key) }) {
			t.Fatalf("got %d pairs, want %d, sorted", len(list.Pairs), values)
		}
		for i, p := range list.Pairs {
			want := "old"
			if i == 7 {
				want = "new"
			}
			if p.Key != fmt.Sprintf("user/%04d", i) || string(p.Value) != want {
				t.Fatalf("pair %d: got %s %s, want %s", i, p.Key, p.Value, want)
			}
			p.Value[0] = 'x'
		}
		get := &engine.MetaGet{Key: "user/0000"}
		if s.must(get); string(get.Value) != "old" {
			t.Errorf("who changes a list has changed what is stored: got %q", get.Value)
		}
	})
}
