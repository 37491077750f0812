package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

func fetchCommand() subcommand {
	return subcommand{
		name: "fetch", args: "QUEUE...", summary: "take a lease on the next job of the first queue that has one; exit code 1 when there is none",
		group: groupJobs,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("fetch")
			lease := fs.Duration("lease", client.DefaultLease, "how long the job is yours")
			wait := fs.Duration("wait", 0, "wait this long for a job")
			count := fs.Int("count", 1, "take up to this many")
			out := fs.StringP("output", "o", "", "write the payload of a single job to this file, - is standard output, and nothing else there")
			r := addRemote(e, fs)
			r.addJSON()
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 1, -1); err != nil {
					return err
				}
				if *out != "" && *count != 1 {
					return usagef("--output is for a single job")
				}
				c, err := r.client()
				if err != nil {
					return err
				}
				defer c.Close()
				jobs, err := c.Fetch(ctx, client.FetchOptions{Queues: args, Lease: *lease, Wait: *wait, Count: *count})
				if err != nil {
					return remoteExit(err)
				}
				if len(jobs) == 0 {
					return negative()
				}
				if *out != "" {
					return writePayload(e, *out, &jobs[0])
				}
				return printDeliveries(e, jobs, r.asJSON)
			}
		},
	}
}

// writePayload writes a payload as it is; the lease goes to standard error,
// since nobody could acknowledge the job without it.
func writePayload(e *env, path string, job *client.Delivery) error {
	fmt.Fprintf(e.stderr, "lease %s job %s attempt %d\n", job.Lease, job.ID, job.Attempt)
	if path == "-" {
		_, err := e.stdout.Write(job.Payload)
		return withExit(exitIO, err)
	}
	return withExit(exitIO, os.WriteFile(path, job.Payload, 0o600))
}

func printDeliveries(e *env, jobs []client.Delivery, asJSON bool) error {
	if asJSON {
		for _, j := range jobs {
			err := printJSON(e.stdout, struct {
				Lease      string            `json:"lease_id"`
				ID         string            `json:"task_id"`
				Queue      string            `json:"queue"`
				Payload    any               `json:"payload"`
				Attempt    int               `json:"attempt"`
				Failures   int               `json:"failures"`
				Tries      int               `json:"tries"`
				Priority   int               `json:"priority"`
				EnqueuedAt int64             `json:"enqueued_at"`
				Deadline   int64             `json:"deadline"`
				Attrs      map[string]string `json:"attrs,omitempty"`
			}{j.Lease, j.ID, j.Queue, textJSON(string(j.Payload)), j.Attempt, j.Failures, j.Tries, j.Priority, j.EnqueuedAt.UnixMilli(), j.Deadline.UnixMilli(), j.Attrs})
			if err != nil {
				return err
			}
		}
		return nil
	}
	table := newTable(e.stdout, "LEASE", "JOB", "ATTEMPT", "UNTIL", "PAYLOAD")
	for _, j := range jobs {
		row(table, j.Lease, j.ID, strconv.Itoa(j.Attempt), j.Deadline.Format("15:04:05.000"), printable(string(j.Payload), 60))
	}
	return table.Flush()
}

// leaseCommand is a subcommand that does one thing to each lease it is given.
// add adds its flags and returns what to do.
func leaseCommand(name, summary string, add func(fs *pflag.FlagSet) func(ctx context.Context, c *client.Client, lease string) (leaseReply, error)) subcommand {
	return subcommand{
		name: name, args: "LEASE...", summary: summary, group: groupJobs,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet(name)
			do := add(fs)
			r := addRemote(e, fs)
			r.addJSON()
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 1, -1); err != nil {
					return err
				}
				c, err := r.client()
				if err != nil {
					return err
				}
				defer c.Close()
				var failed error
				for _, lease := range args {
					said, err := do(ctx, c, lease)
					if err != nil {
						if err = remoteExit(err); exitCode(err) != exitNegative {
							return err
						}
						failed = negative()
						if r.asJSON {
							if err := printJSON(e.stdout, leaseJSON{Lease: lease, Error: err.Error()}); err != nil {
								return err
							}
							continue
						}
						fmt.Fprintf(e.stderr, "pawl: %s: %v\n", printable(lease, 64), err)
						continue
					}
					if r.asJSON {
						if err := printJSON(e.stdout, leaseJSON{Lease: lease, OK: true, Deadline: said.deadline()}); err != nil {
							return err
						}
						continue
					}
					fmt.Fprintln(e.stdout, said)
				}
				return failed
			}
		},
	}
}

type leaseFunc = func(context.Context, *client.Client, string) (leaseReply, error)

// leaseReply is what was done to a lease: the zero value is OK, a time is its new
// deadline.
type leaseReply struct{ until time.Time }

// String is the reply for people.
func (r leaseReply) String() string {
	if r.until.IsZero() {
		return "OK"
	}
	return r.until.Format(time.RFC3339Nano)
}

// deadline is in Unix milliseconds, 0 where there is none.
func (r leaseReply) deadline() int64 {
	if r.until.IsZero() {
		return 0
	}
	return r.until.UnixMilli()
}

// leaseJSON is one line of --json.
type leaseJSON struct {
	Lease    string `json:"lease"`
	OK       bool   `json:"ok"`
	Error    string `json:"error,omitempty"`
	Deadline int64  `json:"deadline,omitempty"` // Unix ms
}

func ackCommand() subcommand {
	return leaseCommand("ack", "finish jobs by their leases", func(*pflag.FlagSet) leaseFunc {
		return func(ctx context.Context, c *client.Client, lease string) (leaseReply, error) {
			return leaseReply{}, c.Ack(ctx, lease)
		}
	})
}

func nackCommand() subcommand {
	return leaseCommand("nack", "give jobs back as failed", func(fs *pflag.FlagSet) leaseFunc {
		delay := fs.Duration("delay", 0, "run again after this long, instead of the job's backoff")
		reason := fs.String("reason", "", "kept with the job")
		return func(ctx context.Context, c *client.Client, lease string) (leaseReply, error) {
			d := time.Duration(-1)
			if fs.Changed("delay") {
				d = *delay
			}
			return leaseReply{}, c.Nack(ctx, lease, d, *reason)
		}
	})
}

func releaseCommand() subcommand {
	return leaseCommand("release", "give jobs back untouched, no failure is counted", func(*pflag.FlagSet) leaseFunc {
		return func(ctx context.Context, c *client.Client, lease string) (leaseReply, error) {
			return leaseReply{}, c.Release(ctx, lease)
		}
	})
}

func buryCommand() subcommand {
	return leaseCommand("bury", "send jobs straight to the dead letters", func(fs *pflag.FlagSet) leaseFunc {
		reason := fs.String("reason", "", "kept with the job")
		return func(ctx context.Context, c *client.Client, lease string) (leaseReply, error) {
			return leaseReply{}, c.Bury(ctx, lease, *reason)
		}
	})
}

func extendCommand() subcommand {
	return leaseCommand("extend", "move the deadlines of leases, print the new ones", func(fs *pflag.FlagSet) leaseFunc {
		by := fs.Duration("lease", client.DefaultLease, "from now")
		return func(ctx context.Context, c *client.Client, lease string) (leaseReply, error) {
			until, err := c.Extend(ctx, lease, *by)
			return leaseReply{until}, err
		}
	})
}
