package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/wal"
	"pawl/wal/waltest"
)

// parts is an ACK or a JOB DELETE of many leased jobs, and what became of them.
type parts struct {
	*shop
	held []engine.Delivery
	cmd  engine.Command
}

// mass are those commands that are done in parts.
var mass = map[string]func([]engine.Delivery) engine.Command{
	"ack":    func(held []engine.Delivery) engine.Command { return ackOf(held) },
	"delete": func(held []engine.Delivery) engine.Command { return deleteOf(held) },
}

// finished is how many jobs are gone, the first of them; all others must be leased as
// they were.
func (p *parts) finished() (n int) {
	p.t.Helper()
	for i, d := range p.held {
		get := &engine.JobGet{ID: d.ID}
		p.must(get)
		switch {
		case !get.Found && n == i:
			n++
		case !get.Found:
			p.t.Fatalf("job %d is gone, but not job %d before it", i, n)
		case get.Job.Lease != d.Lease:
			p.t.Fatalf("job %d has the lease %v, want %v", i, get.Job.Lease, d.Lease)
		}
		p.e.ForgetView(&get.Job)
	}
	return n
}

// said is how many jobs the answer says to be finished, where it was interrupted.
func (p *parts) said() int {
	p.t.Helper()
	if p.cmd.Err() != engine.ErrPartly {
		p.t.Errorf("got %v, want ErrPartly", p.cmd.Err())
	}
	if ack, ok := p.cmd.(*engine.Ack); ok && slices.Contains(ack.Done, false) {
		p.t.Errorf("got %v, want true as far as it goes", ack.Done)
	}
	return p.done()
}

// again asks for the same once more, and wants only what was left to be done.
func (p *parts) again(before int) {
	p.t.Helper()
	p.must(p.cmd)
	if ack, ok := p.cmd.(*engine.Ack); ok {
		for i, done := range ack.Done {
			if done != (i >= before) {
				p.t.Errorf("lease %d again: got %v, with %d finished before", i, done, before)
			}
		}
	}
	p.wantCounts("held", 0, 0, 0, 0)
}

// strike has every stay find its time over, and does something in the break behind so
// many jobs of the command.
func (p *parts) strike(behind int, do func()) {
	done := false
	p.e.Elapse(func(time.Time) time.Duration {
		if !done && p.done() >= behind {
			done = true
			do()
		}
		return time.Second
	})
}

// done is how many jobs the command is through with.
func (p *parts) done() int {
	if remove, ok := p.cmd.(*engine.JobDelete); ok {
		return remove.Deleted
	}
	return len(p.cmd.(*engine.Ack).Done)
}

// everyPart runs test for each of the commands, and for what happens in the first, in
// one of the next and in the last of its breaks.
func everyPart(t *testing.T, test func(t *testing.T, of func([]engine.Delivery) engine.Command, behind int)) {
	for name, of := range mass {
		for _, behind := range []int{16, 48, 96} {
			t.Run(fmt.Sprintf("%s behind %d", name, behind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, of, behind) })
			})
		}
	}
}

const partJobs = 100

// Others use up the last room of a full disk while an ACK or a JOB DELETE of many lets
// them in: its answer says that it is not whole, what it finished stays finished, also
// when the power goes, and the rest is as it was and may be asked for again.
func TestPartsMeetAFullDisk(t *testing.T) {
	everyPart(t, func(t *testing.T, of func([]engine.Delivery) engine.Command, behind int) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 64 << 10, Foreground: true}}
		s.open()
		defer func() { s.close() }()
		held := s.held(partJobs)
		p := &parts{s, held, of(held)}
		disk.Inject(func(op waltest.Op) waltest.Fault { // no snapshot may let anything go
			if op.Kind == "open" && strings.Contains(op.Name, ".snapshot") {
				return waltest.Fault{Err: syscall.ENOSPC}
			}
			return waltest.Fault{}
		})
		p.strike(behind, func() {
			disk.Limit(0)
			s.e.Fill()
		})
		if err := s.e.Do(p.cmd); err != nil {
			t.Fatal(err)
		}
		s.e.Elapse(nil)
		n := p.said()
		if n != behind {
			t.Errorf("%d are said to be finished, want those before the break, %d", n, behind)
		}
		if got := p.finished(); got != n {
			t.Errorf("%d are finished, want %d as said", got, n)
		}
		if err := s.e.Failure(); err != nil {
			t.Fatalf("a full disk is no failure: %v", err)
		}
		after := &parts{&shop{t: t, fs: disk.Crash(func(int) waltest.Keep { return waltest.Keep{} }), dir: "data", log: s.log}, held, of(held)}
		after.fs.(*waltest.Disk).Limit(-1)
		after.open()
		defer after.close()
		if got := after.finished(); got != n {
			t.Errorf("after a power cut %d are finished, want %d as said", got, n)
		}
		after.again(n)
		disk.Limit(-1)
		time.Sleep(5 * time.Second)
		p.again(n)
	})
}

// No generation is made while an ACK or a JOB DELETE of many lets others in, who use up
// the room: it waits ten seconds, and is not whole.
func TestPartsWaitForAHungDisk(t *testing.T) {
	everyPart(t, func(t *testing.T, of func([]engine.Delivery) engine.Command, behind int) {
		disk := waltest.NewDisk()
		gated := &gatedFS{FS: disk}
		s := &shop{t: t, fs: gated, dir: "data", log: wal.Options{GenerationBytes: 64 << 10}}
		s.open()
		defer func() { s.close() }()
		held := s.held(partJobs)
		p := &parts{s, held, of(held)}
		synctest.Wait() // the log has made what it keeps ahead
		open := gated.shut()
		p.strike(behind, s.e.Fill)
		began := time.Now()
		if err := s.e.Do(p.cmd); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < engine.HungAfter || took > engine.HungAfter+time.Second {
			t.Errorf("it took %v, want about %v", took, engine.HungAfter)
		}
		s.e.Elapse(nil)
		n := p.said()
		if got := p.finished(); got != n || n != behind {
			t.Errorf("%d are finished, %d are said to be, want %d", got, n, behind)
		}
		after := &parts{&shop{t: t, fs: disk.Crash(func(int) waltest.Keep { return waltest.Keep{} }), dir: "data", log: s.log}, held, of(held)}
		after.open()
		defer after.close()
		if got := after.finished(); got != n {
			t.Errorf("after a power cut %d are finished, want %d as said", got, n)
		}
		open()
		time.Sleep(time.Second)
		p.again(n)
	})
}

// The disk hangs while an ACK or a JOB DELETE of many waits for room behind others: its
// outcome is open, and what is left when the disk answers, or the power goes, is the
// beginning of it.
func TestPartsOnADiskThatHangs(t *testing.T) {
	everyPart(t, func(t *testing.T, of func([]engine.Delivery) engine.Command, behind int) {
		disk := waltest.NewDisk()
		hanging := &waltest.Hanging{FS: disk}
		gated := &gatedFS{FS: hanging}
		s := &shop{t: t, fs: gated, dir: "data", log: wal.Options{GenerationBytes: 64 << 10, IdleAfter: 1000 * time.Hour}}
		s.open()
		defer func() { s.close() }()
		held := s.held(partJobs)
		p := &parts{s, held, of(held)}
		synctest.Wait()
		open := gated.shut()
		release := hanging.Hang("datasync")
		led := make(chan error, 1)
		go func() { led <- s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: []byte("hangs")}) }()
		synctest.Wait()
		p.strike(behind, s.e.Fill)
		if err := s.e.Do(p.cmd); err != engine.ErrUnanswered {
			t.Errorf("got %v, want ErrUnanswered", err)
		}
		s.e.Elapse(nil)
		p.eachCrash(disk, of, behind)
		release()
		if err := <-led; err != nil {
			t.Error(err)
		}
		open()
		time.Sleep(time.Second)
		n := p.finished()
		if n != behind {
			t.Errorf("%d are finished when the disk answers, want %d", n, behind)
		}
		p.again(n)
	})
}

// The log fails while an ACK or a JOB DELETE of many lets others in: its outcome is
// open, nothing is taken any more, and a start finds the beginning of it finished, up
// to where it came, and the rest as it was.
func TestPartsMeetAFailedLog(t *testing.T) {
	for _, kind := range []string{"write", "datasync"} {
		t.Run(kind, func(t *testing.T) {
			everyPart(t, func(t *testing.T, of func([]engine.Delivery) engine.Command, behind int) {
				disk := waltest.NewDisk()
				hanging := &waltest.Hanging{FS: disk}
				s := &shop{t: t, fs: hanging, dir: "data", log: wal.Options{GenerationBytes: 64 << 10, IdleAfter: 1000 * time.Hour}}
				s.open()
				defer func() { s.close() }()
				held := s.held(partJobs)
				p := &parts{s, held, of(held)}
				synctest.Wait()
				release := hanging.Hang("datasync")
				led := make(chan error, 1)
				go func() { led <- s.e.Do(&engine.Enqueue{Queue: key("mail"), Payload: []byte("others'")}) }()
				synctest.Wait()
				p.strike(behind, func() {
					// Who leads notices it beside us.
					disk.Inject(failing(kind))
					release()
					if kind == "datasync" {
						<-s.e.Failed()
					}
				})
				late := &engine.Stats{Queue: key("held")}
				if err := s.e.Do(p.cmd, late); err != engine.ErrUnknown {
					t.Errorf("got %v, want ErrUnknown", err)
				}
				if kind == "datasync" && (p.cmd.Err() != engine.ErrPartly || late.Err() != engine.ErrFailed) {
					t.Errorf("got %v, and %v behind it, want ErrPartly and ErrFailed", p.cmd.Err(), late.Err())
				}
				if err := <-led; (err != nil) != (kind == "datasync") {
					t.Errorf("who led: got %v", err)
				}
				if err := s.e.Do(p.cmd); err != engine.ErrFailed {
					t.Errorf("again: got %v, want ErrFailed", err)
				}
				disk.Inject(nil)
				most := behind
				if kind == "write" {
					most = partJobs // nobody noticed until all was decided
				}
				p.eachCrash(disk, of, most)
			})
		})
	}
}

// eachCrash starts an engine on all that a power cut may leave of the disk: the first of
// the jobs are finished, most at most, and the rest can be.
func (p *parts) eachCrash(disk *waltest.Disk, of func([]engine.Delivery) engine.Command, most int) {
	p.t.Helper()
	seen := map[bool]int{}
	for name, left := range disk.States(1, 10) {
		after := &parts{&shop{t: p.t, fs: left, dir: "data", log: wal.Options{GenerationBytes: 64 << 10, IdleAfter: 1000 * time.Hour}}, p.held, of(p.held)}
		after.open()
		n := after.finished()
		if n > most {
			p.t.Errorf("%s: %d jobs are finished, want %d at most", name, n, most)
		}
		seen[n > 0]++
		after.again(n)
		after.close()
	}
	p.t.Logf("%d disks with some finished, %d with none", seen[true], seen[false])
}
