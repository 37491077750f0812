package engine_test

import (
	"fmt"
	"testing"
	"time"

	"pawl/engine"
	"pawl/state"
)

func (s *shop) setCron(spec string, catchup state.Catchup) {
	s.t.Helper()
	s.must(&engine.CronSet{Cron: state.Cron{
		Namespace: "default/default", Name: "tick", Spec: spec, Queue: string(key("mail")), Payload: []byte("tick"), Catchup: catchup,
	}})
}

// drainQueue takes and acknowledges all jobs of a queue and says how many.
func (s *shop) drainQueue(queue string) (n int) {
	s.t.Helper()
	for {
		d := s.fetch(queue, 60_000)
		if d == nil {
			return n
		}
		s.ack(d)
		n++
	}
}

// The bubble's clock begins at midnight UTC of 1 January 2000.
func TestCronFires(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.setCron("*/10 * * * *", state.CatchupOne)
		time.Sleep(10*time.Minute - time.Millisecond)
		s.wantCounts("mail", 0, 0, 0, 0)
		time.Sleep(time.Hour)
		if n := s.drainQueue("mail"); n != 6 {
			t.Errorf("got %d jobs in an hour, want 6", n)
		}
		list := &engine.CronList{Namespace: "default/default"}
		s.must(list)
		if len(list.Crons) != 1 || list.Crons[0].Last == 0 || list.Crons[0].Next-list.Crons[0].Last != 600_000 {
			t.Errorf("got %+v, want one whose slots are ten minutes apart", list.Crons)
		}
		s.setCron("*/10 * * * *", state.CatchupOne) // again, as a deployment does
		again := &engine.CronList{Namespace: "default/"}
		s.must(again)
		if again.Crons[0].Next != list.Crons[0].Next || again.Crons[0].Last != list.Crons[0].Last {
			t.Errorf("set again: got %+v, want the slots of %+v", again.Crons[0], list.Crons[0])
		}
		del := &engine.CronDelete{Namespace: "default/default", Name: "tick"}
		s.must(del)
		time.Sleep(time.Hour)
		s.wantCounts("mail", 0, 0, 0, 0)
		if s.must(del); del.Deleted {
			t.Error("deleted twice")
		}
	})
}

// Slots that pass while the daemon is down are made up for as CATCHUP says, and
// each slot enqueues once, whenever the daemon stops.
func TestCronCatchup(t *testing.T) {
	tests := []struct {
		catchup state.Catchup
		name    string
		down    time.Duration
		want    int
	}{
		{state.CatchupOne, "one", 10*time.Hour + 30*time.Minute, 1},
		{state.CatchupNone, "none", 10*time.Hour + 30*time.Minute, 0},
		{state.CatchupAll, "all", 10*time.Hour + 30*time.Minute, 10},
		{state.CatchupAll, "all but for very many", 2000*time.Hour + 30*time.Minute, 1000},
		{state.CatchupNone, "none, back within a minute", time.Hour - 30*time.Second + 20*time.Second, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
				s.setCron("0 * * * *", test.catchup)
				s.sleep(time.Hour)
				if n := s.drainQueue("mail"); n != 1 {
					t.Fatalf("got %d jobs after an hour, want 1", n)
				}
				s.close()
				time.Sleep(test.down)
				s.open()
				for range 3 {
					s.turn()
				}
				if n := s.drainQueue("mail"); n != test.want {
					t.Errorf("got %d jobs after %v, want %d", n, test.down, test.want)
				}
				s.reopen()
				s.turn()
				if n := s.drainQueue("mail"); n != 0 {
					t.Errorf("got %d jobs after another restart, want none", n)
				}
				for range 60 { // a slot is on time for a minute
					s.sleep(time.Minute)
				}
				if n := s.drainQueue("mail"); n != 1 {
					t.Errorf("got %d jobs an hour later, want 1", n)
				}
			})
		})
	}
}

// A cron's job has the options it was set with.
func TestCronOptions(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		options := &engine.Enqueue{
			Priority: 7, Tries: engine.Some(uint16(3)), TTL: engine.Some(state.Millis(60_000)),
			Backoff: engine.Some(engine.Backoff{Base: 5, Max: 50}), Unique: []byte("u"), Group: []byte("g"),
			Attrs: []engine.Attr{{Name: []byte("a"), Value: []byte("b")}}, Delay: 1000,
		}
		s.must(&engine.CronSet{Cron: state.Cron{
			Namespace: "default/default", Name: "c", Spec: "@hourly", Queue: string(key("mail")), Payload: []byte("p"),
			Options: engine.EncodeOptions(options),
		}})
		s.must(&engine.Drain{On: true}) // does not stop what comes only once
		s.sleep(time.Hour)
		s.wantCounts("mail", 0, 1, 0, 0)
		s.sleep(time.Second)
		peek := &engine.QueuePeek{Queue: key("mail"), Place: state.Ready}
		s.must(peek)
		if len(peek.Jobs) != 1 {
			t.Fatalf("got %d jobs, want 1", len(peek.Jobs))
		}
		v := &peek.Jobs[0]
		if err := s.e.LoadView(v); err != nil {
			t.Fatal(err)
		}
		if v.Priority != 7 || v.Tries != 3 || v.Backoff != options.Backoff.Value || string(v.Unique) != "u" ||
			string(v.Group) != "g" || len(v.Attrs) != 1 || string(v.Attrs[0].Value) != "b" || v.ExpiresAt-v.EnqueuedAt != 60_000 {
			t.Errorf("got %+v, want the options of the cron", v)
		}
	})
}

// Listing all crons, for a client or for the metrics, lets others in on the way,
// and they come sorted all the same.
func TestManyCrons(t *testing.T) {
	const crons = 3000
	s := openShop(t, engine.Options{})
	cmds := make([]engine.Command, crons)
	for i := range cmds {
		// Names come in another order than they are made.
		name := fmt.Sprintf("c%04d", i*7%crons)
		cmds[i] = &engine.CronSet{Cron: state.Cron{Namespace: "default/default", Name: name, Spec: "0 0 1 1 *", Queue: string(key("mail")), Payload: []byte(name)}}
	}
	if err := s.e.Do(cmds...); err != nil {
		t.Fatal(err)
	}
	check := func(what string, list []state.Cron, stays uint64) {
		t.Helper()
		if len(list) != crons {
			t.Fatalf("%s: got %d crons, want %d", what, len(list), crons)
		}
		for i, c := range list {
			if want := fmt.Sprintf("c%04d", i); c.Name != want || string(c.Payload) != want {
				t.Fatalf("%s: number %d is %s with %s, want %s", what, i, c.Name, c.Payload, want)
			}
		}
		if stays < 3 {
			t.Errorf("%s: took %d stays in the critical section", what, stays)
		}
	}
	stays := func() uint64 { return s.e.Histograms().TurnSeconds.Count }
	before := stays()
	list := &engine.CronList{Namespace: "default/default"}
	s.must(list)
	check("CronList", list.Crons, stays()-before)
	before = stays()
	check("Census", s.e.Census().Crons, stays()-before)
}
