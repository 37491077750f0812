package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"pawl/bench"
)

// benchFlags are what pawl bench can be told.
type benchFlags struct {
	options          bench.Options
	addr             string
	target, against  string
	againstAddr      string
	namespace, token string
	start            bool
	dir, sync        string
	serve            []string
	runs             int
	asJSON           bool
}

func benchCommand() subcommand {
	return subcommand{
		name: "bench", args: "enqueue|cycle|worker|mixed|backlog", summary: "load a daemon and measure it, alone or against another server",
		group: groupTools,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("bench")
			var f benchFlags
			o := &f.options
			fs.IntVar(&o.Conns, "conns", 16, "connections")
			fs.IntVar(&o.Pipeline, "pipeline", 1, "requests in flight on each connection")
			fs.IntVar(&o.Payload, "payload", 100, "bytes of a payload")
			fs.DurationVar(&o.Duration, "duration", 10*time.Second, "measured time of a run")
			fs.DurationVar(&o.Warmup, "warmup", time.Second, "before it, not counted")
			fs.IntVar(&o.Jobs, "jobs", 200_000, "backlog: jobs to enqueue beforehand")
			fs.Uint64Var(&o.Seed, "seed", 1, "of payloads and random choices")
			fs.IntVar(&f.runs, "runs", 1, "how often; with --against, pairs of runs")
			fs.BoolVar(&f.start, "start", false, "start the daemon, in a temporary directory")
			fs.StringVar(&f.dir, "data", "", "start: where that directory goes; it should be on the disk to be measured")
			fs.StringVar(&f.sync, "sync", "always", "start: always or never")
			fs.StringArrayVar(&f.serve, "serve-flag", nil, "start: a further flag for pawl serve, may repeat")
			fs.StringVar(&f.target, "target", "pawl", "pawl, pawl-http, redis or beanstalkd")
			fs.StringVar(&f.addr, "addr", "", "its address, its default one when left out")
			fs.StringVar(&f.namespace, "namespace", "default", "pawl-http: namespace")
			fs.StringVar(&f.token, "token", "", "pawl-http: token")
			fs.StringVar(&f.against, "against", "", "redis or beanstalkd: start it too, measure both in turns")
			fs.StringVar(&f.againstAddr, "against-addr", "", "do not start it, it is there")
			fs.BoolVar(&f.asJSON, "json", false, "print as JSON")
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				o.Workload = bench.Workload(args[0])
				return f.run(ctx, e)
			}
		},
	}
}

func (f *benchFlags) run(ctx context.Context, e *env) error {
	known := false
	for _, w := range bench.Workloads {
		known = known || w == f.options.Workload
	}
	if !known {
		return usagef("unknown workload %q, want one of %v", f.options.Workload, bench.Workloads)
	}
	if f.options.Conns < 1 || f.options.Pipeline < 1 || f.options.Payload < 1 || f.runs < 1 || f.options.Duration <= 0 {
		return usagef("conns, pipeline, payload, runs and duration must be above 0")
	}
	if f.options.Warmup == 0 {
		f.options.Warmup = -1
	}
	if f.sync != "always" && f.sync != "never" {
		return usagef("--sync %q, want always or never", f.sync)
	}
	if !f.asJSON {
		f.options.Live = liveLine(e)
	}
	ours, stop, err := f.server(ctx, f.target, f.addr, f.start)
	if err != nil {
		return withExit(exitNoServer, err)
	}
	defer stop()
	if f.against != "" {
		return f.runPair(ctx, e, ours)
	}
	f.options.Target = ours
	var runs []bench.Result
	for range f.runs {
		r, err := bench.Run(ctx, f.options)
		if err != nil {
			return err
		}
		runs = append(runs, r)
		f.options.Seed++
	}
	clearLine(e)
	if f.asJSON {
		return printJSON(e.stdout, runs)
	}
	bench.Print(e.stdout, runs)
	return nil
}

func (f *benchFlags) runPair(ctx context.Context, e *env, ours bench.Target) error {
	theirs, stop, err := f.server(ctx, f.against, f.againstAddr, f.againstAddr == "")
	if err != nil {
		return withExit(exitNoServer, err)
	}
	defer stop()
	pair, err := bench.RunPair(ctx, f.options, ours, theirs, f.runs)
	if err != nil {
		return err
	}
	clearLine(e)
	if f.asJSON {
		return printJSON(e.stdout, pair)
	}
	bench.Print(e.stdout, pair.Ours)
	fmt.Fprintln(e.stdout)
	bench.Print(e.stdout, pair.Theirs)
	fmt.Fprintf(e.stdout, "\n%s by %s: median %.2f (%.2f to %.2f) of %d pair(s)\n", ours.Name(), theirs.Name(), pair.Ratio.Median, pair.Ratio.Min, pair.Ratio.Max, f.runs)
	return nil
}

// server starts a server of a kind, or takes the one at addr.
func (f *benchFlags) server(ctx context.Context, kind, addr string, start bool) (bench.Target, func(), error) {
	if start {
		s, err := bench.Start(ctx, bench.StartOptions{Kind: kind, Dir: f.dir, Sync: f.sync, Flags: f.serve})
		if err != nil {
			return nil, nil, err
		}
		return s.Target, func() { s.Stop() }, nil
	}
	at := func(usual string) string {
		if addr != "" {
			return addr
		}
		return usual
	}
	nothing := func() {}
	switch kind {
	case "pawl":
		password := os.Getenv("PAWL_PASSWORD")
		return bench.Pawl{Addr: at("127.0.0.1:6380"), User: os.Getenv("PAWL_USER"), Password: password}, nothing, nil
	case "pawl-http":
		return bench.PawlHTTP{Addr: at("127.0.0.1:7777"), Namespace: f.namespace, Token: f.token}, nothing, nil
	case "redis":
		return bench.Redis{Addr: at("127.0.0.1:6379")}, nothing, nil
	case "beanstalkd":
		return bench.Beanstalkd{Addr: at("127.0.0.1:11300")}, nothing, nil
	}
	return nil, nil, usagef("unknown target %q, want pawl, pawl-http, redis or beanstalkd", kind)
}

// liveLine rewrites one line of standard error once a second, if that is a
// terminal.
func liveLine(e *env) func(time.Duration, int64) {
	if !isTerminal(e.stderr) {
		return nil
	}
	var last int64
	var lastAt time.Duration
	return func(elapsed time.Duration, done int64) {
		if elapsed < lastAt {
			last, lastAt = 0, 0 // the next run
		}
		fmt.Fprintf(e.stderr, "\r\x1b[K%4.0f s  %9.0f/s  %d done", elapsed.Seconds(), float64(done-last)/(elapsed-lastAt).Seconds(), done)
		last, lastAt = done, elapsed
	}
}

func clearLine(e *env) {
	if isTerminal(e.stderr) {
		fmt.Fprint(e.stderr, "\r\x1b[K")
	}
}
