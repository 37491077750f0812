package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"pawl/engine"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// Commands in turns that are interrupted after some of them do not answer as if
// nothing had been done.
func TestCommandsInTurnsAreInterrupted(t *testing.T) {
	for name, run := range map[string]func(*shop, context.Context) error{
		"purge": func(s *shop, ctx context.Context) error {
			c := &engine.QueuePurge{Queue: key("q"), Places: []state.Place{state.Dead}}
			return errors.Join(s.e.Purge(ctx, c), c.Err())
		},
		"redrive": func(s *shop, ctx context.Context) error {
			c := &engine.QueueRedrive{Queue: key("q")}
			return errors.Join(s.e.Redrive(ctx, c), c.Err())
		},
		"delete": func(s *shop, _ context.Context) error {
			// It has no caller who hangs up; here the disk is full after some turns.
			c := &engine.QueueDelete{Queue: key("q")}
			return errors.Join(s.e.Do(c), c.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			room := int64(-1)
			if name == "delete" {
				room = 40 << 10
			}
			interruptTurns(t, room, run)
		})
	}
}

func interruptTurns(t *testing.T, room int64, run func(*shop, context.Context) error) {
	const jobs = 12_000
	disk := waltest.NewDisk()
	s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 16 << 10}}
	s.open()
	defer func() { s.close() }()
	for range jobs {
		s.enqueue("q", "x")
		s.must(&engine.Bury{Lease: s.want("q", "x").Lease})
	}
	// A turn takes a millisecond. The caller hangs up when the first is written.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	disk.Limit(room)
	var syncs atomic.Int64
	disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "datasync" && syncs.Add(1) == 1 {
			cancel()
		}
		if op.Kind == "open" && strings.Contains(op.Name, ".snapshot") {
			return waltest.Fault{Err: syscall.ENOSPC} // or old generations would go
		}
		return waltest.Fault{}
	})
	err := run(s, ctx)
	disk.Inject(nil)
	if left := s.counts("q")[3]; left == 0 || left == jobs {
		t.Fatalf("got %d of %d jobs left, want a part", left, jobs)
	}
	if !errors.Is(err, engine.ErrPartly) {
		t.Errorf("got %v, want ErrPartly", err)
	}
}
