//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/workload"
)

// runFiles: for some time the daemon under a working crew can open no file, as
// where somebody else uses up all descriptors: no generation, no snapshot, no
// body, no connection. It lives, refuses what it cannot do, and goes on by itself
// when it can.
func runFiles(ctx context.Context, args []string) error {
	l := newLab("files", args)
	rounds := l.flags.Int("rounds", 5, "how often no descriptor is left")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	c := campaign{lab: l, sup: sup, count: *rounds, crew: workload.Options{Clients: 8, Payload: 1 << 10, Pace: 2 * time.Millisecond}}
	c.strike = func(ctx context.Context) error {
		if err := l.running(ctx, sup); err != nil {
			return err
		}
		if err := sleep(ctx, l.between(50*time.Millisecond, 300*time.Millisecond)); err != nil {
			return err
		}
		l.fired.Add(1)
		return l.noFiles(ctx, sup)
	}
	return c.run(ctx)
}

// noFiles lets the daemon open nothing for a while.
func (l *lab) noFiles(ctx context.Context, sup *daemon.Supervisor) error {
	var before unix.Rlimit
	err := unix.Prlimit(sup.Pid(), unix.RLIMIT_NOFILE, nil, &before)
	if err == nil {
		err = unix.Prlimit(sup.Pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil)
	}
	if err != nil {
		return fmt.Errorf("%w: limit of another process: %w", errImpossible, err)
	}
	waited := sleep(ctx, l.between(200*time.Millisecond, 1500*time.Millisecond))
	if !sup.Alive() {
		return l.broken("no file could be opened, exit %d: %s", sup.ExitCode(), sup.Stderr())
	}
	if err := unix.Prlimit(sup.Pid(), unix.RLIMIT_NOFILE, &before, nil); err != nil {
		return err
	}
	if waited != nil {
		return waited
	}
	if err := until(ctx, sup.Addr(), "*2", "ENQUEUE", "elsewhere", "x"); err != nil {
		return l.broken("files can be opened again: %v", err)
	}
	return nil
}
