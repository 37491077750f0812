package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
)

// What a backlog took is given back within a minute or so of its end, though nobody
// asks for anything any more, and not while it comes and goes.
func TestMemoryIsGivenBack(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		const jobs = 2000
		memory := func() int64 {
			time.Sleep(2 * time.Second) // numbers are published once a second
			s.counts("mail")
			return s.e.Numbers().MemoryBytes
		}
		empty := memory()
		slots := map[state.Slot]bool{}
		comeAndGo := func() {
			for range jobs {
				slots[s.enqueue("mail", "x").Slot()] = true
			}
			for range jobs {
				s.ack(s.fetch("mail", 60_000))
			}
		}
		comeAndGo()
		full := memory()
		for range 8 { // for much longer than a minute
			time.Sleep(10 * time.Second)
			if got := memory(); got < full {
				t.Fatalf("got %d bytes while jobs come and go, want the %d that they need", got, full)
			}
			comeAndGo()
		}
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if got := memory(); got > empty+(full-empty)/4 {
			t.Errorf("got %d bytes a minute after the last, want far less than %d", got, full)
		}
		comeAndGo()
		if len(slots) != jobs {
			t.Errorf("the jobs had %d slots, want the same %d each time", len(slots), jobs)
		}
		if err := s.e.Check(); err != nil {
			t.Error(err)
		}
	})
}
