package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
)

// An ACK or a JOB DELETE of many lets others in after every few jobs. What they change
// counts, and there is room for the rest although they took the open group.
func TestPartsLetOthersIn(t *testing.T) {
	const jobs, taken = 100, 50
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		for name, run := range map[string]func(held []engine.Delivery) (done int){
			"ack": func(held []engine.Delivery) (done int) {
				ack := ackOf(held)
				s.must(ack)
				for i, finished := range ack.Done {
					if finished == (i == taken) {
						t.Errorf("lease %d: got %v, want all but %d finished", i, finished, taken)
					}
				}
				return len(ack.Done) - 1
			},
			"delete": func(held []engine.Delivery) int {
				remove := deleteOf(held)
				s.must(remove)
				return remove.Deleted
			},
		} {
			held := s.held(jobs)
			s.during(func() {
				s.e.Between(&engine.JobDelete{IDs: []state.JobID{held[taken].ID}}, &engine.Enqueue{Queue: key(name), Payload: []byte("between")})
			})
			if done := run(held); done != jobs-1 {
				t.Errorf("%s: %d were done, want %d", name, done, jobs-1)
			}
			s.ack(s.want(name, "between"))
			s.wantCounts("held", 0, 0, 0, 0)
		}
	})
}

// An ACK or a JOB DELETE of many that finds the engine closed when it goes on does not
// answer as if nothing, or all, had been done; what comes behind it is refused.
func TestPartsAreInterrupted(t *testing.T) {
	const jobs = 100
	for name, of := range map[string]func([]engine.Delivery) engine.Command{
		"ack":    func(held []engine.Delivery) engine.Command { return ackOf(held) },
		"delete": func(held []engine.Delivery) engine.Command { return deleteOf(held) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
				cmd, behind := of(s.held(jobs)), &engine.Stats{Queue: key("held")}
				s.during(s.e.Shut)
				if err := s.e.Do(cmd, behind); err != nil {
					t.Fatal(err)
				}
				if cmd.Err() != engine.ErrPartly || behind.Err() != engine.ErrClosed {
					t.Errorf("got %v, and %v behind it, want ErrPartly and ErrClosed", cmd.Err(), behind.Err())
				}
				s.close()
				s.open()
				if left := s.counts("held")[2]; left == 0 || left == jobs {
					t.Errorf("%d of %d are left, want a part", left, jobs)
				}
			})
		})
	}
}

// Who goes on in a stay of its own and finds the engine closed records nothing more,
// also where the wall clock was set meanwhile: nobody would write it, nor lead those who
// wait for it.
func TestNothingIsRecordedAfterTheEnd(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		held := s.held(100)
		last := s.e.Submit(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
		if err := s.e.Wait(last); err != nil {
			t.Fatal(err)
		}
		s.during(func() {
			s.e.Between() // seals the group with the first of them
			s.e.Shut()
			s.e.StepWall(time.Hour)
		})
		if lsn := s.e.Submit(ackOf(held)); lsn != last+1 {
			t.Errorf("group %d is to be waited for, want %d, the last before the end", lsn, last+1)
		}
	})
}

func ackOf(held []engine.Delivery) *engine.Ack {
	ack := &engine.Ack{}
	for _, d := range held {
		ack.Leases = append(ack.Leases, d.Lease)
	}
	return ack
}

func deleteOf(held []engine.Delivery) *engine.JobDelete {
	remove := &engine.JobDelete{}
	for _, d := range held {
		remove.IDs = append(remove.IDs, d.ID)
	}
	return remove
}

// during has the next stay that looks at the clock find its time over, and others
// do something meanwhile.
func (s *shop) during(others func()) {
	synctest.Wait() // the keeper has begun: its stay is not the one that is meant
	over := false
	s.e.Elapse(func(time.Time) time.Duration {
		if over {
			return 0
		}
		over = true
		others()
		return time.Second
	})
}
