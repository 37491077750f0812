package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pawl/internal/record"
	"pawl/wal"
	"pawl/wal/waltest"
)

// run is one life of a log in a test: what was tried, what was promised.
type run struct {
	disk  *waltest.Disk
	opt   wal.Options
	tried []waltest.Group // by LSN from 1
	acked wal.LSN
	after wal.LSN // a snapshot holds all up to here
	err   error
}

const logDir = "/log"

func newRun(t *testing.T) *run {
	t.Helper()
	d := waltest.NewDisk()
	if err := d.Mkdir(logDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	return &run{disk: d, opt: testOptions(d, 1)}
}

func testOptions(d *waltest.Disk, seed uint64) wal.Options {
	var key [32]byte
	key[0] = byte(seed)
	return wal.Options{
		FS: d, Dir: logDir, GenerationBytes: wal.MinGenerationBytes, CacheBytes: -1,
		Foreground: true, Random: rand.NewChaCha8(key),
	}
}

// begin recovers and starts the log again. It fails the test if what recovery
// finds is not what was promised.
func (r *run) begin(t *testing.T) *wal.Log {
	t.Helper()
	groups, end, err := waltest.Read(r.disk, logDir, wal.ReaderOptions{After: r.after})
	if err != nil {
		r.err = err
		return nil
	}
	r.compare(t, groups, end)
	if end.Store == (wal.StoreID{}) {
		end.Store = waltest.Store
	}
	l, err := wal.Begin(r.opt, end)
	r.err = err
	if err != nil {
		return nil
	}
	return l
}

// compare checks groups against what was tried and promised, and forgets what
// was tried and is not there.
func (r *run) compare(t *testing.T, groups []waltest.Group, end wal.End) {
	t.Helper()
	if end.LSN < r.acked {
		t.Fatalf("log ends with group %d, but %d was acknowledged", end.LSN, r.acked)
	}
	if int(end.LSN) > len(r.tried) {
		t.Fatalf("log ends with group %d, but only %d were written", end.LSN, len(r.tried))
	}
	if want := int(end.LSN - r.after); len(groups) != want {
		t.Fatalf("got %d groups, want %d, after %d", len(groups), want, r.after)
	}
	for i, got := range groups {
		want := r.tried[int(r.after)+i]
		if !sameGroup(got, want) {
			t.Fatalf("group %d: got %v, want %v", want.LSN, got, want)
		}
	}
	r.tried = slices.Clip(r.tried[:end.LSN])
	r.acked = end.LSN // what recovery has shown must stay, too
}

func sameGroup(a, b waltest.Group) bool {
	if a.LSN != b.LSN || a.LogTime != b.LogTime || a.WallTime != b.WallTime || len(a.Records) != len(b.Records) {
		return false
	}
	for i := range a.Records {
		x, y := a.Records[i], b.Records[i]
		if !bytes.Equal(x.Head, y.Head) || !bytes.Equal(x.Body, y.Body) || x.Pos != y.Pos {
			return false
		}
	}
	return true
}

// write commits one group whose bytes follow from its LSN.
func (r *run) write(l *wal.Log, size int) {
	if r.err != nil {
		return
	}
	lsn := wal.LSN(len(r.tried) + 1)
	g := waltest.Group{LSN: lsn, LogTime: int64(lsn) * 10, WallTime: int64(lsn)*10 + 1}
	for k := range int(lsn%3) + 1 {
		g.Records = append(g.Records, waltest.Record{
			Head: fmt.Appendf(nil, "head %d.%d", lsn, k),
			Body: bytes.Repeat([]byte{byte(lsn)*7 + byte(k) + 1}, size*k),
		})
	}
	r.tried = append(r.tried, g)
	got, err := waltest.Append(l, g.Records...)
	r.err = err
	r.acked = l.Durable()
	if err == nil && r.opt.Sync == wal.SyncAlways && r.acked != lsn {
		r.err = fmt.Errorf("group %d is acknowledged, but %d is durable", lsn, r.acked)
	}
	if got == 0 {
		r.tried = r.tried[:len(r.tried)-1] // Open refused: nothing was tried
	}
}

// live is a workload with every kind of entry: groups small and large, one that
// needs a generation of its own, marks, full generations, a dropped one.
func (r *run) live(t *testing.T, groups int) {
	t.Helper()
	l := r.begin(t)
	if r.err != nil {
		return
	}
	for i := range groups {
		size := []int{0, 40, 700, 3000}[i%4]
		if i == groups/2 {
			size = 9000 // two bodies of which do not fit an ordinary generation
		}
		r.write(l, size)
		if i%5 == 4 && r.err == nil {
			r.err = l.Idle()
		}
		if list := l.Generations(); len(list) > 4 && r.err == nil {
			r.after = max(r.after, list[0].LastLSN)
			r.err = l.Drop(list[0].Generation)
		}
	}
	if err := l.Close(); r.err == nil {
		r.err = err
	}
}

func TestCrashAtEveryOperation(t *testing.T) {
	layer := record.Note(t, "3a power loss, simulated")
	t.Run("sync always", func(t *testing.T) { crashEverywhere(t, layer, wal.SyncAlways, 1) })
	t.Run("sync never", func(t *testing.T) { crashEverywhere(t, layer, wal.SyncNever, 3) })
}

func crashEverywhere(t *testing.T, layer *record.Layer, policy wal.SyncPolicy, step int) {
	calm := newRun(t)
	calm.opt.Sync = policy
	first := calm.disk.Ops()
	calm.live(t, 24)
	calm.live(t, 12)
	if calm.err != nil {
		t.Fatal(calm.err)
	}
	total := calm.disk.Ops()
	random := 2
	if testing.Short() {
		step, random = step*9, 1
	}
	states := 0
	for at := first + 1; at <= total; at += step { // a crash after it is one before the next
		r := newRun(t)
		r.opt.Sync = policy
		r.disk.Inject(waltest.CrashAt(at, false, 0))
		r.live(t, 24)
		if r.err == nil {
			r.live(t, 12)
		}
		if !r.disk.Crashed() {
			t.Fatalf("operation %d did not crash", at)
		}
		for name, d := range r.disk.States(uint64(at), random) {
			states++
			again := *r
			again.disk, again.opt = d, testOptions(d, 2)
			if again.checkRecovery(t, states%16 == 0); t.Failed() {
				t.Fatalf("crash before operation %d of %d, state %s", at, total, name)
			}
		}
	}
	t.Logf("%d operations, %d crash states", total-first, states)
	layer.Cases, layer.Faults = layer.Cases+states, layer.Faults+states
}

// checkRecovery starts the log on a disk that has crashed, and with more writes
// to it, crashes and starts it again.
func (r *run) checkRecovery(t *testing.T, deep bool) {
	t.Helper()
	l := r.begin(t)
	if r.err != nil {
		t.Errorf("start after the crash: %v", r.err)
		return
	}
	r.write(l, 100)
	r.write(l, 100)
	if r.err != nil {
		t.Errorf("write after the crash: %v", r.err)
		return
	}
	next := *r
	next.disk = r.disk.Crash(func(int) waltest.Keep { return waltest.Keep{} })
	next.opt = testOptions(next.disk, 3)
	if !deep {
		groups, end, err := waltest.Read(next.disk, logDir, wal.ReaderOptions{After: next.after})
		if err != nil {
			t.Errorf("second start: %v", err)
			return
		}
		next.compare(t, groups, end)
		return
	}
	next.live(t, 6)
	if next.err != nil {
		t.Errorf("second start: %v", next.err)
	}
}

func TestCrashInRecovery(t *testing.T) {
	layer := record.Note(t, "2b fail everywhere")
	r := newRun(t)
	r.live(t, 12)
	syncs := 0
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "datasync" {
			if syncs++; syncs == 7 {
				return waltest.Fault{Crash: true}
			}
		}
		return waltest.Fault{}
	})
	r.live(t, 12)
	if !errors.Is(r.err, waltest.ErrCrashed) {
		t.Fatalf("got %v, want a crash", r.err)
	}
	var torn *waltest.Disk
	for name, d := range r.disk.States(1, 1) {
		if strings.HasPrefix(name, "torn") {
			torn = d
		}
	}
	if torn == nil {
		t.Fatal("no torn state: move the crash")
	}
	for at := 1; ; at++ {
		again := *r
		again.disk = torn.Kill()
		again.opt = testOptions(again.disk, 2)
		again.disk.Inject(waltest.CrashAt(at, at%2 == 0, 0))
		l := again.begin(t)
		if again.err == nil {
			l.Close()
			if at < 20 {
				t.Fatalf("recovery took %d operations only", at)
			}
			return
		}
		for name, d := range again.disk.States(uint64(at), 8) {
			last := again
			last.disk, last.opt = d, testOptions(d, 3)
			layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+2
			if last.checkRecovery(t, false); t.Failed() {
				t.Fatalf("crash at operation %d of recovery, state %s", at, name)
			}
		}
	}
}

// TestFailEveryOperation: whatever fails, nothing that was acknowledged is lost,
// and where a write or sync of a group failed, nothing more is acknowledged.
func TestFailEveryOperation(t *testing.T) {
	layer := record.Note(t, "2b fail everywhere")
	calm := newRun(t)
	first := calm.disk.Ops()
	calm.live(t, 24)
	total := calm.disk.Ops()
	step := 1
	if testing.Short() {
		step = 5
	}
	for at := first + 1; at <= total; at += step {
		for name, inject := range map[string]func(waltest.Op) waltest.Fault{
			"EIO once":           waltest.FailAt(at, syscall.EIO, false),
			"EIO sticky":         waltest.FailAt(at, syscall.EIO, true),
			"ENOSPC sticky":      waltest.FailAt(at, syscall.ENOSPC, true),
			"EIO short write":    short(at, syscall.EIO),
			"EIO, but persisted": persisted(at),
		} {
			r := newRun(t)
			r.disk.Inject(inject)
			r.live(t, 24)
			failed := r.err
			for _, d := range []*waltest.Disk{r.disk.Kill(), r.disk.Crash(func(int) waltest.Keep { return waltest.Keep{} }),
				r.disk.Crash(func(int) waltest.Keep { return waltest.Keep{What: waltest.Whole} })} {
				again := *r
				again.err = nil
				again.disk, again.opt = d, testOptions(d, 2)
				layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
				if again.checkRecovery(t, at%8 == 0); t.Failed() {
					t.Fatalf("operation %d of %d failed (%s), which gave %v", at, total, name, failed)
				}
			}
		}
	}
}

func short(n int, err error) func(waltest.Op) waltest.Fault {
	return func(op waltest.Op) waltest.Fault {
		if op.N == n {
			return waltest.Fault{Err: err, Bytes: op.Bytes / 2}
		}
		return waltest.Fault{}
	}
}

func persisted(n int) func(waltest.Op) waltest.Fault {
	return func(op waltest.Op) waltest.Fault {
		if op.N == n {
			return waltest.Fault{Err: syscall.EIO, Done: true}
		}
		return waltest.Fault{}
	}
}

// TestFailureIsFinal: after one failed sync the disk works again, but the log
// does not.
func TestFailureIsFinal(t *testing.T) {
	for _, kind := range []string{"write", "datasync"} {
		t.Run(kind, func(t *testing.T) {
			r := newRun(t)
			l := r.begin(t)
			r.write(l, 10)
			armed := true
			r.disk.Inject(func(op waltest.Op) waltest.Fault {
				if armed && op.Kind == kind {
					armed = false
					return waltest.Fault{Err: syscall.EIO}
				}
				return waltest.Fault{}
			})
			select {
			case <-l.Failed():
				t.Fatal("failed before it did")
			default:
			}
			r.write(l, 10)
			if !errors.Is(r.err, syscall.EIO) {
				t.Fatalf("got %v, want EIO", r.err)
			}
			<-l.Failed()
			if err := l.Failure(); !errors.Is(err, syscall.EIO) {
				t.Errorf("failure is %v, want EIO", err)
			}
			if _, err := l.Open(1); !errors.Is(err, syscall.EIO) {
				t.Errorf("open gave %v, want EIO", err)
			}
			if err := l.Idle(); !errors.Is(err, syscall.EIO) {
				t.Errorf("idle gave %v, want EIO", err)
			}
			if err := l.Close(); !errors.Is(err, syscall.EIO) {
				t.Errorf("close gave %v, want EIO", err)
			}
			if got := l.Durable(); got != 1 {
				t.Errorf("durable is %d, want 1", got)
			}
			// What the failed sync left in the page cache only must not be believed.
			next := *r
			next.disk, next.err = r.disk.Kill(), nil
			next.opt = testOptions(next.disk, 2)
			next.checkRecovery(t, true)
		})
	}
}

func generationDir(generation uint32) string {
	return filepath.Join(logDir, fmt.Sprintf("%010d", generation))
}

func segmentFile(generation uint32) string {
	return filepath.Join(generationDir(generation), "00000000000000000001")
}
