package engine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// shop is an engine on a directory, with short words for what tests do to it.
type shop struct {
	t   testing.TB
	fs  vfs.FS
	dir string
	opt engine.Options
	log wal.Options
	e   *engine.Engine
	wal *wal.Log // the engine's, to look at
}

// openShop opens an engine on a new directory.
func openShop(t testing.TB, opt engine.Options) *shop {
	t.Helper()
	s := &shop{t: t, fs: vfs.OS{}, dir: t.TempDir(), opt: opt, log: wal.Options{GenerationBytes: 64 << 10}}
	s.open()
	t.Cleanup(s.close)
	return s
}

// openOnDisk opens an engine on a disk in memory.
func openOnDisk(t testing.TB, disk *waltest.Disk, opt engine.Options) *shop {
	t.Helper()
	s := &shop{t: t, fs: disk, dir: "data", opt: opt, log: wal.Options{GenerationBytes: 64 << 10}}
	s.open()
	t.Cleanup(s.close)
	return s
}

// inBubble runs a test with an engine on a disk in memory, where time goes by at
// once while everybody sleeps.
func inBubble(t *testing.T, opt engine.Options, test func(t *testing.T, s *shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{t: t, fs: waltest.NewDisk(), dir: "data", opt: opt, log: wal.Options{GenerationBytes: 64 << 10}}
		s.open()
		defer s.close()
		test(t, s)
	})
}

func (s *shop) open() {
	s.t.Helper()
	if err := s.tryOpen(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) tryOpen() error {
	store, err := recovery.Open(context.Background(), recovery.Options{FS: s.fs, Dir: s.dir})
	if err != nil {
		return err
	}
	opt := s.log
	opt.FS, opt.Dir = s.fs, store.LogDir()
	log, err := wal.Begin(opt, store.End)
	if err != nil {
		store.Close()
		return err
	}
	s.wal = log
	s.e, err = engine.New(s.opt, engine.Start{
		State: store.State, Log: log, End: store.End,
		FS: s.fs, Dir: store.Dir, LogDir: store.LogDir(), SnapshotDir: store.SnapshotDir(),
		Store: store.Identity.ID, History: store.Identity.History,
		Files: []string{"STORE"}, Recovered: store.Report.Took, Release: store,
	})
	return err
}

func (s *shop) close() {
	if s.e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.e.Close(ctx); err != nil && s.e.Failure() == nil {
		s.t.Errorf("close: %v", err)
	}
	s.e = nil
}

func (s *shop) reopen() {
	s.t.Helper()
	s.close()
	s.open()
}

// do carries out one command; the storage must not fail.
func (s *shop) do(cmd engine.Command) error {
	s.t.Helper()
	if err := s.e.Do(cmd); err != nil {
		s.t.Fatalf("%T: %v", cmd, err)
	}
	return cmd.Err()
}

func (s *shop) must(cmd engine.Command) {
	s.t.Helper()
	if err := s.do(cmd); err != nil {
		s.t.Fatalf("%T: %v", cmd, err)
	}
}

func (s *shop) refused(cmd engine.Command, want error) {
	s.t.Helper()
	if err := s.do(cmd); err != want {
		s.t.Fatalf("%T: got %v, want %v", cmd, err, want)
	}
}

func key(name string) []byte { return state.AppendQueueKey(nil, state.DefaultPool, []byte(name)) }

func (s *shop) enqueue(queue, payload string) state.JobID {
	s.t.Helper()
	c := &engine.Enqueue{Queue: key(queue), Payload: []byte(payload)}
	s.must(c)
	return c.ID
}

// fetch takes one job, nil when there is none.
func (s *shop) fetch(queue string, lease state.Millis) *engine.Delivery {
	s.t.Helper()
	c := &engine.Fetch{Queues: [][]byte{key(queue)}, LeaseMs: lease}
	s.must(c)
	if len(c.Jobs) == 0 {
		return nil
	}
	if err := s.e.Load(&c.Jobs[0]); err != nil {
		s.t.Fatalf("load: %v", err)
	}
	return &c.Jobs[0]
}

// want takes a job and fails unless it has this payload.
func (s *shop) want(queue, payload string) *engine.Delivery {
	s.t.Helper()
	d := s.fetch(queue, 60_000)
	if d == nil {
		s.t.Fatalf("queue %s: got no job, want %q", queue, payload)
	}
	if string(d.Payload) != payload {
		s.t.Fatalf("queue %s: got %q, want %q", queue, d.Payload, payload)
	}
	return d
}

func (s *shop) wantNone(queue string) {
	s.t.Helper()
	if d := s.fetch(queue, 60_000); d != nil {
		s.t.Fatalf("queue %s: got %q, want none", queue, d.Payload)
	}
}

func (s *shop) ack(d *engine.Delivery) {
	s.t.Helper()
	s.must(&engine.Ack{Leases: []state.LeaseID{d.Lease}})
}

// counts are ready, delayed, leased and dead jobs of a queue.
func (s *shop) counts(queue string) [4]int64 {
	s.t.Helper()
	c := &engine.Stats{Queue: key(queue)}
	s.must(c)
	return [4]int64{c.Ready, c.Delayed, c.Leased, c.Dead}
}

func (s *shop) wantCounts(queue string, ready, delayed, leased, dead int64) {
	s.t.Helper()
	if got, want := s.counts(queue), [4]int64{ready, delayed, leased, dead}; got != want {
		s.t.Fatalf("queue %s: got ready, delayed, leased, dead %v, want %v", queue, got, want)
	}
}

// sleep lets time go by, and the reaper's turns with it. In a synctest bubble.
func (s *shop) sleep(d time.Duration) {
	time.Sleep(d)
	s.turn()
}

func (s *shop) turn() {
	for range 1000 {
		if next, never := s.e.Turn(); never || next > 0 {
			return
		}
	}
}

func TestEnqueueFetchAck(t *testing.T) {
	s := openShop(t, engine.Options{})
	id := s.enqueue("mail", "hello")
	s.wantCounts("mail", 1, 0, 0, 0)
	d := s.want("mail", "hello")
	if d.ID != id || d.Attempt != 1 || d.Failures != 0 || d.Queue != string(key("mail")) {
		t.Errorf("got %+v, want job %v at its first attempt", d, id)
	}
	s.wantNone("mail")
	s.wantCounts("mail", 0, 0, 1, 0)
	s.ack(d)
	s.wantCounts("mail", 0, 0, 0, 0)
	s.refused(&engine.Ack{Leases: []state.LeaseID{d.Lease}}, engine.ErrNoLease)
}

// What was acknowledged is there after a restart, what was finished is not.
func TestRestart(t *testing.T) {
	s := openShop(t, engine.Options{})
	s.enqueue("mail", "one")
	s.enqueue("mail", "two")
	s.enqueue("mail", strings.Repeat("3", 10_000))
	s.ack(s.want("mail", "one"))
	leased := s.want("mail", "two")
	before := s.dump()
	s.reopen()
	if after := s.dump(); after != before {
		t.Errorf("dump after the restart differs:\n%s\nwant\n%s", after, before)
	}
	s.ack(leased)
	s.ack(s.want("mail", strings.Repeat("3", 10_000)))
	s.wantCounts("mail", 0, 0, 0, 0)
}

// dump is the state as text.
func (s *shop) dump() string {
	s.t.Helper()
	var b bytes.Buffer
	if err := s.e.Dump(&b); err != nil {
		s.t.Fatal(err)
	}
	return b.String()
}

// differ fails with the first lines that two dumps do not share.
func (s *shop) differ(when, got, want string) {
	s.t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			s.t.Fatalf("%s: line %d of the dump is\n%s\nwant\n%s", when, i+1, x, y)
		}
	}
}
