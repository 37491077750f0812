package engine_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/reaper"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// inBubbleWithReaper is inBubble with turns taken when they are due.
func inBubbleWithReaper(t *testing.T, opt engine.Options, test func(t *testing.T, s *shop)) {
	t.Helper()
	inBubble(t, opt, func(t *testing.T, s *shop) {
		defer s.reap()()
		test(t, s)
	})
}

// reap has turns taken when they are due until stop is called, for the first time.
func (s *shop) reap() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		reaper.New(s.e).Run(ctx)
		close(done)
	}()
	return func() {
		cancel()
		<-done
	}
}

// await begins to wait for a job of the queues.
func (s *shop) await(queues ...string) *engine.Waiter {
	s.t.Helper()
	f := &engine.Fetch{LeaseMs: 60_000}
	for _, q := range queues {
		f.Queues = append(f.Queues, key(q))
	}
	w, _ := s.e.Await(f)
	if w == nil {
		s.t.Fatalf("await %v: got %d jobs and %v at once, want to wait", queues, len(f.Jobs), f.Err())
	}
	return w
}

// got is the payload a waiter has, empty while it waits.
func (s *shop) got(w *engine.Waiter) string {
	s.t.Helper()
	synctest.Wait()
	select {
	case <-w.C:
	default:
		return ""
	}
	if err := w.Fetch.Err(); err != nil {
		return err.Error()
	}
	if err := s.e.Wait(w.LSN); err != nil {
		s.t.Fatal(err)
	}
	if err := s.e.Load(&w.Fetch.Jobs[0]); err != nil {
		s.t.Fatal(err)
	}
	return string(w.Fetch.Jobs[0].Payload)
}

func (s *shop) wantWaiters(w ...any) {
	s.t.Helper()
	for i := 0; i < len(w); i += 2 {
		if got := s.got(w[i].(*engine.Waiter)); got != w[i+1].(string) {
			s.t.Errorf("waiter %d: got %q, want %q", i/2, got, w[i+1])
		}
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		a, b, c := s.await("mail"), s.await("mail"), s.await("mail")
		s.enqueue("mail", "one")
		s.enqueue("mail", "two")
		s.wantWaiters(a, "one", b, "two", c, "")
		if n := s.e.Numbers().Waiting; n != 1 {
			t.Errorf("got %d waiting, want 1", n)
		}
		s.enqueue("mail", "three")
		s.wantWaiters(c, "three")
	})
}

// Who waits for several queues leaves all of them with the first job.
func TestWaitForSeveralQueues(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		both := s.await("a", "b", "a")
		onlyA := s.await("a")
		s.enqueue("b", "one")
		s.enqueue("a", "two")
		s.wantWaiters(both, "one", onlyA, "two")
		if n := s.e.Numbers().Waiting; n != 0 {
			t.Errorf("got %d waiting, want 0", n)
		}
	})
}

// Who waits for several queues takes nothing from those who came before it into
// the line of one of them, in whatever order the jobs come.
func TestNobodyIsPassedInALine(t *testing.T) {
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
			first, both := s.await("a"), s.await("a", "b")
			cmds := make([]engine.Command, 0, 2)
			for _, q := range order {
				cmds = append(cmds, &engine.Enqueue{Queue: key(q), Payload: []byte("of " + q)})
			}
			if err := s.e.Do(cmds...); err != nil {
				t.Fatal(err)
			}
			s.wantWaiters(first, "of a", both, "of b")
		})
	}
}

// A FETCH takes nothing from those who waited before it came: neither a job that
// came with it, nor one that serve has not come to in its time.
func TestNoFetchPassesThoseWhoWait(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		first := s.await("mail")
		f := &engine.Fetch{Queues: [][]byte{key("mail"), key("other")}, LeaseMs: 60_000, Count: 2}
		if err := s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: []byte("one")}, &engine.Enqueue{Queue: key("other"), Payload: []byte("two")}, f); err != nil {
			t.Fatal(err)
		}
		s.wantWaiters(first, "one")
		if len(f.Jobs) != 1 || f.Jobs[0].Queue != string(key("other")) {
			t.Errorf("got %d jobs, want the one that nobody waited for", len(f.Jobs))
		}

		const waiting = 100
		var all []*engine.Waiter
		var cmds []engine.Command
		for range waiting {
			all = append(all, s.await("mail"))
			cmds = append(cmds, &engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
		}
		s.e.Elapse(slow)
		cmds = append(cmds, &engine.Enqueue{Queue: key("mail"), Payload: []byte("last")})
		if err := s.e.Do(cmds...); err != nil {
			t.Fatal(err)
		}
		s.want("mail", "last")
		for _, w := range all {
			s.wantWaiters(w, "x")
		}
	})
}

// Lines whose time to look again comes at one moment are looked at a few in a stay,
// however many there are.
func TestManyLinesAtOneTime(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		const lines = 200
		var all []*engine.Waiter
		for i := range lines {
			q := fmt.Sprint("q", i)
			s.must(&engine.QueueSet{Queue: key(q), Settings: state.Settings{RateCount: 1, RatePer: 1000}, Which: state.SetRate})
			s.enqueue(q, "first")
			s.enqueue(q, "x")
		}
		for i := range lines {
			s.want(fmt.Sprint("q", i), "first")
			all = append(all, s.await(fmt.Sprint("q", i)))
		}
		served := func() (n int) {
			for _, w := range all {
				if len(w.C) > 0 {
					n++
				}
			}
			return n
		}
		s.e.Elapse(slow)
		before := s.e.Histograms().TurnSeconds.Count
		time.Sleep(time.Second)
		s.must(&engine.Stats{Queue: key("q0")})
		stays := int(s.e.Histograms().TurnSeconds.Count - before)
		if n := served(); n == 0 || n > perStay*stays {
			t.Errorf("%d were served in %d stays", n, stays)
		}
		for range lines {
			s.turn()
		}
		if n := served(); n != lines {
			t.Errorf("%d were served in the end, want all %d", n, lines)
		}
	})
}

// A client that has gone takes nothing: the next in line has the job.
func TestCancel(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		gone, next := s.await("mail", "other"), s.await("mail")
		if !s.e.Cancel(gone) {
			t.Error("cancel: got false, want true while it waits")
		}
		if s.e.Cancel(gone) {
			t.Error("cancel: got true the second time")
		}
		s.enqueue("mail", "one")
		s.wantWaiters(gone, "", next, "one")

		// It goes after the job was handed to it: back to the head, untouched.
		late := s.await("mail")
		s.enqueue("mail", "two")
		s.enqueue("mail", "three")
		if s.e.Cancel(late) {
			t.Error("cancel: got true after a job was handed over")
		}
		<-late.C
		if err := s.e.Wait(s.e.Undeliver(late.Fetch.Jobs)); err != nil {
			t.Fatal(err)
		}
		d := s.want("mail", "two")
		if d.Attempt != 2 || d.Failures != 0 {
			t.Errorf("got attempt %d failures %d, want 2 and 0", d.Attempt, d.Failures)
		}
		s.want("mail", "three")
	})
}

func TestUndeliverKeepsTheOrder(t *testing.T) {
	s := openShop(t, engine.Options{})
	for _, p := range []string{"1", "2", "3", "4"} {
		s.enqueue("mail", p)
	}
	f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000, Count: 3}
	s.must(f)
	if len(f.Jobs) != 3 {
		t.Fatalf("got %d jobs, want 3", len(f.Jobs))
	}
	if err := s.e.Wait(s.e.Undeliver(f.Jobs)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"1", "2", "3", "4"} {
		s.want("mail", p)
	}
}

// Everything that can bring a job to a queue wakes who waits for it.
func TestWhatWakesWaiters(t *testing.T) {
	second := time.Second
	tests := []struct {
		what  string
		setup func(s *shop) func() // returns what wakes; nil: time does
		after time.Duration
	}{
		{"enqueue", func(s *shop) func() { return func() { s.enqueue("mail", "x") } }, 0},
		{"delay over", func(s *shop) func() {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Delay: 1000})
			return nil
		}, second},
		{"at", func(s *shop) func() {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), At: engine.Some(state.Millis(time.Now().UnixMilli() + 1000))})
			return nil
		}, second},
		{"lease ends", func(s *shop) func() {
			s.enqueue("mail", "x")
			s.fetch("mail", 1000)
			return nil
		}, second},
		{"nack", func(s *shop) func() {
			s.enqueue("mail", "x")
			d := s.want("mail", "x")
			return func() { s.must(&engine.Nack{Lease: d.Lease}) }
		}, 0},
		{"nack with delay", func(s *shop) func() {
			s.enqueue("mail", "x")
			d := s.want("mail", "x")
			s.must(&engine.Nack{Lease: d.Lease, Delay: engine.Some(state.Millis(1000))})
			return nil
		}, second},
		{"release", func(s *shop) func() {
			s.enqueue("mail", "x")
			d := s.want("mail", "x")
			return func() { s.must(&engine.Release{Lease: d.Lease}) }
		}, 0},
		{"pause over", func(s *shop) func() {
			s.must(&engine.QueuePause{Queue: key("mail"), For: 1000})
			s.enqueue("mail", "x")
			return nil
		}, second},
		{"resume", func(s *shop) func() {
			s.must(&engine.QueuePause{Queue: key("mail")})
			s.enqueue("mail", "x")
			return func() { s.must(&engine.QueueResume{Queue: key("mail")}) }
		}, 0},
		{"rate allows", func(s *shop) func() {
			s.must(&engine.QueueSet{Queue: key("mail"), Settings: state.Settings{RateCount: 1, RatePer: 1000}, Which: state.SetRate})
			s.enqueue("mail", "first")
			s.enqueue("mail", "x")
			s.want("mail", "first")
			return nil
		}, second},
		{"rate lifted", func(s *shop) func() {
			s.must(&engine.QueueSet{Queue: key("mail"), Settings: state.Settings{RateCount: 1, RatePer: 3_600_000}, Which: state.SetRate})
			s.enqueue("mail", "first")
			s.enqueue("mail", "x")
			s.want("mail", "first")
			return func() { s.must(&engine.QueueReset{Queue: key("mail")}) }
		}, 0},
		{"MAXLEASED and ack", func(s *shop) func() {
			s.must(&engine.QueueSet{Queue: key("mail"), Settings: state.Settings{MaxLeased: 1}, Which: state.SetMaxLeased})
			s.enqueue("mail", "first")
			s.enqueue("mail", "x")
			d := s.want("mail", "first")
			return func() { s.ack(d) }
		}, 0},
		{"MAXLEASED and bury", func(s *shop) func() {
			s.must(&engine.QueueSet{Queue: key("mail"), Settings: state.Settings{MaxLeased: 1}, Which: state.SetMaxLeased})
			s.enqueue("mail", "first")
			s.enqueue("mail", "x")
			d := s.want("mail", "first")
			return func() { s.must(&engine.Bury{Lease: d.Lease}) }
		}, 0},
		{"head of the group done", func(s *shop) func() {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("first"), Group: []byte("g")})
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Group: []byte("g")})
			d := s.want("mail", "first")
			return func() { s.ack(d) }
		}, 0},
		{"head of the group deleted", func(s *shop) func() {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("first"), Group: []byte("g")})
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Group: []byte("g")})
			d := s.want("mail", "first")
			return func() { s.must(&engine.JobDelete{IDs: []state.JobID{d.ID}}) }
		}, 0},
		{"run", func(s *shop) func() {
			c := &engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Delay: 3_600_000}
			s.must(c)
			return func() { s.must(&engine.JobEdit{ID: c.ID, Kind: engine.EditRun}) }
		}, 0},
		{"move", func(s *shop) func() {
			id := s.enqueue("other", "x")
			return func() { s.must(&engine.JobEdit{ID: id, Kind: engine.EditMove, Queue: key("mail")}) }
		}, 0},
		{"redrive", func(s *shop) func() {
			s.enqueue("mail", "x")
			s.must(&engine.Bury{Lease: s.want("mail", "x").Lease})
			return func() {
				if err := s.e.Redrive(context.Background(), &engine.QueueRedrive{Queue: key("mail")}); err != nil {
					s.t.Error(err)
				}
			}
		}, 0},
		{"cron", func(s *shop) func() {
			s.must(&engine.CronSet{Cron: state.Cron{Namespace: "default/default", Name: "c", Spec: "* * * * *", Queue: string(key("mail")), Payload: []byte("x")}})
			return nil
		}, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
				wake := test.setup(s)
				w := s.await("mail")
				if wake != nil {
					s.wantWaiters(w, "")
					wake()
				} else {
					time.Sleep(test.after - time.Millisecond)
					s.wantWaiters(w, "")
					time.Sleep(time.Millisecond)
				}
				s.wantWaiters(w, "x")
			})
		})
	}
}

func TestMaxWaiters(t *testing.T) {
	inBubble(t, engine.Options{MaxWaiters: 1}, func(t *testing.T, s *shop) {
		s.await("mail")
		f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 1}
		if w, _ := s.e.Await(f); w != nil || f.Err() != engine.ErrBusy {
			t.Errorf("got waiter %v and %v, want none and ErrBusy", w, f.Err())
		}
	})
}

func TestCloseRefusesWaiters(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		w := s.await("mail")
		e := s.e
		s.close()
		select {
		case <-w.C:
		default:
			t.Fatal("the waiter still waits")
		}
		if w.Fetch.Err() != engine.ErrClosed || len(w.Fetch.Jobs) != 0 {
			t.Errorf("got %v and %d jobs, want ErrClosed", w.Fetch.Err(), len(w.Fetch.Jobs))
		}
		c := &engine.Stats{Queue: key("mail")}
		if err := e.Do(c); err != engine.ErrClosed || c.Err() != engine.ErrClosed {
			t.Errorf("got %v and %v after Close, want ErrClosed", err, c.Err())
		}
	})
}

// Somebody sets the wall clock of a daemon to which nobody speaks. What AT asked
// for comes by the new time, also to one that waits already.
func TestAtOfAQuietDaemonFollowsTheWallClock(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		at := state.Millis(time.Now().Add(time.Hour).UnixMilli())
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), At: engine.Some(at)})
		w := s.await("mail")
		time.Sleep(time.Minute)
		s.e.SetWall(time.Hour)
		time.Sleep(2 * time.Second)
		if got := s.got(w); got != "x" {
			t.Errorf("two seconds after the clock was set got %q, want the job", got)
		}
	})
}

// The same before a restart: the step is no time that has gone by, so no lease
// ends early.
func TestWallClockOfAQuietDaemonBeforeARestart(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.e.SetWall(-time.Hour)
		s.enqueue("mail", "x")
		s.fetch("mail", 600_000)
		time.Sleep(time.Minute)
		s.e.SetWall(time.Hour) // right now, as it is in the next process
		time.Sleep(2 * time.Second)
		s.reopen()
		s.turn()
		s.wantCounts("mail", 0, 0, 1, 0)
	})
}

// manyWaiting is a shop with so many jobs in a paused queue, and as many who wait
// for them, and turns taken when they are due.
func manyWaiting(t *testing.T, disk *waltest.Disk, n int) (s *shop, waiting []*engine.Waiter) {
	t.Helper()
	s = &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 16 << 10}}
	s.open()
	t.Cleanup(s.close)
	s.must(&engine.QueuePause{Queue: key("mail")})
	for range n {
		s.enqueue("mail", "x")
	}
	for range n {
		waiting = append(waiting, s.await("mail"))
	}
	t.Cleanup(s.reap())
	return s, waiting
}

// wantAllServed waits for them for as long as anything may take.
func wantAllServed(t *testing.T, waiting []*engine.Waiter) {
	t.Helper()
	patience := time.After(30 * time.Second)
	for i, w := range waiting {
		select {
		case <-w.C:
		case <-patience:
			t.Fatalf("number %d of %d still waits", i+1, len(waiting))
		}
	}
}

// Serving very many who wait ends after a millisecond, and others get in. The
// rest have their jobs all the same, nothing else happening.
func TestVeryManyWaitersAreServedInTurns(t *testing.T) {
	s, waiting := manyWaiting(t, waltest.NewDisk(), 8000)
	s.must(&engine.QueueResume{Queue: key("mail")})
	wantAllServed(t, waiting)
}

// The log has no room for the leases of all who wait: they have their jobs when it
// has room again, nothing else happening.
func TestWaitersOfALogWithoutRoom(t *testing.T) {
	disk := waltest.NewDisk()
	s, waiting := manyWaiting(t, disk, 8000)
	disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "mkdir" { // of a generation
			return waltest.Fault{Err: syscall.EMFILE}
		}
		return waltest.Fault{}
	})
	s.must(&engine.QueueResume{Queue: key("mail")})
	for err := error(nil); !errors.Is(err, engine.ErrNoSpace); {
		c := &engine.Enqueue{Queue: key("other"), Payload: make([]byte, 1000)}
		if err = s.e.Do(c); err == nil {
			err = c.Err()
		}
	}
	disk.Inject(nil)
	wantAllServed(t, waiting)
}
