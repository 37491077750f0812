package recovery_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/snapshot"
	"pawl/wal/waltest"
)

// own is the store beside which something was left.
var own = recovery.Identity{ID: snapshot.StoreID{1}, History: 2}

// besideStores makes own in /store, and beside it all that could be taken for what
// an interrupted repair has left; two are.
func besideStores(t *testing.T) *waltest.Disk {
	t.Helper()
	disk := waltest.NewDisk()
	for dir, id := range map[string]recovery.Identity{
		"/store":                             own,
		"/store.exchange-19700101T000000Z":   {ID: own.ID, History: 1},
		"/store.exchange-19700101T000001Z":   {ID: own.ID, History: 3},
		"/store.exchange-19700101T000002Z":   {ID: own.ID, History: 2},
		"/store.exchange-19700101T000003Z":   {ID: snapshot.StoreID{2}, History: 1},
		"/store.exchange-yesterday":          {ID: own.ID, History: 1},
		"/19700101T000000Z":                  {ID: own.ID, History: 1},
		"/another.exchange-19700101T000000Z": {ID: own.ID, History: 1},
	} {
		must(t, disk.Mkdir(dir, 0o700))
		f, err := disk.OpenFile(dir+"/STORE", os.O_CREATE|os.O_WRONLY, 0o600)
		must(t, err)
		must(t, second(f.WriteAt(id.Encode(), 0)))
		must(t, f.Sync())
		must(t, f.Close())
		must(t, disk.SyncDir(dir))
	}
	must(t, disk.SyncDir("/"))
	return disk
}

// failing has an operation of a kind on a name fail.
func failing(disk *waltest.Disk, kind, name string, err error) {
	disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == kind && op.Name == name {
			return waltest.Fault{Err: err}
		}
		return waltest.Fault{}
	})
}

// What is left is found by the whole of its name and by the identity in it. A
// directory that may not be read has nothing to tell; one that cannot is told of.
func TestInterruptedIsFound(t *testing.T) {
	disk := besideStores(t)
	want := []recovery.Interrupted{
		{Path: "/store.exchange-19700101T000000Z", Kept: "/store.exchange-19700101T000000Z"},
		{Path: "/store.exchange-19700101T000001Z", Kept: "/store.exchange-19700101T000001Z", Repaired: true},
	}
	for _, tt := range []struct {
		fault, err error
		found      []recovery.Interrupted
		told       string
	}{
		{nil, nil, want, "has left a store beside this one"},
		{fs.ErrPermission, nil, nil, ""},
		{errIO, errIO, nil, "cannot look for what an interrupted repair has left"},
	} {
		failing(disk, "readdir", "/", tt.fault)
		found, err := recovery.FindInterrupted(disk, "/store", own)
		if !slices.Equal(found, tt.found) || !errors.Is(err, tt.err) {
			t.Errorf("%v: got %+v, %v, want %+v, %v", tt.fault, found, err, tt.found, tt.err)
		}
		var told bytes.Buffer
		recovery.WarnInterrupted(disk, &recovery.Store{Dir: "/store", Identity: own}, slog.New(slog.NewTextHandler(&told, nil)))
		if lines := strings.Count(told.String(), "\n"); lines != max(len(tt.found), min(len(tt.told), 1)) || !strings.Contains(told.String(), tt.told) {
			t.Errorf("%v: it said\n%s\nwant %q", tt.fault, &told, tt.told)
		}
	}
}

// The names that are true survive a power loss, or the error says why there are none.
func TestInterruptedIsNamed(t *testing.T) {
	for _, tt := range []struct{ kind, name string }{
		{"readdir", "/"},
		{"lock", "any directory"},
		{"rename", "/store.exchange-19700101T000000Z"},
		{"syncdir", "/"},
		{"open", "/store/STORE"},
		{"nothing", ""},
	} {
		disk := besideStores(t)
		failing(disk, tt.kind, tt.name, errIO)
		var fsys vfs.FS = disk
		if tt.kind == "lock" {
			fsys = noLocks{disk}
		}
		named, err := recovery.NameInterrupted(fsys, "/store")
		disk.Inject(nil)
		if tt.name != "" {
			if !errors.Is(err, errIO) {
				t.Errorf("%s of %s fails: got %v, want that", tt.kind, tt.name, err)
			}
			continue
		}
		must(t, err)
		want := []string{"/store.damaged-19700101T000000Z", "/store.repaired-19700101T000001Z"}
		if len(named) != 2 || named[0].Kept != want[0] || named[1].Kept != want[1] {
			t.Errorf("got %+v, want %q", named, want)
		}
		for name, d := range disk.States(1, 0) {
			for i := range want {
				if !isThere(d, want[i]) || isThere(d, named[i].Path) {
					t.Errorf("after a power loss, state %s: %s is not called %s", name, named[i].Path, want[i])
				}
			}
		}
	}
}

// noLocks is a file system that gives no locks.
type noLocks struct{ vfs.FS }

func (noLocks) Lock(string) (io.Closer, error) { return nil, errIO }
