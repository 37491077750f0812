//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pawl/engine"
	"pawl/internal/record"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/history"
	"pawl/internal/torture/workload"
)

// resources is what a process and its directory take.
type resources struct {
	rss     int64 // bytes
	threads int
	files   int   // open descriptors
	disk    int64 // bytes, as allocated
}

// measure reads it from procfs and the directory.
func measure(pid int, dir string) (r resources, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return r, err
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // other lines are not numbers
		switch key {
		case "VmRSS":
			r.rss = n << 10
		case "Threads":
			r.threads = int(n)
		}
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return r, err
	}
	r.files = len(fds)
	r.disk, err = diskUse(dir)
	return r, err
}

// diskUse is the size of all files below dir. Files that go meanwhile are
// not counted.
func diskUse(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// runChurn: jobs come and go beside one that stays for ever. The disk must stay
// within the formula, however old the oldest job is, and a restart be quick.
func runChurn(ctx context.Context, args []string) error {
	l := newLab("churn", args)
	jobs := l.flags.Int("jobs", 1_000_000, "jobs that come and go")
	clients := l.flags.Int("clients", 8, "clients")
	size := l.flags.Int("size", 100, "bytes of payload")
	generation := l.flags.Int64("generation", 4<<20, "--generation-size")
	snapshot := l.flags.Int64("snapshot", 64<<20, "--snapshot-bytes")
	sup, leave, err := l.openDaemon(ctx)
	if err != nil {
		return err
	}
	defer leave()
	sup.SetOptions(func(o *daemon.Options) {
		o.Args = []string{"--generation-size", fmt.Sprint(*generation), "--snapshot-bytes", fmt.Sprint(*snapshot)}
	})
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	crew := workload.New(workload.Options{Seed: l.seed, Clients: *clients, Queues: 1, Plain: true, Payload: 1}, sup, l.rec)
	if err := crew.Place(ctx, 1); err != nil {
		return err
	}
	// What exists at any time is one job and one pipeline of each client; its
	// snapshot is a few pages.
	const pipeline, recordBytes, snapshotBytes = 64, 400, 256 << 10
	live := int64(1 + *clients*pipeline)
	limit := engine.DiskBound(live*(recordBytes+int64(*size)), snapshotBytes, *snapshot, *generation)
	finished := make(chan error, 1)
	go func() { finished <- crew.Churn(ctx, *jobs / *clients, *size, pipeline) }()
	var most, last resources
	for done := false; !done; {
		select {
		case err := <-finished:
			if err != nil {
				return err
			}
			done = true
		case <-time.After(50 * time.Millisecond):
		}
		if last, err = measure(sup.Pid(), l.data()); err != nil {
			return err
		}
		most.rss, most.disk = max(most.rss, last.rss), max(most.disk, last.disk)
	}
	// On a machine that is starved, snapshots come late, and the log between the
	// two that are kept is longer. With -bounds the formula must hold all the
	// time, else three times as much in the end: what grows with the number of
	// jobs that ever were is found by that too.
	over := most.disk
	if !*l.bounds {
		limit *= 3
	}
	for deadline := time.Now().Add(daemon.Patience); !*l.bounds && last.disk > limit && time.Now().Before(deadline); {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
		if last.disk, err = diskUse(l.data()); err != nil {
			return err
		}
	}
	if !*l.bounds {
		over = last.disk
	}
	if over > limit {
		return l.broken("the directory holds %d bytes, the formula allows %d", over, limit)
	}
	if err := sup.Kill(); err != nil {
		return err
	}
	began := time.Now()
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	took := time.Since(began)
	if *l.bounds && took > 2*time.Second {
		return l.broken("the restart took %v", took)
	}
	if err := l.end(ctx, sup, crew); err != nil {
		return err
	}
	if n := drainedJobs(l.rec.History()); n != 1 {
		return l.broken("of the one job that stayed %d are there", n)
	}
	fmt.Printf("churn: %d jobs, disk at most %.1f MiB of %.1f, memory at most %.1f MiB, restart %v\n",
		*jobs, mib(most.disk), mib(limit), mib(most.rss), took.Round(time.Millisecond))
	report, err := l.verdict(l.rec.History())
	if err != nil {
		return err
	}
	return l.account(record.Run{Cases: *jobs, Faults: 1}, report.String())
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// runSoak: a mixed load for long, with restarts, while memory, descriptors and
// threads are watched.
func runSoak(ctx context.Context, args []string) error {
	l := newLab("soak", args)
	length := l.flags.Duration("for", 3*time.Minute, "how long")
	life := l.flags.Duration("life", time.Minute, "time between two restarts; every second one is a kill")
	clients := l.flags.Int("clients", 16, "clients")
	pace := l.flags.Duration("pace", 5*time.Millisecond, "pause of each client between two operations")
	sup, leave, err := l.openDaemon(ctx)
	if err != nil {
		return err
	}
	defer leave()
	crew := workload.New(workload.Options{Seed: l.seed, Clients: *clients, Pace: *pace}, sup, l.rec)
	end := time.Now().Add(*length)
	faults := 0
	err = withCrew(ctx, crew, func() error {
		for ; time.Now().Before(end); faults++ {
			if err := l.start(ctx, sup); err != nil {
				return err
			}
			if err := l.watch(ctx, sup, min(*life, time.Until(end))); err != nil {
				return err
			}
			if faults%2 == 0 {
				if err := sup.Kill(); err != nil {
					return err
				}
			} else if code, err := sup.Terminate(ctx); err != nil || code != 0 {
				return l.broken("SIGTERM: exit %d, %v: %s", code, err, sup.Stderr())
			}
		}
		return l.start(ctx, sup)
	})
	if err != nil {
		return err
	}
	if err := l.end(ctx, sup, crew); err != nil {
		return err
	}
	return l.judge(faults)
}

// watch measures one incarnation and prints how it went.
func (l *lab) watch(ctx context.Context, sup *daemon.Supervisor, life time.Duration) error {
	var first, last resources
	began := time.Now()
	for time.Since(began) < life {
		if err := sleep(ctx, min(time.Second, life)); err != nil {
			return err
		}
		if !sup.Alive() {
			return l.broken("exit %d by itself: %s", sup.ExitCode(), sup.Stderr())
		}
		var err error
		if last, err = measure(sup.Pid(), l.data()); err != nil {
			return err
		}
		if first.rss == 0 && time.Since(began) > life/4 {
			first = last
		}
		l.rec.Event(history.Event{Kind: history.Disk, Incarnation: sup.Incarnation(), Bytes: last.disk})
	}
	fmt.Printf("soak: incarnation %d: memory %.1f → %.1f MiB, %d → %d descriptors, %d → %d threads, disk %.1f MiB\n",
		sup.Incarnation(), mib(first.rss), mib(last.rss), first.files, last.files, first.threads, last.threads, mib(last.disk))
	return nil
}
