package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
)

// The last millisecond of a lease still belongs to the worker.
func TestLeaseEnds(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		id := s.enqueue("mail", "hello")
		first := s.fetch("mail", 1000)
		s.sleep(999 * time.Millisecond)
		s.wantCounts("mail", 0, 0, 1, 0)
		s.sleep(time.Millisecond)
		s.wantCounts("mail", 1, 0, 0, 0)
		s.refused(&engine.Ack{Leases: []state.LeaseID{first.Lease}}, engine.ErrNoLease)
		second := s.want("mail", "hello")
		if second.ID != id || second.Attempt != 2 || second.Failures != 1 || second.Lease == first.Lease {
			t.Errorf("got %+v, want job %v at its second attempt after one failure", second, id)
		}
		s.refused(&engine.Ack{Leases: []state.LeaseID{first.Lease}}, engine.ErrNoLease)
		s.ack(second)
	})
}

// A lease is refused from its deadline on, also before the reaper came.
func TestLeaseEndsWithoutReaper(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.enqueue("mail", "hello")
		d := s.fetch("mail", 1000)
		time.Sleep(time.Second)
		for _, cmd := range []engine.Command{
			&engine.Ack{Leases: []state.LeaseID{d.Lease}},
			&engine.Nack{Lease: d.Lease},
			&engine.Release{Lease: d.Lease},
			&engine.Bury{Lease: d.Lease},
			&engine.Extend{Lease: d.Lease, LeaseMs: 1000},
		} {
			s.refused(cmd, engine.ErrNoLease)
		}
	})
}

func TestExtend(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.enqueue("mail", "hello")
		d := s.fetch("mail", 1000)
		s.sleep(500 * time.Millisecond)
		c := &engine.Extend{Lease: d.Lease, LeaseMs: 2000}
		s.must(c)
		if want := state.Millis(time.Now().Add(2 * time.Second).UnixMilli()); c.Deadline != want {
			t.Errorf("got deadline %d, want %d", c.Deadline, want)
		}
		s.sleep(1999 * time.Millisecond)
		s.wantCounts("mail", 0, 0, 1, 0)
		s.must(&engine.Extend{Lease: d.Lease, LeaseMs: 10}) // shortens
		s.sleep(10 * time.Millisecond)
		s.wantCounts("mail", 1, 0, 0, 0)
	})
}

// A delayed job is not early by a millisecond, and not late by one.
func TestDelay(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("later"), Delay: 5000})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("at"), At: engine.Some(state.Millis(time.Now().Add(7 * time.Second).UnixMilli()))})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("past"), At: engine.Some(state.Millis(1))})
		s.wantCounts("mail", 1, 2, 0, 0)
		s.ack(s.want("mail", "past"))
		s.sleep(4999 * time.Millisecond)
		s.wantNone("mail")
		s.sleep(time.Millisecond)
		s.ack(s.want("mail", "later"))
		s.sleep(1999 * time.Millisecond)
		s.wantNone("mail")
		s.sleep(time.Millisecond)
		s.ack(s.want("mail", "at"))
	})
}

func TestTTL(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		for range 200 {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("short"), TTL: engine.Some(state.Millis(1000))})
		}
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("long"), TTL: engine.Some(state.Millis(60_000))})
		d := s.fetch("mail", 5000)
		if d == nil || d.TTLLeft != 1000 {
			t.Fatalf("got %+v, want a job with 1,000 ms left", d)
		}
		time.Sleep(time.Second)
		// Nobody has ended them yet: the fetch finds the live one behind 199.
		s.ack(s.want("mail", "long"))
		s.refused(&engine.Ack{Leases: []state.LeaseID{d.Lease}}, engine.ErrNoLease) // its TTL is over, too
		s.turn()
		s.wantCounts("mail", 0, 0, 0, 0)
	})
}

// A job that used up its tries is dead; before, it waits for its backoff.
func TestNackBackoffTries(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.Enqueue{
			Queue: key("mail"), Payload: []byte("x"), Tries: engine.Some(uint16(4)),
			Backoff: engine.Some(engine.Backoff{Base: 1000, Max: 3000}),
		})
		for i, most := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
			d := s.fetch("mail", 500)
			if d == nil || d.Failures != uint32(i) || d.Attempt != uint32(i+1) {
				t.Fatalf("got %+v, want failure %d", d, i)
			}
			if i == 1 {
				s.sleep(500 * time.Millisecond) // running out is a failure like NACK
			} else {
				s.must(&engine.Nack{Lease: d.Lease, Reason: []byte("no luck")})
			}
			s.wantCounts("mail", 0, 1, 0, 0)
			s.sleep(most/2 - time.Millisecond)
			s.wantCounts("mail", 0, 1, 0, 0) // at least half of it
			s.sleep(most/2 + time.Millisecond)
			s.wantCounts("mail", 1, 0, 0, 0) // at most all of it
		}
		d := s.fetch("mail", 500)
		s.must(&engine.Nack{Lease: d.Lease, Reason: []byte("at last")})
		s.wantCounts("mail", 0, 0, 0, 1)
		get := &engine.JobGet{ID: d.ID}
		s.must(get)
		if !get.Found || get.Job.Place != state.Dead || get.Job.Failures != 4 || get.Job.Reason != "at last" {
			t.Errorf("got %+v, want a dead job with 4 failures", get.Job)
		}
		s.e.ForgetView(&get.Job)
	})
}

func TestNackDelay(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Backoff: engine.Some(engine.Backoff{Base: 60_000})})
		d := s.want("mail", "x")
		s.must(&engine.Nack{Lease: d.Lease, Delay: engine.Some(state.Millis(100))})
		s.sleep(99 * time.Millisecond)
		s.wantNone("mail")
		s.sleep(time.Millisecond)
		d = s.want("mail", "x")
		s.must(&engine.Nack{Lease: d.Lease, Delay: engine.Some(state.Millis(0))}) // at once
		s.ack(s.want("mail", "x"))
	})
}

func TestPauseEnds(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.enqueue("mail", "x")
		s.must(&engine.QueuePause{Queue: key("mail"), For: 1000})
		s.wantNone("mail")
		info := &engine.QueueInfo{Queue: key("mail")}
		s.must(info)
		if want := state.Millis(time.Now().Add(time.Second).UnixMilli()); !info.Info.Paused || info.Info.PausedUntil != want {
			t.Errorf("got paused %v until %d, want until %d", info.Info.Paused, info.Info.PausedUntil, want)
		}
		s.sleep(999 * time.Millisecond)
		s.wantNone("mail")
		s.sleep(time.Millisecond)
		s.ack(s.want("mail", "x"))

		s.must(&engine.QueuePause{Queue: key("mail")})
		s.enqueue("mail", "y")
		s.sleep(1000 * time.Hour)
		s.wantNone("mail")
		s.must(&engine.QueueResume{Queue: key("mail")})
		s.ack(s.want("mail", "y"))
	})
}

// RATE hands jobs out evenly: no two within the tenth part of a second, and all
// ten of each second.
func TestRate(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.QueueSet{Queue: key("mail"), Settings: state.Settings{RateCount: 10, RatePer: 1000}, Which: state.SetRate})
		for range 100 {
			s.enqueue("mail", "x")
		}
		got, last := 0, time.Now().Add(-time.Second)
		for range 3000 { // three seconds, at their every millisecond
			if s.fetch("mail", 60_000) != nil {
				if since := time.Since(last); since < 100*time.Millisecond {
					t.Errorf("delivery %d came %v after the one before", got, since)
				}
				got, last = got+1, time.Now()
			}
			s.sleep(time.Millisecond)
		}
		if got != 30 {
			t.Errorf("got %d deliveries in three seconds, want 30", got)
		}
	})
}

func TestDeadForAndDeadMax(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.QueueSet{Queue: key("mail"), Settings: state.Settings{DeadMax: 2, DeadFor: 1000}, Which: state.SetDeadMax | state.SetDeadFor})
		for range 3 {
			s.enqueue("mail", "x")
			d := s.want("mail", "x")
			s.must(&engine.Bury{Lease: d.Lease, Reason: []byte("enough")})
		}
		s.turn()
		s.wantCounts("mail", 0, 0, 0, 2)
		s.sleep(time.Second)
		s.wantCounts("mail", 0, 0, 0, 0)
	})
}

// Leases and delays follow log time: a restart after an hour finds what ended
// meanwhile.
func TestTimeGoesOnOverRestart(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.enqueue("mail", "leased")
		s.fetch("mail", 10_000)
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("later"), Delay: 3_600_000})
		s.close()
		time.Sleep(time.Hour - time.Second)
		s.open()
		s.turn()
		s.wantCounts("mail", 1, 1, 0, 0)
		s.sleep(time.Second)
		s.wantCounts("mail", 2, 0, 0, 0)
	})
}

// An empty queue is forgotten after an hour, one with a setting is not.
func TestIdleQueueIsForgotten(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.enqueue("reply", "x")
		s.ack(s.want("reply", "x"))
		s.must(&engine.QueueSet{Queue: key("kept"), Settings: state.Settings{MaxLen: 5}, Which: state.SetMaxLen})
		s.sleep(time.Hour - time.Second)
		if got := s.queues(); len(got) != 2 {
			t.Errorf("got queues %v before an hour is over, want 2", got)
		}
		s.sleep(2 * time.Second)
		if got := s.queues(); len(got) != 1 || got[0] != string(key("kept")) {
			t.Errorf("got queues %v after an hour, want only the one with settings", got)
		}
	})
}

// Queues that live for one reply leave nothing behind: ten times as many as there
// may be come and go within minutes, without a refusal; with -short twice as many.
func TestReplyQueues(t *testing.T) {
	inBubble(t, engine.Options{MaxQueues: 10_000}, func(t *testing.T, s *shop) {
		s.enqueue("kept", "x")
		queues := 100_000
		if testing.Short() {
			queues = 20_000
		}
		for i := range queues {
			name := fmt.Sprint("reply/", i)
			s.enqueue(name, "x")
			s.ack(s.want(name, "x"))
			if i%1000 == 0 {
				s.sleep(3 * time.Second)
			}
		}
		s.sleep(time.Hour + time.Second)
		if got := s.queues(); len(got) != 1 || got[0] != string(key("kept")) {
			t.Errorf("got %d queues in the end, want one", len(got))
		}
		if got := s.e.Numbers(); got.QueueCount != 1 || got.MemoryBytes > 10_000*1000 {
			t.Errorf("got %d queues and %d bytes, want one and what the limit takes at most", got.QueueCount, got.MemoryBytes)
		}
	})
}

// A flood of reply queues meets no limit, although more come within ten seconds
// than there may be.
func TestFloodOfReplyQueues(t *testing.T) {
	const limit, perSecond, seconds = 40_000, 4000, 20
	inBubble(t, engine.Options{MaxQueues: limit}, func(t *testing.T, s *shop) {
		most := int64(0)
		for i := range perSecond * seconds {
			name := fmt.Sprint("reply/", i)
			s.enqueue(name, "x")
			s.ack(s.want(name, "x"))
			if i%(perSecond/10) == 0 {
				s.sleep(100 * time.Millisecond)
				most = max(most, s.e.Numbers().QueueCount)
			}
		}
		if bound := int64(limit/4*3 + 2*perSecond); most > bound {
			t.Errorf("got %d queues at once, want at most %d", most, bound)
		}
	})
}

func (s *shop) queues() []string {
	s.t.Helper()
	c := &engine.QueueList{Pool: state.DefaultPool}
	s.must(c)
	return c.Keys
}

// Jobs that become due one after the other, while no client commits anything,
// are each on time.
func TestDueEachMillisecond(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		const jobs = 200
		cmds := make([]engine.Command, jobs)
		for i := range cmds {
			cmds[i] = &engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Delay: state.Millis(1000 + i)}
		}
		if err := s.e.Do(cmds...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(999 * time.Millisecond)
		for i := range jobs {
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if got := s.e.Numbers().Jobs[state.Ready]; got != int64(i+1) {
				t.Fatalf("after %d ms got %d ready, want %d", 1000+i, got, i+1)
			}
		}
	})
}

// What time ends is counted by how late it was: two delays and a TTL by 20 ms,
// as nobody took a turn before, and a lease by nothing.
func TestLateness(t *testing.T) {
	inBubble(t, engine.Options{MeasureCPU: true}, func(t *testing.T, s *shop) {
		s.enqueue("mail", "hello")
		s.fetch("mail", 5000)
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("later"), Delay: 1000})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("at"), At: engine.Some(state.Millis(time.Now().Add(time.Second).UnixMilli()))})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("gone"), TTL: engine.Some(state.Millis(1000))})
		time.Sleep(1020 * time.Millisecond)
		s.sleep(0)
		s.sleep(3980 * time.Millisecond)
		h := s.e.Histograms()
		if late := h.LateSeconds; late.Count != 4 || late.Sum != 0.060 {
			t.Errorf("got %d endings late by %v s together, want 4 by 0.06", late.Count, late.Sum)
		}
		if h.TurnCPUSeconds.Count == 0 || h.TurnCPUSeconds.Count != h.TurnSeconds.Count {
			t.Errorf("got the processor time of %d stays of %d", h.TurnCPUSeconds.Count, h.TurnSeconds.Count)
		}
	})
}

// A Fetch finds what is due although nobody has taken a turn: in order, not a
// millisecond early, and not where the queue hands nothing out.
func TestFetchBeforeTheReaper(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		at := engine.Some(state.Millis(time.Now().Add(1001 * time.Millisecond).UnixMilli()))
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("third"), At: at})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("first"), Delay: 1000})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("second"), Delay: 1000})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("fifth"), Delay: 1002})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("fourth"), Delay: 1001, Priority: 5})
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("over"), Delay: 999, TTL: engine.Some(state.Millis(1000))})
		time.Sleep(999 * time.Millisecond)
		s.must(&engine.QueuePause{Queue: key("mail"), For: 1})
		c := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000, Count: 10}
		s.must(c)
		if len(c.Jobs) != 0 {
			t.Errorf("got %d jobs of a paused queue", len(c.Jobs))
		}
		time.Sleep(2 * time.Millisecond)
		s.must(&engine.QueueResume{Queue: key("mail")})
		s.must(c)
		got := ""
		for i := range c.Jobs {
			if err := s.e.Load(&c.Jobs[i]); err != nil {
				t.Fatal(err)
			}
			got += " " + string(c.Jobs[i].Payload)
		}
		if got != " first second third fourth" {
			t.Errorf("got%s", got)
		}
		s.wantCounts("mail", 0, 1, 4, 0)
		before := s.dump()
		s.reopen()
		if after := s.dump(); after != before {
			t.Errorf("after a restart: got\n%s\nwant\n%s", after, before)
		}
	})
}

// Of a group that is busy, what comes due waits behind its head: a Fetch ends
// without a job, however many there are, and finds one of another group behind.
func TestFetchBehindBusyGroup(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("head"), Group: []byte("busy")})
		s.want("mail", "head")
		for range 200 {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("behind"), Group: []byte("busy"), Delay: 10})
		}
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("other"), Group: []byte("free"), Delay: 10})
		time.Sleep(10 * time.Millisecond)
		s.want("mail", "other")
		s.wantNone("mail")
		s.wantCounts("mail", 200, 0, 2, 0)
	})
}
