package wal_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"pawl/wal"
	"pawl/wal/waltest"
)

// Who does not wait for others gets what is in memory, and what is on the disk while few
// read from it.
func TestTryRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 4 // read at a time
		r := newRun(t)
		disk := &waltest.Hanging{FS: r.disk}
		r.opt.FS = disk
		l := mustBegin(t, r.opt)
		old := waltest.Record{Head: []byte("h"), Body: make([]byte, 9000)}
		young := old
		for _, r := range []*waltest.Record{&old, &young} {
			records := []waltest.Record{*r}
			mustAppend(t, l, records...)
			r.Pos = records[0].Pos
		}
		release := disk.Hang("read")
		done := make(chan error, most)
		for range most {
			go func() {
				_, err := l.Read(old.Pos, nil)
				done <- err
			}()
		}
		synctest.Wait()
		if _, err := l.TryRead(old.Pos, nil); !errors.Is(err, wal.ErrReading) {
			t.Errorf("behind those who read: got %v, want ErrReading", err)
		}
		if b, err := l.TryRead(young.Pos, nil); err != nil || len(b) != 9000 {
			t.Errorf("what is in memory: got %d bytes, %v", len(b), err)
		}
		release()
		for range most {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if b, err := l.TryRead(old.Pos, nil); err != nil || len(b) != 9000 {
			t.Errorf("while nobody reads: got %d bytes, %v", len(b), err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
