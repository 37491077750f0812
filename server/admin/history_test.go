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
	var page struct {
		Queues []struct {
			Display string
			Samples []int64 `json:"ready_history"`
		}
	}
	for from, want := range map[int]int{0: 2, 999: 2, 1000: 0} {
		w := ask(s, "GET", fmt.Sprintf("/api/v1/queues?count=1&from=%d", from))
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		if got := len(page.Queues[0].Samples); got != want {
			t.Errorf("%s has %d samples, want %d", page.Queues[0].Display, got, want)
		}
	}
}
