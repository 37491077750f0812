//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"pawl/internal/torture/blockdisk"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/history"
	"pawl/internal/torture/workload"
)

// diskBytes is the size of the disk that the file system is made on.
const diskBytes = 64 << 20

// runDisk: the daemon's directory is on a real file system on a disk that sees
// every block write and flush. The power is cut: the daemon is stopped first,
// so that no answer leaves it any more, then an image is taken that holds what
// was flushed and any part of what was written since. The daemon goes on from
// that image under the same clients, whose history is judged at the end;
// further images of the same cut are only started from and stopped again.
//
// With -lie the disk forgets its flushes: the control, which must be reported.
func runDisk(ctx context.Context, args []string) error {
	if done, err := apart(ctx); done {
		return err
	}
	l := newLab("disk", args)
	cuts := l.flags.Int("cuts", 10, "how often the power is cut")
	images := l.flags.Int("images", 4, "further images of each cut that are started from")
	clients := l.flags.Int("clients", 16, "clients that work meanwhile")
	fs := l.flags.String("fs", "ext4", "ext4 or xfs")
	lie := l.flags.Bool("lie", false, "a disk that forgets its flushes; to be reported")
	return l.onRig(ctx, fs, func(r *rig, sup *daemon.Supervisor) error {
		c := campaign{lab: l, sup: sup, count: *cuts, crew: workload.Options{Clients: *clients}}
		c.strike = func(ctx context.Context) error {
			if err := l.start(ctx, sup); err != nil {
				return err
			}
			r.disk.Lie(*lie)
			if err := sleep(ctx, l.between(50*time.Millisecond, time.Second)); err != nil {
				return err
			}
			if err := sup.Pause(); err != nil {
				return err
			}
			next := r.disk.Crash(l.rng)
			others := make([][]byte, *images)
			for i := range others {
				others[i] = r.disk.Crash(l.rng)
			}
			r.disk.Lie(false)
			if err := sup.Kill(); err != nil {
				return err
			}
			if err := r.unmount(); err != nil {
				return err
			}
			for _, image := range others {
				l.fired.Add(1)
				if err := r.try(ctx, image, *lie); err != nil {
					return err
				}
			}
			l.fired.Add(1)
			return r.goOn(next, sup)
		}
		return c.run(ctx)
	})
}

// rig is a disk that sees every block write, with a file system that is mounted
// and holds the daemon's directory.
type rig struct {
	*lab
	disk    *blockdisk.Disk
	options blockdisk.Options
	mounted *blockdisk.Mounted
	mounts  int
}

// onRig opens the lab and has a layer work on a rig with a file system of kind
// fs, whose flag it may be.
func (l *lab) onRig(ctx context.Context, fs *string, work func(*rig, *daemon.Supervisor) error) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	defer l.close()
	// commit=1000: the journal's timer must not do what the daemon forgot.
	r := &rig{lab: l, disk: blockdisk.New(diskBytes), options: blockdisk.Options{Make: "ext4", Data: "commit=1000"}}
	if *fs == "xfs" {
		// The least that mkfs.xfs takes.
		r.disk, r.options = blockdisk.New(320<<20), blockdisk.Options{Make: "xfs"}
	}
	if err := r.mount(); err != nil {
		return err
	}
	defer r.unmount()
	sup, err := l.supervisor(r.data(), small...)
	if err != nil {
		return err
	}
	defer sup.Close()
	return work(r, sup)
}

func (r *rig) mount() error {
	r.mounts++
	m, err := blockdisk.Mount(r.disk, filepath.Join(r.dir, fmt.Sprintf("disk%d", r.mounts)), r.options)
	if errors.Is(err, blockdisk.ErrUnsupported) {
		return fmt.Errorf("%w: %w", errImpossible, err)
	}
	r.mounted = m
	return err
}

func (r *rig) unmount() error {
	if r.mounted == nil {
		return nil
	}
	m := r.mounted
	r.mounted = nil
	return m.Close()
}

// goOn mounts what a disk held in its end, and lets the next daemon start there.
func (r *rig) goOn(image []byte, sup *daemon.Supervisor) error {
	r.disk, r.options.Make = blockdisk.FromImage(image), ""
	if err := r.mount(); err != nil {
		return err
	}
	sup.SetOptions(func(o *daemon.Options) { o.Dir = r.data() })
	return nil
}

func (r *rig) data() string { return filepath.Join(r.mounted.Dir, "data") }

// try mounts an image and lets `pawl check` judge the directory on it: a start
// from it would have to succeed without loss.
func (r *rig) try(ctx context.Context, image []byte, lie bool) error {
	other := &rig{lab: r.lab, disk: blockdisk.FromImage(image), mounts: 1000 * r.mounts}
	if err := other.mount(); err != nil {
		if lie {
			return nil // a lying disk can cost the file system itself
		}
		return err
	}
	defer other.unmount()
	if _, err := os.Stat(other.data()); errors.Is(err, os.ErrNotExist) && r.mounts == 1 {
		return nil // cut before the directory was made
	}
	out, err := exec.CommandContext(ctx, r.binary, "check", other.data()).CombinedOutput()
	if err != nil && !lie {
		return r.broken("an image of a power cut is refused: %v\n%s", err, out)
	}
	return nil
}

// runSick: the disk fails at its k-th block write and from then on, or once.
// The daemon must end with 74 soon after it has said so to its clients, and
// after the disk was healed everything acknowledged must be there.
func runSick(ctx context.Context, args []string) error {
	if done, err := apart(ctx); done {
		return err
	}
	l := newLab("sick", args)
	cases := l.flags.Int("cases", 10, "how many different writes fail")
	clients := l.flags.Int("clients", 8, "clients that work meanwhile")
	once := l.flags.Bool("once", false, "one write fails, later ones succeed; else all later ones fail too")
	ext4 := "ext4"
	return l.onRig(ctx, &ext4, func(r *rig, sup *daemon.Supervisor) error {
		c := campaign{lab: l, sup: sup, count: *cases, crew: workload.Options{Clients: *clients}}
		c.strike = func(ctx context.Context) error {
			if err := l.start(ctx, sup); err != nil {
				return err
			}
			if err := sleep(ctx, l.between(50*time.Millisecond, 300*time.Millisecond)); err != nil {
				return err
			}
			k := l.fired.Add(1)
			r.disk.Fail(k, !*once)
			if err := sup.WaitGone(ctx); err != nil {
				return l.broken("write %d failed and the daemon went on: %v", k, err)
			}
			l.rec.Event(history.Event{Kind: history.SyncFailed, Incarnation: sup.Incarnation()})
			code, err := sup.WaitExit(ctx)
			if err != nil {
				return err
			}
			if code != 74 {
				return l.broken("write %d failed and the daemon ended with %d: %s", k, code, sup.Stderr())
			}
			if !strings.Contains(sup.Stderr(), "input/output error") && !strings.Contains(sup.Stderr(), "read-only file system") {
				return l.broken("write %d failed and the daemon does not say so: %s", k, sup.Stderr())
			}
			r.disk.Fail(0, false)
			// What the file system could not write is lost with its cache: go on
			// from what is on the disk, as after a reboot.
			_ = r.unmount()
			return r.goOn(r.disk.Image(), sup)
		}
		return c.run(ctx)
	})
}
