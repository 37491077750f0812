// Command pawl is a durable task-queue daemon and its tools: one binary, one
// subcommand for each thing a person does with it.
//
// Exit codes are those of sysexits(3), listed in exit.go. What a subcommand
// found (an empty queue, a job that is not there) is said by exit code 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"pawl/config"
	"pawl/internal/vfs"
)

func main() {
	os.Exit(Main())
}

// Main runs the process's command line and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once: its data can take that.
	context.AfterFunc(ctx, stop)
	return run(ctx, processEnv(), os.Args[1:])
}

// env is what a subcommand may touch of the process around it.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(name string) (string, bool) // environment variables
	store          vfs.FS                           // where the daemon's data lies; nil is the system's
}

func processEnv() *env {
	return &env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}
}

// A subcommand is one word after pawl.
type subcommand struct {
	name    string
	args    string // what follows the flags, for the usage line
	summary string // one line, lower case, no full stop
	group   string // heading in the overview
	// words may stand as the first argument, for completion; none is any.
	words []string

	// flags makes the set of the subcommand's flags and the function that runs
	// with the words left when they have been parsed. It is called once a run.
	flags func(e *env) (*pflag.FlagSet, runFunc)
}

// runFunc carries out a subcommand whose flags have been parsed. Its error
// becomes one line on standard error and the exit code (see exitCode).
type runFunc func(ctx context.Context, args []string) error

// The headings of the overview, in order.
const (
	groupDaemon = "The daemon"
	groupJobs   = "Jobs, over a connection to a daemon"
	groupQueues = "Queues and operation, over a connection to a daemon"
	groupData   = "Data directories, no daemon needed"
	groupTools  = "Tools"
)

// subcommands is the table of everything that pawl can do, in the order of the
// overview. Each has a file of its own.
func subcommands() []subcommand {
	return []subcommand{
		serveCommand(),
		configCommand(),

		enqueueCommand(),
		fetchCommand(),
		ackCommand(),
		nackCommand(),
		releaseCommand(),
		buryCommand(),
		extendCommand(),
		workCommand(),
		loadCommand(),

		pingCommand(),
		queuesCommand(),
		statsCommand(),
		peekCommand(),
		jobCommand(),
		redriveCommand(),
		pauseCommand(),
		resumeCommand(),
		purgeCommand(),
		drainCommand(),
		cronCommand(),
		tokenCommand(),
		topCommand(),

		initCommand(),
		checkCommand(),
		dumpCommand(),
		backupCommand(),
		restoreCommand(),
		repairCommand(),

		importCommand(),
		demoCommand(),
		hashPasswordCommand(),
		benchCommand(),
		completionCommand(),
		versionCommand(),
	}
}

// newFlagSet makes the flag set of the subcommand name. It prints nothing by
// itself: run does.
func newFlagSet(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {}
	return fs
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, e *env, args []string) int {
	root := newFlagSet("pawl")
	root.SetInterspersed(false)
	help := root.BoolP("help", "h", false, "say what pawl can do")
	showVersion := root.Bool("version", false, "print the version")
	if err := root.Parse(args); err != nil {
		return fail(e, usageError{err})
	}
	words := root.Args()
	switch {
	case *showVersion:
		words = []string{"version"}
	case *help, len(words) > 0 && words[0] == "help":
		if len(words) > 1 {
			return runNamed(ctx, e, words[1], []string{"--help"})
		}
		overview(e.stdout)
		return exitOK
	case len(words) == 0:
		overview(e.stderr)
		return exitUsage
	}
	return runNamed(ctx, e, words[0], words[1:])
}

func runNamed(ctx context.Context, e *env, name string, args []string) int {
	all := subcommands()
	for i := range all {
		if all[i].name == name {
			return fail(e, all[i].run(ctx, e, args))
		}
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return fail(e, usagef("unknown subcommand %q%s", name, didYouMean(name, names)))
}

// run parses args and carries the subcommand out.
func (c *subcommand) run(ctx context.Context, e *env, args []string) error {
	fs, f := c.flags(e)
	help := fs.BoolP("help", "h", false, "say this")
	if err := fs.Parse(args); err != nil {
		hint := ""
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			hint = nearFlag(fs, unknown.GetSpecifiedName())
		}
		return usageError{fmt.Errorf("%s: %w%s (see pawl help %s)", c.name, err, hint, c.name)}
	}
	if *help {
		fmt.Fprintf(e.stdout, "pawl %s: %s\n\nUsage: pawl %s [flags]%s\n\n%s", c.name, c.summary, c.name, prefixSpace(c.args), fs.FlagUsagesWrapped(100))
		return nil
	}
	err := f(ctx, fs.Args())
	var use usageError
	if errors.Is(err, errFewArgs) {
		return usageError{fmt.Errorf("%s: %w, want pawl %s%s (see pawl help %s)", c.name, errFewArgs, c.name, prefixSpace(c.args), c.name)}
	}
	if errors.As(err, &use) {
		return usageError{fmt.Errorf("%s: %w (see pawl help %s)", c.name, use.error, c.name)}
	}
	return err
}

func overview(w io.Writer) {
	fmt.Fprintln(w, "pawl is a durable task queue: what it has said OK to is on disk.")
	fmt.Fprintln(w, "\nUsage: pawl SUBCOMMAND [flags] [arguments]")
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	all := subcommands()
	for _, group := range []string{groupDaemon, groupJobs, groupQueues, groupData, groupTools} {
		heading := "\n" + group + ":\n"
		for i := range all {
			if all[i].group == group {
				fmt.Fprintf(table, "%s  %s\t%s\n", heading, all[i].name, all[i].summary)
				heading = ""
			}
		}
	}
	table.Flush()
	fmt.Fprintln(w, "\npawl help SUBCOMMAND says more. Every flag of serve can stand in a file (--config) or the\nenvironment (PAWL_ADDR for --addr); pawl config shows what holds and where it came from.")
}

// errFewArgs is given with the usage line of the subcommand.
var errFewArgs = errors.New("something is missing")

// wantArgs refuses fewer than low and more than high words; high below zero is
// no limit.
func wantArgs(args []string, low, high int) error {
	switch {
	case len(args) < low:
		return usageError{errFewArgs}
	case high >= 0 && len(args) > high:
		return usagef("unexpected argument %q", args[high])
	}
	return nil
}

// nearFlag is a hint for a mistyped flag.
func nearFlag(fs *pflag.FlagSet, name string) string {
	var known []string
	fs.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := config.Nearest(name, known); near != "" {
		return fmt.Sprintf(", did you mean --%s?", near)
	}
	return ""
}

func prefixSpace(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

// didYouMean is a hint for a mistyped word, empty when nothing is near.
func didYouMean(word string, known []string) string {
	if near := config.Nearest(word, known); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}
