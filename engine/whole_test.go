package engine_test

import (
	"bytes"
	"testing"

	"pawl/engine"
	"pawl/state"
)

// A transaction is one group of the log also where its first commands fill the
// group up to its target: a crash between two groups would leave half of it.
func TestMultiIsOneGroup(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.enqueue("q", "x")
		d := s.want("q", "x")
		first := &engine.Enqueue{Queue: key("q")}
		before := s.e.Submit(first)
		if err := s.e.Wait(before); err != nil {
			t.Fatal(err)
		}
		payload := bytes.Repeat([]byte("x"), 5000) // a group aims at 4 KiB here
		m := &engine.Multi{Commands: []engine.Command{
			&engine.Ack{Leases: []state.LeaseID{d.Lease}},
			&engine.Enqueue{Queue: key("q"), Payload: payload},
			&engine.Enqueue{Queue: key("r"), Payload: payload},
			&engine.Enqueue{Queue: key("s"), Payload: payload},
		}}
		after := s.e.Submit(m)
		if err := s.e.Wait(after); err != nil || m.Err() != nil {
			t.Fatal(err, m.Err())
		}
		if after != before+1 {
			t.Errorf("the transaction took groups %d to %d, want one", before+1, after)
		}
		// What comes after it goes into a group of its own again.
		next := s.e.Submit(&engine.Enqueue{Queue: key("q")})
		if err := s.e.Wait(next); err != nil || next != after+1 {
			t.Errorf("the next command went into group %d, %v, want %d", next, err, after+1)
		}
	})
}

// A transaction is one stay however long it takes: nobody sees half of it.
func TestMultiIsOneStay(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		held := s.held(100)
		m := &engine.Multi{Commands: []engine.Command{ackOf(held[:50]), deleteOf(held[50:])}}
		s.e.Elapse(slow)
		before := s.e.Histograms().TurnSeconds.Count
		s.must(m)
		if stays := s.e.Histograms().TurnSeconds.Count - before; stays != 1 {
			t.Errorf("it took %d stays", stays)
		}
		s.wantCounts("held", 0, 0, 0, 0)
	})
}
