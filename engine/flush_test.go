package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
)

// What nobody waits for is written all the same, soon, and not only the first time.
func TestNothingLiesOpen(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		for i := range 3 {
			lsn := s.e.Submit(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
			time.Sleep(60 * time.Millisecond)
			synctest.Wait()
			if got := s.wal.Durable(); engine.LSN(got) != lsn {
				t.Errorf("number %d: group %d is durable, want %d", i+1, got, lsn)
			}
		}
	})
}

// The reaper is told of what is due earlier than it knows when that comes, and of
// nothing else.
func TestReaperIsToldAtOnce(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		synctest.Wait()
		s.turn()
		told := func() (told bool) {
			for len(s.e.Wake()) > 0 {
				<-s.e.Wake()
				told = true
			}
			return told
		}
		told()
		for _, step := range []struct {
			delay state.Millis
			told  bool
		}{{500, true}, {600, false}, {500, false}, {400, true}} {
			s.e.Submit(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Delay: step.delay})
			if got := told(); got != step.told {
				t.Errorf("a job comes in %d ms: told %t, want %t", step.delay, got, step.told)
			}
		}
	})
}
