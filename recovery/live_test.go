package recovery_test

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/snapshot"
	"pawl/wal/waltest"
)

// lookLive is what a tool finds of a store that is written, in the place of it.
func lookLive(disk *waltest.Disk, fsys vfs.FS) (found []string, err error) {
	err = recovery.WithStore(fsys, "/store", true, func(vfs.FS) error {
		for _, name := range disk.Files() {
			if below, ok := strings.CutPrefix(name, "/store/live.tmp/"); ok {
				found = append(found, below)
			}
		}
		return nil
	})
	return found, err
}

// The copy of a store that is written is whole, or there is none, whichever operation
// on the way fails. It is begun again where a file that it was about to take has gone.
func TestLiveCopyOnFailingDisk(t *testing.T) {
	disk, _ := cleanStore(t, 514, 2, 20)
	from := disk.Ops()
	whole, err := lookLive(disk, disk)
	must(t, err)
	for n := range disk.Ops() - from {
		for _, fault := range []error{syscall.EIO, fs.ErrNotExist} {
			var failed waltest.Op
			first := disk.Ops() + 1
			disk.Inject(func(op waltest.Op) waltest.Fault {
				taken := op.Kind == "link" && op.Name != "/store/STORE" || op.Kind == "open"
				if op.N != first+n || fault == fs.ErrNotExist && !taken {
					return waltest.Fault{}
				}
				failed = op
				return waltest.Fault{Err: fault}
			})
			found, err := lookLive(disk, disk)
			disk.Inject(nil)
			bad := err == nil && !slices.Equal(found, whole)
			switch {
			case fault == fs.ErrNotExist:
				bad = bad || err != nil
			case failed.Kind != "stat" && failed.Kind != "close":
				bad = bad || err == nil
			}
			if bad {
				t.Errorf("%s of %s gives %v: got %v, and %q, want %q", failed.Kind, failed.Name, fault, err, found, whole)
			}
			must(t, vfs.RemoveTree(disk, "/store/live.tmp"))
		}
	}
}

// It is begun again when a snapshot has come meanwhile, and given up where one
// comes every time.
func TestLiveCopyOfAStoreThatMoves(t *testing.T) {
	for _, always := range []bool{false, true} {
		disk, _ := cleanStore(t, 515, 2, 20)
		first, err := disk.ReadDir("/store/snapshots")
		must(t, err)
		come := 0
		between := &waltest.Between{FS: disk, Before: func() {
			if (always || come == 0) && isThere(disk, "/store/live.tmp/log") {
				come++
				must(t, disk.Link("/store/snapshots/"+first[0].Name(), "/store/snapshots/"+snapshot.Name(uint64(1000+come))))
			}
		}}
		found, err := lookLive(disk, between)
		switch {
		case always && (err == nil || found != nil):
			t.Errorf("it never stands still: got %v, and %q", err, found)
		case !always && (err != nil || !slices.Contains(found, "snapshots/"+snapshot.Name(1001))):
			t.Errorf("one came: got %v, and %q", err, found)
		}
	}
}
