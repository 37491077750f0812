package engine_test

import (
	"errors"
	"testing"

	"pawl/engine"
	"pawl/state"
	"pawl/wal/waltest"
)

// An ACK of several leases that finds the disk full is refused as a whole, and
// else finishes all that hold: none is finished behind a refusal, and of none that
// holds it is said that there is no such lease.
func TestAckOfSeveralOnAFullDisk(t *testing.T) {
	disk := waltest.NewDisk()
	s := openOnDisk(t, disk, engine.Options{})
	const jobs = 40000
	var leases []state.LeaseID
	for range jobs / 100 {
		var batch []engine.Command
		for range 100 {
			batch = append(batch, &engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
		}
		if err := s.e.Do(batch...); err != nil {
			t.Fatal(err)
		}
	}
	for len(leases) < jobs {
		f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 3_600_000, Count: 100}
		s.must(f)
		for i := range f.Jobs {
			leases = append(leases, f.Jobs[i].Lease)
		}
		for i := range f.Jobs {
			s.e.Forget(&f.Jobs[i])
		}
	}
	disk.Limit(1)
	refused := false
	for len(leases) > 0 && !refused {
		n := min(300, len(leases))
		before := s.counts("mail")[2]
		ack := &engine.Ack{Leases: leases[:n]}
		err := s.do(ack)
		finished := int64(0)
		switch {
		case errors.Is(err, engine.ErrNoSpace):
			refused = true
		case err != nil:
			t.Fatal(err)
		default:
			for _, done := range ack.Done {
				if done {
					finished++
				}
			}
			if finished != int64(n) {
				t.Fatalf("%d of %d leases that hold were finished", finished, n)
			}
		}
		if after := s.counts("mail")[2]; before-after != finished {
			t.Fatalf("%d leases ended, but the answer counts %d, %v", before-after, finished, err)
		}
		leases = leases[n:]
	}
	if !refused {
		t.Error("a full disk refused no ack")
	}
}
