package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pawl/engine"
	"pawl/state"
)

func (s *shop) view(id state.JobID) *engine.JobView {
	s.t.Helper()
	get := &engine.JobGet{ID: id}
	s.must(get)
	if !get.Found {
		return nil
	}
	if err := s.e.LoadView(&get.Job); err != nil {
		s.t.Fatal(err)
	}
	return &get.Job
}

func TestJobEdits(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		c := &engine.Enqueue{
			Queue: key("mail"), Payload: []byte("old"), Unique: []byte("u"), Group: []byte("g"),
			Attrs: []engine.Attr{{Name: []byte("n"), Value: []byte("v")}}, Delay: 60_000,
		}
		s.must(c)
		s.must(&engine.JobEdit{ID: c.ID, Kind: engine.EditPayload, Payload: []byte("new and longer")})
		v := s.view(c.ID)
		if string(v.Payload) != "new and longer" || string(v.Unique) != "u" || string(v.Group) != "g" || len(v.Attrs) != 1 || string(v.Attrs[0].Name) != "n" {
			t.Errorf("got %+v, want the new payload and all else as before", v)
		}
		if v.Bytes != len("new and longer") || v.Place != state.Delayed {
			t.Errorf("got %d bytes, %v", v.Bytes, v.Place)
		}
		s.must(&engine.JobEdit{ID: c.ID, Kind: engine.EditPriority, Priority: -5})
		s.must(&engine.JobEdit{ID: c.ID, Kind: engine.EditRun})
		if v := s.view(c.ID); v.Priority != -5 || v.Place != state.Ready {
			t.Errorf("got priority %d, %v, want -5, ready", v.Priority, v.Place)
		}
		s.must(&engine.JobEdit{ID: c.ID, Kind: engine.EditDelay, Delay: 5000})
		if v := s.view(c.ID); v.Place != state.Delayed || v.DueAt != state.Millis(time.Now().UnixMilli())+5000 {
			t.Errorf("got %v due %d", v.Place, v.DueAt)
		}
		s.must(&engine.JobEdit{ID: c.ID, Kind: engine.EditDelay, Delay: 0})
		s.must(&engine.JobEdit{ID: c.ID, Kind: engine.EditMove, Queue: key("other")})
		if v := s.view(c.ID); v.Queue != string(key("other")) || v.Place != state.Ready {
			t.Errorf("got %v in %s", v.Place, v.Queue)
		}
		s.reopen()
		s.ack(s.want("other", "new and longer"))
		if v := s.view(c.ID); v != nil {
			t.Errorf("got %+v of a finished job", v)
		}
	})
}

func TestUniqueWindow(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		enqueue := func() *engine.Enqueue {
			c := &engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Unique: []byte("k"), For: 10_000}
			s.must(c)
			return c
		}
		first := enqueue()
		if again := enqueue(); !again.Duplicate || again.ID != first.ID {
			t.Errorf("got %v, duplicate %v, want %v", again.ID, again.Duplicate, first.ID)
		}
		if other := (&engine.Enqueue{Queue: key("other"), Unique: []byte("k")}); s.do(other) != nil || other.Duplicate {
			t.Error("the key is taken in another queue")
		}
		s.ack(s.want("mail", "x"))
		s.reopen()
		if again := enqueue(); !again.Duplicate || again.ID != first.ID {
			t.Error("within the window the key is held by a job that is done")
		}
		s.must(&engine.Drain{On: true}) // a repeat is answered all the same
		enqueue()
		s.must(&engine.Drain{On: false})
		s.sleep(10 * time.Second)
		second := enqueue()
		if second.Duplicate || second.ID == first.ID {
			t.Error("the window is over and the key still held")
		}
		s.sleep(time.Hour)
		if again := enqueue(); !again.Duplicate || again.ID != second.ID {
			t.Error("a job that lives holds its key however old it is")
		}
	})
}

func TestPeekPages(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		const jobs = 25
		for i := range jobs {
			s.enqueue("mail", fmt.Sprint(i))
		}
		peek := &engine.QueuePeek{Queue: key("mail"), Place: state.Ready, Count: 10}
		seen := 0
		for pages := 0; ; pages++ {
			s.must(peek)
			for i := range peek.Jobs {
				if err := s.e.LoadView(&peek.Jobs[i]); err != nil {
					t.Fatal(err)
				}
				if got := string(peek.Jobs[i].Payload); got != fmt.Sprint(seen) {
					t.Fatalf("got %q, want %d", got, seen)
				}
				seen++
			}
			if peek.Next == nil {
				if pages != 2 {
					t.Errorf("got %d pages, want 3", pages+1)
				}
				break
			}
			peek.After = peek.Next
		}
		if seen != jobs {
			t.Errorf("got %d jobs, want %d", seen, jobs)
		}
	})
}

func TestPurge(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		const jobs = 3000
		for i := range jobs {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x"), Delay: state.Millis(i%2) * 3_600_000})
		}
		time.Sleep(time.Millisecond)
		leased := s.want("mail", "x")
		p := &engine.QueuePurge{Queue: key("mail"), Places: []state.Place{state.Ready}, Limit: 100}
		if err := s.e.Purge(context.Background(), p); err != nil || p.Removed != 100 {
			t.Errorf("got %d removed, %v, want 100", p.Removed, err)
		}
		p = &engine.QueuePurge{Queue: key("mail")}
		if err := s.e.Purge(context.Background(), p); err != nil || p.Err() != nil {
			t.Fatal(err, p.Err())
		}
		if p.Removed != jobs-101 {
			t.Errorf("got %d removed, want %d", p.Removed, jobs-101)
		}
		s.wantCounts("mail", 0, 0, 1, 0)
		s.ack(leased)
		s.enqueue("mail", "new")
		del := &engine.QueueDelete{Queue: key("mail")}
		if s.must(del); !del.Found || len(s.queues()) != 0 {
			t.Errorf("found %v, queues left %v", del.Found, s.queues())
		}
	})
}

func TestRedrive(t *testing.T) {
	inBubbleWithReaper(t, engine.Options{}, func(t *testing.T, s *shop) {
		for i := range 10 {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte(fmt.Sprint(i)), Tries: engine.Some(uint16(1)), Unique: []byte(fmt.Sprint(i)), For: 1})
			d := s.fetch("mail", 60_000)
			s.must(&engine.Nack{Lease: d.Lease, Reason: []byte("bad")})
		}
		s.wantCounts("mail", 0, 0, 0, 10)
		time.Sleep(time.Second)

		r := &engine.QueueRedrive{Queue: key("mail"), Count: 3, Tries: engine.Some(uint16(5)), TTL: engine.Some(state.Millis(60_000))}
		if err := s.e.Redrive(context.Background(), r); err != nil || r.Err() != nil || r.Moved != 3 {
			t.Fatalf("got %d moved, %v, %v, want 3", r.Moved, err, r.Err())
		}
		for i := range 3 { // the oldest first
			d := s.want("mail", fmt.Sprint(i))
			if d.Tries != 5 || d.Failures != 0 || d.Attempt != 2 || d.TTLLeft != 60_000 {
				t.Errorf("got %+v, want 5 tries, no failures, attempt 2, 60,000 ms", d)
			}
			s.ack(d)
		}
		// Where keys are taken the jobs stay, and if that is all of them it is said.
		for i := 3; i < 10; i++ {
			s.must(&engine.Enqueue{Queue: key("other"), Unique: []byte(fmt.Sprint(i))})
		}
		r = &engine.QueueRedrive{Queue: key("mail"), To: key("other")}
		if err := s.e.Redrive(context.Background(), r); err != nil || r.Err() != engine.ErrUniqueTaken || r.Moved != 0 {
			t.Errorf("got %d moved, %v, %v, want ErrUniqueTaken", r.Moved, err, r.Err())
		}
		// In their own queue they go on without it.
		s.must(&engine.Enqueue{Queue: key("mail"), Unique: []byte("3")})
		r = &engine.QueueRedrive{Queue: key("mail")}
		if err := s.e.Redrive(context.Background(), r); err != nil || r.Err() != nil || r.Moved != 7 {
			t.Errorf("got %d moved, %v, %v, want 7", r.Moved, err, r.Err())
		}
		s.wantCounts("mail", 8, 0, 0, 0)
		if err := s.e.Check(); err != nil {
			t.Error(err)
		}
	})
}

// A redrive that a limit of the target ends is no refusal if it moved anything: a
// refusal says that nothing happened.
func TestRedriveIntoALimit(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.QueueSet{Queue: key("to"), Settings: state.Settings{MaxLen: 2}, Which: state.SetMaxLen})
		for range 3 {
			s.enqueue("from", "x")
			s.must(&engine.Bury{Lease: s.want("from", "x").Lease})
		}
		r := &engine.QueueRedrive{Queue: key("from"), To: key("to")}
		if err := s.e.Redrive(t.Context(), r); err != nil || r.Err() != nil || r.Moved != 2 {
			t.Errorf("got %d moved, %v, %v, want 2", r.Moved, err, r.Err())
		}
		if err := s.e.Redrive(t.Context(), r); err != nil || r.Err() != engine.ErrQueueFull || r.Moved != 0 {
			t.Errorf("got %d moved, %v, %v, want ErrQueueFull", r.Moved, err, r.Err())
		}
	})
}

func TestMeta(t *testing.T) {
	s := openShop(t, engine.Options{})
	s.must(&engine.MetaSet{Key: "user/a", Value: []byte("1")})
	s.must(&engine.MetaSet{Key: "user/b", Value: []byte{}})
	s.must(&engine.MetaSet{Key: "zone/c", Value: []byte("3")})
	set := &engine.MetaSet{Key: "user/a", Value: []byte("2")}
	if s.must(set); !set.Existed {
		t.Error("got not existed, want existed")
	}
	s.reopen()
	get := &engine.MetaGet{Key: "user/a"}
	if s.must(get); string(get.Value) != "2" {
		t.Errorf("got %q, want 2", get.Value)
	}
	if get := (&engine.MetaGet{Key: "user/b"}); s.do(get) != nil || get.Value == nil {
		t.Error("an empty value is none")
	}
	list := &engine.MetaList{Prefix: "user/"}
	if s.must(list); len(list.Pairs) != 2 || list.Pairs[0].Key != "user/a" || list.Pairs[1].Key != "user/b" {
		t.Errorf("got %v", list.Pairs)
	}
	s.must(&engine.MetaSet{Key: "user/a"})
	if s.must(get); get.Value != nil {
		t.Errorf("got %q after it was deleted", get.Value)
	}
}

// A batch is in order, ends before its bodies pass 4 MiB, and holds one job at
// least.
func TestBatch(t *testing.T) {
	s := openShop(t, engine.Options{MaxPayload: 5 << 20})
	s.enqueue("mail", string(make([]byte, 5<<20)))
	for range 5 {
		s.enqueue("mail", string(make([]byte, 1<<20)))
	}
	s.enqueue("other", "small")
	f := &engine.Fetch{Queues: [][]byte{key("mail"), key("other")}, LeaseMs: 60_000, Count: 100}
	for _, want := range []int{1, 4, 2} {
		s.must(f)
		if len(f.Jobs) != want {
			t.Errorf("got %d jobs, want %d", len(f.Jobs), want)
		}
		for i := range f.Jobs {
			if err := s.e.Load(&f.Jobs[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.must(f)
	if len(f.Jobs) != 0 {
		t.Errorf("got %d jobs, want none", len(f.Jobs))
	}
}

func TestCensusAndNumbers(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		for i := range 1200 { // more than one chunk
			s.enqueue(fmt.Sprintf("q%04d", i), "x")
		}
		s.want("q0007", "x")
		if got := s.queues(); len(got) != 1200 || !slices.IsSorted(got) {
			t.Errorf("got %d queues, sorted %v, want 1,200", len(got), slices.IsSorted(got))
		}
		some := &engine.QueueList{Pool: state.DefaultPool, Match: []byte("q11?9")}
		if s.must(some); len(some.Keys) != 10 {
			t.Errorf("got %v, want ten", some.Keys)
		}
		time.Sleep(2 * time.Second)
		c := s.e.Census()
		if len(c.Queues) != 1200 || c.Queues[7].Key != string(key("q0007")) || c.Queues[7].Leased != 1 || c.Queues[8].Ready != 1 {
			t.Errorf("got %d queues, the eighth %+v", len(c.Queues), c.Queues[7])
		}
		if s.e.Census() != c {
			t.Error("a census within a second is another one")
		}
		n := s.e.Numbers()
		if n.Jobs[state.Ready] != 1199 || n.Jobs[state.Leased] != 1 || n.QueueCount != 1200 || n.Enqueued != 1200 || n.Delivered != 1 || n.LiveBytes == 0 {
			t.Errorf("got %+v", n)
		}
		h := s.e.Histograms()
		if h.SyncSeconds.Count == 0 || h.WaitSeconds.Count != 1 || h.GroupRecords.Sum < 1200 {
			t.Errorf("got %+v", h)
		}
	})
}
