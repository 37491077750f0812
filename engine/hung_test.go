package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
)

// Whoever comes together gives up together on a disk that hangs, also behind a command
// that had done a part before it waited, and does not answer that the disk hangs.
func TestGivingUpTogether(t *testing.T) {
	const jobs = 100
	for name, test := range map[string]struct {
		first func(s *shop) engine.Command
		says  error
	}{
		"ack":    {func(s *shop) engine.Command { return ackOf(s.held(jobs)) }, engine.ErrPartly},
		"delete": {func(s *shop) engine.Command { return deleteOf(s.held(jobs)) }, engine.ErrPartly},
		"fetch": {func(s *shop) engine.Command {
			for range jobs {
				s.enqueue("mail", "x")
			}
			return &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000, Count: jobs}
		}, nil},
		"queue delete": {func(s *shop) engine.Command {
			for range jobs {
				s.enqueue("mail", "x")
			}
			return &engine.QueueDelete{Queue: key("mail")}
		}, engine.ErrPartly},
		"nothing done": {func(*shop) engine.Command {
			return &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 100<<10)}
		}, engine.ErrHung},
	} {
		t.Run(name, func(t *testing.T) {
			onGatedDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *gatedFS) {
				cmds := []engine.Command{test.first(s), &engine.Enqueue{Queue: key("new"), Payload: []byte("x")}, ackOf([]engine.Delivery{{}, {}}),
					&engine.JobDelete{IDs: []state.JobID{{}}}, &engine.Stats{Queue: key("mail")}}
				synctest.Wait() // the log has made what it keeps ahead
				open := disk.shut()
				s.during(s.e.Fill)
				began := time.Now()
				if err := s.e.Do(cmds...); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < engine.HungAfter || took > engine.HungAfter+time.Second {
					t.Errorf("it took %v, want about %v", took, engine.HungAfter)
				}
				for i, cmd := range cmds {
					want := engine.ErrHung
					if i == 0 {
						want = test.says
					}
					if cmd.Err() != want {
						t.Errorf("command %d, %T: got %v, want %v", i, cmd, cmd.Err(), want)
					}
				}
				if f, ok := cmds[0].(*engine.Fetch); ok && (len(f.Jobs) == 0 || len(f.Jobs) == jobs) {
					t.Errorf("%d of %d jobs were taken, want a part", len(f.Jobs), jobs)
				}
				s.e.Elapse(nil)
				open()
				time.Sleep(time.Second)
				s.must(cmds[1]) // the next that come are not of them
			})
		})
	}
}

// Who gives up does so for those who came together, not for others who wait for the
// same room.
func TestGivingUpIsNotForOthers(t *testing.T) {
	onGatedDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *gatedFS) {
		large := func() engine.Command { // of a generation that must be made
			return &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 100<<10)}
		}
		synctest.Wait()
		open := disk.shut()
		first, others := large(), []engine.Command{large(), &engine.Stats{Queue: key("mail")}}
		gaveUp, done := make(chan error, 1), make(chan error, 1)
		go func() { gaveUp <- s.e.Do(first) }()
		time.Sleep(5 * time.Second)
		go func() { done <- s.e.Do(others...) }()
		if err := <-gaveUp; err != nil || first.Err() != engine.ErrHung {
			t.Errorf("who came first: got %v and %v, want ErrHung", err, first.Err())
		}
		open()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, cmd := range others {
			if cmd.Err() != nil {
				t.Errorf("%T, of those who came later: got %v", cmd, cmd.Err())
			}
		}
	})
}
