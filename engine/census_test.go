package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pawl/engine"
	"pawl/state"
)

// A census has all queues there are and no others, sorted, each with what is its
// own, while queues come, go, and have the numbers of those that went. Some queues
// are as good.
func TestCensusFollows(t *testing.T) {
	s := openShop(t, engine.Options{})
	tries := map[string]uint16{} // of each queue that there is: what tells them apart
	begin := func(name string) {
		tries[string(key(name))] = uint16(1 + len(tries))
		s.must(&engine.QueueSet{Queue: key(name), Which: state.SetTries, Settings: state.Settings{Tries: tries[string(key(name))]}})
	}
	forget := func(name string) {
		delete(tries, string(key(name)))
		s.must(&engine.QueueDelete{Queue: key(name)})
	}
	// right says that views are the queues with these keys.
	right := func(when string, views []engine.QueueView, keys []string) {
		t.Helper()
		if len(views) != len(keys) {
			t.Fatalf("%s: got %d queues, want %d", when, len(views), len(keys))
		}
		for i, v := range views {
			if v.Key != keys[i] || v.Settings.Tries != tries[v.Key] {
				t.Fatalf("%s: got %s with %d tries at %d, want %s with %d", when, v.Key, v.Settings.Tries, i, keys[i], tries[keys[i]])
			}
		}
	}
	check := func(when string) {
		t.Helper()
		keys := slices.Sorted(maps.Keys(tries))
		s.e.ForgetCensus()
		right(when, s.e.Census().Queues, keys)
		byKey := func(a, b engine.QueueView) int { return cmp.Compare(a.Key, b.Key) }
		all := s.e.SomeQueues(5000)
		right(when, slices.SortedFunc(slices.Values(all), byKey), keys)
		for _, n := range []int{0, 1, len(all) / 2} {
			some := s.e.SomeQueues(n)
			if len(some) != n || !slices.EqualFunc(some, all[:n], func(a, b engine.QueueView) bool { return a.Key == b.Key }) {
				t.Fatalf("%s: got %d of %d queues, want the first %d", when, len(some), len(all), n)
			}
		}
	}
	for i := range 1500 { // more than one stay sees
		begin(fmt.Sprint("q-", i*7919%1500))
	}
	check("many began")
	for i := range 1000 {
		forget(fmt.Sprint("q-", i))
	}
	check("some went")
	for i := range 100 {
		begin(fmt.Sprint("another-", i)) // by the number of one that went
	}
	check("others came for them")
}

// A census has all crons there are, sorted, and the time at which it was taken, also
// where nothing else has looked at the clock for long.
func TestCensusHasCronsAndTheTime(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		const crons = 700 // more than one stay sees
		var want []string
		for i := range crons {
			cron := state.Cron{Namespace: fmt.Sprint("default/", i*7919%crons%3), Name: fmt.Sprint(i * 7919 % crons), Spec: "0 0 29 2 *", Queue: string(key("mail"))}
			s.must(&engine.CronSet{Cron: cron})
			want = append(want, cron.Namespace+" "+cron.Name)
		}
		slices.Sort(want)
		time.Sleep(time.Hour)
		c := s.e.Census()
		if want := state.Millis(time.Now().UnixMilli()); c.At != want {
			t.Errorf("it was taken at %d, want %d", c.At, want)
		}
		var got []string
		for i := range c.Crons {
			got = append(got, c.Crons[i].Namespace+" "+c.Crons[i].Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %d crons, %.100q, want %d, %.100q", len(got), got, len(want), want)
		}
	})
}

// Free numbers of queues, crons and values are looked at, so they are few in one stay too.
func TestListsLeaveOutFreeNumbers(t *testing.T) {
	s := openShop(t, engine.Options{})
	const many = 5000
	var begin, forget []engine.Command
	for i := range many {
		name := fmt.Sprint(i)
		begin = append(begin, &engine.QueuePause{Queue: key(name)},
			&engine.CronSet{Cron: state.Cron{Namespace: "default/default", Name: name, Spec: "0 0 1 1 *", Queue: string(key("mail"))}},
			&engine.MetaSet{Key: name, Value: []byte("x")})
		forget = append(forget, &engine.MetaSet{Key: name}, &engine.QueueDelete{Queue: key(name)}, &engine.CronDelete{Namespace: "default/default", Name: name})
	}
	for _, cmds := range [][]engine.Command{begin, forget} {
		if err := s.e.Do(cmds...); err != nil {
			t.Fatal(err)
		}
	}
	stays := func() uint64 { return s.e.Histograms().TurnSeconds.Count }
	for what, look := range map[string]func(){
		"QueueList":  func() { s.must(&engine.QueueList{Pool: state.DefaultPool}) },
		"CronList":   func() { s.must(&engine.CronList{Namespace: "default/default"}) },
		"MetaList":   func() { s.must(&engine.MetaList{Prefix: "1"}) },
		"Census":     func() { s.e.ForgetCensus(); s.e.Census() },
		"SomeQueues": func() { s.e.SomeQueues(10) },
	} {
		before := stays()
		if look(); stays()-before < many/1024 {
			t.Errorf("%s: took %d stays to pass over %d free numbers", what, stays()-before, many)
		}
	}
}

// All who ask within a second share a census; then it is let go, also when nobody
// asks for another one.
func TestCensusIsLetGo(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		c := s.e.Census()
		time.Sleep(900 * time.Millisecond)
		if s.e.Census() != c {
			t.Error("a census within a second is another one")
		}
		time.Sleep(200 * time.Millisecond)
		if s.e.HoldsCensus() {
			t.Error("a census is still there after more than a second")
		}
		if s.e.Census() == c {
			t.Error("a census after more than a second is the same")
		}
	})
}

// What takes long is kept for long.
func TestCensusKept(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                     time.Second,
		10 * time.Millisecond: time.Second,
		50 * time.Millisecond: 1500 * time.Millisecond,
		time.Minute:           15 * time.Second,
	} {
		if got := engine.CensusKept(took); got != want {
			t.Errorf("one that took %v is kept for %v, want %v", took, got, want)
		}
	}
}
