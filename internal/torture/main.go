//go:build linux

// Command torture proves what the daemon promises, on the real binary: it
// kills it, cuts its power, tears its writes, lies to it about its disk, and
// judges what clients saw by package history.
//
//	go run ./internal/torture kill -kills 200
//
// Each subcommand is one layer of the proof and ends with one line of figures:
// cases (operations judged), faults (that took place), violations, what the
// judge did not decide, seconds and seed; -record FILE keeps it. It exits with 0
// when nothing was violated, 1 when something was, 2 when it could not be run, 3
// when this machine does not allow it (mounting, ptrace), and 130 soon after it
// was interrupted or told to end. While it runs it says every ten seconds how far
// it is.
//
// Seeds come from PAWL_SEED (package seeds). A failure prints the command that
// plays the same seed again, and keeps the history for `torture check`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// layer is one subcommand.
type layer struct {
	name    string
	summary string
	run     func(ctx context.Context, args []string) error
}

func layers() []layer {
	return []layer{
		{"histories", "everything at once: kills, power cuts, full disks, clock jumps", runHistories},
		{"kill", "SIGKILL at random moments under many clients", runKill},
		{"calls", "die, tear or fail at the N-th storage call", runCalls},
		{"power", "power cuts on ext4, XFS and a disk that forgets", runPower},
		{"lie", "the control: a disk that lies must be noticed", runLie},
		{"trace", "write, sync, reply: the order of system calls under strace", runTrace},
		{"full", "a disk that fills up, and has space again", runFull},
		{"files", "no file can be opened for a while", runFiles},
		{"orders", "SIGKILL while the daemon reloads, and carries out CONFIG SET and DRAIN", runOrders},
		{"memory", "less memory than it needs, at work and at a start", runMemory},
		{"trickle", "sockets that take few bytes at a time, and calls that are interrupted", runTrickle},
		{"clock", "a wall clock that jumps", runClock},
		{"pause", "a daemon stopped for longer than leases last", runPause},
		{"door", "second daemons, wrong starts, stuck clients at SIGTERM", runDoor},
		{"delayed", "very many jobs due in one second: none early, how late", runDelayed},
		{"leases", "a kill with very many open leases; leases that end while they are acknowledged", runLeases},
		{"masses", "TTLs, leases and a PURGE end at once under load", runMasses},
		{"hostile", "clients that mean it badly, beside others that work", runHostile},
		{"churn", "jobs come and go beside one that stays: disk and restart", runChurn},
		{"soak", "a mixed load for long, with restarts, resources watched", runSoak},
		{"unique", "resent enqueues with unique keys under kills: one job a key", runUnique},
		{"multi", "transactions under kills: tokens neither lost nor doubled", runMulti},
		{"http", "lmstfy's HTTP API under kills: the sums at the end", runHTTP},
		{"disk", "power cuts on a disk that sees every block write", runDisk},
		{"sick", "a disk that fails at its k-th block write", runSick},
		{"attacks", "what each attack costs: memory, and how the others fare", runAttacks},
		{"attacker", "the clients of one attack, which attacks starts", runAttacker},
		{"crowd", "thousands of connections that do nothing, or wait", runCrowd},
		{"planted", "bugs laid over the source, each of which must be caught", runPlanted},
		{"long", "a layer again and again, in slices that go on where they stopped", runLong},
		{"record", "sum up what is on record", runRecord},
		{"check", "judge histories that were saved", runCheck},
	}
}

var (
	errViolated = errors.New("a promise was broken")
	// errImpossible is in the error of a layer that this machine does not allow.
	errImpossible = errors.New("not possible on this machine")
)

// The exit codes.
const (
	exitViolated   = 1
	exitFailed     = 2
	exitImpossible = 3
	exitStopped    = 130
)

func main() { os.Exit(torture()) }

func torture() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all := layers()
	if len(os.Args) < 2 {
		usage(all)
		return exitFailed
	}
	i := slices.IndexFunc(all, func(l layer) bool { return l.name == os.Args[1] })
	if i < 0 {
		usage(all)
		return exitFailed
	}
	go func() {
		<-ctx.Done()
		scratch.interrupt()
		stop() // a second signal ends it at once
		time.Sleep(grace)
		scratch.remove()
		os.Exit(exitStopped)
	}()
	err := all[i].run(ctx, os.Args[2:])
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "%s: stopped\n", all[i].name)
		return exitStopped
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errViolated):
		return exitViolated
	case errors.Is(err, errImpossible):
		fmt.Printf("%s: skipped: %v\n", all[i].name, err)
		return exitImpossible
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", all[i].name, err)
	return exitFailed
}

func usage(all []layer) {
	var b strings.Builder
	b.WriteString("usage: go run ./internal/torture LAYER [flags]\n\n")
	for _, l := range all {
		fmt.Fprintf(&b, "  %-9s %s\n", l.name, l.summary)
	}
	b.WriteString("\nLAYER -h lists its flags.\n")
	fmt.Fprint(os.Stderr, b.String())
}
