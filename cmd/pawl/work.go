package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

// workBury is the exit code by which a command sends its job to the dead letters
// at once: its input is bad (EX_DATAERR), and trying again would not help.
const workBury = exitDamaged

func workCommand() subcommand {
	return subcommand{
		name: "work", args: "QUEUE[,QUEUE...] -- COMMAND [ARGUMENT...]",
		summary: "run a command for each job, with the payload on its standard input", group: groupJobs,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("work")
			w := &worker{e: e, fs: fs}
			fs.IntVar(&w.concurrency, "concurrency", 1, "commands at the same time")
			fs.DurationVar(&w.lease, "lease", client.DefaultLease, "how long a job is held before it is extended again; extended while its command runs")
			fs.DurationVar(&w.limit, "time-limit", 0, "end a command that runs longer, the job has failed; 0 is no limit")
			fs.DurationVar(&w.grace, "grace", 30*time.Second, "how long commands may go on after SIGTERM; then they are ended and their jobs given back untouched")
			fs.IntVar(&w.maxJobs, "max-jobs", 0, "stop after this many jobs, 0 is never")
			fs.BoolVar(&w.asJSON, "json", false, "print each line of a command and each command's end as an object, and log as JSON")
			fs.BoolVar(&w.untilEmpty, "until-empty", false, "stop when the queues have no job that is ready or leased, by whomever")
			w.remote = addRemote(e, fs)
			return fs, w.run
		},
	}
}

// worker is pawl work.
type worker struct {
	e           *env
	fs          *pflag.FlagSet
	remote      *remote
	concurrency int
	lease       time.Duration
	limit       time.Duration
	grace       time.Duration
	maxJobs     int
	untilEmpty  bool
	asJSON      bool

	queues  []string
	command []string
	log     *slog.Logger
	outMu   sync.Mutex // one line of a command's output at a time

	taken atomic.Int64
	full  func() // stops the worker
}

func (w *worker) run(ctx context.Context, args []string) error {
	dash := w.fs.ArgsLenAtDash()
	if dash != 1 || len(args) < 2 {
		return usagef("want one queue (or several with commas), --, and a command")
	}
	if w.concurrency < 1 || w.lease < 10*time.Millisecond {
		return usagef("concurrency must be at least 1, lease at least 10ms")
	}
	w.queues, w.command = strings.Split(args[0], ","), args[1:]
	if _, err := exec.LookPath(w.command[0]); err != nil {
		return usageError{err}
	}
	w.log = slog.New(slog.NewTextHandler(w.e.stderr, nil))
	if w.asJSON {
		w.log = slog.New(slog.NewJSONHandler(w.e.stderr, nil))
	}
	options, err := w.remote.options()
	if err != nil {
		return err
	}
	options.Name, options.MaxIdle = "pawl-work", 2*w.concurrency
	c := client.New(options)
	defer c.Close()
	// A typing error in the address should not look like an empty queue.
	if err := c.Ping(ctx); err != nil {
		return remoteExit(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.full = cancel
	if w.untilEmpty {
		go w.stopWhenEmpty(ctx, c)
	}
	return remoteExit((&client.Worker{
		Client: c, Queues: w.queues, Handler: w.handle, Concurrency: w.concurrency, Lease: w.lease, Grace: w.grace, Log: w.log,
	}).Run(ctx))
}

// stopWhenEmpty ends the worker when its queues have nothing to do. Leased jobs
// count: they may be on their way to this worker, and may come back.
func (w *worker) stopWhenEmpty(ctx context.Context, c *client.Client) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var left int64
		for _, queue := range w.queues {
			stats, err := c.Stats(ctx, queue)
			if err != nil {
				left++ // not known
				break
			}
			left += stats.Ready + stats.Processing
		}
		if left == 0 {
			w.full()
			return
		}
	}
}

// handle runs the command for one job.
func (w *worker) handle(ctx context.Context, job *client.Delivery) error {
	if n := w.taken.Add(1); w.maxJobs > 0 && n >= int64(w.maxJobs) {
		w.full()
	}
	limited := ctx
	if w.limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, w.limit)
		defer cancel()
	}
	cmd := exec.CommandContext(limited, w.command[0], w.command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // then it is killed
	ownGroup(cmd)
	cmd.Stdin = bytes.NewReader(job.Payload)
	cmd.Env = append(os.Environ(), jobEnv(job)...)
	stdout := &lines{print: w.passOn(w.e.stdout, job.ID, "stdout")}
	stderr := &lines{print: w.passOn(w.e.stderr, job.ID, "stderr")}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	began := time.Now()
	err := cmd.Run()
	stdout.end()
	stderr.end()
	// A command that does not read all of its input has not failed.
	if errors.Is(err, syscall.EPIPE) && cmd.ProcessState != nil && cmd.ProcessState.Success() {
		err = nil
	}
	result, err := w.verdict(ctx, limited, err, stderr.last(), cmd)
	if w.asJSON {
		end := workEnd{Event: "end", Job: job.ID, Queue: textJSON(job.Queue), Attempt: job.Attempt, Result: result, Took: time.Since(began).Milliseconds()}
		if err != nil {
			end.Reason = textJSON(err.Error())
		}
		w.outMu.Lock()
		defer w.outMu.Unlock()
		printJSON(w.e.stdout, end)
	}
	return err
}

// workEnd is what --json says when a command has ended, before its job is given
// back.
type workEnd struct {
	Event   string `json:"event"` // "end"
	Job     string `json:"job"`
	Queue   any    `json:"queue"`
	Attempt int    `json:"attempt"`
	Result  string `json:"result"` // done, failed, discarded or broken off
	Took    int64  `json:"took_ms"`
	Reason  any    `json:"reason,omitempty"`
}

// workLine is a line that a command has printed.
type workLine struct {
	Event  string `json:"event"` // "line"
	Job    string `json:"job"`
	Stream string `json:"stream"` // stdout or stderr
	Line   any    `json:"line"`
}

// passOn is where the lines of a command's stream go.
func (w *worker) passOn(to io.Writer, job, stream string) func(line []byte) {
	return func(line []byte) {
		w.outMu.Lock()
		defer w.outMu.Unlock()
		if w.asJSON {
			printJSON(w.e.stdout, workLine{"line", job, stream, textJSON(string(line))})
			return
		}
		to.Write(append(line, '\n'))
	}
}

// verdict is what the end of a command means for its job: nil is done.
func (w *worker) verdict(ctx, limited context.Context, err error, lastLine string, cmd *exec.Cmd) (result string, _ error) {
	switch {
	case err == nil:
		return "done", nil
	case ctx.Err() != nil: // stopped, or the lease is lost: no verdict on the job
		return "broken off", fmt.Errorf("broken off: %w", context.Cause(ctx))
	case limited.Err() != nil:
		return "failed", fmt.Errorf("took longer than %v", w.limit)
	}
	reason := err.Error()
	if lastLine != "" {
		reason += ": " + lastLine
	}
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == workBury {
		return "discarded", client.Discard(errors.New(reason))
	}
	return "failed", errors.New(reason)
}

// jobEnv is what a command can know of its job besides the payload.
func jobEnv(job *client.Delivery) []string {
	vars := []string{
		"PAWL_JOB_ID=" + job.ID,
		"PAWL_JOB_LEASE=" + job.Lease,
		"PAWL_JOB_QUEUE=" + job.Queue,
		"PAWL_JOB_ATTEMPT=" + strconv.Itoa(job.Attempt),
		"PAWL_JOB_FAILURES=" + strconv.Itoa(job.Failures),
		"PAWL_JOB_TRIES=" + strconv.Itoa(job.Tries),
		"PAWL_JOB_ENQUEUED_AT=" + strconv.FormatInt(job.EnqueuedAt.UnixMilli(), 10),
	}
	for name, value := range job.Attrs {
		if plainName(name) && !strings.ContainsRune(value, 0) {
			vars = append(vars, "PAWL_ATTR_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+value)
		}
	}
	return vars
}

// plainName says whether an attribute's name can be part of a variable's.
func plainName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return s != ""
}

// lines passes whole lines on, so that commands that run at the same time do
// not mix theirs. It remembers the last one that is not empty. Lines are cut at
// 64 KiB.
type lines struct {
	print func(line []byte) // may append to line, and does not keep it
	part  []byte
	tail  string
}

func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, more, found := bytes.Cut(rest, []byte("\n"))
		l.part = append(l.part, line...)
		rest = more
		if found || len(l.part) > 64<<10 {
			l.line()
		}
	}
	return len(p), nil
}

func (l *lines) line() {
	if len(l.part) > 0 {
		l.tail = string(l.part)
	}
	l.print(l.part)
	l.part = l.part[:0]
}

// end passes on what stands without a line end.
func (l *lines) end() {
	if len(l.part) > 0 {
		l.line()
	}
}

// last is the last line, at most 200 bytes of it.
func (l *lines) last() string { return l.tail[:min(len(l.tail), 200)] }
