//go:build linux

package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"pawl/internal/record"
	"pawl/internal/seeds"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/history"
	"pawl/internal/torture/workload"
)

// small makes the daemon's log and snapshots so small that a short run passes
// through many generations, snapshots and prunings.
var small = []string{"--generation-size", "64KiB", "--snapshot-bytes", "64KiB"}

// lab is what every layer needs: a place, a binary, a seed, a recorder.
type lab struct {
	name   string
	args   []string // as given, to say how to run it again
	seed   uint64
	rng    *rand.Rand
	dir    string // scratch, removed by close unless something was found
	binary string
	rec    *history.Recorder // of fresh
	keep   bool
	latest atomic.Pointer[history.Recorder] // rec, for progress
	fired  atomic.Int64                     // faults that took place so far, of a campaign
	before history.IDs                      // of earlier parts of the history
	began  time.Time                        // of what the next line on record is about
	done   func()                           // ends the reports of progress

	flags      *flag.FlagSet
	givenDir   *string
	givenBin   *string
	overlay    *string
	bounds     *bool
	saveAlways *string
	record     *string
	drainIn    *time.Duration
}

// places are the flags of every lab that do not change what is done.
var places = []string{"dir", "binary", "save", "record"}

// newLab makes a lab whose flags the layer may add to before it calls open.
func newLab(name string, args []string) *lab {
	l := &lab{name: name, args: args, flags: flag.NewFlagSet(name, flag.ContinueOnError)}
	l.givenDir = l.flags.String("dir", "", "scratch directory; one is made and removed without it")
	l.givenBin = l.flags.String("binary", "", "the pawl to test; it is built without it")
	l.overlay = l.flags.String("overlay", "", "file for go build -overlay, when building")
	l.bounds = l.flags.Bool("bounds", false, "judge the bounds on time too (L1 to L8); for a machine of its own")
	l.saveAlways = l.flags.String("save", "", "keep the history in this file even if nothing is wrong")
	l.drainIn = l.flags.Duration("drain", 2*daemon.Patience, "how long the drain at the end may take; with a bug it may never end")
	l.record = l.flags.String("record", "", "append a line about this run to the record in this file")
	return l
}

// open parses the flags, makes the scratch directory and builds the daemon. A
// lab that did not open is closed.
func (l *lab) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if err := l.flags.Parse(l.args); err != nil {
		return err
	}
	l.seed = seeds.For("torture " + l.name)
	l.rng = seeds.New(l.seed)
	l.fresh()
	l.began = time.Now()
	l.done = l.progress(ctx)
	if l.dir = *l.givenDir; l.dir == "" {
		if l.dir, err = os.MkdirTemp("", "pawl-torture-"); err != nil {
			return err
		}
		scratch.add(l.dir)
	} else if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	} else {
		l.keep = true
	}
	if l.binary = *l.givenBin; l.binary == "" {
		l.binary = filepath.Join(l.dir, "pawl")
		return daemon.Build(ctx, l.binary, *l.overlay)
	}
	l.binary, err = filepath.Abs(l.binary)
	return err
}

// fresh begins a new history.
func (l *lab) fresh() {
	l.rec = history.NewRecorder()
	l.latest.Store(l.rec)
	l.fired.Store(0)
	l.before = history.IDs{}
}

// close removes the scratch directory.
func (l *lab) close() {
	if l.done != nil {
		l.done()
	}
	if l.dir == "" || l.keep {
		return
	}
	if err := os.RemoveAll(l.dir); err != nil {
		fmt.Fprintf(os.Stderr, "%s: remove scratch: %v\n", l.name, err)
	}
}

// data is the directory of the daemon's data.
func (l *lab) data() string { return filepath.Join(l.dir, "data") }

// openDaemon opens the lab with a daemon on its data, which is not started yet.
// leave ends both, the daemon first.
func (l *lab) openDaemon(ctx context.Context, args ...string) (sup *daemon.Supervisor, leave func(), err error) {
	if err := l.open(ctx); err != nil {
		return nil, nil, err
	}
	if sup, err = l.supervisor(l.data(), args...); err != nil {
		l.close()
		return nil, nil, err
	}
	return sup, func() { sup.Close(); l.close() }, nil
}

// startMeasured opens the lab and starts a daemon whose metrics, at admin, say
// all that it can measure of itself.
func (l *lab) startMeasured(ctx context.Context) (sup *daemon.Supervisor, admin string, leave func(), err error) {
	if sup, leave, err = l.openDaemon(ctx); err != nil {
		return nil, "", nil, err
	}
	if admin, err = l.port(); err == nil {
		sup.SetOptions(func(o *daemon.Options) { o.Args = []string{"--admin-addr", admin, "--pprof"} })
		err = l.start(ctx, sup)
	}
	if err != nil {
		leave()
		return nil, "", nil, err
	}
	return sup, admin, leave, nil
}

// port finds an address that nothing listens on.
func (l *lab) port() (string, error) { return daemon.Port(l.rng.Uint64N(1 << 20)) }

// supervisor makes one on a port of its own.
func (l *lab) supervisor(dir string, args ...string) (*daemon.Supervisor, error) {
	addr, err := l.port()
	if err != nil {
		return nil, err
	}
	return daemon.New(daemon.Options{Binary: l.binary, Dir: dir, Addr: addr, Args: args}, l.rec), nil
}

// between draws a time from [low, high).
func (l *lab) between(low, high time.Duration) time.Duration {
	return low + time.Duration(l.rng.Int64N(int64(high-low)))
}

// layer is the subcommand; name may say more.
func (l *lab) layer() string {
	name, _, _ := strings.Cut(l.name, "/")
	return name
}

// again is the command that runs the layer with the same seed.
func (l *lab) again() string {
	return strings.TrimSpace(fmt.Sprintf("%s go run ./internal/torture %s %s", seeds.Replay(), l.layer(), strings.Join(l.args, " ")))
}

// judge checks the recorded history, prints the layer's line, and on a
// violation keeps what is needed to look into it.
func (l *lab) judge(faults int) error {
	report, err := l.verdict(l.rec.History())
	if err != nil {
		return err
	}
	return l.account(record.Run{Cases: report.Ops, Faults: faults}, report.String())
}

// verdict checks one history. An error is a violation, which is on record and
// on the screen, or the file that the history should be saved in.
func (l *lab) verdict(h history.History) (history.Report, error) {
	report := history.Check(h, history.Options{Bounds: *l.bounds, Before: &l.before})
	if *l.saveAlways != "" {
		if err := saveHistory(*l.saveAlways, h); err != nil {
			return report, err
		}
	}
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Outcome == history.No && !workload.Expected(op.Error) {
			return report, l.broken("a client's %s was refused: %s", op.Kind, op.Error)
		}
	}
	if report.OK() {
		return report, nil
	}
	if err := l.account(record.Run{
		Cases: report.Ops, Faults: int(l.fired.Load()), Violations: report.Broken(), Undecided: report.Undecided,
	}, report.String()); err != nil {
		return report, err
	}
	return report, l.found(h)
}

// account prints the line that a layer ends with, and puts it on record if
// that was asked for. Of r, what the layer counted is given; the text says
// more, on further lines if there is much of it.
func (l *lab) account(r record.Run, text string) error {
	r.Date, r.Seconds, l.began = time.Now(), time.Since(l.began).Seconds(), time.Now()
	r.Layer, r.Seed, r.Parameters = numbered(l.name), seeds.Base(), l.parameters()
	if text != "" {
		text = " (" + text + ")"
	}
	fmt.Printf("%s: %d cases, %d faults, %d violations, %d undecided, %.1f s, seed %s%s\n",
		r.Layer, r.Cases, r.Faults, r.Violations, r.Undecided, r.Seconds, r.Seed, text)
	if *l.record == "" {
		return nil
	}
	r.Commit = l.commit()
	return record.Append(*l.record, r)
}

// numbers are those of the layers of the test plan, under which the record sums
// up what is proved: 2c is dying at any instruction, 3 power and disks, 5
// histories of clients, 7 endurance, 8 hostile clients. 0, 1, 2a, 2b, 4, 6, 9 and
// 10 are tests of the packages.
var numbers = map[string]string{
	"kill": "2c", "calls": "2c", "orders": "2c",
	"trace": "3a", "power": "3b", "disk": "3b", "lie": "3b", "sick": "3c",
	"histories": "5", "full": "5", "files": "5", "memory": "5", "trickle": "5", "clock": "5", "pause": "5", "unique": "5", "multi": "5", "http": "5", "delayed": "5", "masses": "5", "leases": "5",
	"churn": "7", "soak": "7",
	"hostile": "8", "door": "8", "attacks": "8", "crowd": "8",
}

// numbered is the name of a layer as it is on record.
func numbered(name string) string {
	layer, _, _ := strings.Cut(name, "/")
	return strings.TrimSpace(numbers[layer] + " " + name)
}

// parameters are the layer's flags as they were given, without those that say
// only where things are.
func (l *lab) parameters() string {
	var given []string
	for i := 0; i < len(l.args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(l.args[i], "-"), "=")
		if slices.Contains(places, name) {
			if !joined {
				i++ // its value
			}
			continue
		}
		given = append(given, l.args[i])
	}
	return strings.Join(given, " ")
}

// commit says which code is tested: what the binary knows, or the working
// directory does. Bugs that are laid over the source are nobody's commit.
func (l *lab) commit() string {
	if *l.overlay != "" {
		return "unknown"
	}
	info, err := buildinfo.ReadFile(l.binary)
	if err != nil || *l.givenBin == "" {
		return record.Commit()
	}
	var revision, mark string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			mark = "+"
		}
	}
	if revision == "" {
		return record.Commit()
	}
	return revision + mark
}

// every is how often a layer says how far it is.
const every = 10 * time.Second

// progress prints a line now and then until the function it returns is called.
func (l *lab) progress(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	began, ticks := l.began, time.NewTicker(every)
	go func() {
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				ops, starts := l.latest.Load().Count()
				fmt.Fprintf(os.Stderr, "%s: %.0f s, %d faults, %d operations and %d starts not judged yet\n", l.layer(), time.Since(began).Seconds(), l.fired.Load(), ops, starts)
			}
		}
	}()
	return cancel
}

// found keeps the history and the directory of a failure and says how to go on.
func (l *lab) found(h history.History) error {
	file, err := os.CreateTemp("", "pawl-history-*.jsonl")
	if err != nil {
		return err
	}
	name := file.Name()
	if err := file.Close(); err != nil {
		return err
	}
	if err := saveHistory(name, h); err != nil {
		return err
	}
	l.keep = true
	fmt.Printf("run again:   %s\njudge again: go run ./internal/torture check %s\ndata:        %s\n", l.again(), name, l.dir)
	return errViolated
}

// broken reports a violation that is no matter of histories: a daemon that
// does not start, a directory that cannot be read.
func (l *lab) broken(format string, args ...any) error {
	if scratch.interrupted() {
		return context.Canceled // nothing is proved by what ends because we end
	}
	fmt.Printf("%s: violated: %s\n", l.name, fmt.Sprintf(format, args...))
	h := l.rec.History()
	return errors.Join(l.account(record.Run{Cases: len(h.Ops), Violations: 1}, ""), l.found(h))
}

func saveHistory(name string, h history.History) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := history.Save(f, h); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// runCheck judges saved histories.
func runCheck(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	bounds := flags.Bool("bounds", false, "judge the bounds on time too (L1 to L8)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	violated := false
	for _, name := range flags.Args() {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		h, err := history.Load(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		report := history.Check(h, history.Options{Bounds: *bounds})
		fmt.Printf("%s: %s\n", name, report)
		violated = violated || !report.OK()
	}
	if violated {
		return errViolated
	}
	return nil
}
