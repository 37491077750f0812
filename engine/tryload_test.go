package engine_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// TryLoad does what Load does where that takes no wait, and otherwise leaves the delivery
// to it as it was: what is found of a body needs a record, and the log may have no room.
func TestTryLoad(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(disk *waltest.Disk, name string, at int64) // where the body is
		says  error
		ends  state.Place // of the job that cannot be read
	}{
		"it cannot be opened": {func(disk *waltest.Disk, name string, _ int64) {
			disk.Inject(func(op waltest.Op) waltest.Fault {
				if op.Kind == "open" && strings.HasSuffix(name, op.Name) {
					return waltest.Fault{Err: syscall.EMFILE}
				}
				return waltest.Fault{}
			})
		}, syscall.EMFILE, state.Ready},
		"it is rotten": {func(disk *waltest.Disk, name string, at int64) {
			disk.Flip(name, at*8)
		}, engine.ErrDamaged, state.Dead},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := waltest.NewDisk()
				gated := &gatedFS{FS: disk}
				s := &shop{t: t, fs: gated, dir: "data", log: wal.Options{GenerationBytes: 16 << 10, CacheBytes: -1}}
				s.open()
				defer func() { s.close() }()
				s.must(&engine.Enqueue{Queue: key("mail"), Payload: []byte("the body"), Attrs: []engine.Attr{{Name: []byte("a"), Value: []byte("b")}}})
				s.reopen() // no memory image has it
				s.enqueue("mail", "in memory")
				f := &engine.Fetch{Queues: [][]byte{key("mail")}, LeaseMs: 60_000, Count: 2}
				s.must(f)
				cold, warm := &f.Jobs[0], &f.Jobs[1]
				for _, name := range disk.Files() {
					if i := strings.Index(string(disk.Contents(name)), "the body"); i >= 0 {
						test.fault(disk, name, int64(i))
					}
				}
				synctest.Wait() // the log has made what it keeps ahead
				open := gated.shut()
				s.during(s.e.Fill)
				s.must(&engine.Stats{Queue: key("mail")})
				if s.try(&engine.Enqueue{Queue: key("mail"), Payload: []byte("x")}) != 0 {
					t.Fatal("the log has room")
				}
				before := s.dump()
				began := time.Now()
				if s.e.TryLoad(cold) || cold.Payload != nil {
					t.Errorf("it has loaded %q", cold.Payload)
				}
				if !s.e.TryLoad(warm) || string(warm.Payload) != "in memory" {
					t.Errorf("what is in memory: got %q", warm.Payload)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("it has waited for %v", took)
				}
				if got := s.dump(); got != before {
					t.Errorf("it has changed the state:\n%s\nwant\n%s", got, before)
				}
				open()
				time.Sleep(time.Second)
				if err := s.e.Load(cold); !errors.Is(err, test.says) {
					t.Errorf("then Load: got %v, want %v", err, test.says)
				}
				if err := s.e.Load(warm); err != nil || string(warm.Payload) != "in memory" {
					t.Errorf("what is loaded, once more: got %q, %v", warm.Payload, err)
				}
				disk.Inject(nil)
				get := &engine.JobGet{ID: cold.ID}
				s.must(get)
				if s.e.ForgetView(&get.Job); get.Job.Place != test.ends {
					t.Errorf("the job is %v, want %v", get.Job.Place, test.ends)
				}
			})
		})
	}
}
