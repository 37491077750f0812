package state_test

import (
	"bytes"
	"fmt"
	"testing"

	"pawl/state"
)

// What very many queues took that lived for a moment is given back, though some
// among them stay: by the running state, and by one that is loaded.
func TestQueuesGiveBackMemory(t *testing.T) {
	const queues, stays = 100_000, 100
	before := heap()
	taken := func() int64 { return int64(heap()) - int64(before) }
	s := state.New()
	begin := func(s *state.State, name string) state.QueueID {
		q := s.NextQueue()
		must(t, s, s.Now(), state.Record{Kind: state.KindQueue, Queue: q, Text: []byte("default/default/" + name)})
		return q
	}
	for i := range queues {
		begin(s, fmt.Sprint("reply-", i))
	}
	full := taken()
	for q := state.QueueID(1); q <= queues; q++ {
		if q%stays != 0 {
			must(t, s, s.Now(), state.Record{Kind: state.KindForget, Queue: q})
		}
	}
	if left := taken(); left > full/8 {
		t.Errorf("got %d bytes with one queue of %d left, want far less than the %d of all", left, stays, full)
	}
	if most := uint64(queues * 64); s.Counts().Memory > most {
		t.Errorf("got an estimate of %d bytes, want at most %d", s.Counts().Memory, most)
	}

	var b bytes.Buffer
	v := s.View()
	if _, err := v.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	s.Release(v)
	written := bytes.Clone(b.Bytes())
	b = bytes.Buffer{}
	before = heap()
	loaded, err := state.Load(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	if took := taken(); took > full/8 {
		t.Errorf("got %d bytes when it is loaded, want far less than %d", took, full)
	}

	// All go by the numbers they had, and those that are free are used again alike.
	for _, s := range []*state.State{s, loaded} {
		for q := state.QueueID(stays); q <= queues; q += stays {
			if name := fmt.Sprint("default/default/reply-", q-1); s.QueueKey(q) != name {
				t.Fatalf("queue %d is %q, want %q", q, s.QueueKey(q), name)
			}
		}
		if q := begin(s, "next"); q != queues-1 {
			t.Errorf("the next queue is %d, want the one freed last, %d", q, queues-1)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}
