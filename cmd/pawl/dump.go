package main

import (
	"bufio"
	"context"
	"errors"

	"github.com/spf13/pflag"

	"pawl/recovery"
	"pawl/state"
	"pawl/wal"
)

func dumpCommand() subcommand {
	return subcommand{
		name: "dump", args: "DIR", summary: "print the records of a store's log, or the history of one job", group: groupData,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("dump")
			job := fs.String("job", "", "only what happened to the job with this ID")
			queue := fs.String("queue", "", "only what happened in this queue")
			pool := fs.String("pool", state.DefaultPool, "pool of that queue")
			from := fs.Uint64("from", 0, "only this group (LSN) and later ones")
			live := fs.Bool("live", false, "a daemon runs on it: read a copy of one moment")
			asJSON := fs.Bool("json", false, "one JSON object a line")
			return fs, func(ctx context.Context, args []string) (err error) {
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				opt := recovery.DumpOptions{Dir: args[0], Live: *live, From: wal.LSN(*from), JSON: *asJSON}
				if *job != "" {
					if opt.Job, err = state.ParseJobID([]byte(*job)); err != nil {
						return usagef("--job %s: %w", printable(*job, 40), err)
					}
				}
				if *queue != "" {
					opt.Queue = string(state.AppendQueueKey(nil, *pool, []byte(*queue)))
				}
				out := bufio.NewWriter(e.stdout)
				// What was read before damage is printed too.
				return storeExit(errors.Join(recovery.Dump(ctx, out, opt), out.Flush()))
			}
		},
	}
}
