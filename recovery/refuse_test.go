package recovery_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// refusedWith starts on a damaged store and holds the refusal to exit 65, a file
// and a text.
func refusedWith(t *testing.T, what string, disk *waltest.Disk, file, want string) {
	t.Helper()
	_, err := recovery.Open(t0, options(disk, "/store"))
	if err == nil || recovery.ExitCode(err) != recovery.ExitDamaged || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got exit %d, %v; want exit 65 with %q and %q", what, recovery.ExitCode(err), err, file, want)
	}
	h, err := recovery.Check(t0, recovery.CheckOptions{FS: disk, Dir: "/store"})
	if err != nil || len(h.Problems) == 0 {
		t.Errorf("%s: check says %v, %v", what, h, err)
	}
}

// words is a state as another program would write it.
type words string

func (w words) WriteTo(to io.Writer) (int64, error) {
	n, err := io.WriteString(to, string(w))
	return int64(n), err
}

func written(t *testing.T, disk *waltest.Disk, v io.WriterTo, m snapshot.Meta) {
	t.Helper()
	_, err := snapshot.Write(t0, disk, "/store/snapshots", v, m, snapshot.Beside{Durable: func(context.Context) error { return nil }})
	must(t, err)
}

// A snapshot may be sound byte by byte and still not be one of this store.
func TestSoundSnapshotsThatDoNotFit(t *testing.T) {
	disk, p := cleanStore(t, 900, 1, 20)
	store, err := recovery.Open(t0, options(disk, "/store"))
	must(t, err)
	must(t, store.Close())
	meta := snapshot.Meta{Store: store.Identity.ID, History: 1, LSN: p.acked}
	view := store.State.View()
	defer store.State.Release(view)
	for _, tt := range []struct {
		name   string
		change func(m *snapshot.Meta) io.WriterTo
		want   string
	}{
		{"of another store", func(m *snapshot.Meta) io.WriterTo { m.Store = snapshot.StoreID{9}; return view }, "is not of this store"},
		{"of another history", func(m *snapshot.Meta) io.WriterTo { m.History = 2; return view }, "history 2"},
		{"with another number of jobs", func(m *snapshot.Meta) io.WriterTo { m.Jobs = 1 << 40; return view }, "its header counts"},
		{"that is no state", func(*snapshot.Meta) io.WriterTo { return words("to be or not to be, that is the question") }, "use the program that wrote it"},
	} {
		bad := disk.Kill()
		m := meta
		v := tt.change(&m)
		written(t, bad, v, m)
		refusedWith(t, tt.name, bad, snapshot.Name(p.acked), tt.want)
	}
}

// A snapshot that was read at first and is foreign when it is read again: who
// changes a directory under a start does not get past the second look.
func TestSnapshotThatChanges(t *testing.T) {
	disk, p := cleanStore(t, 905, 1, 20)
	store, err := recovery.Open(t0, options(disk, "/store"))
	must(t, err)
	must(t, store.Close())
	view := store.State.View()
	defer store.State.Release(view)
	foreign := disk.Kill()
	written(t, foreign, view, snapshot.Meta{Store: snapshot.StoreID{9}, History: 1, LSN: p.acked})
	ours := snapshot.Meta{Store: store.Identity.ID, History: 1, LSN: p.acked}
	for _, n := range store.State.Counts().Jobs {
		ours.Jobs += n
	}
	written(t, disk, view, ours)
	name := "/store/snapshots/" + snapshot.Name(p.acked)
	b := foreign.Contents(name)
	changing := &changingDisk{Disk: disk, name: name, then: b}
	_, err = recovery.Open(t0, recovery.Options{FS: changing, Dir: "/store"})
	if _, ok := errors.AsType[*recovery.ForeignError](err); !ok {
		t.Errorf("got %v", err)
	}
}

// raw commits one record as it stands, without a state that would refuse it.
func raw(t *testing.T, disk *waltest.Disk, head, body []byte) {
	t.Helper()
	store, err := recovery.Open(t0, options(disk, "/store"))
	must(t, err)
	l, err := wal.Begin(wal.Options{FS: disk, Dir: store.LogDir(), GenerationBytes: wal.MinGenerationBytes, Ahead: 1, Foreground: true}, store.End)
	must(t, err)
	g, err := l.Open(wal.RecordBytes(len(head), len(body)))
	must(t, err)
	g.Add(head, body)
	l.Seal(g, int64(store.State.Now()), store.End.WallTime)
	must(t, errors.Join(l.Commit(g), l.Close(), store.Close()))
}

// A group may be sound byte by byte and hold records that no state takes.
func TestSoundGroupsThatDoNotFit(t *testing.T) {
	ack := (&state.Record{Kind: state.KindAck, Slot: 9999}).AppendHead(nil)
	drain := (&state.Record{Kind: state.KindDrain, On: true}).AppendHead(nil)
	for _, tt := range []struct {
		name       string
		head, body []byte
	}{
		{"no record", []byte{0xff, 0xff}, nil},
		{"more behind the record", append(bytes.Clone(drain), 1), nil},
		{"a body that it cannot have", drain, []byte("body")},
		{"a job that is not there", ack, nil},
	} {
		disk, _ := cleanStore(t, 910, 1, 20)
		raw(t, disk, tt.head, tt.body)
		refusedWith(t, tt.name, disk, "/store/log/", "records that fit the state")
		if err := recovery.Dump(t0, io.Discard, recovery.DumpOptions{FS: disk, Dir: "/store"}); !recovery.IsDamage(err) {
			t.Errorf("%s: dump says %v", tt.name, err)
		}
		done, err := recovery.Repair(t0, recovery.RepairOptions{FS: disk, Dir: "/store", To: "/fixed"})
		must(t, err)
		if !done.Needed || len(done.Damage) == 0 || done.Damage[0].First == 0 {
			t.Errorf("%s: repair says %+v", tt.name, done)
		}
		stateOf(t, disk, "/fixed")
	}
}

// A record that does not fit stands before more log than replay reads ahead: the
// start ends there and nobody goes on reading.
func TestMisfitBeforeMuchLog(t *testing.T) {
	disk, _ := cleanStore(t, 915, 1, 5)
	raw(t, disk, []byte{0xff, 0xff}, nil)
	history, err := wal.Find(disk, "/store/log", wal.FindOptions{})
	must(t, err)
	r, err := history.Reader(wal.ReaderOptions{})
	must(t, err)
	for r.Next() {
	}
	must(t, r.Err())
	l, err := wal.Begin(wal.Options{FS: disk, Dir: "/store/log", GenerationBytes: wal.MinGenerationBytes, Ahead: 1, Foreground: true}, r.End())
	must(t, err)
	for range 20 {
		head := make([]byte, 100<<10)
		g, err := l.Open(wal.RecordBytes(len(head), 0))
		must(t, err)
		g.Add(head, nil)
		l.Seal(g, 0, 0)
		must(t, l.Commit(g))
	}
	must(t, l.Close())
	refusedWith(t, "a misfit before much log", disk, "/store/log/", "records that fit the state")
}

// Parts of a store are gone, and what is left says that there was more.
func TestMissingParts(t *testing.T) {
	disk := churned(t, 920)
	remove := func(d *waltest.Disk, part string) (removed int) {
		for _, name := range d.Files() {
			if strings.HasPrefix(name, "/store/"+part) {
				must(t, d.Remove(name))
				removed++
			}
		}
		return removed
	}
	rename := func(d *waltest.Disk, from, to string) {
		t.Helper()
		must(t, d.Rename(from, to))
	}
	bad := disk.Kill()
	rename(bad, "/store/log", "/elsewhere")
	refusedWith(t, "no log", bad, "/store/log", "the directory of the log")

	bad = disk.Kill()
	must(t, bad.Remove("/store/STORE"))
	refusedWith(t, "no STORE", bad, "/store/STORE", "no file, beside data")

	// Without its snapshots too, the groups in the log say that there was a store.
	young := waltest.NewDisk()
	w, err := openWorld(young, "/store", 921, newPast())
	must(t, err)
	for range 2 {
		_, err = w.enqueue("default/default/mail", 100)
		must(t, err)
	}
	must(t, w.close())
	must(t, young.Remove("/store/STORE"))
	refusedWith(t, "no STORE, groups", young.Kill(), "/store/STORE", "no file, beside data")
	bad = young.Kill()
	for _, name := range bad.Files() {
		bad.Flip(name, 8*300) // the first group, where there are groups
	}
	refusedWith(t, "no STORE, its first group damaged", bad, "/store/STORE", "no file, beside data")
	for _, name := range young.Files() {
		young.SetContents(name, bytes.Repeat([]byte("rubbish"), 50))
	}
	refusedWith(t, "no STORE, a damaged log", young, "/store/STORE", "no file, beside data")

	// The log before the oldest snapshot has gone: without snapshots there is no
	// way to the present.
	bad = disk.Kill()
	if remove(bad, "snapshots") == 0 {
		t.Fatal("the store has no snapshots")
	}
	files, err := snapshot.List(disk.Kill(), "/store/snapshots")
	must(t, err)
	refusedWith(t, "no snapshots", bad, "/store/log/", "generation is missing")

	// With all snapshots damaged it is they that are at fault.
	bad = disk.Kill()
	for _, file := range files {
		bad.Flip(file.Path, 8*400)
	}
	refusedWith(t, "all snapshots damaged", bad, files[0].Path, "without it: ")
}

// churned is a store whose jobs came and went, so that the log behind which two
// snapshots stand has gone.
func churned(t *testing.T, seed uint64) *waltest.Disk {
	t.Helper()
	disk := waltest.NewDisk()
	w, err := openWorld(disk, "/store", seed, newPast())
	must(t, err)
	for range 3 {
		for range 60 {
			_, err := w.enqueue("default/default/q", 500)
			must(t, err)
			for {
				slot, err := w.lease("default/default/q")
				must(t, err)
				if slot == 0 {
					break
				}
				must(t, w.commit(fact{r: state.Record{Kind: state.KindAck, Slot: slot}}))
			}
			if id, ok := w.delayed(); ok {
				must(t, w.commit(fact{r: state.Record{Kind: state.KindDelete, Slot: id, Cause: state.CauseDelete}}))
			}
		}
		must(t, w.snapshot())
	}
	before := len(w.log.Generations())
	must(t, w.clean())
	if len(w.log.Generations()) == before {
		t.Fatal("no generation has gone")
	}
	must(t, w.close())
	return disk
}

// delayed is a job that waits for its time.
func (w *world) delayed() (slot state.Slot, ok bool) {
	q, _ := w.st.QueueByKey([]byte("default/default/q"))
	page := w.st.Page(nil, q, state.Delayed, 0, 1)
	if len(page) == 0 {
		return 0, false
	}
	return page[0], true
}

// changingDisk has other bytes in a file from the second time on that it is
// opened.
type changingDisk struct {
	*waltest.Disk
	name   string
	then   []byte
	opened int
}

func (d *changingDisk) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if name == d.name {
		if d.opened++; d.opened == 2 {
			d.SetContents(name, d.then)
		}
	}
	return d.Disk.OpenFile(name, flag, perm)
}

// The randomness that a new store needs can fail.
func TestNoRandomness(t *testing.T) {
	opt := options(waltest.NewDisk(), "/store")
	opt.Random = strings.NewReader("short")
	_, err := recovery.Open(t0, opt)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// A large start says how far it is, at most once an interval.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int64
		progress := recovery.Every(time.Second, func(p recovery.Progress) { told = append(told, p.Done) })
		for n := range int64(30) {
			progress(recovery.Progress{Done: n})
			time.Sleep(300 * time.Millisecond)
		}
		if len(told) != 7 || told[0] != 4 || told[1] != 8 {
			t.Errorf("told %v", told)
		}
	})
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 930, p)
	must(t, err)
	for n := range 12 { // more than the batches that replay reads ahead
		must(t, w.commit(fact{r: state.Record{Kind: state.KindMeta, Text: []byte{'k', byte(n)}, Data: make([]byte, 100<<10)}}))
	}
	must(t, w.close())
	opt := recovery.CheckOptions{FS: disk, Dir: "/store"}
	phases := map[string]int{}
	opt.Progress = func(p recovery.Progress) {
		phases[p.Phase]++
		if p.Phase == "log" && (p.Done <= 0 || p.Total < p.Done || p.LSN == 0 || p.Records == 0) {
			t.Errorf("got %+v", p)
		}
	}
	h, err := recovery.Check(t0, opt)
	must(t, err)
	if phases["log"] == 0 || uint64(h.End.LSN) != p.acked {
		t.Errorf("told %v, end %d", phases, h.End.LSN)
	}
	// Whoever gives up in the midst of it is told so.
	ctx, cancel := context.WithCancel(t.Context())
	opt.Progress = func(recovery.Progress) { cancel() }
	if _, err := recovery.Check(ctx, opt); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A snapshot that is passed over is moved aside; a start that cannot do that
// does not pretend.
func TestDamagedSnapshotThatStays(t *testing.T) {
	disk, _ := cleanStore(t, 940, 2, 60)
	files, err := snapshot.List(disk.Kill(), "/store/snapshots")
	must(t, err)
	disk.Flip(files[0].Path, 8*500)
	for _, kind := range []string{"rename", "syncdir"} {
		bad := disk.Kill()
		renamed := false
		bad.Inject(func(op waltest.Op) waltest.Fault {
			renamed = renamed || op.Kind == "rename"
			if op.Kind == kind && renamed {
				return waltest.Fault{Err: errIO}
			}
			return waltest.Fault{}
		})
		opt, told := options(bad, "/store"), &bytes.Buffer{}
		opt.Log = slog.New(slog.NewTextHandler(told, nil))
		if _, err := recovery.Open(t0, opt); recovery.ExitCode(err) != recovery.ExitIO || !renamed {
			t.Errorf("%s fails: got %v", kind, err)
		}
		// The next start may not find the file any more.
		if !strings.Contains(told.String(), "a snapshot is damaged") || !strings.Contains(told.String(), files[0].Path) {
			t.Errorf("%s fails: told %q", kind, told)
		}
	}
}
