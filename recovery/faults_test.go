package recovery_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// A tool is one run of a tool on a disk. It returns what it made of the store,
// as text, for comparison.
type tool struct {
	name    string
	damage  func(t *testing.T, d *waltest.Disk) // before it; nil is a sound store
	makes   string                              // the directory that is there after it, and not after an error; empty is none
	inPlace bool                                // it is the store itself that it changes
	run     func(d vfs.FS) (string, error)
}

// whole is what a tool says, and the state of what it made as a start sees it.
func (tt *tool) whole(d *exchangingDisk) (string, error) {
	text, err := tt.run(d)
	if err != nil || !tt.changes() {
		return text, err
	}
	store, err := recovery.Open(t0, options(d.Kill(), "/store"+tt.makes))
	if err != nil {
		return "", fmt.Errorf("the result does not start: %w", err)
	}
	return text + "\n" + dump(store.State), store.Close()
}

// changes says that there is a result to look at.
func (tt *tool) changes() bool { return tt.makes != "" || tt.inPlace }

func flip(suffix string, bit int64) func(*testing.T, *waltest.Disk) {
	return func(t *testing.T, d *waltest.Disk) {
		t.Helper()
		for _, name := range d.Files() {
			if strings.HasPrefix(name, "/store/") && strings.HasSuffix(name, suffix) {
				d.Flip(name, bit)
				return
			}
		}
		t.Fatalf("no file ends with %s: %v", suffix, d.Files())
	}
}

// together does several damages.
func together(damages ...func(*testing.T, *waltest.Disk)) func(*testing.T, *waltest.Disk) {
	return func(t *testing.T, d *waltest.Disk) {
		for _, damage := range damages {
			damage(t, d)
		}
	}
}

// firstBody flips a bit in the payload that lies first in the oldest generation.
func firstBody(t *testing.T, d *waltest.Disk) {
	t.Helper()
	var bodies []state.Body
	stateOf(t, d.Kill(), "/store").Bodies(func(_ state.Slot, body state.Body) bool {
		bodies = append(bodies, body)
		return true
	})
	if len(bodies) == 0 {
		t.Fatal("no job has a payload")
	}
	first := slices.MinFunc(bodies, func(a, b state.Body) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Offset, b.Offset))
	})
	d.Flip(wal.SegmentPath("/store/log", first.Generation), int64(first.Offset)*8)
}

func health(h *recovery.Health, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return fmt.Sprint(h.End.LSN, h.Problems, h.Notes, h.Generations, h.Snapshots, h.Bytes), nil
}

func tools(lsn uint64, wall int64) []tool {
	check := func(live bool) func(d vfs.FS) (string, error) {
		return func(d vfs.FS) (string, error) {
			return health(recovery.Check(t0, recovery.CheckOptions{FS: d, Dir: "/store", Live: live, Progress: func(recovery.Progress) {}}))
		}
	}
	repair := func(to string) func(d vfs.FS) (string, error) {
		return func(d vfs.FS) (string, error) {
			done, err := recovery.Repair(t0, recovery.RepairOptions{FS: d, Dir: "/store", To: to, Wall: func() time.Time { return time.Unix(0, 0) }})
			if err != nil {
				return "", err
			}
			if !done.Needed {
				return "", errors.New("repair says that nothing is damaged")
			}
			return fmt.Sprint(done.LSN, done.Jobs, len(done.Lost), len(done.Finished), len(done.Damage)), nil
		}
	}
	restore := func(opt recovery.RestoreOptions) func(d vfs.FS) (string, error) {
		return func(d vfs.FS) (string, error) {
			opt.FS, opt.Dir, opt.To = d, "/store", "/store.new"
			opt.Progress = func(recovery.Progress) {}
			done, err := recovery.Restore(t0, opt)
			if err != nil {
				return "", err
			}
			return fmt.Sprint(done.LSN, done.Jobs), nil
		}
	}
	backup := func(base string) func(d vfs.FS) (string, error) {
		return func(d vfs.FS) (string, error) {
			h, err := recovery.Backup(t0, recovery.BackupOptions{FS: d, Dir: "/store", To: "/store.new", Base: base})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(h.End.LSN), nil
		}
	}
	dumping := func(opt recovery.DumpOptions) func(d vfs.FS) (string, error) {
		return func(d vfs.FS) (string, error) {
			var b bytes.Buffer
			opt.FS, opt.Dir = d, "/store"
			err := recovery.Dump(t0, &b, opt)
			return b.String(), err
		}
	}
	log, snapshot := "/00000000000000000001", ".snapshot"
	return []tool{
		{name: "check", run: check(false)},
		{name: "check of damage", damage: together(flip(snapshot, 8*400), firstBody), run: check(false)},
		{name: "check of a damaged log", damage: flip(log, 8*150), run: check(false)},
		{name: "check live", run: check(true)},
		{name: "dump", run: dumping(recovery.DumpOptions{})},
		{name: "dump of damage", damage: flip(snapshot, 8*400), run: dumping(recovery.DumpOptions{JSON: true})},
		{name: "backup", makes: ".new", run: backup("")},
		{name: "backup with a base", makes: ".new", run: backup("/base")},
		{name: "restore a group", makes: ".new", run: restore(recovery.RestoreOptions{LSN: wal.LSN(lsn)})},
		{name: "restore a moment", makes: ".new", run: restore(recovery.RestoreOptions{At: time.UnixMilli(wall), Live: true})},
		{name: "repair of a payload", damage: firstBody, makes: ".new", run: repair("/store.new")},
		{name: "repair of STORE", damage: flip("STORE", 200), makes: ".new", run: repair("/store.new")},
		{name: "repair of the log", damage: newestGroup, makes: ".new", run: repair("/store.new")},
		{name: "repair of first entries", damage: flip(log, 8*20), makes: ".new", run: repair("/store.new")},
		{name: "repair in place", damage: firstBody, inPlace: true, run: repair("")},
	}
}

// newestGroup flips a bit in the first group of the newest generation that has
// two groups or more.
func newestGroup(t *testing.T, d *waltest.Disk) {
	t.Helper()
	history, err := wal.Find(d.Kill(), "/store/log", wal.FindOptions{})
	must(t, err)
	for i := len(history.Linked) - 1; i >= 0; i-- {
		number := history.Linked[i].Generation
		r, err := history.Generation(number)
		must(t, err)
		for n := 0; r.Next(); n++ {
			if g := r.Group(); n == 1 {
				d.Flip(wal.SegmentPath("/store/log", number), (g.Offset+2)*8)
				return
			}
		}
	}
	t.Fatal("no generation has two groups")
}

// Every file operation of every tool fails once, and once more after it was
// done. The tool says so by its error and changes nothing: the store is as it
// was, nothing half made stands where the result should be, the lock is free,
// and the same call on the healed disk gives the whole result.
func TestEveryOperationOfTheToolsFails(t *testing.T) {
	disk, p := cleanStore(t, 800, 3, 30)
	_, err := recovery.Backup(t0, recovery.BackupOptions{FS: disk, Dir: "/store", To: "/base"})
	must(t, err)
	lsn := p.acked - 3
	for _, tt := range tools(lsn, p.walls[lsn]) {
		t.Run(tt.name, func(t *testing.T) {
			before := disk.Kill()
			if tt.damage != nil {
				tt.damage(t, before)
			}
			store := image(before)
			calm := &exchangingDisk{before.Kill()}
			want, err := tt.whole(calm)
			must(t, err)
			total := calm.Ops()
			tried, noticed := 0, 0
			step := 1 // so that a tool has about 150 cases, or 15
			if n := stride(150, 15); n > 1 {
				step += total / n
			}
			for at := 1; at <= total; at += step {
				for _, done := range []bool{false, true}[:1+at/step%2] {
					d := &exchangingDisk{before.Kill()}
					var failed waltest.Op
					d.Inject(func(op waltest.Op) waltest.Fault {
						if op.N != at {
							return waltest.Fault{}
						}
						failed = op
						return waltest.Fault{Err: errIO, Done: done}
					})
					tried++
					got, err := tt.whole(d)
					what := fmt.Sprintf("operation %d of %d failed (%s %s, done: %v)", at, total, failed.Kind, failed.Name, done)
					if err == nil {
						if got != want {
							t.Fatalf("%s: nobody noticed, and the result is\n%s\nwant\n%s", what, got, want)
						}
						continue
					}
					noticed++
					if !errors.Is(err, syscall.EIO) || recovery.ExitCode(err) != recovery.ExitIO {
						t.Fatalf("%s: got exit %d: %v", what, recovery.ExitCode(err), err)
					}
					d.Inject(nil)
					for name, b := range store {
						if string(d.Contents(name)) != b {
							if tt.inPlace && string(d.Contents(kept(name))) == b {
								continue // repaired in place, and only the last sync failed
							}
							t.Fatalf("%s: %s is not what it was", what, name)
						}
					}
					if failed.Kind == "rename" && done {
						continue // what stands there now is not to be removed by who did not make it
					}
					if _, err := d.Stat("/store" + tt.makes); tt.makes != "" && !errors.Is(err, fs.ErrNotExist) {
						t.Fatalf("%s: /store%s is there after the error", what, tt.makes)
					}
					lock, err := d.Lock("/store")
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					must(t, lock.Close())
					got, err = tt.whole(d)
					if tt.inPlace && err != nil {
						continue // it was done already, or what it would be kept as is there
					}
					if err != nil || got != want {
						t.Fatalf("%s: a second try gives %v\n%s\nwant\n%s", what, err, got, want)
					}
				}
			}
			if noticed < tried/2 {
				t.Errorf("%d operations failed, %d were noticed", tried, noticed)
			}
		})
	}
}

// kept is where a repair in place keeps a file of the store.
func kept(name string) string {
	return "/store.damaged-19700101T000000Z" + strings.TrimPrefix(name, "/store")
}

// A writer that fails ends a dump with its error.
func TestDumpToABrokenPipe(t *testing.T) {
	disk, _ := cleanStore(t, 810, 2, 20)
	for n := range 5 {
		if err := recovery.Dump(t0, &brokenPipe{n}, recovery.DumpOptions{FS: disk.Kill(), Dir: "/store", JSON: n%2 == 0}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after %d writes: got %v", n, err)
		}
	}
}

// brokenPipe takes so many writes.
type brokenPipe struct{ writes int }

func (p *brokenPipe) Write(b []byte) (int, error) {
	if p.writes--; p.writes < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}
