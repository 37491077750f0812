package recovery_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pawl/internal/record"
	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/snapshot"
	"pawl/wal"
	"pawl/wal/waltest"
)

// Every kept group is restored, by number and by time, and is the state there
// was after it. The new store works on; the old one is as it was.
func TestRestoreEveryMoment(t *testing.T) {
	layer := record.Note(t, "9 repair and upgrade")
	disk, p := cleanStore(t, 300, 3, 30)
	before := image(disk)
	oldest := oldestSnapshot(t, disk)
	restored := 0
	for lsn := uint64(1); lsn <= p.acked; lsn += uint64(stride(3, 7)) {
		for _, byTime := range []bool{false, true} {
			d := disk.Kill()
			opt := recovery.RestoreOptions{FS: d, Dir: "/store", To: "/restored", LSN: wal.LSN(lsn)}
			want := lsn
			if byTime {
				opt.LSN, opt.At = 0, time.UnixMilli(p.walls[lsn])
				for p.walls[want+1] == p.walls[lsn] && want < p.acked {
					want++ // groups of the same millisecond come along
				}
			}
			done, err := recovery.Restore(t0, opt)
			if errors.Is(err, recovery.ErrOutOfReach) && want < oldest {
				if recovery.ExitCode(err) != recovery.ExitCantCreate {
					t.Errorf("group %d: got exit %d", lsn, recovery.ExitCode(err))
				}
				continue
			}
			must(t, err)
			restored++
			layer.Cases++
			if uint64(done.LSN) != want || done.Identity.History != 2 {
				t.Fatalf("group %d: got %+v", lsn, done)
			}
			for name, b := range before {
				if string(d.Contents(name)) != b {
					t.Fatalf("group %d: restore changed %s", lsn, name)
				}
			}
			if got := dump(stateOf(t, d, "/restored")); got != p.dumps[want] {
				t.Fatalf("group %d: got\n%s\nwant\n%s", lsn, got, p.dumps[want])
			}
			// It goes on from there, and is found again.
			branch := newPast()
			for n := uint64(1); n <= want; n++ {
				branch.dumps[n] = p.dumps[n]
			}
			branch.acked = want
			w, err := openWorld(d, "/restored", 1000+lsn, branch)
			must(t, err)
			must(t, w.work(10))
			must(t, w.close())
			w, err = openWorld(d, "/restored", 2000+lsn, branch)
			must(t, err)
			must(t, w.close())
		}
	}
	if restored < 5 {
		t.Errorf("only %d moments could be restored", restored)
	}
}

func oldestSnapshot(t *testing.T, disk *waltest.Disk) uint64 {
	t.Helper()
	files, err := snapshot.List(disk.Kill(), "/store/snapshots")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no snapshots")
	}
	return files[len(files)-1].LSN
}

func TestRestoreRefusals(t *testing.T) {
	disk, p := cleanStore(t, 310, 2, 40)
	must(t, disk.Mkdir("/there", 0o700))
	for name, tt := range map[string]struct {
		opt  recovery.RestoreOptions
		want error
	}{
		"over something": {recovery.RestoreOptions{To: "/there", LSN: wal.LSN(p.acked)}, recovery.ErrExists},
		"no store":       {recovery.RestoreOptions{Dir: "/there", To: "/new", LSN: 1}, recovery.ErrNoStore},
		"before all":     {recovery.RestoreOptions{To: "/new", At: time.UnixMilli(1)}, recovery.ErrOutOfReach},
	} {
		tt.opt.FS = disk
		if tt.opt.Dir == "" {
			tt.opt.Dir = "/store"
		}
		if _, err := recovery.Restore(t0, tt.opt); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
	if _, err := disk.Stat("/new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused restore left something: %v", err)
	}
}

// A snapshot of before a restore must not be believed after it.
func TestSnapshotOfOldHistoryIsForeign(t *testing.T) {
	disk, p := cleanStore(t, 320, 2, 40)
	_, err := recovery.Restore(t0, recovery.RestoreOptions{FS: disk, Dir: "/store", To: "/restored", LSN: wal.LSN(p.acked)})
	must(t, err)
	for _, name := range disk.Files() {
		if strings.HasPrefix(name, "/store/snapshots/") {
			must(t, disk.Link(name, strings.Replace(name, "/store/", "/restored/", 1)+"x"))
			_ = disk.Remove(strings.Replace(name, "/store/", "/restored/", 1))
			must(t, disk.Rename(strings.Replace(name, "/store/", "/restored/", 1)+"x", strings.Replace(name, "/store/", "/restored/", 1)))
		}
	}
	_, err = recovery.Open(t0, options(disk, "/restored"))
	if _, ok := errors.AsType[*recovery.ForeignError](err); !ok || recovery.ExitCode(err) != recovery.ExitDamaged {
		t.Errorf("got %v", err)
	}
}

func TestBackup(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	p := newPast()
	w, err := openWorld(vfs.OS{}, dir, 330, p)
	must(t, err)
	must(t, w.work(60))
	first := filepath.Join(parent, "first")
	if _, err := recovery.Backup(t.Context(), recovery.BackupOptions{Dir: dir, To: first}); recovery.ExitCode(err) != recovery.ExitLocked {
		t.Errorf("got %v for a backup of a running store", err)
	}
	must(t, w.close())
	health, err := recovery.Backup(t.Context(), recovery.BackupOptions{Dir: dir, To: first})
	must(t, err)
	if uint64(health.End.LSN) != p.acked {
		t.Errorf("backup has %d groups, want %d", health.End.LSN, p.acked)
	}
	w, err = openWorld(vfs.OS{}, dir, 331, p)
	must(t, err)
	must(t, w.work(20))
	must(t, w.close())
	second := filepath.Join(parent, "second")
	_, err = recovery.Backup(t.Context(), recovery.BackupOptions{Dir: dir, To: second, Base: first})
	must(t, err)
	if n := linked(t, first, second); n == 0 {
		t.Error("an incremental backup shares no file with its base")
	}
	w, err = openWorld(vfs.OS{}, second, 332, p)
	must(t, err)
	must(t, w.close())
	if _, err := recovery.Backup(t.Context(), recovery.BackupOptions{Dir: dir, To: second}); !errors.Is(err, recovery.ErrExists) {
		t.Errorf("got %v for a backup over another", err)
	}
}

// What is done to a backup does nothing to the backup that it was made upon: a
// daemon trims the last generation of the store that it is started on.
func TestBackupStandsBesideItsBase(t *testing.T) {
	parent := t.TempDir()
	dir, first, second := filepath.Join(parent, "store"), filepath.Join(parent, "first"), filepath.Join(parent, "second")
	p := newPast()
	w, err := openWorld(vfs.OS{}, dir, 340, p)
	must(t, err)
	must(t, w.work(60))
	must(t, w.close())
	_, err = recovery.Backup(t.Context(), recovery.BackupOptions{Dir: dir, To: first})
	must(t, err)
	_, err = recovery.Backup(t.Context(), recovery.BackupOptions{Dir: dir, To: second, Base: first})
	must(t, err)
	if n := linked(t, first, second); n == 0 {
		t.Error("an incremental backup shares no file with its base")
	}
	before := contents(t, first)
	w, err = openWorld(vfs.OS{}, second, 341, p)
	must(t, err)
	must(t, w.work(40))
	must(t, w.close())
	if after := contents(t, first); !reflect.DeepEqual(after, before) {
		t.Error("work on a backup changed the files of its base")
	}
	health, err := recovery.Check(t.Context(), recovery.CheckOptions{Dir: first})
	must(t, err)
	if len(health.Problems) > 0 {
		t.Errorf("the base is damaged: %v", health.Problems)
	}
}

// linked counts the files that two directories share.
func linked(t *testing.T, a, b string) (n int) {
	t.Helper()
	for path := range contents(t, a) {
		one, err := os.Stat(path)
		must(t, err)
		if two, err := os.Stat(strings.Replace(path, a, b, 1)); err == nil && os.SameFile(one, two) {
			n++
		}
	}
	return n
}
