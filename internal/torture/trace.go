//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/strace"
	"pawl/internal/torture/workload"
)

// tracedCalls are those that the order rules speak of.
const tracedCalls = "trace=openat,open,creat,mkdir,mkdirat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,rmdir," +
	"write,pwrite64,writev,pwritev,sendto,sendmsg,fsync,fdatasync"

// runTrace: the daemon runs under strace, and the order of its calls must be
// write, sync, reply, with every directory synced that a reply relies on.
func runTrace(ctx context.Context, args []string) error {
	l := newLab("trace", args)
	jobs := l.flags.Int("jobs", 60, "jobs that each client enqueues")
	clients := l.flags.Int("clients", 4, "clients")
	starts := l.flags.Int("starts", 2, "incarnations")
	sup, leave, err := l.openDaemon(ctx, "--generation-size", "16KiB", "--snapshot-bytes", "64KiB")
	if err != nil {
		return err
	}
	defer leave()
	tool, err := exec.LookPath("strace")
	if err != nil {
		return fmt.Errorf("%w: %w", errImpossible, err)
	}
	checked, synced := 0, 0
	for n := range *starts {
		out := filepath.Join(l.dir, fmt.Sprintf("trace%d", n))
		sup.SetOptions(func(o *daemon.Options) {
			o.Wrap = []string{tool, "-f", "-y", "-ttt", "-xx", "-s", "65536", "-e", tracedCalls, "-o", out}
		})
		if err := l.start(ctx, sup); err != nil {
			return err
		}
		crew := workload.New(workload.Options{Seed: l.seed, Clients: *clients, First: n * *clients, Payload: 1024, Least: 1024}, sup, l.rec)
		marks, err := crew.EnqueueMarked(ctx, *jobs)
		if err != nil {
			return err
		}
		if code, err := sup.Terminate(ctx); err != nil || code != 0 {
			return l.broken("SIGTERM: exit %d, %v: %s", code, err, sup.Stderr())
		}
		f, err := os.Open(out)
		if err != nil {
			return err
		}
		calls, err := strace.Parse(f)
		f.Close()
		if err != nil {
			return err
		}
		var exchanges []strace.Exchange
		for _, m := range marks {
			exchanges = append(exchanges, strace.Exchange{Logged: m.Nonce, Replied: m.Job})
		}
		r := strace.CheckOrder(calls, l.data(), exchanges)
		for _, wrong := range r.Wrong[:min(len(r.Wrong), 10)] {
			fmt.Printf("trace: violated: %s (in %s)\n", wrong, out)
		}
		if len(r.Wrong) > 0 {
			return l.found(l.rec.History())
		}
		// The last group's write may stand in a body cache of the library, but
		// most exchanges must be there, or the check checks nothing.
		if r.Checked < len(exchanges)/2 {
			return l.broken("only %d of %d exchanges are in the trace %s", r.Checked, len(exchanges), out)
		}
		checked, synced = checked+r.Checked, synced+r.Synced
	}
	fmt.Printf("trace: %d replies behind their sync, %d names behind their directory's\n", checked, synced)
	return l.judge(0)
}
