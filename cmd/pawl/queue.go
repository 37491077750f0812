package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

// remoteCommand is a subcommand that needs a client and nothing else special.
// add adds its flags and returns what to do.
func remoteCommand(c subcommand, low, high int, add func(e *env, r *remote) func(context.Context, *client.Client, []string) error) subcommand {
	c.flags = func(e *env) (*pflag.FlagSet, runFunc) {
		fs := newFlagSet(c.name)
		r := &remote{e: e, fs: fs}
		do := add(e, r) // its own flags come first in the help
		r.addFlags()
		r.addJSON()
		return fs, func(ctx context.Context, args []string) error {
			if err := wantArgs(args, low, high); err != nil {
				return err
			}
			cl, err := r.client()
			if err != nil {
				return err
			}
			defer cl.Close()
			return remoteExit(do(ctx, cl, args))
		}
	}
	return c
}

type remoteFunc = func(context.Context, *client.Client, []string) error

// printReply prints what a command answered: as JSON, or a map as columns.
func (r *remote) printReply(e *env, v client.Value) error {
	if r.asJSON {
		return printJSON(e.stdout, valueJSON(v))
	}
	printValue(e.stdout, v)
	return nil
}

func queuesCommand() subcommand {
	return remoteCommand(subcommand{name: "queues", args: "[GLOB]", summary: "list queues with their counts", group: groupQueues}, 0, 1,
		func(e *env, r *remote) remoteFunc {
			return func(ctx context.Context, c *client.Client, args []string) error {
				names, err := c.Queues(ctx, strings.Join(args, ""))
				if err != nil {
					return err
				}
				return printQueues(ctx, e, r, c, names)
			}
		})
}

func statsCommand() subcommand {
	return remoteCommand(subcommand{name: "stats", args: "QUEUE...", summary: "say all that is known of queues", group: groupQueues}, 1, -1,
		func(e *env, r *remote) remoteFunc {
			return func(ctx context.Context, c *client.Client, args []string) error {
				for i, name := range args {
					v, err := c.QueueInfo(ctx, name)
					if err != nil {
						return err
					}
					if v.Kind == client.Null {
						fmt.Fprintf(e.stderr, "pawl: no queue %s\n", printable(name, 0))
						return negative()
					}
					if !r.asJSON && len(args) > 1 {
						fmt.Fprintf(e.stdout, "%s%s:\n", strings.Repeat("\n", min(i, 1)), printable(name, 0))
					}
					if err := r.printReply(e, v); err != nil {
						return err
					}
				}
				return nil
			}
		})
}

func printQueues(ctx context.Context, e *env, r *remote, c *client.Client, names []string) error {
	table := newTable(e.stdout, "QUEUE", "READY", "DELAYED", "LEASED", "DEAD", "OLDEST", "")
	// In turns, so that a million queues need no reply of a gigabyte.
	for page := range slices.Chunk(names, 500) {
		infos, err := c.QueueInfos(ctx, page)
		if err != nil {
			return err
		}
		for i, v := range infos {
			if v.Kind == client.Failure || v.Kind == client.Null {
				continue // forgotten since it was listed
			}
			if r.asJSON {
				if err := printJSON(e.stdout, object(v.Elems)); err != nil {
					return err
				}
				continue
			}
			note := ""
			if v.Field("paused").Number() != 0 {
				note = "paused"
			}
			count := func(name string) string { return strconv.FormatInt(v.Field(name).Number(), 10) }
			row(table, printable(page[i], 48), count("ready"), count("delayed"), count("leased"), count("dead"), age(v.Field("oldest_ready_ms").Number()), note)
		}
	}
	if r.asJSON {
		return nil
	}
	return table.Flush()
}

func peekCommand() subcommand {
	return remoteCommand(subcommand{name: "peek", args: "QUEUE", summary: "look at a queue's jobs in delivery order without taking them", group: groupQueues}, 1, 1,
		func(e *env, r *remote) remoteFunc {
			place := r.fs.String("state", "ready", "ready, delayed, leased or dead")
			count := r.fs.Int("count", 10, "how many, 0 is all")
			after := r.fs.String("after", "", "go on behind this job")
			return func(ctx context.Context, c *client.Client, args []string) error {
				table := newTable(e.stdout, "JOB", "PRIO", "ATTEMPT", "FAILED", "ENQUEUED", "WHEN", "REASON", "PAYLOAD")
				cursor, left := *after, *count
				for {
					page := 100
					if *count > 0 {
						page = min(page, left)
					}
					words := []string{"QUEUE", "PEEK", args[0], "STATE", *place, "COUNT", strconv.Itoa(page)}
					if cursor != "" {
						words = append(words, "AFTER", cursor)
					}
					v, err := c.Do(ctx, words...)
					if err != nil {
						return err
					}
					if len(v.Elems) != 2 {
						return fmt.Errorf("%w to QUEUE PEEK", client.ErrProtocol)
					}
					for _, job := range v.Elems[1].Elems {
						if r.asJSON {
							if err := printJSON(e.stdout, valueJSON(job)); err != nil {
								return err
							}
							continue
						}
						peekRow(table, job)
					}
					got := len(v.Elems[1].Elems)
					cursor, left = v.Elems[0].Text, left-got
					if cursor == "" || got == 0 || (*count > 0 && left <= 0) {
						break
					}
				}
				if r.asJSON {
					return nil
				}
				return table.Flush()
			}
		})
}

func peekRow(table interface{ Write([]byte) (int, error) }, job client.Value) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := job.Field(n); v.Number() != 0 {
				return timeText(v.Number())
			}
		}
		return "-"
	}
	row(table, job.Field("id").Text, inline(job.Field("priority")), inline(job.Field("attempt")), inline(job.Field("failures")),
		first("enqueued_at"), first("deadline", "due_at", "died_at"), printable(job.Field("reason").Text, 30), printable(job.Field("payload").Text, 40))
}

// simpleQueueCommand sends one command for each queue it is given and prints
// what came back.
func simpleQueueCommand(name, summary string, words func(fs *pflag.FlagSet) func(queue string) []string) subcommand {
	return remoteCommand(subcommand{name: name, args: "QUEUE...", summary: summary, group: groupQueues}, 1, -1,
		func(e *env, r *remote) remoteFunc {
			make := words(r.fs)
			return func(ctx context.Context, c *client.Client, args []string) error {
				for _, queue := range args {
					v, err := c.Do(ctx, make(queue)...)
					if err != nil {
						return err
					}
					if err := r.printReply(e, v); err != nil {
						return err
					}
				}
				return nil
			}
		})
}

func pauseCommand() subcommand {
	return simpleQueueCommand("pause", "hand out no more jobs of queues; they go on taking them", func(fs *pflag.FlagSet) func(string) []string {
		length := fs.Duration("for", 0, "resume by itself after this long")
		return func(queue string) []string {
			words := []string{"QUEUE", "PAUSE", queue}
			if *length > 0 {
				words = append(words, "FOR", millisText(*length))
			}
			return words
		}
	})
}

func resumeCommand() subcommand {
	return simpleQueueCommand("resume", "end the pause of queues", func(*pflag.FlagSet) func(string) []string {
		return func(queue string) []string { return []string{"QUEUE", "RESUME", queue} }
	})
}

func redriveCommand() subcommand {
	return simpleQueueCommand("redrive", "move dead jobs back to ready, oldest first; prints how many", func(fs *pflag.FlagSet) func(string) []string {
		count := fs.Int("count", 0, "at most this many, 0 is all")
		to := fs.String("to", "", "to this queue instead")
		tries := fs.Int("tries", 0, "with this many tries from now on")
		ttl := fs.Duration("ttl", 0, "with this long to live from now on")
		return func(queue string) []string {
			words := []string{"QUEUE", "REDRIVE", queue}
			if *count > 0 {
				words = append(words, "COUNT", strconv.Itoa(*count))
			}
			if *to != "" {
				words = append(words, "TO", *to)
			}
			if fs.Changed("tries") {
				words = append(words, "TRIES", strconv.Itoa(*tries))
			}
			if *ttl > 0 {
				words = append(words, "TTL", millisText(*ttl))
			}
			return words
		}
	})
}

func purgeCommand() subcommand {
	c := simpleQueueCommand("purge", "delete jobs of queues for good; prints how many", func(fs *pflag.FlagSet) func(string) []string {
		places := fs.StringSlice("state", nil, "ready, delayed, leased, dead (ready and delayed when left out)")
		fs.Bool("yes", false, "I mean it")
		return func(queue string) []string {
			words := []string{"QUEUE", "PURGE", queue}
			if len(*places) > 0 {
				words = append(append(words, "STATE"), *places...)
			}
			return words
		}
	})
	inner := c.flags
	c.flags = func(e *env) (*pflag.FlagSet, runFunc) {
		fs, do := inner(e)
		return fs, func(ctx context.Context, args []string) error {
			if sure, err := fs.GetBool("yes"); err != nil || !sure {
				return usagef("this cannot be undone; say --yes")
			}
			return do(ctx, args)
		}
	}
	return c
}

func drainCommand() subcommand {
	return remoteCommand(subcommand{name: "drain", words: []string{"on", "off"}, args: "on|off", summary: "refuse new jobs while workers go on, before an upgrade", group: groupQueues}, 1, 1,
		func(e *env, r *remote) remoteFunc {
			return func(ctx context.Context, c *client.Client, args []string) error {
				if args[0] != "on" && args[0] != "off" {
					return usagef("want on or off, not %q", args[0])
				}
				v, err := c.Do(ctx, "DRAIN", args[0])
				if err != nil {
					return err
				}
				return r.printReply(e, v)
			}
		})
}

// jobVerbs are the forms of pawl job, with the words that follow.
var jobVerbs = map[string]struct{ args, command string }{
	"get":      {"ID", "GET"},
	"delete":   {"ID...", "DELETE"},
	"run":      {"ID", "RUN"},
	"delay":    {"ID DURATION", "DELAY"},
	"priority": {"ID N", "PRIORITY"},
	"payload":  {"ID BYTES", "PAYLOAD"},
	"move":     {"ID QUEUE", "MOVE"},
}

func jobCommand() subcommand {
	return remoteCommand(subcommand{
		name: "job", words: []string{"get", "history", "run", "delete", "delay", "priority", "payload", "move"}, args: "get|history|run|delete|delay|priority|payload|move ID...",
		summary: "look at one job or its history, or change a waiting one", group: groupQueues,
	}, 1, -1, func(e *env, r *remote) remoteFunc {
		past := r.fs.Bool("history", false, "what happened to the job, from the log; as pawl job history ID")
		return func(ctx context.Context, c *client.Client, args []string) error {
			if *past && len(args) == 1 {
				args = append([]string{"history"}, args...)
			}
			if args[0] == "history" {
				if len(args) != 2 {
					return usagef("want job history ID")
				}
				return printHistory(ctx, e, r, c, args[1])
			}
			if *past {
				return usagef("--history is for pawl job ID")
			}
			verb, ok := jobVerbs[args[0]]
			if !ok {
				// pawl job ID looks at it.
				verb, args = jobVerbs["get"], append([]string{"get"}, args...)
			}
			want := len(strings.Fields(verb.args)) + 1
			if len(args) < want || (len(args) > want && !strings.HasSuffix(verb.args, "...")) {
				return usagef("want job %s %s", args[0], verb.args)
			}
			words := append([]string{"JOB", verb.command}, args[1:]...)
			if args[0] == "delay" {
				d, err := time.ParseDuration(args[2])
				if err != nil {
					return usagef("%q is no duration such as 90s", args[2])
				}
				words[3] = millisText(d)
			}
			v, err := c.Do(ctx, words...)
			if err != nil {
				return err
			}
			if v.Kind == client.Null || (args[0] == "delete" && v.Number() == 0) {
				fmt.Fprintln(e.stderr, "pawl: no such job")
				return negative()
			}
			return r.printReply(e, v)
		}
	})
}

func cronCommand() subcommand {
	return remoteCommand(subcommand{
		name: "cron", words: []string{"list", "set", "delete"}, args: "list | set NAME SPEC QUEUE PAYLOAD | delete NAME",
		summary: "jobs that enqueue themselves on a schedule", group: groupQueues,
	}, 1, 5, func(e *env, r *remote) remoteFunc {
		zone := r.fs.String("tz", "", "set: time zone of the schedule, UTC when left out")
		catchup := r.fs.String("catchup", "", "set: one, none or all of the times missed while the daemon was down")
		options := addJobFlags(r.fs)
		return func(ctx context.Context, c *client.Client, args []string) error {
			var words []string
			switch {
			case args[0] == "list" && len(args) == 1:
				words = []string{"CRON", "LIST"}
			case args[0] == "delete" && len(args) == 2:
				words = []string{"CRON", "DELETE", args[1]}
			case args[0] == "set" && len(args) == 5:
				words = append([]string{"CRON", "SET"}, args[1:]...)
				if *zone != "" {
					words = append(words, "TZ", *zone)
				}
				if *catchup != "" {
					words = append(words, "CATCHUP", *catchup)
				}
				job, err := options.job(args[3], nil)
				if err != nil {
					return err
				}
				words = append(words, job.Options()...)
			default:
				return usagef("want cron list, cron set NAME SPEC QUEUE PAYLOAD, or cron delete NAME")
			}
			v, err := c.Do(ctx, words...)
			if err != nil {
				return err
			}
			if args[0] == "delete" && v.Number() == 0 {
				fmt.Fprintln(e.stderr, "pawl: no such schedule")
				return negative()
			}
			if args[0] == "list" {
				return printCrons(e, r, v)
			}
			return r.printReply(e, v)
		}
	})
}

func printCrons(e *env, r *remote, v client.Value) error {
	if r.asJSON {
		for _, c := range v.Elems {
			if err := printJSON(e.stdout, object(c.Elems)); err != nil {
				return err
			}
		}
		return nil
	}
	table := newTable(e.stdout, "NAME", "SPEC", "ZONE", "QUEUE", "NEXT", "LAST")
	for _, c := range v.Elems {
		row(table, printable(c.Field("name").Text, 40), c.Field("spec").Text, c.Field("tz").Text, printable(c.Field("queue").Text, 40),
			timeText(c.Field("next").Number()), timeText(c.Field("last").Number()))
	}
	return table.Flush()
}
