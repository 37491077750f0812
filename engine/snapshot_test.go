package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/wal"
	"pawl/wal/waltest"
)

// No snapshot, of the engine's own or of a backup, is there before the log that it speaks
// of is on disk, which under this policy nobody else sees to.
func TestSnapshotIsNotAheadOfTheLog(t *testing.T) {
	disk := waltest.NewDisk()
	s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 16 << 10, Foreground: true, Sync: wal.SyncNever}}
	s.open()
	defer s.close()
	for name, write := range map[string]func() error{
		"snapshot": func() error { return s.e.Snapshot(t.Context()) },
		"backup":   func() error { return s.e.Backup(t.Context(), "copy") },
	} {
		s.enqueue("q", name)
		before := s.wal.Durable()
		ahead := false
		disk.Inject(func(op waltest.Op) waltest.Fault {
			if op.Kind == "rename" && strings.Contains(op.Name, ".snapshot") {
				ahead = s.wal.Durable() <= before
			}
			return waltest.Fault{}
		})
		err := write()
		disk.Inject(nil)
		if err != nil || ahead || s.wal.Durable() <= before {
			t.Errorf("%s: %v; it has its name while the log is durable up to %d as before: %t", name, err, before, ahead)
		}
	}
}

// The state is held for a snapshot, of the engine's own or of a backup, until it is
// written, and not while the file is read back.
func TestViewIsGivenBackOnceWritten(t *testing.T) {
	disk := waltest.NewDisk()
	s := openOnDisk(t, disk, engine.Options{})
	s.enqueue("q", "a")
	for name, write := range map[string]func() error{
		"snapshot": func() error { return s.e.Snapshot(t.Context()) },
		"backup":   func() error { return s.e.Backup(t.Context(), "copy") },
	} {
		var writing, reading int
		disk.Inject(func(op waltest.Op) waltest.Fault {
			if strings.HasSuffix(filepath.Base(op.Name), ".snapshot.tmp") {
				switch op.Kind {
				case "write":
					writing = max(writing, s.e.ViewsOut())
				case "read":
					reading = max(reading, 1+s.e.ViewsOut())
				}
			}
			return waltest.Fault{}
		})
		err := write()
		disk.Inject(nil)
		if err != nil || writing != 1 || reading != 1 {
			t.Errorf("%s: %v; %d views while it is written, %d while it is read back", name, err, writing, reading-1)
		}
	}
}
