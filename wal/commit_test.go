package wal_test

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/internal/vfs"
	"pawl/wal"
	"pawl/wal/waltest"
)

// What a metric reads of a log is what was done: the groups and records that were
// committed, the syncs that the disk saw, the bytes of all entries but births.
func TestStatsCountWhatWasDone(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	var syncs uint64
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "datasync" {
			syncs++
		}
		return waltest.Fault{}
	})
	var groups, records uint64
	for i := range 9 {
		all := make([]waltest.Record, i%3+1)
		for k := range all {
			all[k] = waltest.Record{Head: []byte("head"), Body: make([]byte, 1000)}
		}
		mustAppend(t, l, all...)
		groups, records = groups+1, records+uint64(len(all))
	}
	if err := l.Idle(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	list := l.Generations()
	if len(list) < 2 {
		t.Fatal("all is in one generation")
	}
	const entry = 100 // a birth, or a link
	var want uint64
	for i, info := range list {
		want += uint64(info.Length) - entry
		if i == 0 {
			want -= entry // Begin wrote that link
		}
	}
	s := l.Stats()
	if s.Groups != groups || s.Records != records || s.Syncs != syncs || s.Bytes != want || s.Markers != 2 {
		t.Errorf("got %+v; want %d groups, %d records, %d syncs, %d bytes, 2 markers", s, groups, records, syncs, want)
	}
}

// Sync makes durable what the policy leaves to chance.
func TestSync(t *testing.T) {
	r := newRun(t)
	r.opt.Sync = wal.SyncNever
	l := mustBegin(t, r.opt)
	mustAppend(t, l, waltest.Record{Head: []byte("one")})
	if got := l.Durable(); got != 0 {
		t.Errorf("before: durable is %d, want 0", got)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := l.Durable(); got != 1 {
		t.Errorf("after: durable is %d, want 1", got)
	}
	d := r.disk.Crash(func(int) waltest.Keep { return waltest.Keep{} })
	if groups, _, err := waltest.Read(d, logDir, wal.ReaderOptions{}); err != nil || len(groups) != 1 {
		t.Errorf("after a power loss: %d groups, %v", len(groups), err)
	}
}

// A group that waited while the one before it failed is not acknowledged.
func TestGroupBehindAFailedOne(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	var groups []*wal.Group
	for range 2 {
		g, err := l.Open(10)
		if err != nil {
			t.Fatal(err)
		}
		g.Add([]byte("head"), nil)
		l.Seal(g, 1, 1)
		groups = append(groups, g)
	}
	r.disk.Inject(waltest.FailAt(r.disk.Ops()+1, syscall.EIO, false))
	for i, g := range groups {
		if err := l.Commit(g); !errors.Is(err, syscall.EIO) {
			t.Errorf("commit of group %d: got %v, want EIO", i+1, err)
		}
	}
	if got := l.Durable(); got != 0 {
		t.Errorf("durable is %d, want 0", got)
	}
}

// A link vouches for all that it follows. Where that cannot be synced there is none:
// else the next start would take for damage what nobody was promised.
func TestNoLinkBehindAFailedSync(t *testing.T) {
	r := newRun(t)
	r.opt.Sync = wal.SyncNever
	l := r.begin(t)
	for len(l.Generations()) < 2 {
		r.write(l, 1000)
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	r.disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "datasync" {
			return waltest.Fault{Err: syscall.EIO}
		}
		return waltest.Fault{}
	})
	for r.err == nil && len(l.Generations()) < 5 {
		if r.write(l, 1000); r.err == nil && l.Failure() != nil {
			t.Fatal("a group is committed to a log that has failed")
		}
	}
	if !errors.Is(r.err, syscall.EIO) {
		t.Fatalf("got %v, want EIO", r.err)
	}
	pending := r.disk.Pending()
	lost := func(i int) waltest.Keep {
		if strings.Contains(pending[i].Text, segmentFile(2)) {
			return waltest.Keep{}
		}
		return waltest.Keep{What: waltest.Whole}
	}
	groups, end, err := waltest.Read(r.disk.Crash(lost), logDir, wal.ReaderOptions{})
	if err != nil || end.Generation != 2 {
		t.Fatalf("after a power loss: %+v, %v", end, err)
	}
	r.compare(t, groups, end)
}

// meeting is a file system on which a sync, once armed, waits for a write and then
// fails.
type meeting struct {
	vfs.FS
	armed   atomic.Bool
	written chan struct{}
	syncing chan struct{}
}

type meetingFile struct {
	vfs.File
	m *meeting
}

func (m *meeting) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := m.FS.OpenFile(name, flag, perm)
	return meetingFile{f, m}, err
}

func (f meetingFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	if f.m.armed.Load() {
		close(f.m.written)
	}
	return n, err
}

func (f meetingFile) Datasync() error {
	if !f.m.armed.Load() {
		return f.File.Datasync()
	}
	close(f.m.syncing)
	<-f.m.written
	f.m.armed.Store(false)
	return syscall.EIO
}

// The kernel reports a lost write once. A sync of the log's own takes the report
// while a group has been written and is about to be synced: that sync would say that
// all is well, and the group must not be acknowledged.
func TestGroupBesideAFailingSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		m := &meeting{FS: r.disk, written: make(chan struct{}), syncing: make(chan struct{})}
		r.opt.FS, r.opt.Foreground = m, false
		l := mustBegin(t, r.opt)
		mustAppend(t, l, waltest.Record{Head: []byte("one")})
		time.Sleep(100 * time.Millisecond) // the idle mark is written
		synctest.Wait()
		m.armed.Store(true)
		<-m.syncing // the keeper's, of the mark
		if _, err := waltest.Append(l, waltest.Record{Head: []byte("two")}); !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v, want EIO", err)
		}
		if got := l.Durable(); got != 1 {
			t.Errorf("durable is %d, want 1", got)
		}
		if err := l.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("close gave %v, want EIO", err)
		}
	})
}

// Generations are made ahead again as soon as the log has gone on to the next one,
// not when that one is full too: a birth made then witnesses it.
func TestGenerationsAreMadeAheadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.opt.Foreground, r.opt.Ahead = false, 3
		l := mustBegin(t, r.opt)
		synctest.Wait()
		for len(l.Generations()) < 2 {
			g, err := waltest.Open(l, 2000)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // it is opened, and its generation not linked: no time to make one
			g.Add(make([]byte, 1900), nil)
			l.Seal(g, 1, 1)
			if err := l.Commit(g); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := l.Stats().Prepared; n != 3 {
			t.Errorf("%d generations are ready, want 3", n)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
