//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/tracee"
	"pawl/internal/torture/workload"
)

// runClock: the wall clock jumps while the daemon works, and half of the times it
// is killed behind that and started again under the clock as it is now. Leases
// and delays follow the monotonic clock, so none ends early, and the daemon lives.
func runClock(ctx context.Context, args []string) error {
	l := newLab("clock", args)
	jumps := l.flags.Int("jumps", 10, "jumps of the wall clock")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	sup.SetOptions(func(o *daemon.Options) { o.Trace = &tracee.Options{} })
	c := campaign{lab: l, sup: sup, count: *jumps, crew: workload.Options{Clients: 4, Lease: 3 * time.Second}}
	c.strike = func(ctx context.Context) error {
		if err := l.running(ctx, sup); err != nil {
			if errors.Is(err, tracee.ErrUnsupported) {
				return fmt.Errorf("%w: %w", errImpossible, err)
			}
			return err
		}
		l.fired.Add(1)
		shift, err := l.jump(ctx, sup)
		if err != nil || l.rng.IntN(2) == 0 {
			return err
		}
		return l.restartShifted(ctx, sup, shift)
	}
	// The restarts at the end compare wall clocks: let the log see the true one.
	c.calm = func(ctx context.Context) error { return l.trueClock(ctx, sup) }
	return c.run(ctx)
}

// jump steps the wall clock of a traced daemon.
func (l *lab) jump(ctx context.Context, sup *daemon.Supervisor) (tracee.Shift, error) {
	const year = 365 * 24 * time.Hour
	steps := []time.Duration{-time.Hour, time.Hour, -10 * year, 10 * year, 1500 * time.Millisecond, -1500 * time.Millisecond}
	shift := tracee.Shift{Wall: steps[l.rng.IntN(len(steps))]}
	sup.Traced().ShiftClock(shift)
	if err := sleep(ctx, l.between(50*time.Millisecond, 300*time.Millisecond)); err != nil {
		return shift, err
	}
	if !sup.Alive() {
		return shift, l.broken("the clock jumped, exit %d: %s", sup.ExitCode(), sup.Stderr())
	}
	return shift, nil
}

// restartShifted kills a daemon whose log has seen the shift, and starts it under
// the same: what the next process measures between the two is the time it was
// down, and nothing else.
func (l *lab) restartShifted(ctx context.Context, sup *daemon.Supervisor, shift tracee.Shift) error {
	if err := l.clockLogged(ctx, sup); err != nil {
		return err
	}
	if err := sup.Kill(); err != nil {
		return err
	}
	if err := sleep(ctx, l.between(0, 300*time.Millisecond)); err != nil {
		return err
	}
	sup.SetOptions(func(o *daemon.Options) { o.Trace = &tracee.Options{Shift: shift} })
	defer sup.SetOptions(func(o *daemon.Options) { o.Trace = &tracee.Options{} })
	return l.start(ctx, sup)
}

// trueClock ends the jumps, and lets the log see the true time.
func (l *lab) trueClock(ctx context.Context, sup *daemon.Supervisor) error {
	sup.Traced().ShiftClock(tracee.Shift{})
	return l.clockLogged(ctx, sup)
}

// clockLogged returns when the log has seen the clock as it is now.
func (l *lab) clockLogged(ctx context.Context, sup *daemon.Supervisor) error {
	return until(ctx, sup.Addr(), "*2", "ENQUEUE", "elsewhere", "x")
}
