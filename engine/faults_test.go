package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/internal/vfs"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

var errIO = fmt.Errorf("disk: %w", syscall.EIO)

// failsBelow makes the n-th operation on anything that path is part of fail
// once, counts them all in ops, and leaves everything else alone.
func failsBelow(path string, n int64, ops *atomic.Int64) func(waltest.Op) waltest.Fault {
	return func(op waltest.Op) waltest.Fault {
		if strings.Contains(op.Name, path) && ops.Add(1) == n {
			return waltest.Fault{Err: errIO}
		}
		return waltest.Fault{}
	}
}

// aFewGenerations opens an engine on a disk and fills some generations.
func aFewGenerations(t *testing.T, disk vfs.FS) *shop {
	t.Helper()
	s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 16 << 10, Foreground: true}}
	s.open()
	for i := range 40 {
		s.enqueue("mail", fmt.Sprintf("job %d %s", i, strings.Repeat("b", 1000)))
	}
	return s
}

// Every file operation of a backup fails. The backup says so and leaves nothing,
// the daemon does not notice, and the next backup is whole.
func TestEveryOperationOfABackupFails(t *testing.T) {
	disk := waltest.NewDisk()
	s := aFewGenerations(t, disk)
	defer func() { s.close() }()
	before := s.dump()
	var ops atomic.Int64
	disk.Inject(failsBelow("copy", 0, &ops))
	if err := s.e.Backup(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	total := ops.Load()
	for n := int64(1); n <= total; n++ {
		var seen atomic.Int64
		name := fmt.Sprintf("copy%d", n)
		disk.Inject(failsBelow(name, n, &seen))
		err := s.e.Backup(t.Context(), name)
		disk.Inject(nil)
		if seen.Load() < n {
			t.Fatalf("backup %d has only %d operations", n, seen.Load())
		}
		if err == nil {
			// A hard link that fails becomes a copy; what is read only is closed
			// without a look at the answer.
			if got := dumpOf(t, disk, name); got != before {
				t.Fatalf("operation %d of %d failed, nobody noticed, and the copy is\n%s", n, total, got)
			}
			continue
		}
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d of %d: got %v", n, total, err)
		}
		for _, left := range []string{name, name + engine.Copying} {
			if _, err := disk.Stat(left); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("operation %d of %d: %s is still there (%v)", n, total, left, err)
			}
		}
	}
	if err := s.e.Failure(); err != nil || s.dump() != before {
		t.Errorf("the daemon noticed: %v", err)
	}
	if got := dumpOf(t, disk, "copy"); got != before {
		t.Errorf("the copy of before is\n%s", got)
	}
}

// dumpOf starts an engine on what a power cut would leave of a directory.
func dumpOf(t *testing.T, disk *waltest.Disk, dir string) string {
	t.Helper()
	c := &shop{t: t, fs: disk.Crash(func(int) waltest.Keep { return waltest.Keep{} }), dir: dir, log: wal.Options{GenerationBytes: 16 << 10, Foreground: true}}
	c.open()
	defer c.close()
	return c.dump()
}

// noLinks is a file system that cannot make hard links to where backups go.
type noLinks struct{ vfs.FS }

func (noLinks) Link(string, string) error { return syscall.EXDEV }

// A backup on another file system is copied.
func TestBackupWithoutLinks(t *testing.T) {
	disk := waltest.NewDisk()
	s := aFewGenerations(t, noLinks{disk})
	defer s.close()
	if err := s.e.Backup(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	if got, want := dumpOf(t, disk, "copy"), s.dump(); got != want {
		t.Errorf("the copy is\n%s\nwant\n%s", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.e.Backup(ctx, "other"); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that nobody waits for: got %v", err)
	}
	if _, err := disk.Stat("other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left something: %v", err)
	}
	if err := s.e.Backup(t.Context(), "missing/copy"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a backup below nothing: got %v", err)
	}
}

// Every file operation of a snapshot fails. It is said and counted, what there
// was stays, and the daemon goes on; a restart loses nothing.
func TestEveryOperationOfASnapshotFails(t *testing.T) {
	disk := waltest.NewDisk()
	s := aFewGenerations(t, disk)
	defer func() { s.close() }()
	var ops atomic.Int64
	disk.Inject(failsBelow("snapshots", 0, &ops))
	if err := s.e.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	total := ops.Load()
	failed := uint64(0)
	for n := int64(1); n <= total; n++ {
		s.enqueue("mail", fmt.Sprintf("one more, %d", n))
		var seen atomic.Int64
		disk.Inject(failsBelow("snapshots", n, &seen))
		err := s.e.Snapshot(t.Context())
		disk.Inject(nil)
		if err != nil {
			failed++
			if !errors.Is(err, syscall.EIO) {
				t.Fatalf("operation %d of %d: got %v", n, total, err)
			}
		}
		if err := s.e.Failure(); err != nil {
			t.Fatalf("operation %d of %d ended the daemon: %v", n, total, err)
		}
		if n%7 == 0 {
			before := s.dump()
			s.reopen()
			if got := s.dump(); got != before {
				t.Fatalf("operation %d of %d: after a restart got\n%s\nwant\n%s", n, total, got, before)
			}
			failed = 0
		} else if got := s.e.Numbers().SnapshotFailures; got != failed {
			t.Fatalf("operation %d of %d: %d failures are counted, want %d", n, total, got, failed)
		}
	}
}

// Whoever asks for a snapshot while one is under way gets the next one, whoever
// does not want to wait any more goes, and the end of the engine ends all.
func TestSnapshotsThatWait(t *testing.T) {
	disk := waltest.NewDisk()
	s := aFewGenerations(t, disk)
	defer s.close()
	entered, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "open" && strings.Contains(op.Name, ".snapshot") && once.CompareAndSwap(false, true) {
			close(entered)
			<-release
		}
		return waltest.Fault{}
	})
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- s.e.Snapshot(context.Background()) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.e.Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone: got %v", err)
	}
	go func() { second <- s.e.Snapshot(context.Background()) }()
	close(release)
	for _, c := range []chan error{first, second} {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
}

// Snapshots come by the clock where nothing else asks for them.
func TestSnapshotInterval(t *testing.T) {
	inBubble(t, engine.Options{SnapshotInterval: time.Minute}, func(t *testing.T, s *shop) {
		s.enqueue("mail", "x")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := s.e.Numbers(); n.SnapshotLSN != 0 {
			t.Errorf("a snapshot after half the time: %+v", n)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		first := s.e.Numbers().SnapshotLSN
		if first == 0 {
			t.Error("no snapshot after the interval")
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := s.e.Numbers(); n.SnapshotLSN != first {
			t.Errorf("another snapshot of the same: %+v", n)
		}
	})
}

// What the keeper does beside the commands fails for a while: it cannot ask for
// the free space, cannot open what it would clean, cannot remove what is not
// needed. Nobody notices but the log, and afterwards it catches up.
func TestKeeperOnAFailingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", opt: engine.Options{SnapshotBytes: 32 << 10}, log: wal.Options{GenerationBytes: 64 << 10, CacheBytes: -1}}
		s.open()
		defer func() { s.close() }()
		var mu sync.Mutex
		failures := map[string]int{} // guarded by mu
		// The first of each fail only, so that the test ends.
		disk.Inject(func(op waltest.Op) waltest.Fault {
			kind := op.Kind
			sealed := strings.Contains(op.Name, "/log/") && strings.HasSuffix(op.Name, "/00000000000000000001")
			switch {
			case kind == "available" && op.Name == "data": // not the log's own question
			case kind == "remove" && sealed:
			case kind == "remove" && strings.HasSuffix(op.Name, ".snapshot"):
				kind = "prune"
			default:
				return waltest.Fault{}
			}
			mu.Lock()
			defer mu.Unlock()
			if failures[kind]++; failures[kind] <= 3 {
				return waltest.Fault{Err: errIO}
			}
			return waltest.Fault{}
		})
		var kept []string
		for i := range 600 {
			payload := fmt.Sprintf("job %d %s", i, strings.Repeat("y", 2000))
			if i%6 == 0 {
				s.enqueue("keep", payload)
				kept = append(kept, payload)
			} else {
				s.enqueue("mail", payload)
				s.ack(s.fetch("mail", 60_000))
			}
			time.Sleep(10 * time.Millisecond)
		}
		for range 4 {
			s.must(&engine.Drain{On: true})
			if err := s.e.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		s.must(&engine.Drain{On: false})
		mu.Lock()
		for _, kind := range []string{"available", "remove", "prune"} {
			if failures[kind] < 4 {
				t.Errorf("%s was tried %d times: it never failed, or was not tried again", kind, failures[kind])
			}
		}
		mu.Unlock()
		if n := s.e.Numbers(); n.CleanedBytes == 0 || n.LogBytes > n.LiveBytes*5/2+2*3*(32<<10)+6*(64<<10) {
			t.Errorf("it did not catch up: %+v", n)
		}
		if err := s.e.Failure(); err != nil {
			t.Errorf("the daemon failed: %v", err)
		}
		s.reopen()
		for _, payload := range kept {
			s.ack(s.want("keep", payload))
		}
	})
}

// A live body is rotten in a generation that is mostly dead. Cleaning carries
// the others out, buries the job, and leaves the generation, which has its body.
func TestCleaningMeetsRot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		s := &shop{t: t, fs: disk, dir: "data", opt: engine.Options{SnapshotBytes: 32 << 10}, log: wal.Options{GenerationBytes: 16 << 10, CacheBytes: -1}}
		s.open()
		defer func() { s.close() }()
		rotten := s.enqueue("keep", "rotten "+strings.Repeat("z", 400))
		s.enqueue("keep", "sound "+strings.Repeat("z", 400))
		for range 10 {
			s.enqueue("mail", strings.Repeat("y", 400))
			s.ack(s.fetch("mail", 60_000))
		}
		s.reopen() // both are in a generation that is mostly dead and written no more
		for _, name := range disk.Files() {
			if i := strings.Index(string(disk.Contents(name)), "rotten zzz"); i >= 0 {
				disk.Flip(name, int64(i+8)*8)
			}
		}
		for i := range 1000 {
			s.enqueue("mail", fmt.Sprintf("job %d %s", i, strings.Repeat("y", 400)))
			s.ack(s.fetch("mail", 60_000))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(5 * time.Minute)
		s.wantCounts("keep", 1, 0, 0, 1)
		get := &engine.JobGet{ID: rotten}
		s.must(get)
		if get.Job.Reason != "DAMAGED" || s.e.Numbers().CleanedBytes == 0 || s.e.Numbers().DamagedBodies != 1 {
			t.Errorf("got reason %q, %+v", get.Job.Reason, s.e.Numbers())
		}
		s.e.ForgetView(&get.Job)
		s.reopen()
		s.ack(s.want("keep", "sound "+strings.Repeat("z", 400)))
		s.wantNone("keep")
	})
}

// A file that cannot be opened says nothing about the bytes in it: the job goes
// back to the head of its queue and is delivered when files can be opened again.
func TestBodyThatCannotBeOpened(t *testing.T) {
	disk := waltest.NewDisk()
	s := openOnDisk(t, disk, engine.Options{})
	s.log = wal.Options{GenerationBytes: 16 << 10, CacheBytes: -1}
	s.reopen()
	s.enqueue("mail", "first")
	s.enqueue("mail", "second")
	s.reopen()
	disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "open" && strings.Contains(op.Name, "/log/") {
			return waltest.Fault{Err: syscall.EMFILE}
		}
		return waltest.Fault{}
	})
	f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000}
	s.must(f)
	if err := s.e.Load(&f.Jobs[0]); !errors.Is(err, syscall.EMFILE) || errors.Is(err, engine.ErrDamaged) {
		t.Errorf("got %v, want EMFILE", err)
	}
	get := &engine.JobGet{ID: f.Jobs[0].ID}
	s.must(get)
	if err := s.e.LoadView(&get.Job); !errors.Is(err, syscall.EMFILE) || errors.Is(err, engine.ErrDamaged) {
		t.Errorf("got %v, want EMFILE", err)
	}
	disk.Inject(nil)
	s.wantCounts("mail", 2, 0, 0, 0)
	s.ack(s.want("mail", "first"))
	s.ack(s.want("mail", "second"))
}

// Options and starts that make no sense are refused.
func TestNewRefuses(t *testing.T) {
	for name, opt := range map[string]engine.Options{
		"payload":  {MaxPayload: -1},
		"limit":    {MaxQueues: -1},
		"memory":   {MaxMemory: -1},
		"keep":     {Keep: -1},
		"interval": {SnapshotInterval: -1},
	} {
		if e, err := engine.New(opt, engine.Start{}); err == nil || e != nil || !strings.HasPrefix(err.Error(), "engine: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := engine.New(engine.Options{}, engine.Start{}); err == nil {
		t.Error("a start without a state and a log is taken")
	}
}

// The log has no room at all: the disk is full and no generation is left. Every
// command that would log is refused with the same word and changes nothing, what
// only reads is answered, and when space is back all are taken.
func TestCommandsOnALogWithoutRoom(t *testing.T) { synctest.Test(t, commandsOnALogWithoutRoom) }

func commandsOnALogWithoutRoom(t *testing.T) {
	disk := waltest.NewDisk()
	s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 16 << 10, Foreground: true}}
	s.open()
	defer func() { s.close() }()
	for range 8 {
		s.enqueue("mail", "payload")
	}
	s.must(&engine.QueueSet{Queue: key("set"), Settings: state.Settings{Tries: 3}, Which: state.SetTries})
	s.must(&engine.QueuePause{Queue: key("paused")})
	s.must(&engine.MetaSet{Key: "user/x", Value: []byte("v")})
	cron := state.Cron{Namespace: "default/default", Name: "c", Spec: "@daily", Queue: string(key("mail")), Payload: []byte("p")}
	s.must(&engine.CronSet{Cron: cron})
	lease := func() state.LeaseID { return s.want("mail", "payload").Lease }
	one, two, three, four, five := lease(), lease(), lease(), lease(), lease()
	peek := &engine.QueuePeek{Queue: key("mail"), Place: state.Ready}
	s.must(peek)
	waiting := peek.Jobs[0].ID
	for i := range peek.Jobs {
		s.e.ForgetView(&peek.Jobs[i])
	}
	disk.Limit(0)
	// No snapshot may let anything go.
	disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "open" && strings.Contains(op.Name, ".snapshot") {
			return waltest.Fault{Err: syscall.ENOSPC}
		}
		return waltest.Fault{}
	})
	// Fill what is prepared, first with large records and then with small ones.
	for _, size := range []int{2000, 200, 1} {
		for i := byte(0); s.do(&engine.MetaSet{Key: "fill", Value: bytes.Repeat([]byte{i}, size)}) == nil; i++ {
		}
	}
	// No command asks for less than this one.
	for ms := state.Millis(70_000); s.do(&engine.Extend{Lease: five, LeaseMs: ms}) == nil; ms++ {
	}
	before := s.dump()
	other := cron
	other.Name = "other"
	for name, cmd := range map[string]engine.Command{
		"enqueue":       &engine.Enqueue{Queue: key("mail"), Payload: []byte("x")},
		"ack":           &engine.Ack{Leases: []state.LeaseID{one}},
		"nack":          &engine.Nack{Lease: two},
		"release":       &engine.Release{Lease: three},
		"bury":          &engine.Bury{Lease: four, Reason: []byte("reason")},
		"extend":        &engine.Extend{Lease: five, LeaseMs: 90_000},
		"fetch":         &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 1000},
		"job delete":    &engine.JobDelete{IDs: []state.JobID{waiting}},
		"job edit":      &engine.JobEdit{ID: waiting, Kind: engine.EditPriority, Priority: 3},
		"pause":         &engine.QueuePause{Queue: key("mail")},
		"resume":        &engine.QueueResume{Queue: key("paused")},
		"set":           &engine.QueueSet{Queue: key("mail"), Settings: state.Settings{Tries: 3}, Which: state.SetTries},
		"reset":         &engine.QueueReset{Queue: key("set")},
		"delete":        &engine.QueueDelete{Queue: key("set")},
		"cron":          &engine.CronSet{Cron: other},
		"cron delete":   &engine.CronDelete{Namespace: cron.Namespace, Name: cron.Name},
		"drain":         &engine.Drain{On: true},
		"meta":          &engine.MetaSet{Key: "user/y", Value: []byte("v")},
		"meta delete":   &engine.MetaSet{Key: "user/x"},
		"transaction":   &engine.Multi{Commands: []engine.Command{&engine.Nack{Lease: two}}},
		"new queue":     &engine.Enqueue{Queue: key("new"), Payload: []byte("x")},
		"large":         &engine.Enqueue{Queue: key("mail"), Payload: make([]byte, 100<<10)},
		"job run":       &engine.JobEdit{ID: waiting, Kind: engine.EditDelay, Delay: 5},
		"move":          &engine.JobEdit{ID: waiting, Kind: engine.EditMove, Queue: key("new")},
		"other payload": &engine.JobEdit{ID: waiting, Kind: engine.EditPayload, Payload: []byte("y")},
	} {
		if err := s.do(cmd); err != engine.ErrNoSpace {
			t.Errorf("%s: got %v, want ErrNoSpace", name, err)
		}
	}
	s.wantCounts("mail", 3, 0, 5, 0)
	if got := s.dump(); got != before {
		t.Errorf("a refused command changed something: got\n%s\nwant\n%s", got, before)
	}
	if err := s.e.Failure(); err != nil {
		t.Fatalf("a full disk is no failure: %v", err)
	}
	disk.Limit(1 << 30)
	time.Sleep(5 * time.Second)
	s.must(&engine.Ack{Leases: []state.LeaseID{one}})
	s.must(&engine.Nack{Lease: two})
	s.enqueue("mail", "again")
	s.reopen()
	s.wantCounts("mail", 5, 0, 3, 0)
}

// Names that are none are refused by every command that takes one.
func TestQueueNamesThatAreNone(t *testing.T) {
	s := openOnDisk(t, waltest.NewDisk(), engine.Options{})
	before := s.dump()
	for what, name := range map[string][]byte{"empty": key(""), "too long": key(strings.Repeat("x", 300)), "no key": []byte("x")} {
		for _, cmd := range []engine.Command{
			&engine.Enqueue{Queue: name}, &engine.Fetch{Queues: [][]byte{name}}, &engine.Stats{Queue: name}, &engine.QueueInfo{Queue: name},
			&engine.QueuePeek{Queue: name, Place: state.Ready}, &engine.QueuePause{Queue: name}, &engine.QueueResume{Queue: name},
			&engine.QueueSet{Queue: name}, &engine.QueueReset{Queue: name}, &engine.QueueDelete{Queue: name},
		} {
			if err := s.do(cmd); err == nil {
				t.Errorf("%s: %T is taken", what, cmd)
			}
		}
		purge, redrive := &engine.QueuePurge{Queue: name}, &engine.QueueRedrive{Queue: name}
		if s.e.Purge(t.Context(), purge); purge.Err() == nil {
			t.Errorf("%s: a purge is taken", what)
		}
		if s.e.Redrive(t.Context(), redrive); redrive.Err() == nil {
			t.Errorf("%s: a redrive is taken", what)
		}
	}
	if got := s.dump(); got != before {
		t.Errorf("something changed:\n%s", got)
	}
	// What does not exist is not made by who only asks, or ends something.
	for _, cmd := range []engine.Command{
		&engine.QueueResume{Queue: key("nobody")}, &engine.QueueReset{Queue: key("nobody")}, &engine.QueueDelete{Queue: key("nobody")},
		&engine.MetaSet{Key: "nothing"}, &engine.CronDelete{Namespace: "default/default", Name: "nothing"},
	} {
		s.must(cmd)
	}
	if got := s.dump(); got != before {
		t.Errorf("something was made:\n%s", got)
	}
}

// Bytes that are no body are found out, wherever they end.
func TestParseBodyRefuses(t *testing.T) {
	attrs := strings.Repeat("\x01a\x01b", engine.MaxAttrs)
	for name, b := range map[string]struct {
		body     string
		overhead int
		good     bool
	}{
		"payload only":         {"payload", 0, true},
		"key and group":        {"\x02k\x02gpayload", 4, true},
		"as many as there may": {"\x00\x00" + attrs, 2 + len(attrs), true},
		"one more":             {"\x00\x00" + attrs + "\x01a\x01b", 6 + len(attrs), false},
		"negative":             {"x", -1, false},
		"more than there is":   {"x", 2, false},
		"no end of a number":   {"\xff\xff", 2, false},
		"key longer than all":  {"\x7fk", 2, false},
		"no group":             {"\x02k", 2, false},
		"group too long":       {"\x02k\x09g", 4, false},
		"name too long":        {"\x00\x00\x09n", 4, false},
		"no value":             {"\x00\x00\x01n", 4, false},
		"value too long":       {"\x00\x00\x01n\x02v", 6, false},
	} {
		c, err := engine.ParseBody([]byte(b.body), b.overhead)
		if (err == nil) != b.good {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
		if err == nil && string(c.Payload) != b.body[b.overhead:] {
			t.Errorf("%s: got payload %q", name, c.Payload)
		}
	}
}
