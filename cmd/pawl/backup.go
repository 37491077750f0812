package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"pawl/recovery"
)

func backupCommand() subcommand {
	return subcommand{
		name: "backup", args: "NAME", summary: "have the daemon write a consistent copy, or copy a store that no daemon runs on", group: groupData,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("backup")
			dir := fs.String("dir", "", "no daemon runs: copy this store, and NAME is a new directory; without it NAME is one below the daemon's --backup-dir")
			base := fs.String("base", "", "with --dir: an earlier backup; files that are the same become hard links to it")
			r := addRemote(e, fs)
			r.addJSON()
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				if *dir != "" {
					return backupOffline(ctx, e, *dir, args[0], *base, r.asJSON)
				}
				if *base != "" {
					return usagef("--base is for --dir: a running daemon links what an earlier backup has by itself")
				}
				// A backup takes as long as it takes: the deadline is the caller's.
				if !fs.Changed("timeout") {
					r.timeout = 24 * time.Hour
				}
				c, err := r.client()
				if err != nil {
					return err
				}
				defer c.Close()
				v, err := c.Do(ctx, "BACKUP", args[0])
				if err == nil {
					err = v.Err()
				}
				if err != nil {
					return remoteExit(err)
				}
				if r.asJSON {
					return printJSON(e.stdout, map[string]any{"backup": textJSON(args[0])})
				}
				fmt.Fprintf(e.stdout, "the daemon wrote backup %s\n", printable(args[0], 0))
				return nil
			}
		},
	}
}

func backupOffline(ctx context.Context, e *env, dir, to, base string, asJSON bool) error {
	health, err := recovery.Backup(ctx, recovery.BackupOptions{Dir: dir, To: to, Base: base})
	if err != nil {
		return storeExit(err)
	}
	if asJSON {
		return printJSON(e.stdout, map[string]any{"backup": textJSON(to), "store": health.Identity.ID.String(), "lsn": health.End.LSN, "bytes": health.Bytes})
	}
	fmt.Fprintf(e.stdout, "copied store %s up to group %d to %s and checked the copy: %s\n", health.Identity.ID, health.End.LSN, to, byteText(health.Bytes))
	return nil
}
