package recovery_test

import (
	"io/fs"
	"testing"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/wal"
	"pawl/wal/waltest"
)

// A process is killed at any operation of making a store, the next one finishes
// it and acknowledges jobs, and then the power goes: the jobs are there. What
// the first one did without a sync, the name of STORE for one, is only in the
// page cache when the second one finds it.
func TestKillWhileMakingThenPowerCut(t *testing.T) {
	made := waltest.NewDisk()
	w, err := openWorld(made, "/store", 1, newPast())
	must(t, err)
	total := made.Ops()
	must(t, w.close())
	for at := 1; at <= total; at++ {
		disk, past := waltest.NewDisk(), newPast()
		disk.Inject(waltest.CrashAt(at, true, 0))
		if _, err := openWorld(disk, "/store", 1, past); err == nil && !disk.Crashed() {
			t.Fatalf("operation %d of %d did not crash", at, total)
		}
		killed := disk.Kill()
		w, err := openWorld(killed, "/store", 2, past)
		if err != nil {
			t.Fatalf("start after a kill behind operation %d: %v", at, err)
		}
		for range 3 { // without a snapshot, which would sync more
			_, err := w.enqueue("default/default/q", 100)
			must(t, err)
		}
		cut := killed.Crash(func(int) waltest.Keep { return waltest.Keep{} })
		if _, err := openWorld(cut, "/store", 3, past); err != nil {
			t.Errorf("killed behind operation %d of making the store, worked on, power cut: %v", at, err)
		}
	}
}

// The power goes at any operation of making a store: the next start makes it, or
// goes on with it.
func TestPowerCutWhileMaking(t *testing.T) {
	made := waltest.NewDisk()
	w, err := openWorld(made, "/store", 1, newPast())
	must(t, err)
	total := made.Ops()
	must(t, w.close())
	states := 0
	for at := 1; at <= total; at++ {
		disk := waltest.NewDisk()
		disk.Inject(waltest.CrashAt(at, false, 10))
		if _, err := openWorld(disk, "/store", 1, newPast()); err == nil && !disk.Crashed() {
			t.Fatalf("operation %d of %d did not crash", at, total)
		}
		n := 0
		for name, left := range disk.States(uint64(at), 1) {
			if n++; n%stride(5, 11) != 0 {
				continue
			}
			states++
			w, err := openWorld(left, "/store", 2, newPast())
			if err != nil {
				t.Fatalf("start after a power cut before operation %d, state %s: %v", at, name, err)
			}
			must(t, w.close())
		}
	}
	if states == 0 {
		t.Error("no states were tried")
	}
}

// A restore is killed at any operation; where the new directory is there, a
// daemon works on it, and then the power goes: what it acknowledged is there.
func TestKillInRestoreThenPowerCut(t *testing.T) {
	disk, p := cleanStore(t, 350, 2, 20)
	restore := func(d *waltest.Disk) error {
		_, err := recovery.Restore(t0, recovery.RestoreOptions{FS: d, Dir: "/store", To: "/restored", LSN: wal.LSN(p.acked)})
		return err
	}
	calm := disk.Kill()
	must(t, restore(calm))
	there := 0
	for at := 1; at <= calm.Ops(); at++ {
		d := disk.Kill()
		d.Inject(waltest.CrashAt(at, true, 0))
		_ = restore(d) // what it says, nobody hears
		killed := d.Kill()
		if _, err := killed.Stat("/restored"); err != nil {
			continue
		}
		there++
		past := copyOfPast(p)
		w, err := openWorld(killed, "/restored", 1, past)
		must(t, err)
		_, err = w.enqueue("default/default/q", 10)
		must(t, err)
		if _, err := openWorld(killed.Crash(func(int) waltest.Keep { return waltest.Keep{} }), "/restored", 2, past); err != nil {
			t.Errorf("killed behind operation %d of the restore, worked on, power cut: %v", at, err)
		}
	}
	if there == 0 {
		t.Error("no kill left the new directory: the test tests nothing")
	}
}

// The zero options but for the directory are those of a daemon on a real disk.
func TestDefaults(t *testing.T) {
	store, err := recovery.Open(t.Context(), recovery.Options{Dir: t.TempDir()})
	must(t, err)
	if !store.Report.Created {
		t.Errorf("got %+v", store.Report)
	}
	must(t, store.Close())
}

// noParent is a file system in which nobody may read what is above a store.
type noParent struct{ vfs.FS }

func (n noParent) SyncDir(name string) error {
	if name == "/" {
		return &fs.PathError{Op: "sync", Path: name, Err: fs.ErrPermission}
	}
	return n.FS.SyncDir(name)
}

// Who may not read the directory above makes a store in one that he was given, and
// starts on it.
func TestCreationWithoutItsParent(t *testing.T) {
	disk := waltest.NewDisk()
	must(t, disk.Mkdir("/store", 0o700))
	for range 2 {
		store, err := recovery.Open(t0, options(noParent{disk}, "/store"))
		must(t, err)
		must(t, store.Close())
	}
}
