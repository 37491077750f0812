package engine_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/engine"
	"pawl/internal/seeds"
	"pawl/recovery"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// past is the history of a job, one word an event.
func (s *shop) past(id state.JobID) (string, engine.JobHistory) {
	s.t.Helper()
	h, err := s.e.JobHistory(s.t.Context(), id, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	var words []string
	for _, e := range h.Events {
		words = append(words, e.What)
	}
	return strings.Join(words, " "), h
}

func TestJobHistory(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		began := time.Now()
		id := s.enqueue("mail", "x")
		s.must(&engine.JobEdit{ID: id, Kind: engine.EditPriority, Priority: 3})
		s.must(&engine.JobEdit{ID: id, Kind: engine.EditPayload, Payload: []byte("y")})
		first := s.fetch("mail", 1000)
		s.must(&engine.Nack{Lease: first.Lease, Delay: engine.Some(state.Millis(500)), Reason: []byte("no such address")})
		s.sleep(time.Second)
		s.turn()
		second := s.fetch("mail", 1000)
		s.must(&engine.Extend{Lease: second.Lease, LeaseMs: 2000})
		s.sleep(3 * time.Second)
		s.turn()
		s.must(&engine.Release{Lease: s.fetch("mail", 1000).Lease})
		s.must(&engine.Bury{Lease: s.fetch("mail", 1000).Lease, Reason: []byte("hopeless")})
		s.must(&engine.JobEdit{ID: id, Kind: engine.EditRun})
		s.must(&engine.JobEdit{ID: id, Kind: engine.EditDelay, Delay: 60_000})
		s.must(&engine.JobEdit{ID: id, Kind: engine.EditMove, Queue: key("other")})
		s.sleep(time.Minute)
		s.turn()
		want := "enqueue priority payload lease nack due lease extend expire lease release lease bury run delay move due"
		got, h := s.past(id)
		if got != want || !h.Complete || h.Next != 0 {
			t.Fatalf("got %s, %t, next %d, want %s", got, h.Complete, h.Next, want)
		}
		nack, lease, move := h.Events[4], h.Events[6], h.Events[15]
		if nack.Reason != "no such address" || nack.Place != state.Delayed || nack.Until != nack.At+500 || nack.Attempt != 1 {
			t.Errorf("the NACK is %+v", nack)
		}
		if lease.Lease != second.Lease || lease.Attempt != 2 || lease.Until != lease.At+1000 || lease.At != state.Millis(began.Add(time.Second).UnixMilli()) {
			t.Errorf("the second lease is %+v, want %v at one second", lease, second.Lease)
		}
		if h.Events[0].Queue != "default/default/mail" || move.Queue != "default/default/other" {
			t.Errorf("queues are %q and %q", h.Events[0].Queue, move.Queue)
		}
		s.ack(s.fetch("other", 1000))
		if got, h := s.past(id); got != want+" lease ack" || h.Events[len(h.Events)-1].Place != 0 {
			t.Errorf("after its end: got %s", got)
		}
		s.sleep(10 * time.Minute)
		for range 200 { // in the same slot
			s.ack(func() *engine.Delivery { s.enqueue("mail", "z"); return s.fetch("mail", 1000) }())
		}
		if got, _ := s.past(id); got != want+" lease ack" {
			t.Errorf("after other jobs in its slot: got %s", got)
		}
		if got, h := s.past(state.NewJobID(1, 1, 7, 0)); got != "" {
			t.Errorf("a job that never was: got %s, %+v", got, h)
		}

		// Jobs of one millisecond in one slot are told apart.
		var twins []state.JobID
		for i := range 5 {
			id := s.enqueue("mail", "twin")
			d := s.fetch("mail", 1000)
			if i%2 == 0 {
				s.must(&engine.Release{Lease: d.Lease})
				d = s.fetch("mail", 1000)
			}
			s.ack(d)
			twins = append(twins, id)
		}
		for i, id := range twins {
			want := "enqueue lease release lease ack"
			if i%2 == 1 {
				want = "enqueue lease ack"
			}
			if got, _ := s.past(id); got != want {
				t.Errorf("twin %d, %v: got %s, want %s", i, id, got, want)
			}
		}
	})
}

// TestJobHistoryWithoutItsBeginning: when the log of its enqueue has gone, the
// history of a job that is there begins later, and says so.
func TestJobHistoryWithoutItsBeginning(t *testing.T) {
	inBubble(t, engine.Options{SnapshotBytes: 64 << 10}, func(t *testing.T, s *shop) {
		id := s.enqueue("keep", "x")
		for range 30 {
			s.sleep(time.Minute)
			for range 20 {
				s.enqueue("mail", strings.Repeat("x", 1000))
				s.ack(s.fetch("mail", 60_000))
			}
			s.turn()
		}
		s.must(&engine.JobEdit{ID: id, Kind: engine.EditPriority, Priority: 3})
		if got, h := s.past(id); got != "priority" || h.Complete || h.Events[0].Place != 0 || h.Events[0].Attempt != 0 {
			t.Errorf("got %s, %+v, want the priority and nothing claimed of before", got, h)
		}
		s.ack(s.fetch("keep", 60_000))
		if got, h := s.past(id); got != "priority lease ack" || h.Complete {
			t.Errorf("got %s, complete %t", got, h.Complete)
		}
		if h, err := s.e.JobHistory(t.Context(), id, s.e.Numbers().DurableLSN); err != nil || len(h.Events) != 1 || h.Events[0].What != "ack" {
			t.Errorf("from the last group on: %+v, %v", h, err)
		}
	})
}

// TestJobHistoryAgainstDump: random lives, each told as pawl dump tells it, which
// follows the log with a whole state.
func TestJobHistoryAgainstDump(t *testing.T) {
	rng := seeds.Rand("lookback")
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		var ids []state.JobID
		var leases []state.LeaseID
		pick := func() state.JobID { return ids[rng.IntN(len(ids))] }
		for range 800 {
			switch rng.IntN(12) {
			case 0, 1, 2:
				e := &engine.Enqueue{Queue: key(fmt.Sprint("q", rng.IntN(3))), Payload: []byte("x"), Priority: int8(rng.IntN(3))}
				if rng.IntN(2) == 0 {
					e.Delay = state.Millis(rng.IntN(3000))
				}
				if rng.IntN(3) == 0 {
					e.TTL = engine.Some(e.Delay + 1 + state.Millis(rng.IntN(5000)))
				}
				if rng.IntN(6) == 0 {
					e.At, e.Delay = engine.Some(state.Millis(time.Now().UnixMilli()+int64(rng.IntN(3000)))), 0
				}
				if err := s.do(e); err == nil {
					ids = append(ids, e.ID)
				}
			case 3, 4, 5:
				f := &engine.Fetch{Queues: [][]byte{key(fmt.Sprint("q", rng.IntN(3)))}, LeaseMs: state.Millis(1 + rng.IntN(3000)), Count: 2}
				s.must(f)
				for i := range f.Jobs {
					leases = append(leases, f.Jobs[i].Lease)
					if err := s.e.Load(&f.Jobs[i]); err != nil {
						t.Fatal(err)
					}
				}
			case 6, 7:
				if len(leases) == 0 {
					continue
				}
				i := rng.IntN(len(leases))
				lease := leases[i]
				leases = slices.Delete(leases, i, i+1)
				switch rng.IntN(5) {
				case 0:
					s.do(&engine.Nack{Lease: lease, Delay: engine.Some(state.Millis(rng.IntN(2) * 700)), Reason: []byte("r")})
				case 1:
					s.do(&engine.Release{Lease: lease})
				case 2:
					s.do(&engine.Bury{Lease: lease})
				default:
					s.do(&engine.Ack{Leases: []state.LeaseID{lease}})
				}
			case 8:
				if len(ids) > 0 {
					s.do(&engine.JobEdit{ID: pick(), Kind: []engine.EditKind{engine.EditRun, engine.EditDelay, engine.EditMove}[rng.IntN(3)], Delay: state.Millis(rng.IntN(2000)), Queue: key(fmt.Sprint("q", rng.IntN(3)))})
				}
			case 9:
				if len(ids) > 0 && rng.IntN(4) == 0 {
					s.do(&engine.JobDelete{IDs: []state.JobID{pick()}})
				}
			default:
				s.sleep(time.Duration(rng.IntN(800)) * time.Millisecond)
				s.turn()
			}
		}
		told := map[state.JobID][]string{}
		for _, id := range ids {
			_, h := s.past(id)
			if !h.Complete {
				t.Errorf("%v: incomplete", id)
			}
			for _, e := range h.Events {
				told[id] = append(told[id], fmt.Sprintf("%d.%d", e.LSN, e.Index))
			}
		}
		s.close()
		line := regexp.MustCompile(`(?m)^(\d+\.\d+) `)
		for _, id := range ids {
			var out bytes.Buffer
			if err := recovery.Dump(t.Context(), &out, recovery.DumpOptions{FS: s.fs, Dir: s.dir, Job: id}); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, m := range line.FindAllStringSubmatch(out.String(), -1) {
				want = append(want, m[1])
			}
			// The dump leaves out what changed nothing, as a move to the same place.
			for _, at := range want {
				if !slices.Contains(told[id], at) {
					t.Errorf("%v: record %s is not told (%s)\n%v\n%s", id, at, seeds.Replay(), told[id], out.String())
				}
			}
			if extra := len(told[id]) - len(want); extra < 0 || extra > 3 {
				t.Errorf("%v: told %v, the dump %v (%s)", id, told[id], want, seeds.Replay())
			}
		}
		s.open()
	})
}

// An ID with the slot and the moment of a job, but another reuse, is nobody's.
func TestJobHistoryOfAnIDThatNeverWas(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		id := s.enqueue("mail", "x")
		s.ack(s.fetch("mail", 1000))
		s.sleep(10 * time.Minute)
		s.enqueue("mail", "y") // in the same slot
		if got, _ := s.past(id); got != "enqueue lease ack" {
			t.Fatalf("got %s", got)
		}
		for _, reuse := range []uint16{1, 2, 3, 65535} {
			wrong := state.NewJobID(id.Wall(), id.Slot(), id.Reuse()+reuse, id.DelaySeconds())
			if got, h := s.past(wrong); got != "" {
				t.Errorf("with reuse %d instead of %d: got %s, %+v", wrong.Reuse(), id.Reuse(), got, h)
			}
		}
	})
}

// A damaged generation is a gap. Behind it the history of a job that is there goes
// on; of one that is gone it ends, because its slot may have had another.
func TestJobHistoryWithAGap(t *testing.T) {
	inBubble(t, engine.Options{SnapshotBytes: 1 << 30}, func(t *testing.T, s *shop) {
		stays, goes := s.enqueue("keep", "x"), s.enqueue("mail", "x")
		lease := s.fetch("keep", 1<<40)
		over := s.enqueue("fill", "x")
		s.ack(s.fetch("fill", 60_000))
		s.sleep(time.Millisecond) // what fills has its slot, not its moment
		fill := func() {
			for range 100 {
				s.enqueue("fill", strings.Repeat("x", 1000))
				s.ack(s.fetch("fill", 60_000))
			}
		}
		fill()
		s.must(&engine.JobEdit{ID: goes, Kind: engine.EditPriority, Priority: 3})
		gens := s.wal.Generations()
		bad := gens[len(gens)-1].Generation
		fill()
		s.must(&engine.Extend{Lease: lease.Lease, LeaseMs: 1 << 41})
		s.ack(s.fetch("mail", 60_000))
		if got, h := s.past(goes); got != "enqueue priority lease ack" || !h.Complete {
			t.Fatalf("before the damage: got %s", got)
		}
		disk := s.fs.(*waltest.Disk)
		for _, offset := range []int64{300, 50, 150} { // a group, the birth, the link
			disk.Flip(wal.SegmentPath("data/log", bad), offset*8)
			got, h := s.past(stays)
			if got != "enqueue lease gap extend" || h.Complete || h.Events[2].LSN <= h.Events[1].LSN || h.Events[2].Place != 0 || h.Events[0].Queue != "default/default/keep" {
				t.Errorf("byte %d, of the job that is there: got %s, %+v", offset, got, h)
			}
			got, h = s.past(goes)
			if got != "enqueue gap" || h.Complete {
				t.Errorf("byte %d, of the job that is gone: got %s, %+v", offset, got, h)
			}
			if got, h = s.past(over); got != "enqueue lease ack" {
				t.Errorf("byte %d, of the job that was over: got %s, %+v", offset, got, h)
			}
			disk.Flip(wal.SegmentPath("data/log", bad), offset*8)
		}
		first := gens[1].Generation // the one before holds nothing
		disk.Flip(wal.SegmentPath("data/log", first), 300*8)
		if got, h := s.past(stays); got != "extend" || h.Complete {
			t.Errorf("with its enqueue damaged: got %s, %+v", got, h)
		}
	})
}

// The number of a queue that was named before what is read may have been given
// away in a gap.
func TestJobHistoryNamesNoQueueOfAGap(t *testing.T) {
	inBubble(t, engine.Options{SnapshotBytes: 1 << 30}, func(t *testing.T, s *shop) {
		fill := func() {
			for range 100 {
				s.enqueue("fill", strings.Repeat("x", 1000))
				s.ack(s.fetch("fill", 60_000))
			}
		}
		s.must(&engine.QueueSet{Queue: key("first"), Settings: state.Settings{RateCount: 1, RatePer: 1000}, Which: state.SetRate})
		fill()
		s.sleep(10 * time.Minute)
		id := s.enqueue("first", "x")
		fill()
		s.must(&engine.JobEdit{ID: id, Kind: engine.EditMove, Queue: key("other")})
		s.must(&engine.QueueDelete{Queue: key("first")})
		s.enqueue("second", "x") // with the number of the first
		gens := s.wal.Generations()
		bad := gens[len(gens)-1].Generation
		fill()
		s.fs.(*waltest.Disk).Flip(wal.SegmentPath("data/log", bad), 50*8)
		if got, h := s.past(id); got != "enqueue gap" || h.Events[0].Queue != "" {
			t.Errorf("got %s, in %q", got, h.Events[0].Queue)
		}
	})
}

// That a job is over which had the slot at the same moment before ends nothing.
func TestJobHistoryBehindATwin(t *testing.T) {
	inBubble(t, engine.Options{SnapshotBytes: 1 << 30}, func(t *testing.T, s *shop) {
		const edits = 1500 // more than one call tells
		s.enqueue("mail", "x")
		s.ack(s.fetch("mail", 1000))
		id := s.enqueue("mail", "x")
		for i := range edits {
			s.must(&engine.JobEdit{ID: id, Kind: engine.EditPriority, Priority: int8(1 + i%2)})
		}
		_, h := s.past(id)
		rest, err := s.e.JobHistory(t.Context(), id, h.Next)
		if n := len(h.Events); err != nil || h.Next == 0 || n+len(rest.Events) != 1+edits {
			t.Errorf("got %d events, next %d, and %d, %v", n, h.Next, len(rest.Events), err)
		}
	})
}

// A history ends behind its 1,000th event, in the middle of a generation too, and
// goes on from where it says.
func TestJobHistoryOfManyEvents(t *testing.T) {
	s := &shop{t: t, fs: waltest.NewDisk(), dir: "data", log: wal.Options{GenerationBytes: 1 << 20}}
	s.open()
	defer s.close()
	id := s.enqueue("mail", "x")
	d := s.fetch("mail", 60_000)
	const extends = 2500
	for range extends {
		s.must(&engine.Extend{Lease: d.Lease, LeaseMs: 60_000})
	}
	var got []int
	for from := engine.LSN(0); ; {
		h, err := s.e.JobHistory(t.Context(), id, from)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, len(h.Events))
		if from = h.Next; from == 0 {
			break
		}
	}
	if want := []int{1000, 1000, extends + 2 - 2000}; !slices.Equal(got, want) {
		t.Errorf("got %v events, want %v", got, want)
	}
}
