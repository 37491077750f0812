package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/wal/waltest"
)

// What is noted of an enqueue is the time beside the disk: once without the write
// of its own group only, once without that of the group before, too.
func TestEnqueueLessItsSyncs(t *testing.T) {
	onHangingDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		noted := func() (own, all float64, n uint64) {
			h := s.e.Histograms()
			return h.LessOwnSync.Sum, h.LessAllSyncs.Sum, h.LessOwnSync.Count
		}
		want := func(when string, own, all time.Duration, n uint64) {
			t.Helper()
			o, a, count := noted()
			got := [2]string{fmt.Sprintf("%.6f", o), fmt.Sprintf("%.6f", a)}
			if got != [2]string{fmt.Sprintf("%.6f", own.Seconds()), fmt.Sprintf("%.6f", all.Seconds())} || count != n {
				t.Errorf("%s: got %v s of %d, want %v and %v of %d", when, got, count, own, all, n)
			}
		}
		e := s.e
		enqueue := func() engine.LSN {
			return e.Submit(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
		}

		// 3 ms until it is decided, 50 on the disk, 4 until it is answered.
		came := e.Arrived()
		time.Sleep(3 * time.Millisecond)
		lsn := enqueue()
		release := disk.Hang("datasync")
		time.AfterFunc(50*time.Millisecond, release)
		if err := e.Wait(lsn); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Millisecond)
		e.Answered(came, lsn, 2)
		want("alone", 14*time.Millisecond, 14*time.Millisecond, 2)

		// It comes while another group has 30 ms to go, and its own takes none; so
		// what it was answered after is somebody else's sync.
		lsn = enqueue()
		release = disk.Hang("datasync")
		leader := make(chan error, 1)
		go func() { leader <- e.Wait(lsn) }()
		synctest.Wait()
		time.Sleep(20 * time.Millisecond)
		came = e.Arrived()
		lsn = enqueue()
		time.AfterFunc(30*time.Millisecond, release)
		if err := e.Wait(lsn); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		e.Answered(came, lsn, 1)
		want("behind another group", 45*time.Millisecond, 15*time.Millisecond, 3)
		if err := <-leader; err != nil {
			t.Fatal(err)
		}

		// A refusal waits for what was applied before it, and has no group: not that
		// which is remembered in the place of group 0.
		for lsn < 256 {
			lsn = enqueue()
			release = disk.Hang("datasync")
			time.AfterFunc(10*time.Millisecond, release)
			if err := e.Wait(lsn); err != nil {
				t.Fatal(err)
			}
		}
		came = e.Arrived()
		time.Sleep(2 * time.Millisecond)
		e.Answered(came, 0, 1)
		e.Answered(engine.Arrival{}, lsn, 1) // nothing came
		want("refused", 47*time.Millisecond, 17*time.Millisecond, 4)
	})
}
