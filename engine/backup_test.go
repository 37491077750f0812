package engine_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/snapshot"
	"pawl/wal"
	"pawl/wal/waltest"
)

// goingFS stops in the removal of a generation until somebody lists its
// directory, or until goOn is closed.
type goingFS struct {
	vfs.FS
	armed atomic.Bool
	dir   atomic.Value  // string: the generation's
	going chan struct{} // closed when the removal has begun
	goOn  chan struct{}
	gone  chan struct{} // closed when the file is removed
}

func (g *goingFS) Remove(name string) error {
	if !strings.HasPrefix(name, "data/log/") || !g.armed.CompareAndSwap(true, false) {
		return g.FS.Remove(name)
	}
	g.dir.Store(filepath.Dir(name))
	close(g.going)
	<-g.goOn
	defer close(g.gone)
	return g.FS.Remove(name)
}

func (g *goingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := g.FS.ReadDir(name)
	if g.dir.CompareAndSwap(name, "") {
		close(g.goOn)
		<-g.gone
	}
	return list, err
}

// A backup that begins while a generation is being removed does without it.
func TestBackupWhileAGenerationGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		going := &goingFS{FS: disk, going: make(chan struct{}), goOn: make(chan struct{}), gone: make(chan struct{})}
		s := &shop{t: t, fs: going, dir: "data", log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer s.close()
		for range 40 {
			s.enqueue("mail", strings.Repeat("x", 1000))
			s.ack(s.fetch("mail", 60_000))
		}
		s.enqueue("mail", "there")
		going.armed.Store(true)
		for i := range 2 {
			s.must(&engine.Drain{On: i == 0}) // so that they are of two groups
			if err := s.e.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		<-going.going
		if err := s.e.Backup(t.Context(), "copy"); err != nil {
			t.Error(err)
		}
		if going.dir.Swap("") != "" { // nobody looked
			close(going.goOn)
		}
		c := &shop{t: t, fs: disk.Crash(func(int) waltest.Keep { return waltest.Keep{} }), dir: "copy", log: s.log}
		c.open()
		defer c.close()
		c.want("mail", "there")
		c.wantNone("mail")
	})
}

// What the state of a backup needs does not go while its snapshot is written,
// though nothing else needs it any more.
func TestBackupHoldsWhatItsViewNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := waltest.NewDisk()
		hooked := &hookedFS{FS: disk, name: "copy.copying/snapshots"}
		s := &shop{t: t, fs: hooked, dir: "data", log: wal.Options{GenerationBytes: 16 << 10}}
		s.open()
		defer s.close()
		s.enqueue("mail", "oldest")
		for range 40 {
			s.enqueue("later", strings.Repeat("x", 1000))
			s.ack(s.fetch("later", 60_000))
		}
		for i := range 2 {
			s.must(&engine.Drain{On: i == 0}) // so that they are of two groups
			if err := s.e.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var before int64
		hooked.hook = func() {
			time.Sleep(5 * time.Second) // all but the oldest job's generation have gone
			before = s.e.Numbers().Generations
			s.ack(s.want("mail", "oldest"))
			time.Sleep(5 * time.Second)
		}
		if err := s.e.Backup(t.Context(), "copy"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if after := s.e.Numbers().Generations; after >= before {
			t.Errorf("%d generations, %d while the backup was made: want that the oldest went", after, before)
		}
		// The log in the copy goes on to the end of the job; before that it is there.
		copied := disk.Crash(func(int) waltest.Keep { return waltest.Keep{} })
		snapshots, err := snapshot.List(copied, "copy/snapshots")
		if err != nil || len(snapshots) != 1 {
			t.Fatalf("got snapshots %v, %v, want one", snapshots, err)
		}
		then, err := recovery.Restore(t.Context(), recovery.RestoreOptions{FS: copied, Dir: "copy", To: "then", LSN: wal.LSN(snapshots[0].LSN)})
		if err != nil || then.Jobs != 1 {
			t.Errorf("restored from the copy as of its snapshot: %+v, %v, want one job", then, err)
		}
	})
}
