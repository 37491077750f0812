//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/workload"
)

// runKill: a crew of clients works while the daemon is killed again and again,
// sometimes while it is still starting and sometimes by SIGTERM. At the end
// everything that is left is drained, and what remains must stay over one more
// restart.
func runKill(ctx context.Context, args []string) error {
	l := newLab("kill", args)
	kills := l.flags.Int("kills", 20, "how often the daemon is killed")
	clients := l.flags.Int("clients", 16, "clients that work meanwhile")
	basic := l.flags.Bool("basic", false, "only what Moxy's contract has")
	shortest := l.flags.Duration("shortest", 20*time.Millisecond, "shortest life of the daemon, once ready")
	longest := l.flags.Duration("longest", 400*time.Millisecond, "longest life")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	c := campaign{lab: l, sup: sup, count: *kills, crew: workload.Options{Clients: *clients, Basic: *basic}}
	c.strike = func(ctx context.Context) error {
		if err := l.lifeAndDeath(ctx, sup, *shortest, *longest); err != nil {
			return err
		}
		l.fired.Add(1)
		return nil
	}
	return c.run(ctx)
}

// withCrew runs do while the crew works.
func withCrew(ctx context.Context, crew *workload.Crew, do func() error) error {
	work, stop := context.WithCancel(ctx)
	defer stop()
	idle := make(chan struct{})
	go func() {
		crew.Run(work)
		close(idle)
	}()
	err := do()
	stop()
	<-idle
	return err
}

// lifeAndDeath is one incarnation.
func (l *lab) lifeAndDeath(ctx context.Context, sup *daemon.Supervisor, shortest, longest time.Duration) error {
	if l.rng.IntN(8) == 0 {
		// While it starts, wherever that catches it.
		if err := sup.Start(); err != nil {
			return err
		}
		if err := sleep(ctx, l.between(0, 40*time.Millisecond)); err != nil {
			return err
		}
		if !sup.Alive() {
			return l.broken("exit %d while starting: %s", sup.ExitCode(), sup.Stderr())
		}
		return sup.Kill()
	}
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	if err := sleep(ctx, l.between(shortest, longest)); err != nil {
		return err
	}
	if !sup.Alive() {
		return l.broken("exit %d by itself: %s", sup.ExitCode(), sup.Stderr())
	}
	if l.rng.IntN(10) == 0 {
		code, err := sup.Terminate(ctx)
		if err != nil {
			return l.broken("SIGTERM: %v", err)
		}
		if code != 0 {
			return l.broken("exit %d after SIGTERM: %s", code, sup.Stderr())
		}
		return nil
	}
	return sup.Kill()
}

// start starts the daemon; one that refuses after nothing but kills has broken
// its promise.
func (l *lab) start(ctx context.Context, sup *daemon.Supervisor) error {
	if err := sup.Start(); err != nil {
		return err
	}
	err := sup.WaitReady(ctx)
	if err != nil && (errors.Is(err, daemon.ErrExited) || ctx.Err() == nil) {
		return l.broken("the daemon does not start: %v", err)
	}
	return err
}

// end drains all queues, then restarts twice and looks at what is left; old are
// crews that were drained long ago.
func (l *lab) end(ctx context.Context, sup *daemon.Supervisor, crew *workload.Crew, old ...*workload.Crew) error {
	if err := crew.Drain(ctx, *l.drainIn); err != nil {
		return l.broken("%v\n%s", err, sup.Stderr())
	}
	for range 2 {
		if code, err := sup.Terminate(ctx); err != nil || code != 0 {
			return l.broken("SIGTERM: exit %d, %v: %s", code, err, sup.Stderr())
		}
		if err := l.start(ctx, sup); err != nil {
			return err
		}
		if err := crew.Look(ctx); err != nil {
			return l.broken("after a restart: %v", err)
		}
	}
	for _, crew := range old {
		if err := crew.Glance(ctx); err != nil {
			return l.broken("after a restart: %v", err)
		}
	}
	if code, err := sup.Terminate(ctx); err != nil || code != 0 {
		return l.broken("SIGTERM: exit %d, %v: %s", code, err, sup.Stderr())
	}
	return nil
}

// sleep waits, or returns why it should not.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case <-time.After(d):
		return nil
	}
}
