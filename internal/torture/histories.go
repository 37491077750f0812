//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/tracee"
	"pawl/internal/torture/workload"
)

// trouble is one kind of fault of the histories layer.
type trouble struct {
	name  string
	share int // of all, in parts of the sum
	cause func(*histories, context.Context) error
}

// troubles is everything that can happen to a daemon whose disk and memory are
// sound, in about the shares that find most: a kill costs little.
var troubles = []trouble{
	{"kills", 32, (*histories).kill},
	{"kills while starting", 8, (*histories).killEarly},
	{"stops", 6, (*histories).stop},
	{"power cuts", 26, (*histories).powerCut},
	{"full disks", 10, (*histories).full},
	{"clock jumps", 10, (*histories).jumps},
	{"pauses", 8, (*histories).pause},
}

// histories is the layer's lab, its file system and its daemon.
type histories struct {
	*lab
	m              medium
	sup            *daemon.Supervisor
	least, longest time.Duration // of the life of a daemon
}

// runHistories: everything at once. A large crew works on a store that lives on
// a real file system, while the daemon is killed, stopped, paused, its power
// cut, its disk filled up and its clock set.
func runHistories(ctx context.Context, args []string) error {
	l := newLab("histories", args)
	length := l.flags.Duration("for", time.Minute, "how long")
	faults := l.flags.Int("faults", 1_000_000, "no more faults than this")
	clients := l.flags.Int("clients", 32, "clients that work meanwhile")
	queues := l.flags.Int("queues", 25, "queues")
	fs := l.flags.String("fs", "ext4", "file system: ext4, ext4-writeback, ext4-nodelalloc or xfs")
	least := l.flags.Duration("shortest", 200*time.Millisecond, "shortest life of the daemon, once ready")
	longest := l.flags.Duration("longest", 2*time.Second, "longest life")
	if done, err := apart(ctx); done {
		return err
	}
	if err := l.open(ctx); err != nil {
		return err
	}
	defer l.close()
	make, known := fileSystems[*fs]
	if !known {
		return fmt.Errorf("no file system %q", *fs)
	}
	m, err := make(l)
	if err != nil {
		return err
	}
	defer m.close()
	sup, err := l.supervisor(filepath.Join(m.dir(), "data"), small...)
	if err != nil {
		return err
	}
	defer sup.Close()
	h := &histories{l, m, sup, *least, *longest}
	happened := map[string]int{}
	// A pace, so that the verdict takes less time than the history: what matters
	// is the number of deaths, and what is under way at each.
	crew := workload.Options{Clients: *clients, Queues: *queues, Pace: 2 * time.Millisecond}
	c := campaign{lab: l, sup: sup, count: *faults, until: time.Now().Add(*length), crew: crew}
	c.strike = func(ctx context.Context) error {
		t := h.draw()
		if err := t.cause(h, ctx); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		happened[t.name]++
		l.fired.Add(1)
		return nil
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	for _, t := range troubles {
		fmt.Printf("histories: %d %s\n", happened[t.name], t.name)
	}
	return nil
}

// draw picks what happens next.
func (h *histories) draw() trouble {
	sum := 0
	for _, t := range troubles {
		sum += t.share
	}
	n := h.rng.IntN(sum)
	i := slices.IndexFunc(troubles, func(t trouble) bool {
		n -= t.share
		return n < 0
	})
	return troubles[i]
}

// live lets the daemon work for a while.
func (h *histories) live(ctx context.Context) error {
	if err := h.running(ctx, h.sup); err != nil {
		return err
	}
	if err := sleep(ctx, h.between(h.least, h.longest)); err != nil {
		return err
	}
	if !h.sup.Alive() {
		return h.broken("exit %d by itself: %s", h.sup.ExitCode(), h.sup.Stderr())
	}
	return nil
}

func (h *histories) kill(ctx context.Context) error {
	if err := h.live(ctx); err != nil {
		return err
	}
	return h.sup.Kill()
}

func (h *histories) killEarly(ctx context.Context) error {
	if h.sup.Alive() {
		if err := h.sup.Kill(); err != nil {
			return err
		}
	}
	if err := h.sup.Start(); err != nil {
		return err
	}
	if err := sleep(ctx, h.between(0, 60*time.Millisecond)); err != nil {
		return err
	}
	if !h.sup.Alive() {
		return h.broken("exit %d while starting: %s", h.sup.ExitCode(), h.sup.Stderr())
	}
	return h.sup.Kill()
}

func (h *histories) stop(ctx context.Context) error {
	if err := h.live(ctx); err != nil {
		return err
	}
	if code, err := h.sup.Terminate(ctx); err != nil || code != 0 {
		return h.broken("SIGTERM: exit %d, %v: %s", code, err, h.sup.Stderr())
	}
	return nil
}

func (h *histories) powerCut(ctx context.Context) error {
	if err := h.live(ctx); err != nil {
		return err
	}
	return h.m.cut(h.sup.Pause, h.sup.Kill)
}

func (h *histories) full(ctx context.Context) error {
	if err := h.live(ctx); err != nil {
		return err
	}
	if err := h.fullDisk(ctx, h.sup, filepath.Join(h.m.dir(), "filler")); err != nil {
		return err
	}
	// A power cut must not bring the filler back.
	dir, err := os.Open(h.m.dir())
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// jumps gives one daemon a clock that is set several times, and right in the
// end: what the next one makes of the difference is another matter.
func (h *histories) jumps(ctx context.Context) error {
	if h.sup.Alive() {
		if err := h.sup.Kill(); err != nil {
			return err
		}
	}
	h.sup.SetOptions(func(o *daemon.Options) { o.Trace = &tracee.Options{} })
	defer h.sup.SetOptions(func(o *daemon.Options) { o.Trace = nil })
	if err := h.running(ctx, h.sup); err != nil {
		if errors.Is(err, tracee.ErrUnsupported) {
			return fmt.Errorf("%w: %w", errImpossible, err)
		}
		return err
	}
	for range 1 + h.rng.IntN(4) {
		shift, err := h.jump(ctx, h.sup)
		if err != nil {
			return err
		}
		if h.rng.IntN(3) > 0 {
			continue
		}
		if err := h.restartShifted(ctx, h.sup, shift); err != nil {
			return err
		}
	}
	if err := h.trueClock(ctx, h.sup); err != nil {
		return err
	}
	return h.sup.Kill()
}

func (h *histories) pause(ctx context.Context) error {
	if err := h.live(ctx); err != nil {
		return err
	}
	return h.paused(ctx, h.sup)
}
