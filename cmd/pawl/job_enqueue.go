package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

// jobFlags are the options of a job as flags.
type jobFlags struct {
	delay, ttl, backoff, maxBackoff, uniqueFor time.Duration
	at                                         string
	priority, tries                            int
	unique, group                              string
	attrs                                      []string
}

func addJobFlags(fs *pflag.FlagSet) *jobFlags {
	var f jobFlags
	fs.DurationVar(&f.delay, "delay", 0, "deliver after this long")
	fs.StringVar(&f.at, "at", "", "deliver at this time (2026-01-31T12:00:00Z)")
	fs.DurationVar(&f.ttl, "ttl", 0, "drop it if it is not done by then")
	fs.IntVar(&f.priority, "priority", 0, "-128 to 127, larger first")
	fs.IntVar(&f.tries, "tries", 0, "failures until it is dead; -1 is no limit, 0 as the queue says")
	fs.DurationVar(&f.backoff, "backoff", 0, "wait this long after the first failure, twice as long after each further one")
	fs.DurationVar(&f.maxBackoff, "max-backoff", 0, "but at most this long")
	fs.StringVar(&f.unique, "unique", "", "do nothing if a live job with this key exists")
	fs.DurationVar(&f.uniqueFor, "unique-for", 0, "and for this long from the first one's enqueue (1m when left out)")
	fs.StringVar(&f.group, "group", "", "jobs of one group run one after the other")
	fs.StringArrayVar(&f.attrs, "attr", nil, "name=value, may repeat")
	return &f
}

// job is a job for queue with these options.
func (f *jobFlags) job(queue string, payload []byte) (client.Job, error) {
	job := client.Job{
		Queue: queue, Payload: payload, Delay: f.delay, TTL: f.ttl, Priority: f.priority, Tries: f.tries,
		Backoff: f.backoff, MaxBackoff: f.maxBackoff, Unique: f.unique, UniqueFor: f.uniqueFor, Group: f.group,
	}
	if f.at != "" {
		at, err := time.Parse(time.RFC3339, f.at)
		if err != nil {
			return job, usagef("--at: %q is no time such as 2026-01-31T12:00:00Z", f.at)
		}
		job.At = at
	}
	for _, a := range f.attrs {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return job, usagef("--attr: %q is not name=value", a)
		}
		if job.Attrs == nil {
			job.Attrs = map[string]string{}
		}
		job.Attrs[name] = value
	}
	return job, nil
}

func enqueueCommand() subcommand {
	return subcommand{
		name: "enqueue", args: "QUEUE [PAYLOAD]", summary: "add a job; its payload is the argument, a file, or standard input",
		group: groupJobs,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("enqueue")
			file := fs.StringP("file", "f", "", "read the payload from this file")
			options := addJobFlags(fs)
			r := addRemote(e, fs)
			r.addJSON()
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 1, 2); err != nil {
					return err
				}
				payload, err := readPayload(e, args[1:], *file)
				if err != nil {
					return err
				}
				job, err := options.job(args[0], payload)
				if err != nil {
					return err
				}
				c, err := r.client()
				if err != nil {
					return err
				}
				defer c.Close()
				got, err := c.Enqueue(ctx, job)
				if err != nil {
					return remoteExit(err)
				}
				if r.asJSON {
					return printJSON(e.stdout, map[string]any{"task_id": got.ID, "duplicate": got.Duplicate})
				}
				if got.Duplicate {
					fmt.Fprintln(e.stderr, "a live job with this key exists, nothing was added")
				}
				fmt.Fprintln(e.stdout, got.ID)
				return nil
			}
		},
	}
}

// readPayload takes the payload from the argument, the file or standard input.
func readPayload(e *env, args []string, file string) ([]byte, error) {
	switch {
	case file != "" && len(args) > 0:
		return nil, usagef("a payload and --file at once")
	case file != "":
		data, err := os.ReadFile(file)
		return data, withExit(exitIO, err)
	case len(args) > 0 && args[0] != "-":
		return []byte(args[0]), nil
	}
	data, err := io.ReadAll(e.stdin)
	return data, withExit(exitIO, err)
}
