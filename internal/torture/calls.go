//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/history"
	"pawl/internal/torture/tracee"
	"pawl/internal/torture/workload"
)

// runCalls: the unchanged daemon dies at its N-th storage call, before it,
// after it, or with a write torn; or the call fails, once or for good. The same
// store goes on from fault to fault.
func runCalls(ctx context.Context, args []string) error {
	l := newLab("calls", args)
	points := l.flags.Int("points", 30, "faults")
	clients := l.flags.Int("clients", 4, "clients that work meanwhile")
	deepest := l.flags.Int64("deepest", 400, "faults strike at the N-th call, N up to this")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	// The tracer resolves the directory before the daemon makes it.
	if err := os.Mkdir(l.data(), 0o700); err != nil {
		return err
	}
	struck := map[tracee.Mode]int{}
	c := campaign{lab: l, sup: sup, count: *points, crew: workload.Options{Clients: *clients, Lease: 300 * time.Millisecond}}
	c.strike = func(ctx context.Context) error { return l.strike(ctx, sup, *deepest, struck) }
	c.calm = func(context.Context) error {
		sup.SetOptions(func(o *daemon.Options) { o.Trace = nil })
		return nil
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	for mode, n := range struck {
		fmt.Printf("calls: %v: %d\n", mode, n)
	}
	return nil
}

// strike is one incarnation with one fault in it.
func (l *lab) strike(ctx context.Context, sup *daemon.Supervisor, deepest int64, struck map[tracee.Mode]int) error {
	fault := tracee.Fault{Nth: 1 + l.rng.Int64N(deepest)}
	switch n := l.rng.IntN(10); {
	case n < 3:
		fault.Mode = tracee.Before
	case n < 6:
		fault.Mode = tracee.After
	case n < 8:
		fault.Mode, fault.Bytes = tracee.Tear, []int{0, 1, 64, 511, 512, 513, 4096}[l.rng.IntN(7)]
	default:
		fault.Mode, fault.Errno = tracee.Errno, []syscall.Errno{syscall.EIO, syscall.ENOSPC}[l.rng.IntN(2)]
		fault.Sticky = l.rng.IntN(2) == 0
	}
	var at history.Time // when it struck; written by the tracer, read after the death
	opt := &tracee.Options{Under: l.data(), Fault: fault, Seen: func(c tracee.Call) {
		if c.N == fault.Nth {
			at = l.rec.Now()
		}
	}}
	sup.SetOptions(func(o *daemon.Options) { o.Trace = opt })
	if err := sup.Start(); err != nil {
		if errors.Is(err, tracee.ErrUnsupported) {
			return fmt.Errorf("%w: %w", errImpossible, err)
		}
		return err
	}
	hit := func() {
		if sup.Struck() {
			struck[fault.Mode]++
			l.fired.Add(1)
		}
	}
	// A fault that the daemon outlives, or that no call reached, ends with a kill.
	life, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	err := sup.WaitGone(life)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		if err := sup.Kill(); err != nil {
			return err
		}
		hit()
		return nil
	}
	hit()
	code := sup.ExitCode()
	switch {
	case code == 128+int(syscall.SIGKILL):
		sup.Killed()
	case sup.Struck() && fault.Mode == tracee.Errno && (code == 74 || code == 73):
		// It said what failed and ended: nothing may have been acknowledged since.
		l.rec.EventAt(at, history.Event{Kind: history.SyncFailed, Incarnation: sup.Incarnation()})
		if _, err := sup.WaitExit(ctx); err != nil {
			return err
		}
	default:
		return l.broken("%v: exit %d: %s", fault, code, sup.Stderr())
	}
	return nil
}
