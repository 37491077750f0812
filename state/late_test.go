package state

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pawl/internal/seeds"
)

// A state in which jobs come, get another due time, become ready, and go, is the
// same to the byte whether its jobs were late or not: delayed ones by both
// clocks, with and without TTLs, in many queues and in one, some jobs more than
// once, and more of them than are late at a time.
func TestReplayEqualsApply(t *testing.T) {
	most, many := lateMost, manyLate
	defer func() { lateMost, manyLate = most, many }()
	for _, lateMost = range []int{1, 7, 300, most} {
		for _, manyLate = range []int{0, 20, many} {
			for _, queues := range []int{1, 20} {
				replayEqualsApply(t, seeds.Rand(t.Name()), queues)
			}
		}
	}
}

func replayEqualsApply(t *testing.T, r *rand.Rand, queues int) {
	t.Helper()
	direct, replayed := New(), New()
	now := Millis(1000)
	apply := func(rec Record) {
		t.Helper()
		var body Body
		if rec.Kind.HasBody() {
			body = Body{Generation: 1, Offset: uint32(rec.Slot), Length: 9}
		}
		wantErr := direct.Apply(&rec, body, now)
		if err := replayed.Apply(&rec, body, now); (err == nil) != (wantErr == nil) {
			t.Fatalf("%+v: got %v, want %v", rec, err, wantErr)
		}
	}
	apply(Record{Kind: KindSecret, Text: []byte("0123456789abcdef")})
	for q := range queues {
		apply(Record{Kind: KindQueue, Queue: QueueID(q + 1), Text: []byte{'p', '/', 'n', '/', byte('a' + q)}})
	}
	soon := func() Millis { return now + 1 + Millis(r.IntN(1<<uint(r.IntN(30)))) }
	replayed.BeginReplay()
	for i := range 4000 {
		if r.IntN(4) == 0 {
			now += Millis(r.IntN(30))
		}
		slot := Slot(1 + r.IntN(int(direct.jobs.last)+1))
		switch r.IntN(10) {
		case 0:
			apply(Record{Kind: KindDelete, Slot: slot, Cause: CauseDelete})
		case 1:
			apply(Record{Kind: KindDelay, Slot: slot, At: soon(), Wall: r.IntN(3) == 0})
		case 2:
			apply(Record{Kind: KindRun, Slot: slot})
		case 3:
			apply(Record{Kind: KindMove, Slot: slot, Queue: QueueID(1 + r.IntN(queues))})
		case 4:
			// What is due, in every tenth step: in between there are many late ones.
			if d := direct.Due(now); i%10 == 0 && (d.Kind == DueRange || d.Kind == DueWallRange) {
				kind := KindRange
				if d.Kind == DueWallRange {
					kind = KindWallRange
				}
				apply(Record{Kind: kind, At: d.At, Slot: d.Slot, Count: d.Count})
			}
		case 5:
			if slot, _ := direct.NextReady(QueueID(1+r.IntN(queues)), now); slot != 0 {
				apply(Record{Kind: KindLease, Slot: slot, Nonce: Nonce{byte(i), 1}, At: soon()})
				apply(Record{Kind: KindFail, Slot: slot, Cause: CauseNack, Place: Delayed, At: soon()})
			}
		default:
			next, _ := direct.NextSlot()
			rec := Record{Kind: KindEnqueue, Slot: next, Queue: QueueID(1 + r.IntN(queues)), Born: now}
			if r.IntN(4) > 0 {
				rec.At, rec.Wall = soon(), r.IntN(3) == 0
			}
			if r.IntN(3) == 0 {
				rec.Expires = soon()
			}
			apply(rec)
		}
		if i == 2000 {
			replayed.EndReplay()
			replayed.BeginReplay()
		}
	}
	replayed.EndReplay()
	for _, s := range []*State{direct, replayed} {
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		for _, x := range []index{s.deadlines, s.walls} {
			if err := checkOrder(x.order); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want, got bytes.Buffer
	direct.View().WriteTo(&want)
	replayed.View().WriteTo(&got)
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Error("the state that was replayed is another one")
	}
	if c := direct.Counts(); c.Jobs[Delayed] < 100 || c.Jobs[Ready] < 100 {
		t.Errorf("counts %v: too little to tell anything", c.Jobs)
	}
}

// sortMarks is compared with the library's sorting, in orders and ranges that
// need other passes each.
func TestSortMarks(t *testing.T) {
	r := seeds.Rand(t.Name())
	for _, n := range []int{0, 1, 2, fewMarks, fewMarks + 1, 5000} {
		for name, make := range map[string]func(i int) mark{
			"one time":          func(int) mark { return mark{7, r.Uint32()} },
			"few times":         func(int) mark { return mark{Millis(r.IntN(3)), r.Uint32()} },
			"in order of id":    func(i int) mark { return mark{Millis(r.Uint64N(1 << 48)), uint32(i)} },
			"all there can be":  func(int) mark { return mark{Millis(r.Uint64()), r.Uint32()} },
			"near, ids far":     func(int) mark { return mark{1<<40 + Millis(r.IntN(5000)), r.Uint32()} },
			"in order":          func(i int) mark { return mark{Millis(i), 1} },
			"in opposite order": func(i int) mark { return mark{Millis(-i), 1} },
			"equal":             func(int) mark { return mark{5, 5} },
		} {
			var got []mark
			for i := range n {
				got = append(got, make(i))
			}
			want := slices.Clone(got)
			slices.SortFunc(want, mark.compare)
			if sortMarks(got); !slices.Equal(got, want) {
				t.Errorf("%d marks, %s: not in order", n, name)
			}
		}
	}
}
