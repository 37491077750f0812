package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"pawl/migrate"
)

func importCommand() subcommand {
	return subcommand{
		name: "import", summary: "take over the jobs of an lmstfy or of Moxy from their Redis, over the admin address", group: groupTools,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("import")
			var o migrate.Options
			fs.StringVar(&o.Layout, "layout", "", "how the source keeps its jobs: lmstfy or moxy")
			fs.StringVar(&o.From, "from", "", "the source, redis://[user:password@]host:port/db; it is only read")
			fs.StringVar(&o.TokensFrom, "tokens-from", "", "the Redis with lmstfy's tokens, if that is another one")
			fs.StringVar(&o.Pool, "pool", "", "pool that the jobs go to, the default one when left out")
			fs.StringVar(&o.Admin, "admin", "http://127.0.0.1:7778", "URL of the admin address (PAWL_ADMIN)")
			fs.StringVar(&o.User, "user", "", "log in as (PAWL_ADMIN_USER); the password is taken from PAWL_ADMIN_PASSWORD")
			fs.BoolVar(&o.DryRun, "dry-run", false, "read and check everything, add nothing")
			asJSON := fs.Bool("json", false, "print the counts as JSON")
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 0, 0); err != nil {
					return err
				}
				if o.Layout == "" || o.From == "" {
					return usagef("want --layout and --from")
				}
				for flag, variable := range map[string]string{"admin": "PAWL_ADMIN", "user": "PAWL_ADMIN_USER"} {
					if text, ok := e.lookup(variable); ok && !fs.Changed(flag) {
						fs.Set(flag, text)
					}
				}
				o.Password, _ = e.lookup("PAWL_ADMIN_PASSWORD")
				var last time.Time
				o.Progress = func(r migrate.Report) {
					if time.Since(last) >= time.Second {
						last = time.Now()
						fmt.Fprintf(e.stderr, "read %d jobs, added %d\n", r.Ready+r.Delayed+r.Dead, r.Added)
					}
				}
				report, err := migrate.Run(ctx, o)
				if errors.Is(err, migrate.ErrLayout) || errors.Is(err, migrate.ErrSource) {
					return usageError{err}
				}
				if *asJSON {
					if printErr := printJSON(e.stdout, report); err == nil {
						err = printErr
					}
				} else {
					printImport(e, report, o.DryRun)
				}
				if err != nil {
					return withExit(exitNoServer, fmt.Errorf("stopped half way, run it again: %w", err))
				}
				if report.Refused > 0 {
					return negative()
				}
				return nil
			}
		},
	}
}

func printImport(e *env, r migrate.Report, dryRun bool) {
	added := "added"
	if dryRun {
		added = "would be added, or are there"
	}
	for _, line := range []struct {
		n    int
		what string
	}{
		{r.Ready, "ready jobs read"},
		{r.Delayed, "delayed jobs read"},
		{r.Dead, "dead jobs read"},
		{r.Gone, "entries left out: their bodies have expired or were deleted"},
		{r.Unreadable, "entries left out: not of this layout"},
		{r.Added, "jobs " + added},
		{r.Tokens, "tokens " + added},
		{r.Limits, "limits " + added},
		{r.Duplicates, "were here before"},
		{r.Refused, "refused"},
	} {
		fmt.Fprintf(e.stdout, "%10d  %s\n", line.n, line.what)
	}
	for _, text := range r.Refusals {
		fmt.Fprintf(e.stdout, "            %s\n", printable(text, 300))
	}
}
