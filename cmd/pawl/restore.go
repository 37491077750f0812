package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"pawl/recovery"
	"pawl/wal"
)

func restoreCommand() subcommand {
	return subcommand{
		name: "restore", args: "DIR", summary: "write the state of a past moment into a new store", group: groupData,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("restore")
			to := fs.String("to", "", "the new directory (needed)")
			at := fs.String("at", "", "the moment, as 2026-11-28T15:04:05Z, 2026-11-28 15:04:05 (local time), or a time ago, as 90m")
			lsn := fs.Uint64("lsn", 0, "or the last group (LSN) to keep; pawl dump shows them")
			live := fs.Bool("live", false, "a daemon runs on DIR: read a copy of one moment")
			asJSON := addJSON(fs)
			return fs, func(ctx context.Context, args []string) (err error) {
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				opt := recovery.RestoreOptions{Dir: args[0], To: *to, Live: *live, LSN: wal.LSN(*lsn)}
				switch {
				case *to == "":
					return usagef("--to is needed: a restore never changes the store it reads")
				case (*at == "") == !fs.Changed("lsn"):
					return usagef("exactly one of --at and --lsn is needed")
				}
				if *at != "" {
					if opt.At, err = parseMoment(*at, time.Now()); err != nil {
						return usagef("--at %s: %w", printable(*at, 40), err)
					}
				}
				done, err := recovery.Restore(ctx, opt)
				if err != nil {
					return storeExit(err)
				}
				if *asJSON {
					return printJSON(e.stdout, map[string]any{"restored": textJSON(*to), "lsn": done.LSN, "at": done.At.UnixMilli(), "jobs": done.Jobs, "store": done.Identity.ID.String(), "history": done.Identity.History})
				}
				fmt.Fprintf(e.stdout, "restored group %d of %s with %d jobs to %s, history %d of store %s\n",
					done.LSN, done.At.UTC().Format(time.RFC3339), done.Jobs, *to, done.Identity.History, done.Identity.ID)
				return nil
			}
		},
	}
}

// parseMoment reads a time, or how long ago it was.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		if ago < 0 {
			return time.Time{}, errors.New("lies in the future")
		}
		return now.Add(-ago), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	t, err := time.ParseInLocation(time.DateTime, text, time.Local)
	if err != nil {
		return time.Time{}, errors.New("is no moment")
	}
	return t, nil
}
