package blockdisk_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"pawl/internal/torture/blockdisk"
)

// TestMount makes a real file system on the disk, cuts its power many times
// and demands that what was synced is there: first of all a test of the disk.
func TestMount(t *testing.T) {
	if os.Getenv("PAWL_MOUNT") != "1" {
		t.Skip("mounts a FUSE file system: set PAWL_MOUNT=1 (as root)")
	}
	disk := blockdisk.New(32 << 20)
	m, err := blockdisk.Mount(disk, t.TempDir(), blockdisk.Options{Make: "ext4", Data: "commit=1000"})
	if errors.Is(err, blockdisk.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	name := filepath.Join(m.Dir, "file")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("synced"); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(" and not synced"); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		cut := blockdisk.FromImage(disk.Crash(rand.New(rand.NewPCG(seed, 2))))
		after, err := blockdisk.Mount(cut, t.TempDir(), blockdisk.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := os.ReadFile(filepath.Join(after.Dir, "file"))
		if err != nil || len(got) < 6 || string(got[:6]) != "synced" {
			t.Errorf("seed %d: got %q, %v, want what was synced", seed, got, err)
		}
		if err := after.Close(); err != nil {
			t.Error(err)
		}
	}
	disk.Fail(1, true)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("sync on a failed disk: got %v, want EIO", err)
	}
	disk.Fail(0, false)
	f.Close()
}
