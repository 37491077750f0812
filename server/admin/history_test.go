package admin_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pawl/engine"
	"pawl/server/admin"
)

// sampled is an engine of which no census may be taken.
type sampled struct {
	*published
	t *testing.T
}

func (s sampled) Census() *engine.Census {
	s.t.Error("a sample takes a census of all queues")
	return s.published.Census()
}

// TestSamplesAreCheap: with very many queues, a sample looks at a thousand of them.
func TestSamplesAreCheap(t *testing.T) {
	s := newServer(t, admin.Options{})
	e := manyQueues(1200)
	s.SetEngine(e)
	s.Server.SetEngine(sampled{e, t})
	s.Sample()
	s.Sample()
	s.Server.SetEngine(e)
	for from, want := range map[int]int{0: 2, 999: 2, 1000: 0} {
		if got := len(samplesOf(t, s, from)); got != want {
			t.Errorf("queue %d has %d samples, want %d", from, got, want)
		}
	}
}

// samplesOf are those of the depth of one queue, by its place in the list.
func samplesOf(t *testing.T, s *pair, from int) []int64 {
	t.Helper()
	var page struct {
		Queues []struct {
			Samples []int64 `json:"ready_history"`
		}
	}
	w := ask(s, "GET", fmt.Sprintf("/api/v1/queues?count=1&from=%d", from))
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	return page.Queues[0].Samples
}

// TestSamplesGo: with their queue.
func TestSamplesGo(t *testing.T) {
	s := newServer(t, admin.Options{})
	both, one := manyQueues(2), manyQueues(1)
	s.SetEngine(both)
	s.Sample()
	s.Server.SetEngine(one)
	s.Sample()
	s.Server.SetEngine(both)
	s.Sample()
	for from, want := range []int{3, 1} {
		if got := len(samplesOf(t, s, from)); got != want {
			t.Errorf("queue %d has %d samples, want %d", from, got, want)
		}
	}
}
