package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"pawl/bench"
)

// benchFlags are what pawl bench can be told.
type benchFlags struct {
	options          bench.Options
	conns, pipelines []int
	addr             string
	target, against  string
	againstAddr      string
	againstBinary    string
	namespace, token string
	againstToken     string
	start            bool
	dir, sync        string
	serve            []string
	runs             int
	delay            time.Duration
	soak             time.Duration
	soakRate         int
	queues, groups   int
	replies          int
	asJSON, asTable  bool
	commandLine      string
}

func benchCommand() subcommand {
	return subcommand{
		name: "bench", args: "WORKLOAD[,WORKLOAD]…|footprint|chart FILE…", summary: "load a daemon and measure it, alone or against another server",
		group: groupTools,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("bench")
			var f benchFlags
			o := &f.options
			kinds := strings.Join(bench.Kinds, ", ")
			fs.IntSliceVar(&f.conns, "conns", []int{16}, "connections; with several, a table is made")
			fs.IntSliceVar(&f.pipelines, "pipeline", []int{1}, "requests in flight on each connection; several as well")
			fs.IntVar(&o.Payload, "payload", 100, "bytes of a payload")
			fs.DurationVar(&o.Duration, "duration", 10*time.Second, "measured time of a run")
			fs.DurationVar(&o.Warmup, "warmup", time.Second, "before it, not counted")
			fs.IntVar(&o.Jobs, "jobs", 200_000, "backlog, footprint: jobs to enqueue beforehand")
			fs.DurationVar(&f.delay, "delay", 0, "footprint: of each job, 0 makes them ready")
			fs.DurationVar(&f.soak, "soak", 0, "footprint: how long to watch the critical section under load")
			fs.IntVar(&f.soakRate, "soak-rate", 0, "footprint: cycles a second of that load, 0 is as fast as they go")
			fs.IntVar(&f.queues, "queues", 1, "spread the jobs over so many queues; only of a pawl")
			fs.IntVar(&f.groups, "groups", 0, "footprint: of each queue to spread the jobs over, 0 is none")
			fs.IntVar(&f.replies, "reply-queues", 0, "footprint: queues to come and go beforehand, with one job each")
			fs.Uint64Var(&o.Seed, "seed", 1, "of payloads and random choices")
			fs.IntVar(&f.runs, "runs", 1, "how often each; with --against, pairs of runs; footprint: kills and starts")
			fs.BoolVar(&f.start, "start", false, "start the daemon, in a temporary directory")
			fs.StringVar(&f.dir, "data", "", "start: where that directory goes; it should be on the disk to be measured")
			fs.StringVar(&f.sync, "sync", "always", "start: always or never")
			fs.StringArrayVar(&f.serve, "serve-flag", nil, "start: a further flag for pawl serve, may repeat")
			fs.StringVar(&f.target, "target", "pawl", "what is measured: "+kinds)
			fs.StringVar(&f.addr, "addr", "", "its address, its default one when left out")
			fs.StringVar(&f.namespace, "namespace", "default", "pawl-http, lmstfy: namespace")
			fs.StringVar(&f.token, "token", "", "pawl-http, lmstfy: token")
			fs.StringVar(&f.against, "against", "", "start another one too, and measure both in turns")
			fs.StringVar(&f.againstBinary, "against-binary", "", "its program, when it is not on PATH or has another name")
			fs.StringVar(&f.againstAddr, "against-addr", "", "do not start it, it is there")
			fs.StringVar(&f.againstToken, "against-token", "", "and this is its token")
			fs.BoolVar(&f.asTable, "table", false, "print a table in Markdown, as with several loads")
			fs.BoolVar(&f.asJSON, "json", false, "print as JSON, which chart reads")
			return fs, func(ctx context.Context, args []string) error {
				if len(args) > 1 && args[0] == "chart" {
					return drawChart(e, args[1:])
				}
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				if args[0] == "footprint" {
					return f.footprint(ctx, e)
				}
				f.commandLine = benchLine(fs, args[0])
				return f.run(ctx, e, strings.Split(args[0], ","))
			}
		},
	}
}

// benchLine is the command line as it was given, but for secrets and the paths
// of this machine.
func benchLine(fs *pflag.FlagSet, workloads string) string {
	line := "pawl bench " + workloads
	fs.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "token", "against-token", "data", "against-binary", "json":
		default:
			line += " --" + flag.Name + " " + strings.Trim(flag.Value.String(), "[]")
		}
	})
	return strings.ReplaceAll(line, "--start true", "--start")
}

// footprint fills daemons of its own with waiting jobs.
func (f *benchFlags) footprint(ctx context.Context, e *env) error {
	if f.target != "pawl" || f.addr != "" || f.against != "" || f.options.Payload < 1 || f.options.Jobs < 1 || f.delay < 0 || f.queues < 1 || f.groups < 0 || f.replies < 0 || f.soakRate < 0 {
		return usagef("footprint starts a daemon of its own and takes --jobs, --payload, --delay, --queues, --groups, --reply-queues, --soak, --soak-rate, --runs, --data and --serve-flag")
	}
	o := bench.FootprintOptions{
		Dir: f.dir, Flags: f.serve, Jobs: f.options.Jobs, Payload: f.options.Payload, Delay: f.delay, Starts: f.runs, Soak: f.soak, SoakRate: f.soakRate,
		Queues: f.queues, Groups: f.groups, Replies: f.replies,
	}
	if !f.asJSON && isTerminal(e.stderr) {
		o.Step = func(what string) { fmt.Fprintf(e.stderr, "\r\x1b[K%s", what) }
	}
	result, err := bench.MeasureFootprint(ctx, o)
	clearLine(e)
	if err != nil {
		return err
	}
	if f.asJSON {
		return printJSON(e.stdout, result)
	}
	result.Print(e.stdout)
	return nil
}

func drawChart(e *env, files []string) error {
	var tables []bench.Table
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		t, err := bench.ReadTable(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		tables = append(tables, t)
	}
	return bench.Chart(e.stdout, tables...)
}

func (f *benchFlags) run(ctx context.Context, e *env, names []string) error {
	var workloads []bench.Workload
	for _, name := range names {
		if !slices.Contains(bench.Workloads, bench.Workload(name)) {
			return usagef("unknown workload %q, want some of %v", name, bench.Workloads)
		}
		workloads = append(workloads, bench.Workload(name))
	}
	if f.options.Payload < 1 || f.runs < 1 || f.options.Duration <= 0 || len(f.conns) == 0 || len(f.pipelines) == 0 ||
		slices.Min(f.conns) < 1 || slices.Min(f.pipelines) < 1 {
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
	ours, stop, err := f.server(ctx, serverFlags{kind: f.target, addr: f.addr, token: f.token, start: f.start})
	if err != nil {
		return withExit(exitNoServer, err)
	}
	defer stop()
	if f.queues > 1 {
		pawl, ok := ours.(bench.Pawl)
		if !ok {
			return usagef("--queues spreads the jobs of --target pawl, and of no other")
		}
		pawl.Queues = f.queues
		ours = pawl
	}
	var theirs bench.Target
	if f.against != "" {
		theirs, stop, err = f.server(ctx, serverFlags{
			kind: f.against, addr: f.againstAddr, token: f.againstToken, binary: f.againstBinary, start: f.againstAddr == "",
		})
		if err != nil {
			return withExit(exitNoServer, err)
		}
		defer stop()
	}
	table, err := bench.RunTable(ctx, bench.TableOptions{
		Options: f.options, Workloads: workloads, Conns: f.conns, Pipelines: f.pipelines, Runs: f.runs, Ours: ours, Theirs: theirs,
	})
	clearLine(e)
	if err != nil {
		return err
	}
	table.Command, table.Sync = f.commandLine, f.sync
	switch {
	case f.asJSON:
		return printJSON(e.stdout, table)
	case f.asTable || len(table.Cells) > 1:
		fmt.Fprintf(e.stdout, "%s, %s\n\n    %s\n\n", table.Date.Format(time.DateOnly), table.Machine, table.Command)
		return table.Print(e.stdout)
	}
	printPair(e.stdout, table.Cells[0].Pair)
	return nil
}

// printPair prints all runs of one cell.
func printPair(w io.Writer, pair bench.Pair) {
	bench.Print(w, pair.Ours)
	if len(pair.Theirs) == 0 {
		return
	}
	fmt.Fprintln(w)
	bench.Print(w, pair.Theirs)
	fmt.Fprintf(w, "\n%s by %s: median %.2f (%.2f to %.2f) of %d pair(s)\n", pair.Ours[0].Target, pair.Theirs[0].Target,
		pair.Ratio.Median, pair.Ratio.Min, pair.Ratio.Max, len(pair.Ours))
}

// serverFlags are what is said about one of the two servers.
type serverFlags struct {
	kind, addr, token, binary string
	start                     bool
}

// server starts a server of a kind, or takes the one at its address.
func (f *benchFlags) server(ctx context.Context, s serverFlags) (bench.Target, func(), error) {
	if !slices.Contains(bench.Kinds, s.kind) {
		return nil, nil, usagef("unknown server %q, want one of %s", s.kind, strings.Join(bench.Kinds, ", "))
	}
	if s.start {
		server, err := bench.Start(ctx, bench.StartOptions{Kind: s.kind, Dir: f.dir, Sync: f.sync, Binary: s.binary, Flags: f.serve})
		if err != nil {
			return nil, nil, err
		}
		return server.Target, func() { server.Stop() }, nil
	}
	at := func(usual string) string {
		if s.addr != "" {
			return s.addr
		}
		return usual
	}
	nothing := func() {}
	switch s.kind {
	case "pawl-http", "lmstfy":
		return bench.PawlHTTP{Addr: at("127.0.0.1:7777"), Namespace: f.namespace, Token: s.token, Server: s.kind}, nothing, nil
	case "redis":
		return bench.Redis{Addr: at("127.0.0.1:6379")}, nothing, nil
	case "beanstalkd":
		return bench.Beanstalkd{Addr: at("127.0.0.1:11300")}, nothing, nil
	case "nats":
		return bench.NATS{Addr: at("127.0.0.1:4222")}, nothing, nil
	default:
		password := os.Getenv("PAWL_PASSWORD")
		return bench.Pawl{Addr: at("127.0.0.1:6380"), User: os.Getenv("PAWL_USER"), Password: password}, nothing, nil
	}
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
