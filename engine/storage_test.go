package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// failing makes writes and syncs of the log fail from now on.
func failing(kind string) func(waltest.Op) waltest.Fault {
	return func(op waltest.Op) waltest.Fault {
		if op.Kind == kind && strings.Contains(op.Name, "/log/") {
			return waltest.Fault{Err: syscall.EIO}
		}
		return waltest.Fault{}
	}
}

// The first error of the log is the last thing it does: who waited hears
// UNKNOWN, who comes later that it has failed, nobody waits for ever, and a
// start finds what had been acknowledged.
func TestFailedLogPoisons(t *testing.T) {
	for _, kind := range []string{"write", "datasync"} {
		t.Run(kind, func(t *testing.T) {
			disk := waltest.NewDisk()
			s := openOnDisk(t, disk, engine.Options{})
			s.enqueue("mail", "kept")
			disk.Inject(failing(kind))
			const clients = 20
			outcomes := make(chan error, clients)
			for range clients {
				go func() { outcomes <- s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: []byte("lost")}) }()
			}
			unknown := 0
			for range clients {
				switch err := <-outcomes; err {
				case engine.ErrUnknown:
					unknown++
				case engine.ErrFailed:
				default:
					t.Errorf("got %v, want ErrUnknown or ErrFailed", err)
				}
			}
			if unknown == 0 {
				t.Error("nobody heard ErrUnknown")
			}
			<-s.e.Failed()
			if err := s.e.Failure(); !errors.Is(err, syscall.EIO) {
				t.Errorf("got failure %v, want it to be EIO", err)
			}
			late := &engine.Stats{Queue: key("mail")}
			if err := s.e.Do(late); err != engine.ErrFailed || late.Err() != engine.ErrFailed {
				t.Errorf("later: got %v and %v, want ErrFailed", err, late.Err())
			}
			if w, _ := s.e.Await(&engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 1}); w != nil {
				t.Error("somebody may wait for a log that has failed")
			}
			disk.Inject(nil)
			s.close()

			s.fs = disk.Kill()
			s.open()
			d := s.want("mail", "kept")
			s.ack(d)
		})
	}
}

// A sync that nobody waits for fails, of the idle mark or of the interval: the
// engine notices, without a command that needs the disk.
func TestFailureOfAQuietLog(t *testing.T) {
	for name, opt := range map[string]wal.Options{
		"idle mark": {},
		"interval":  {Sync: wal.SyncInterval, Interval: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := waltest.NewDisk()
				opt.GenerationBytes = 64 << 10
				s := &shop{t: t, fs: disk, dir: "data", log: opt}
				s.open()
				defer s.close()
				s.enqueue("mail", "one")
				disk.Inject(failing("datasync"))
				time.Sleep(5 * time.Second)
				if err := s.e.Failure(); !errors.Is(err, syscall.EIO) {
					t.Errorf("got failure %v, want EIO", err)
				}
				if c := (&engine.Stats{Queue: key("mail")}); s.e.Do(c) != engine.ErrFailed {
					t.Errorf("a command is answered by %v, want ErrFailed", c.Err())
				}
			})
		})
	}
}

// onHangingDisk is inBubble on a disk that can hang. There are no idle marks: one
// that waits for a lock would stop the bubble's clock.
func onHangingDisk(t *testing.T, opt engine.Options, test func(t *testing.T, s *shop, disk *waltest.Hanging)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		disk := &waltest.Hanging{FS: waltest.NewDisk()}
		s := &shop{t: t, fs: disk, dir: "data", opt: opt, log: wal.Options{GenerationBytes: 64 << 10, IdleAfter: 1000 * time.Hour}}
		s.open()
		defer s.close()
		test(t, s, disk)
	})
}

// Close gives up on a disk that hangs. The directory stays locked: the write that
// is under way may reach it yet.
func TestCloseOnHangingDisk(t *testing.T) {
	onHangingDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		s.enqueue("mail", "acknowledged")
		release := disk.Hang("datasync")
		led := make(chan error, 1)
		go func() { led <- s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: []byte("hangs")}) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.e.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: got %v, want that the time is over", err)
		}
		if _, err := recovery.Open(t.Context(), recovery.Options{FS: disk, Dir: s.dir}); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("while the write is under way: got %v, want that the directory is locked", err)
		}
		release()
		<-led
		synctest.Wait()
		s.e = nil
		s.fs = disk.FS.(*waltest.Disk).Kill() // the process is gone, and its lock
		s.open()
		if n := s.e.Numbers(); n.Jobs[state.Ready] == 0 {
			t.Error("what was acknowledged is gone")
		}
	})
	// One that answers in time was only slow: the log ends with its mark.
	onHangingDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		release := disk.Hang("datasync")
		go s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: []byte("slow")})
		synctest.Wait()
		time.AfterFunc(15*time.Second, release)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.e.Close(ctx); err != nil {
			t.Errorf("close: got %v", err)
		}
		s.e = nil
	})
}

// A disk that hangs lets nobody but the leader wait for more than ten seconds,
// bounds what waits for it, and lets everything go on when it answers.
func TestHungDisk(t *testing.T) {
	onHangingDisk(t, engine.Options{MaxPending: 50}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		s.enqueue("mail", "before")
		release := disk.Hang("datasync")
		leader := make(chan error, 1)
		go func() { leader <- s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: []byte("leader")}) }()
		synctest.Wait()

		var busy, hung, other atomic.Int64
		var clients sync.WaitGroup
		began := time.Now()
		begin := func(n int) {
			for range n {
				clients.Go(func() {
					c := &engine.Stats{Queue: key("mail")}
					switch err := s.e.Do(c); {
					case err == engine.ErrUnanswered:
						hung.Add(1)
					case err == nil && c.Err() == engine.ErrBusy:
						busy.Add(1)
					default:
						other.Add(1)
					}
				})
			}
			synctest.Wait()
		}
		begin(50) // as many as may wait
		begin(10) // held back until it is clear that the disk hangs
		time.Sleep(2 * time.Second)
		begin(20) // it is clear: refused at once
		if busy.Load() != 20 {
			t.Errorf("got %d refused at once, want 20", busy.Load())
		}
		clients.Wait()
		if took := time.Since(began); took < engine.HungAfter || took > engine.HungAfter+2*time.Second {
			t.Errorf("the last gave up after %v, want %v to %v", took, engine.HungAfter, engine.HungAfter+2*time.Second)
		}
		if hung.Load() != 50 || busy.Load() != 30 || other.Load() != 0 {
			t.Errorf("got %d hung, %d busy and %d others, want 50, 30 and none", hung.Load(), busy.Load(), other.Load())
		}
		c := &engine.Stats{Queue: key("mail")}
		if err := s.e.Do(c); err != nil && err != engine.ErrUnanswered {
			t.Errorf("got %v", err)
		}
		if ms := s.e.Numbers().OldestUnsyncedMs; ms < 10_000 {
			t.Errorf("oldest unsynced is %d ms, want at least 10,000", ms)
		}
		release()
		if err := <-leader; err != nil {
			t.Errorf("leader: %v", err)
		}
		s.want("mail", "before")
		s.want("mail", "leader")
	})
}

// A disk at work keeps nothing waiting that time ends: what comes due one
// millisecond after the other is ready at once, all in the group behind the commit
// under way, and replay gives every record the time it had.
func TestTimeGoesOnBesideTheDisk(t *testing.T) {
	onHangingDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		const jobs = 20
		for i := range jobs {
			s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("later"), Delay: state.Millis(10 + i)})
		}
		s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("kept"), Delay: 1000})
		groups := s.e.Numbers().Groups
		release := disk.Hang("datasync")
		leader := make(chan error, 1)
		go func() { leader <- s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: []byte("leader")}) }()
		synctest.Wait()
		time.Sleep(9 * time.Millisecond)
		for range jobs {
			s.sleep(time.Millisecond)
		}
		if ready := s.e.Numbers().Jobs[state.Ready]; ready != jobs+1 {
			t.Errorf("got %d ready jobs while the disk is at work, want %d", ready, jobs+1)
		}
		if late := s.e.Histograms().LateSeconds; late.Count != jobs || late.Sum != 0 {
			t.Errorf("got %d jobs late by %v s together, want %d and 0", late.Count, late.Sum, jobs)
		}
		release()
		if err := <-leader; err != nil {
			t.Fatal(err)
		}
		s.must(&engine.Stats{Queue: key("mail")})
		if n := s.e.Numbers().Groups - groups; n != 2 {
			t.Errorf("got %d groups, want the leader's and the one behind it", n)
		}
		before := s.dump()
		s.reopen()
		if after := s.dump(); after != before {
			t.Errorf("after a restart: got\n%s\nwant\n%s", after, before)
		}
	})
}

// Who gives up on a disk that hangs leaves nothing behind when it answers again:
// no job leased to nobody, and no generation held for a body that nobody reads.
func TestGivingUpLeavesNothing(t *testing.T) {
	onHangingDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *waltest.Hanging) {
		for _, payload := range []string{"one", "two", "three"} {
			s.enqueue("mail", payload)
		}
		id := s.enqueue("other", "seen")
		release := disk.Hang("datasync")
		leader := make(chan error, 1)
		go func() { leader <- s.e.Do(&engine.Drain{On: false}, &engine.Enqueue{Queue: key("busy")}) }()
		synctest.Wait()
		cmds := []engine.Command{
			&engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 3_600_000, Count: 2},
			&engine.JobGet{ID: id},
			&engine.QueuePeek{Queue: key("other"), Place: state.Ready},
		}
		if err := s.e.Do(cmds...); err != engine.ErrUnanswered {
			t.Errorf("got %v, want ErrUnanswered", err)
		}
		release()
		if err := <-leader; err != nil {
			t.Errorf("leader: %v", err)
		}
		s.wantCounts("mail", 3, 0, 0, 0)
		for _, g := range s.wal.Generations() {
			if g.Holds != 0 {
				t.Errorf("generation %d is held %d times", g.Generation, g.Holds)
			}
		}
		s.want("mail", "one")
	})
}

// gatedFS lets the log make generations only while its gate is open.
type gatedFS struct {
	vfs.FS
	gate atomic.Pointer[chan struct{}] // nil is open
}

func (g *gatedFS) Available(dir string) (int64, error) {
	if gate := g.gate.Load(); gate != nil && strings.HasSuffix(dir, "/log") {
		<-*gate
	}
	return g.FS.Available(dir)
}

// shut has whoever makes a generation wait until open is called, once.
func (g *gatedFS) shut() (open func()) {
	gate := make(chan struct{})
	g.gate.Store(&gate)
	return func() {
		close(gate)
		g.gate.Store(nil)
	}
}

// onGatedDisk runs test in a bubble, with an engine on such a disk.
func onGatedDisk(t *testing.T, opt engine.Options, test func(t *testing.T, s *shop, disk *gatedFS)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedFS{FS: waltest.NewDisk()}
		s := &shop{t: t, fs: disk, dir: "data", opt: opt, log: wal.Options{GenerationBytes: 64 << 10}}
		s.open()
		defer s.close()
		test(t, s, disk)
	})
}

// The engine closes while a Submit has let go of the critical section, to wait
// for a generation: what it had decided is durable and answered as that, and
// only the rest is refused.
func TestCloseWithinSubmit(t *testing.T) {
	onGatedDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *gatedFS) {
		open := disk.shut()
		decided := &engine.Enqueue{Queue: key("mail"), Payload: []byte("decided")}
		large := &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 100<<10)} // of a generation that must be made
		behind := &engine.Enqueue{Queue: key("mail"), Payload: []byte("behind")}
		answer := make(chan error, 1)
		go func() { answer <- s.e.Do(decided, large, behind) }()
		synctest.Wait()
		closed := make(chan struct{})
		go func() { s.close(); close(closed) }()
		synctest.Wait()
		open()
		<-closed
		if err := <-answer; err != nil || decided.Err() != nil || large.Err() != engine.ErrClosed || behind.Err() != engine.ErrClosed {
			t.Errorf("got %v, and %v, %v, %v; want nil, and nil, ErrClosed, ErrClosed", err, decided.Err(), large.Err(), behind.Err())
		}
		s.open()
		s.ack(s.want("mail", "decided"))
		s.wantNone("mail")
	})
}

// A stay that lets go of the critical section to wait for room has its time noted,
// and so has the one after it.
func TestStaysAroundAWaitForRoom(t *testing.T) {
	onGatedDisk(t, engine.Options{MeasureCPU: true}, func(t *testing.T, s *shop, disk *gatedFS) {
		synctest.Wait() // the log has made what it keeps ahead
		open := disk.shut()
		before := s.e.Histograms()
		done := make(chan error, 1)
		go func() {
			done <- s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 100<<10)}) // needs a larger generation
		}()
		synctest.Wait()
		if n := s.e.Histograms().TurnSeconds.Since(before.TurnSeconds).Count; n == 0 {
			t.Error("the stay that waits for room is not counted")
		}
		open()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		after := s.e.Histograms()
		if stays, cpu := after.TurnSeconds.Since(before.TurnSeconds).Count, after.TurnCPUSeconds.Since(before.TurnCPUSeconds).Count; stays < 2 || cpu != stays {
			t.Errorf("got %d stays and the processor time of %d, want two at least", stays, cpu)
		}
	})
}

// What ends jobs asks a log that gets no new generation for no more room than those
// need that exist.
func TestRoomForThoseThatExist(t *testing.T) {
	onGatedDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *gatedFS) {
		a, b := s.enqueue("mail", "a"), s.enqueue("mail", "b")
		lease := s.want("mail", "a").Lease
		synctest.Wait() // the log has made what it keeps ahead
		open := disk.shut()
		const others = 10_000 // for all of which no generation has room
		remove := &engine.JobDelete{IDs: append(make([]state.JobID, others), b, a)}
		ack := &engine.Ack{Leases: append(make([]state.LeaseID, others), lease)}
		none := &engine.JobDelete{IDs: make([]state.JobID, others)}
		began := time.Now()
		s.must(ack)
		s.must(remove)
		s.must(none)
		if took := time.Since(began); took != 0 {
			t.Errorf("they have waited for %v", took)
		}
		if !ack.Done[others] || remove.Deleted != 1 || none.Deleted != 0 {
			t.Errorf("got %v, %d and %d, want true, 1 and 0", ack.Done[others], remove.Deleted, none.Deleted)
		}
		s.wantCounts("mail", 0, 0, 0, 0)
		open()
	})
}

// Commands that came together wait once for a disk that hangs.
func TestHungDiskWithinSubmit(t *testing.T) {
	onGatedDisk(t, engine.Options{}, func(t *testing.T, s *shop, disk *gatedFS) {
		synctest.Wait()
		defer disk.shut()()
		first := &engine.Enqueue{Queue: key("mail"), Payload: []byte("first")}
		cmds := []engine.Command{first}
		for range 20 {
			cmds = append(cmds, &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 100<<10)}) // of a generation that must be made
		}
		began := time.Now()
		if err := s.e.Do(cmds...); err != nil || first.Err() != nil {
			t.Errorf("got %v and %v, want nil and nil", err, first.Err())
		}
		if took := time.Since(began); took > engine.HungAfter+time.Second {
			t.Errorf("it took %v, want about %v", took, engine.HungAfter)
		}
		for _, cmd := range cmds[1:] {
			if cmd.Err() != engine.ErrHung {
				t.Errorf("got %v, want ErrHung", cmd.Err())
			}
		}
	})
}

// With a disk that is full commands are refused one by one, nothing fails, and
// all goes on by itself when space is back.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", opt: engine.Options{SnapshotBytes: 64 << 10}, log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer s.close()
		s.enqueue("mail", "first")
		disk.Limit(20 << 10) // below the reserve
		var err error
		taken := 0
		for range 1000 {
			c := &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 1000)}
			if err = s.do(c); err != nil {
				break
			}
			taken++
			time.Sleep(100 * time.Millisecond)
		}
		if err != engine.ErrNoSpace {
			t.Fatalf("got %v after %d jobs, want ErrNoSpace", err, taken)
		}
		if !s.e.Numbers().Full {
			t.Error("the numbers do not say that the disk is full")
		}
		s.ack(s.want("mail", "first")) // what is there can be fetched and finished
		disk.Limit(100 << 20)
		time.Sleep(5 * time.Second)
		s.enqueue("mail", "again")
		if s.e.Failure() != nil {
			t.Errorf("a full disk is no failure: %v", s.e.Failure())
		}
		s.wantCounts("mail", int64(taken)+1, 0, 0, 0)
	})
}

func TestMaxDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{t: t, fs: waltest.NewDisk(), dir: "data", opt: engine.Options{MaxDisk: 500 << 10, SnapshotBytes: 64 << 10}, log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer s.close()
		var err error
		var jobs int64
		for range 2000 {
			c := &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 4000)}
			if err = s.do(c); err != nil {
				break
			}
			jobs++
			time.Sleep(10 * time.Millisecond)
		}
		if err != engine.ErrNoSpace {
			t.Fatalf("got %v, want ErrNoSpace", err)
		}
		// Working off the jobs, with snapshots and cleaning, makes room again.
		for range jobs {
			d := s.fetch("mail", 60_000)
			s.ack(d)
			time.Sleep(10 * time.Millisecond)
		}
		for range 10 {
			if err := s.e.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.must(&engine.Drain{On: false})
			time.Sleep(2 * time.Second)
		}
		s.enqueue("mail", "again")
	})
}

// The state after snapshots, log removed behind them and a restart is the state
// before it.
func TestSnapshotAndDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", opt: engine.Options{SnapshotBytes: 64 << 10}, log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer func() { s.close() }()
		immortal := s.enqueue("keep", "the oldest job of all")
		for i := range 1500 {
			s.enqueue("mail", fmt.Sprintf("job %d %s", i, strings.Repeat("x", 300)))
			s.ack(s.fetch("mail", 60_000))
			time.Sleep(10 * time.Millisecond)
		}
		for range 3 {
			s.must(&engine.Drain{On: true})
			if err := s.e.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		n := s.e.Numbers()
		if n.SnapshotLSN == 0 || n.SnapshotAt == 0 || n.SnapshotFailures != 0 {
			t.Errorf("got %+v, want a snapshot", n)
		}
		// All that was written, but for the file system's own, is counted: every
		// byte of log stands where a zero stood, but in the first generation.
		if z := n.ZeroBytesWritten; z%(16<<10) != 0 || z+(16<<10) < n.LogBytesWritten || n.LogBytesWritten < 1500*300 {
			t.Errorf("%d bytes of log, %d zeros", n.LogBytesWritten, z)
		}
		if least := 3 * uint64(len("pawl state 1\n")); n.SnapshotBytesWritten < least {
			t.Errorf("%d bytes of snapshots", n.SnapshotBytesWritten)
		}
		// One old job keeps its generation at most until it is cleaned; the churn
		// of 600 KB is gone.
		if n.Generations > 8 {
			t.Errorf("got %d generations, want those behind the snapshots gone", n.Generations)
		}
		s.must(&engine.Drain{On: false})
		before := s.dump()
		s.reopen()
		if after := s.dump(); after != before {
			t.Errorf("dump after the restart differs:\n%s\nwant\n%s", after, before)
		}
		if err := s.e.Check(); err != nil {
			t.Error(err)
		}
		if d := s.want("keep", "the oldest job of all"); d.ID != immortal {
			t.Errorf("got job %v, want %v", d.ID, immortal)
		}
	})
}

// A snapshot under --sync never syncs the log it stands on, though nothing more is
// written.
func TestSnapshotWithoutSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{t: t, fs: waltest.NewDisk(), dir: "data", log: wal.Options{GenerationBytes: 64 << 10, Sync: wal.SyncNever}}
		s.open()
		defer s.close()
		s.enqueue("mail", "x")
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := s.e.Snapshot(ctx); err != nil {
			t.Errorf("got %v", err)
		}
		s.reopen()
		s.want("mail", "x")
	})
}

// A daemon that is restarted before it has written enough for a snapshot writes
// one all the same, once there is enough to replay.
func TestSnapshotOfWhatWasReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{t: t, fs: waltest.NewDisk(), dir: "data", opt: engine.Options{SnapshotBytes: 64 << 10}, log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer func() { s.close() }()
		for range 20 {
			for range 10 {
				s.enqueue("mail", strings.Repeat("x", 1000))
			}
			s.reopen()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := s.e.Numbers(); n.SnapshotLSN == 0 {
			t.Error("200 KB of log and no snapshot")
		}
	})
}

// Bodies carried out of generations that are mostly dead are the same bodies,
// and what they left goes.
func TestCleaning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", opt: engine.Options{SnapshotBytes: 32 << 10}, log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer func() { s.close() }()
		// One job in ten lives on, so each generation has a few.
		var kept []string
		for i := range 1000 {
			payload := fmt.Sprintf("job %d %s", i, strings.Repeat("y", 400))
			if i%10 == 0 {
				s.enqueue("keep", payload)
				kept = append(kept, payload)
			} else {
				s.enqueue("mail", payload)
				s.ack(s.fetch("mail", 60_000))
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		for range 3 {
			s.must(&engine.Drain{On: true})
			if err := s.e.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		s.must(&engine.Drain{On: false})
		n := s.e.Numbers()
		if n.CleanedBytes == 0 {
			t.Error("nothing was cleaned")
		}
		var size int64
		files, err := snapshot.List(disk, "data/snapshots")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			size += f.Size
		}
		const perRecord = 100
		bound := engine.DiskBound(n.LiveBytes+int64(perRecord*len(kept)), size/2, 32<<10, 16<<10)
		if disk := n.LogBytes + size; disk > bound {
			t.Errorf("log and snapshots take %d bytes with %d alive, want at most %d", disk, n.LiveBytes, bound)
		}
		s.reopen()
		for _, payload := range kept {
			s.ack(s.want("keep", payload))
		}
	})
}

// A body that is rotten is never sent: its job is dead, the next one comes, and
// the store starts again.
func TestDamagedBody(t *testing.T) {
	disk := waltest.NewDisk()
	s := openOnDisk(t, disk, engine.Options{})
	s.log = wal.Options{GenerationBytes: 16 << 10, CacheBytes: -1}
	s.reopen()
	s.enqueue("mail", "rotten "+strings.Repeat("z", 2000))
	s.enqueue("mail", "sound")
	s.reopen() // what was written before is in no memory now
	found := false
	for _, name := range disk.Files() {
		if i := strings.Index(string(disk.Contents(name)), "rotten zzz"); i >= 0 {
			disk.Flip(name, int64(i+8)*8)
			found = true
		}
	}
	if !found {
		t.Fatal("the body is in no file")
	}
	f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000}
	s.must(f)
	if err := s.e.Load(&f.Jobs[0]); !errors.Is(err, engine.ErrDamaged) {
		t.Fatalf("got %v, want ErrDamaged", err)
	}
	s.want("mail", "sound")
	s.wantCounts("mail", 0, 0, 1, 1)
	get := &engine.JobGet{ID: f.Jobs[0].ID}
	s.must(get)
	if get.Job.Place != state.Dead || get.Job.Reason != "DAMAGED" {
		t.Errorf("got a %v job with reason %q, want a dead one, DAMAGED", get.Job.Place, get.Job.Reason)
	}
	s.e.ForgetView(&get.Job)
	if n := s.e.Numbers().DamagedBodies; n != 1 {
		t.Errorf("got %d damaged bodies, want 1", n)
	}
	if err := s.e.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := s.dump()
	s.close()
	if err := s.tryOpen(); err != nil {
		t.Fatalf("the store does not start again: %v", err)
	}
	if after := s.dump(); after != before {
		t.Errorf("dump after the restart differs:\n%s\nwant\n%s", after, before)
	}
}

// A backup is a store of its own with what was there when it began, however much
// goes on meanwhile.
func TestBackup(t *testing.T) {
	disk := waltest.NewDisk()
	s := openOnDisk(t, disk, engine.Options{})
	for i := range 200 {
		s.enqueue("mail", fmt.Sprintf("job %d %s", i, strings.Repeat("b", 1000)))
	}
	before := s.dump()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.must(&engine.Enqueue{Queue: key("later"), Payload: make([]byte, 500)})
			}
		}
	})
	if err := s.e.Backup(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	close(stop)
	clients.Wait()
	if err := s.e.Backup(t.Context(), "copy"); err != engine.ErrExists {
		t.Errorf("second backup: got %v, want ErrExists", err)
	}

	c := &shop{t: t, fs: disk.Crash(func(int) waltest.Keep { return waltest.Keep{} }), dir: "copy", log: s.log}
	c.open()
	defer c.close()
	c.wantCounts("mail", 200, 0, 0, 0)
	for i := range 200 {
		c.ack(c.want("mail", fmt.Sprintf("job %d %s", i, strings.Repeat("b", 1000))))
	}
	_ = before
}

// Groups that nobody waits for reach the disk all the same.
func TestNobodyWaits(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		lsn := s.e.Submit(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x")})
		if n := s.e.Numbers(); n.DurableLSN >= lsn {
			t.Fatalf("group %d is durable at once", lsn)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if n := s.e.Numbers(); n.DurableLSN < lsn {
			t.Errorf("durable is %d after 100 ms, want %d", n.DurableLSN, lsn)
		}
	})
}

func TestCloseIsIdempotent(t *testing.T) {
	s := openShop(t, engine.Options{})
	s.enqueue("mail", "x")
	e := s.e
	s.close()
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := e.Snapshot(context.Background()); err != engine.ErrClosed {
		t.Errorf("snapshot after close: got %v, want ErrClosed", err)
	}
}

// hookedFS calls hook before it makes a directory of this name.
type hookedFS struct {
	vfs.FS
	name string
	hook func()
}

func (h *hookedFS) Mkdir(name string, perm fs.FileMode) error {
	if name == h.name {
		h.hook()
	}
	return h.FS.Mkdir(name, perm)
}

// The generation that was being written when a backup listed them is full, and
// trimmed to its history, before it is copied. The copy starts all the same: it
// ends with that generation, as long as it was made.
func TestBackupOfAGenerationThatFillsUp(t *testing.T) {
	disk := waltest.NewDisk()
	hooked := &hookedFS{FS: disk, name: "copy.copying/log"}
	s := &shop{t: t, fs: hooked, dir: "data", log: wal.Options{GenerationBytes: 16 << 10, Foreground: true}}
	s.open()
	defer s.close()
	s.enqueue("mail", "before")
	full := false
	hooked.hook = func() {
		full = true
		for begun := s.e.Numbers().Generations; s.e.Numbers().Generations < begun+2; {
			s.must(&engine.Enqueue{Queue: key("later"), Payload: make([]byte, 500)})
		}
	}
	if err := s.e.Backup(t.Context(), "copy"); err != nil || !full {
		t.Fatalf("%v, filled up: %v", err, full)
	}
	c := &shop{t: t, fs: disk.Crash(func(int) waltest.Keep { return waltest.Keep{} }), dir: "copy", log: s.log}
	c.open()
	defer c.close()
	c.want("mail", "before")
}

// What check counts of a directory is what Stats answered of it, for every queue
// and place: after a clean stop, after a kill, and after a power cut that keeps
// nothing that was not synced.
func TestCheckCountsWhatStatsCounted(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for round := range 6 {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 16 << 10, Foreground: true}}
		s.open()
		queues := []string{"a", "b", "ns/c", "empty"}
		for range 150 {
			q := queues[rng.IntN(3)]
			switch f := (&engine.Fetch{Queues: [][]byte{key(q)}, LeaseMs: 600_000}); rng.IntN(7) {
			case 0, 1:
				s.enqueue(q, strings.Repeat("p", rng.IntN(300)))
			case 2:
				s.must(&engine.Enqueue{Queue: key(q), Delay: 3_600_000})
			case 3:
				if round%2 == 0 && rng.IntN(8) == 0 {
					if err := s.e.Snapshot(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			default:
				s.must(f)
				if len(f.Jobs) == 0 {
					continue
				}
				s.e.Forget(&f.Jobs[0])
				switch lease := f.Jobs[0].Lease; rng.IntN(5) {
				case 0:
					s.must(&engine.Ack{Leases: []state.LeaseID{lease}})
				case 1:
					s.must(&engine.Bury{Lease: lease})
				case 2:
					s.must(&engine.Nack{Lease: lease})
				}
			}
		}
		answered := map[string][4]int64{}
		for _, q := range queues {
			answered[q] = s.counts(q)
		}
		killed, cut := disk.Kill(), disk.Crash(func(int) waltest.Keep { return waltest.Keep{} })
		s.close()
		for what, d := range map[string]*waltest.Disk{"a clean stop": disk, "a kill": killed, "a power cut": cut} {
			health, err := recovery.Check(t.Context(), recovery.CheckOptions{FS: d, Dir: "data"})
			if err != nil || len(health.Problems) > 0 {
				t.Fatalf("round %d, after %s: %v, %v", round, what, err, health)
			}
			for _, q := range queues {
				var got [4]int64
				if id, ok := health.State.QueueByKey(key(q)); ok {
					n := health.State.Queue(id)
					got = [4]int64{int64(n.Ready), int64(n.Delayed), int64(n.Leased), int64(n.Dead)}
				}
				if got != answered[q] {
					t.Errorf("round %d, after %s: queue %s has %v, Stats had answered %v", round, what, q, got, answered[q])
				}
			}
		}
	}
}
