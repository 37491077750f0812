package state

import (
	"strings"
	"testing"

	"pawl/internal/seeds"
)

// delays is a state of jobs that are delayed by both clocks, some with a TTL that
// ends before or after, among ready ones, in so many queues.
func delays(t *testing.T, queues int) *State {
	t.Helper()
	r := seeds.Rand(t.Name())
	s := New()
	apply := func(rec Record) {
		t.Helper()
		if err := s.Apply(&rec, Body{}, 1000); err != nil {
			t.Fatal(err)
		}
	}
	apply(Record{Kind: KindSecret, Text: []byte("0123456789abcdef")})
	for q := range queues {
		apply(Record{Kind: KindQueue, Queue: QueueID(q + 1), Text: []byte{'p', '/', 'n', '/', byte('a' + q)}})
	}
	for i := range 600 {
		rec := Record{Kind: KindEnqueue, Slot: Slot(i + 1), Queue: QueueID(1 + r.IntN(queues)), Born: 1}
		if r.IntN(5) > 0 {
			rec.At, rec.Wall = 2000+Millis(r.IntN(300)), r.IntN(3) == 0
		}
		if r.IntN(3) == 0 {
			rec.Expires = 2000 + Millis(r.IntN(300))
		}
		apply(rec)
	}
	return s
}

// loaded checks tables as Load does, with nothing known but they.
func loaded(s *State) (*checker, error) {
	fresh := New()
	fresh.root, fresh.tables = s.root, s.tables
	c := &checker{State: fresh, loads: true}
	return c, c.checkTables()
}

// Trees of delayed jobs are found right by comparing them with a plan, without
// following them; whatever is wrong with one link or root is found, and named.
func TestLoadComparesTrees(t *testing.T) {
	for _, queues := range []int{1, 7} {
		s := delays(t, queues)
		c, err := loaded(s)
		if err != nil || !c.planted {
			t.Fatalf("%d queues: got %v, compared %v; want the trees found right", queues, err, c.planted)
		}
		refused := func(what string, i uint32) {
			t.Helper()
			c, err := loaded(s)
			if err == nil || c.planted || !strings.Contains(err.Error(), "queue ") && !strings.Contains(err.Error(), "in lists") {
				t.Errorf("%s of %d: got %v, compared %v", what, i, err, c.planted)
			}
		}
		for i := uint32(1); i <= s.jobs.last; i++ {
			j := s.jobs.edit(i)
			if j.place() != Delayed {
				continue
			}
			for what, link := range map[string]*uint32{"left": &j.prev, "right": &j.next} {
				was := *link
				for _, *link = range []uint32{0, i, 1 + i%s.jobs.last, s.jobs.last + 1} {
					if *link != was {
						refused(what, i)
					}
				}
				*link = was
			}
		}
		for i := uint32(1); i <= s.queues.last; i++ {
			q := s.queues.edit(i)
			for what, root := range map[string]*uint32{"root": &q.due, "root by wall time": &q.dueWall} {
				was := *root
				for _, *root = range []uint32{0, q.due ^ q.dueWall ^ was, s.jobs.last} {
					if *root != was {
						refused(what, i)
					}
				}
				*root = was
			}
		}
		if _, err := loaded(s); err != nil {
			t.Error(err)
		}
	}
}

// A state without delayed jobs has no trees.
func TestLoadRefusesRootOfNothing(t *testing.T) {
	s := golden(t)
	for slot := uint32(1); slot <= s.jobs.last; slot++ {
		if s.jobs.at(slot).place() == Delayed {
			if err := s.Apply(&Record{Kind: KindDelete, Slot: Slot(slot), Cause: CauseDelete}, Body{}, s.now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c, err := loaded(s); err != nil || !c.planted {
		t.Fatalf("got %v, compared %v", err, c.planted)
	}
	s.queues.edit(1).dueWall = 1
	if c, err := loaded(s); err == nil || c.planted {
		t.Errorf("got %v, compared %v", err, c.planted)
	}
}

// What is loaded knows of its jobs what it knew before.
func TestLoadLearns(t *testing.T) {
	for _, s := range []*State{golden(t), delays(t, 7)} {
		c, err := loaded(s)
		if err != nil {
			t.Fatal(err)
		}
		c.reindex()
		if err := c.checkIndexes(); err != nil {
			t.Error(err)
		}
	}
}
