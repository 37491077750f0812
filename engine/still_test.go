package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
)

// A log to which nothing is written says so behind its last group, whatever is asked
// for that decides nothing: workers who find no job are the rule. Without that mark the
// last group, damaged, would pass for one that was torn.
func TestTheLogStandsStillBesideIdleWorkers(t *testing.T) {
	for name, idle := range map[string]func(s *shop){
		"nobody":            func(*shop) {},
		"a fetch":           func(s *shop) { s.wantNone("mail") },
		"who waits":         func(s *shop) { s.await("mail") },
		"a turn":            func(s *shop) { s.e.Turn() },
		"an ack":            func(s *shop) { s.do(ackOf([]engine.Delivery{{}, {}})) },
		"a lease":           func(s *shop) { s.do(&engine.Release{}) },
		"a refused enqueue": func(s *shop) { s.do(&engine.Enqueue{Queue: key("mail"), TTL: engine.Some(state.Millis(1)), Delay: 2}) },
		"a transaction":     func(s *shop) { s.do(&engine.Multi{Commands: []engine.Command{&engine.Release{}}}) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
				s.enqueue("mail", "x")
				s.ack(s.want("mail", "x"))
				before := s.wal.Stats()
				idle(s)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				after := s.wal.Stats()
				if after.Markers != before.Markers+1 || after.Groups != before.Groups {
					t.Errorf("got %d marks and %d groups more, want one mark", after.Markers-before.Markers, after.Groups-before.Groups)
				}
			})
		})
	}
}
