package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"pawl/recovery"
)

func initCommand() subcommand {
	return subcommand{
		name: "init", args: "DIR", summary: "make an empty store, for a daemon that runs with --existing", group: groupData,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("init")
			asJSON := addJSON(fs)
			return fs, func(_ context.Context, args []string) error {
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				id, err := recovery.Init(recovery.Options{Dir: args[0]})
				if err != nil {
					return storeExit(err)
				}
				if *asJSON {
					return printJSON(e.stdout, map[string]any{"store": fmt.Sprint(id.ID), "dir": args[0]})
				}
				fmt.Fprintf(e.stdout, "made store %s in %s\n", id.ID, args[0])
				return nil
			}
		},
	}
}

// storeExit gives an error of package recovery its exit code.
func storeExit(err error) error { return withExit(recovery.ExitCode(err), err) }
