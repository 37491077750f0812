package wal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pawl/wal"
	"pawl/wal/waltest"
)

// A group that is written while the log's own sync is under way is not in that one,
// and comes with the next.
func TestGroupBesideASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		disk := &waltest.Hanging{FS: r.disk}
		r.opt.FS, r.opt.Foreground, r.opt.Sync, r.opt.Interval = disk, false, wal.SyncInterval, time.Second
		l := mustBegin(t, r.opt)
		time.Sleep(5 * time.Second)
		release := disk.Hang("datasync")
		mustAppend(t, l, waltest.Record{Head: []byte("one")})
		synctest.Wait()
		mustAppend(t, l, waltest.Record{Head: []byte("two")})
		release()
		synctest.Wait()
		if got := l.Durable(); got != 1 {
			t.Errorf("after the first sync: durable is %d, want 1", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := l.Durable(); got != 2 {
			t.Errorf("after the second: durable is %d, want 2", got)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A log at rest does nothing: its marks are synced once, and once more at the end.
func TestSyncsOfAQuietLog(t *testing.T) {
	for policy, want := range map[wal.SyncPolicy]uint64{wal.SyncAlways: 3, wal.SyncInterval: 3, wal.SyncNever: 0} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			r.opt.Foreground, r.opt.Sync = false, policy
			l := mustBegin(t, r.opt)
			time.Sleep(5 * time.Second)
			mustAppend(t, l, waltest.Record{Head: []byte("h")})
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := l.Stats().Syncs; got != want {
				t.Errorf("policy %d: %d syncs in an hour, want %d: the group, the mark, its witness", policy, got, want)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
