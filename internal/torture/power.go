//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pawl/internal/record"
	"pawl/internal/torture/blockdisk"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/history"
	"pawl/internal/torture/workload"
)

// fileSystems are the media of the power layer. The journal timer of ext4 is
// set far away, so that it cannot hide a sync that is missing.
var fileSystems = map[string]func(l *lab) (medium, error){
	"ext4": func(l *lab) (medium, error) {
		return newImage(l.dir, "ext4", "commit=1000", 128<<20)
	},
	"ext4-writeback": func(l *lab) (medium, error) {
		return newImage(l.dir, "ext4", "commit=1000,data=writeback", 128<<20)
	},
	"ext4-nodelalloc": func(l *lab) (medium, error) {
		return newImage(l.dir, "ext4", "commit=1000,nodelalloc", 128<<20)
	},
	"xfs": func(l *lab) (medium, error) {
		return newImage(l.dir, "xfs", "", 320<<20)
	},
}

// runPower: the power is cut under a working crew, on real file systems, some
// of the time right after a kill, and some of the time while the daemon is
// starting.
func runPower(ctx context.Context, args []string) error {
	l := newLab("power", args)
	cycles := l.flags.Int("cycles", 10, "power cuts on each file system")
	clients := l.flags.Int("clients", 16, "clients that work meanwhile")
	systems := l.flags.String("fs", "ext4,ext4-writeback,xfs", "file systems, of ext4, ext4-writeback, ext4-nodelalloc, xfs")
	longest := l.flags.Duration("longest", 300*time.Millisecond, "longest time between two cuts")
	if done, err := apart(ctx); done {
		return err
	}
	if err := l.open(ctx); err != nil {
		return err
	}
	defer l.close()
	for name := range strings.SplitSeq(*systems, ",") {
		make, known := fileSystems[name]
		if !known {
			return fmt.Errorf("no file system %q", name)
		}
		l.name = "power/" + name
		if err := l.powerOn(ctx, make, *cycles, *clients, *longest); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) powerOn(ctx context.Context, make func(*lab) (medium, error), cycles, clients int, longest time.Duration) (err error) {
	l.fresh()
	m, err := make(l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	sup, err := l.supervisor(m.dir()+"/data", small...)
	if err != nil {
		return err
	}
	defer sup.Close()
	c := campaign{lab: l, sup: sup, count: cycles, crew: workload.Options{Clients: clients, Payload: 4 << 10}}
	c.strike = func(ctx context.Context) error {
		if err := l.cutOnce(ctx, m, sup, longest); err != nil {
			return err
		}
		sup.SetOptions(func(o *daemon.Options) { o.Dir = m.dir() + "/data" })
		l.fired.Add(1)
		return nil
	}
	return c.run(ctx)
}

// cutOnce is one incarnation, or two, and the end of their power.
func (l *lab) cutOnce(ctx context.Context, m medium, sup *daemon.Supervisor, longest time.Duration) error {
	whole := true // started all the way
	switch l.rng.IntN(6) {
	case 0: // while it starts
		whole = false
		if err := sup.Start(); err != nil {
			return err
		}
	case 1: // killed first: what the next one shows must be on disk before it is shown
		if err := l.start(ctx, sup); err != nil {
			return err
		}
		if err := sleep(ctx, l.between(0, longest)); err != nil {
			return err
		}
		if err := sup.Kill(); err != nil {
			return err
		}
		fallthrough
	default:
		if err := l.start(ctx, sup); err != nil {
			return err
		}
	}
	life := longest
	if !whole {
		life = 60 * time.Millisecond
	}
	if err := sleep(ctx, l.between(time.Millisecond, life)); err != nil {
		return err
	}
	if !sup.Alive() {
		return l.broken("exit %d by itself: %s", sup.ExitCode(), sup.Stderr())
	}
	return m.cut(sup.Pause, sup.Kill)
}

// runLie is the control of the power layer: a disk that says it has flushed
// and has not must be noticed. It fails when nothing is reported.
func runLie(ctx context.Context, args []string) error {
	l := newLab("lie", args)
	clients := l.flags.Int("clients", 8, "clients that work meanwhile")
	life := l.flags.Duration("life", time.Second, "how long the daemon works on the lying disk")
	if done, err := apart(ctx); done {
		return err
	}
	ext4 := "ext4"
	return l.onRig(ctx, &ext4, func(r *rig, sup *daemon.Supervisor) error { return l.lie(ctx, r, sup, *clients, *life) })
}

func (l *lab) lie(ctx context.Context, r *rig, sup *daemon.Supervisor, clients int, life time.Duration) error {
	crew := workload.New(workload.Options{Seed: l.seed, Clients: clients}, sup, l.rec)
	err := withCrew(ctx, crew, func() error {
		if err := l.start(ctx, sup); err != nil {
			return err
		}
		r.disk.Lie(true)
		if err := sleep(ctx, life); err != nil {
			return err
		}
		if err := sup.Pause(); err != nil {
			return err
		}
		survived := r.disk.Crash(l.rng)
		r.disk.Lie(false)
		if err := errors.Join(sup.Kill(), r.unmount()); err != nil {
			return err
		}
		r.disk, r.options.Make = blockdisk.FromImage(survived), ""
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.mount(); err != nil {
		if errors.Is(err, errImpossible) {
			return err
		}
		return l.account(record.Run{Cases: len(l.rec.History().Ops), Faults: 1}, fmt.Sprintf("reported: the file system itself is lost: %v", err))
	}
	sup.SetOptions(func(o *daemon.Options) { o.Dir = r.data() })
	if err := sup.Start(); err != nil {
		return err
	}
	if err := sup.WaitReady(ctx); err != nil {
		if errors.Is(err, daemon.ErrExited) {
			lines := strings.Split(strings.TrimSpace(sup.Stderr()), "\n")
			return l.account(record.Run{Cases: len(l.rec.History().Ops), Faults: 1}, "reported: the daemon refuses to start: "+lines[len(lines)-1])
		}
		return err
	}
	if err := crew.Drain(ctx, *l.drainIn); err != nil {
		return err
	}
	h := l.rec.History()
	report := history.Check(h, history.Options{})
	if !report.Has("S1") && !report.Has("S3") {
		return l.broken("a disk that forgot everything was not noticed (%s)", report)
	}
	return l.account(record.Run{Cases: report.Ops, Faults: 1},
		fmt.Sprintf("reported: %d jobs lost, %d finished ones back", report.Counts["S1"], report.Counts["S3"]))
}
