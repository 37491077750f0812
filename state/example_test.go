package state_test

import (
	"fmt"
	"os"

	"pawl/state"
)

// A job is enqueued, leased, and its worker never comes back.
func Example() {
	s := state.New()
	apply := func(now state.Millis, r state.Record) {
		if err := s.Apply(&r, state.Body{Length: 5}, now); err != nil {
			panic(err)
		}
	}
	apply(1000, state.Record{Kind: state.KindQueue, Queue: 1, Text: []byte("default/default/mail")})

	slot, _ := s.NextSlot()
	apply(1000, state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: 1, Born: 1000})

	queue, _ := s.QueueByKey([]byte("default/default/mail"))
	next, _ := s.NextReady(queue, 1010)
	apply(1010, state.Record{Kind: state.KindLease, Slot: next, Nonce: state.Nonce{1}, At: 1010 + 30_000})

	at, _ := s.Earliest()
	fmt.Println("next deadline:", at)
	if due := s.Due(at); due.Kind == state.DueLease {
		apply(at, state.Record{Kind: state.KindFail, Slot: due.Slot, Cause: state.CauseExpire, Place: state.Ready, Text: []byte("lease ran out")})
	}
	s.Dump(os.Stdout)
	// Output:
	// next deadline: 31010
	// now=31010 offset=0 draining=false
	// totals enqueued=1 delivered=1 acked=0 nacked=0 released=0 expired=1 buried=0 dead=0 deleted=0 lapsed=0 redriven=0
	// queue "default/default/mail" ready=1 delayed=0 leased=0 dead=0 bytes=5
	//   totals enqueued=1 delivered=1 acked=0 nacked=0 released=0 expired=1 buried=0 dead=0 deleted=0 lapsed=0 redriven=0
	//   ready 00000000Z80000008000000000 attempt=1 failures=1 since=31010 reason="lease ran out" size=5 body=0/0+5/00000000
	// generation 0 jobs=1 bytes=5
}
