package recovery_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/internal/record"
	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/state"
	"pawl/wal/waltest"
)

// jobsOf is the IDs of all jobs in a state.
func jobsOf(st *state.State) map[state.JobID]bool {
	all := map[state.JobID]bool{}
	st.Queues(func(q state.QueueID) bool {
		for place := state.Ready; place <= state.Dead; place++ {
			var page []state.Slot
			for after := state.Slot(0); ; after = page[len(page)-1] {
				if page = st.Page(page[:0], q, place, after, 100); len(page) == 0 {
					break
				}
				for _, slot := range page {
					job, _ := st.Job(slot)
					all[job.ID] = true
				}
			}
		}
		return true
	})
	return all
}

// stateOf opens a store and gives its state, closed again.
func stateOf(t testing.TB, fs vfs.FS, dir string) *state.State {
	t.Helper()
	store, err := recovery.Open(t0, options(fs, dir))
	must(t, err)
	must(t, store.Close())
	return store.State
}

// Any one bit of a store is flipped. Check and the start agree; where the start
// is refused, a repair makes a store that starts, that has every job but those
// that it lists, and that brings no finished job back. One group a step means
// that at most one job can be hidden by the damage itself.
func TestRepairOfEveryDamage(t *testing.T) {
	layer := record.Note(t, "9 repair and upgrade")
	disk, _ := cleanStore(t, 200, 3, 25)
	whole := jobsOf(stateOf(t, disk.Kill(), "/store"))
	rng := rand.New(rand.NewPCG(6, 6))
	tries := 50
	if testing.Short() {
		tries = 12
	}
	repaired, listed := 0, 0
	for range tries {
		bad := disk.Kill()
		name := bad.Files()[rng.IntN(len(bad.Files()))]
		used := int64(len(strings.TrimRight(string(bad.Contents(name)), "\x00")))
		if used == 0 {
			continue
		}
		bit := rng.Int64N(used * 8)
		bad.Flip(name, bit)
		layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
		health, err := recovery.Check(t0, recovery.CheckOptions{FS: bad, Dir: "/store"})
		must(t, err)
		store, refused := recovery.Open(t0, options(bad.Kill(), "/store"))
		if refused == nil {
			must(t, store.Close())
		}
		if (refused == nil) != (len(health.Problems) == 0) {
			t.Fatalf("bit %d of %s: check says %v, the start %v", bit, name, health.Problems, refused)
		}
		before := image(bad)
		done, err := recovery.Repair(t0, recovery.RepairOptions{FS: bad, Dir: "/store", To: "/fixed"})
		if err != nil {
			if format, ok := errors.AsType[*recovery.FormatError](err); ok {
				t.Fatalf("bit %d of %s is taken for another format: %v", bit, name, format)
			}
			t.Fatalf("bit %d of %s: repair: %v", bit, name, err)
		}
		if done.Needed != (refused != nil) {
			t.Fatalf("bit %d of %s: repair is needed: %v, the start says %v", bit, name, done.Needed, refused)
		}
		if !done.Needed {
			continue
		}
		repaired++
		for path, b := range before {
			if string(bad.Contents(path)) != b {
				t.Fatalf("bit %d of %s: repair into another directory changed %s", bit, name, path)
			}
		}
		st := stateOf(t, bad, "/fixed")
		must(t, st.Check())
		kept := jobsOf(st)
		if uint64(len(kept)) != done.Jobs {
			t.Errorf("bit %d of %s: repair says %d jobs, there are %d", bit, name, done.Jobs, len(kept))
		}
		lost := map[state.JobID]bool{}
		for _, job := range done.Lost {
			lost[job.ID] = true
		}
		hidden, back := 0, 0
		for id := range whole {
			switch {
			case kept[id] && lost[id]:
				t.Errorf("bit %d of %s: job %s is listed as lost and is there", bit, name, id)
			case lost[id]:
				listed++
			case !kept[id]:
				hidden++
			}
		}
		for id := range kept {
			if !whole[id] {
				back++
			}
		}
		if hidden > 1+unknown(done.Lost) || back > 1 {
			t.Fatalf("bit %d of %s: %d jobs are gone that are not listed, %d came back\n%+v", bit, name, hidden, back, done)
		}
		for _, d := range done.Damage {
			if d.File == "" || d.Why == nil {
				t.Errorf("bit %d of %s: damage says too little: %+v", bit, name, d)
			}
		}
	}
	t.Logf("%d of %d damages needed a repair, %d lost jobs were listed", repaired, tries, listed)
	if repaired == 0 || listed == 0 {
		t.Error("nothing was repaired, or nothing lost: the test has no teeth")
	}
}

// unknown counts the lost jobs whose ID the damage hides.
func unknown(lost []recovery.LostJob) (n int) {
	for _, job := range lost {
		if job.ID == (state.JobID{}) {
			n++
		}
	}
	return n
}

// A generation that holds old payloads is gone: its jobs are listed, all others
// stay.
func TestRepairWithoutAGeneration(t *testing.T) {
	disk, p := cleanStore(t, 210, 3, 40)
	st := stateOf(t, disk.Kill(), "/store")
	lives := st.Lives()
	if len(lives) < 3 {
		t.Fatalf("only %d generations hold payloads", len(lives))
	}
	for _, live := range lives {
		bad := disk.Kill()
		for _, name := range bad.Files() {
			if strings.Contains(name, "/log/") && strings.Contains(name, generationName(live.Generation)) {
				must(t, bad.Remove(name))
			}
		}
		done, err := recovery.Repair(t0, recovery.RepairOptions{FS: bad, Dir: "/store", To: "/fixed"})
		must(t, err)
		if !done.Needed || len(done.Lost) == 0 {
			t.Fatalf("generation %d: got %+v", live.Generation, done)
		}
		kept := jobsOf(stateOf(t, bad, "/fixed"))
		lost := map[state.JobID]bool{}
		for _, job := range done.Lost {
			lost[job.ID] = true
		}
		for id := range jobsOf(st) {
			if !strings.Contains(p.dumps[uint64(done.LSN)], id.String()) {
				continue // the generation had the group of its enqueue, and with it all that said so
			}
			if kept[id] == lost[id] {
				t.Errorf("generation %d: job %s kept %v, lost %v", live.Generation, id, kept[id], lost[id])
			}
		}
	}
}

func generationName(n uint32) string {
	s := "0000000000"
	digits := []byte(s)
	for i := len(digits) - 1; n > 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return string(digits)
}

// In place: the damaged directory stays beside, and a second repair has nothing
// to do. A start after it goes on.
func TestRepairInPlace(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	p := newPast()
	w, err := openWorld(vfs.OS{}, dir, 220, p)
	must(t, err)
	for range 30 {
		_, err := w.enqueue("default/default/mail", 300)
		must(t, err)
	}
	must(t, w.close())
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*", "*"))
	must(t, err)
	damaged := ""
	for _, path := range segments {
		b, err := os.ReadFile(path)
		must(t, err)
		if i := bytes.LastIndexByte(b, 'P'); damaged == "" && len(bytes.TrimRight(b, "\x00")) > 8000 && i > 0 {
			b[5000] ^= 1
			must(t, os.WriteFile(path, b, 0o600))
			damaged = path
		}
	}
	if damaged == "" {
		t.Fatal("no generation is large enough")
	}
	before := contents(t, dir)
	opt := recovery.RepairOptions{Dir: dir, Wall: func() time.Time { return time.Date(2026, 11, 28, 15, 4, 5, 0, time.UTC) }}
	dry := opt
	dry.DryRun = true
	would, err := recovery.Repair(t.Context(), dry)
	must(t, err)
	if !contents(t, dir).equal(before) || len(list(t, parent)) != 1 {
		t.Fatal("a dry run changed something")
	}
	done, err := recovery.Repair(t.Context(), opt)
	must(t, err)
	if !done.Needed || len(done.Lost) == 0 || len(done.Lost) != len(would.Lost) || done.Jobs != would.Jobs {
		t.Errorf("got %+v, the dry run said %+v", done, would)
	}
	if want := dir + ".damaged-20261128T150405Z"; done.Kept != want {
		t.Errorf("kept as %s, want %s", done.Kept, want)
	}
	kept := contents(t, done.Kept)
	for name, b := range before {
		if kept[strings.Replace(name, dir, done.Kept, 1)] != b {
			t.Errorf("%s is not kept as it was", name)
		}
	}
	again, err := recovery.Repair(t.Context(), opt)
	must(t, err)
	if again.Needed {
		t.Errorf("a second repair says %+v", again)
	}
	store, err := recovery.Open(t.Context(), options(vfs.OS{}, dir))
	must(t, err)
	if store.Identity.History != 2 || store.Report.CutBytes != 0 {
		t.Errorf("got %+v, %+v", store.Identity, store.Report)
	}
	must(t, store.Close())
}

// A crash at each operation of a repair leaves the damaged store or the
// repaired one.
func TestCrashInRepair(t *testing.T) {
	disk, _ := cleanStore(t, 230, 2, 25)
	for _, name := range disk.Files() {
		if strings.HasSuffix(name, "/STORE") {
			disk.Flip(name, 200)
		}
	}
	_, refused := recovery.Open(t0, options(disk.Kill(), "/store"))
	if refused == nil {
		t.Fatal("a damaged STORE is not refused")
	}
	repair := func(d *exchangingDisk) error {
		_, err := recovery.Repair(t0, recovery.RepairOptions{FS: d, Dir: "/store", Wall: func() time.Time { return time.Unix(0, 0) }})
		return err
	}
	calm := &exchangingDisk{disk.Kill()}
	must(t, repair(calm))
	want := dump(stateOf(t, calm, "/store"))
	for at := 1; at <= calm.Ops(); at += stride(3, 17) {
		d := &exchangingDisk{disk.Kill()}
		d.Inject(waltest.CrashAt(at, false, 3))
		if err := repair(d); err == nil && !d.Crashed() {
			continue
		}
		for _, left := range []*waltest.Disk{d.Kill(), d.Crash(func(int) waltest.Keep { return waltest.Keep{} })} {
			store, err := recovery.Open(t0, options(left, "/store"))
			if err != nil {
				if !recovery.IsDamage(err) {
					t.Fatalf("crash at operation %d: got %v", at, err)
				}
				again := &exchangingDisk{left}
				if err := repair(again); err != nil && !errors.Is(err, recovery.ErrExists) {
					t.Fatalf("crash at operation %d: a second repair: %v", at, err)
				}
				continue
			}
			if got := dump(store.State); got != want {
				t.Fatalf("crash at operation %d: got\n%s\nwant\n%s", at, got, want)
			}
			must(t, store.Close())
		}
	}
}

// heapAtOpen notes how much memory is in use when every tenth file of the log is
// opened.
type heapAtOpen struct {
	vfs.FS
	most  uint64
	opens int
}

func (h *heapAtOpen) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if h.opens++; h.opens%10 == 0 && strings.Contains(name, "/log/") {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		h.most = max(h.most, m.HeapAlloc)
	}
	return h.FS.OpenFile(name, flag, perm)
}

// What stands behind the damage is not held in memory, but for the payloads of the
// jobs that are lost.
func TestRepairOfMuchLog(t *testing.T) {
	disk := waltest.NewDisk()
	w, err := openWorld(disk, "/store", 742, newPast())
	must(t, err)
	q, facts := w.queue("default/default/mail")
	must(t, w.commit(facts...))
	body := bytes.Repeat([]byte{'b'}, 7000)
	logged := uint64(0)
	for range 400 {
		slot, _ := w.st.NextSlot()
		must(t, w.commit(fact{state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: q, Born: w.wall}, body}))
		must(t, w.commit(fact{r: state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete}}))
		logged += uint64(len(body))
	}
	must(t, w.close())
	flip("0000000004/00000000000000000001", 8*4000)(t, disk)
	heap := &heapAtOpen{FS: disk}
	must(t, second(recovery.Check(t0, recovery.CheckOptions{FS: heap, Dir: "/store"})))
	before := heap.most
	done, err := recovery.Repair(t0, recovery.RepairOptions{FS: heap, Dir: "/store", DryRun: true})
	must(t, err)
	if len(done.Damage) != 1 || done.Damage[0].Last < 700 {
		t.Fatalf("got %+v, want much log behind one damage", done)
	}
	if more := heap.most - min(before, heap.most); more > logged/4 {
		t.Errorf("%d bytes more than a check holds, of %d in the log", more, logged)
	}
}

// watchedExchange keeps what a kill just before and just after the exchange leaves.
type watchedExchange struct {
	*exchangingDisk
	before, after *waltest.Disk
}

func (d *watchedExchange) Exchange(a, b string) error {
	d.before = d.Kill()
	err := d.exchangingDisk.Exchange(a, b)
	d.after = d.Kill()
	return err
}

// A kill around the exchange leaves the other store under a name that is true of
// it: none that says damaged of the repaired one, none that a later repair removes.
func TestKillAroundExchange(t *testing.T) {
	disk, _ := cleanStore(t, 741, 2, 40)
	firstBody(t, disk)
	d := &watchedExchange{exchangingDisk: &exchangingDisk{disk}}
	opt := recovery.RepairOptions{FS: d, Dir: "/store", Wall: func() time.Time { return time.Unix(0, 0) }}
	done, err := recovery.Repair(t0, opt)
	must(t, err)
	starts := func(fsys vfs.FS, dir string) bool {
		t.Helper()
		store, err := recovery.Open(t0, options(fsys, dir))
		if err == nil {
			return store.Close() == nil
		}
		if !recovery.IsDamage(err) {
			t.Errorf("%s: %v", dir, err)
		}
		return false
	}
	const between = "/store.exchange-19700101T000000Z"
	if starts(d.before.Kill(), "/store") || !starts(d.before.Kill(), between) || isThere(d.before, done.Kept) {
		t.Errorf("before: want the damaged store, the repaired one as %s, and no %s", between, done.Kept)
	}
	if !starts(d.after.Kill(), "/store") || starts(d.after.Kill(), between) || isThere(d.after, done.Kept) {
		t.Errorf("after: want the repaired store, the damaged one as %s, and no %s", between, done.Kept)
	}
	if isThere(d, between) || starts(d.Kill(), done.Kept) {
		t.Errorf("at the end: want the damaged store as %s, and no %s", done.Kept, between)
	}

	// A start tells of what is left, and the next repair gives it a name that is true;
	// but not a dry one, nor while somebody works there.
	opt.Wall = func() time.Time { return time.Unix(1, 0) }
	for _, tt := range []struct {
		disk             *waltest.Disk
		repaired, needed bool
		name, told       string
	}{
		{d.before, true, true, "/store.repaired-19700101T000000Z", ""}, // no start
		{d.after, false, false, "/store.damaged-19700101T000000Z", "it is the store as it was before"},
	} {
		var told bytes.Buffer
		o := options(tt.disk.Kill(), "/store")
		o.Log = slog.New(slog.NewTextHandler(&told, nil))
		if store, err := recovery.Open(t0, o); err == nil {
			must(t, store.Close())
		}
		if found := strings.Contains(told.String(), "a repair was interrupted"); found != (tt.told != "") || !strings.Contains(told.String(), tt.told) {
			t.Errorf("the start said\n%s\nwant %q", &told, tt.told)
		}
		for _, step := range []struct {
			what       string
			dry, works bool
			kept       string
		}{
			{"a dry run", true, false, ""}, {"somebody works there", false, true, between}, {"nobody does", false, false, tt.name},
			{"its name is taken", false, false, between},
		} {
			fsys := &exchangingDisk{tt.disk.Kill()}
			if step.what == "its name is taken" {
				must(t, fsys.Mkdir(tt.name, 0o700))
			}
			if step.works {
				must(t, second(fsys.Lock(between)))
			}
			opt.FS, opt.DryRun = fsys, step.dry
			done, err := recovery.Repair(t0, opt)
			must(t, err)
			var want []recovery.Interrupted
			left := between
			if step.kept != "" {
				want = []recovery.Interrupted{{Path: between, Repaired: tt.repaired, Kept: step.kept}}
				left = step.kept
			}
			if !slices.Equal(done.Interrupted, want) || done.Needed != tt.needed {
				t.Errorf("%s: got %+v, needed %t, want %+v, %t", step.what, done.Interrupted, done.Needed, want, tt.needed)
			}
			if left != between && isThere(fsys, between) || starts(fsys.Kill(), left) != tt.repaired {
				t.Errorf("%s: want what was left as %s, to start: %t", step.what, left, tt.repaired)
			}
		}
	}
}

// The stores have changed places, and the disk does not confirm it: the error says
// so, what was lost is told, and there is nothing to repair any more.
func TestRepairUnconfirmed(t *testing.T) {
	disk, _ := cleanStore(t, 740, 2, 40)
	firstBody(t, disk)
	d := &exchangingDisk{disk}
	opt := recovery.RepairOptions{FS: d, Dir: "/store", Wall: func() time.Time { return time.Unix(0, 0) }}
	exchanged := false
	opt.FS = &afterExchange{d, func() {
		exchanged = true
		d.Inject(func(op waltest.Op) waltest.Fault {
			if op.Kind == "syncdir" {
				return waltest.Fault{Err: errIO}
			}
			return waltest.Fault{}
		})
	}}
	done, err := recovery.Repair(t0, opt)
	if !exchanged || !errors.Is(err, recovery.ErrUnconfirmed) || recovery.ExitCode(err) != recovery.ExitIO {
		t.Fatalf("got %v, want that it is not confirmed", err)
	}
	if done == nil || len(done.Lost) != 1 || !strings.Contains(err.Error(), done.Kept) {
		t.Fatalf("got %+v, want the lost job, and the kept directory in %v", done, err)
	}
	d.Inject(nil)
	again, err := recovery.Repair(t0, recovery.RepairOptions{FS: d, Dir: "/store"})
	if err != nil || again.Needed || len(again.Interrupted) != 1 {
		t.Fatalf("the second repair: %+v, %v, want what the first one kept, under another name", again, err)
	}
	w, err := recovery.Open(t0, options(d, "/store"))
	must(t, err)
	must(t, w.Close())
	if kept := again.Interrupted[0].Kept; kept == done.Kept {
		t.Errorf("it is still called %s", kept)
	} else if _, err := recovery.Open(t0, options(d, kept)); !recovery.IsDamage(err) {
		t.Errorf("%s is not the damaged store: %v", kept, err)
	}
}

// afterExchange calls then when two directories have changed places.
type afterExchange struct {
	*exchangingDisk
	then func()
}

func (d *afterExchange) Exchange(a, b string) error {
	defer d.then()
	return d.exchangingDisk.Exchange(a, b)
}

// exchangingDisk can swap two directories in one step, as Linux does.
type exchangingDisk struct{ *waltest.Disk }

func (d *exchangingDisk) Exchange(a, b string) error {
	if d.Crashed() {
		return waltest.ErrCrashed
	}
	// Three renames: the disk has no exchange of its own. They are synced at once,
	// so a crash sees them as the one step that they stand for.
	whole := d.Disk
	between := whole.Kill()
	for _, step := range [][2]string{{a, "/between"}, {b, a}, {"/between", b}} {
		if err := between.Rename(step[0], step[1]); err != nil {
			return err
		}
	}
	if err := between.SyncDir("/"); err != nil {
		return err
	}
	d.Disk = between
	return nil
}
