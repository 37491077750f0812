package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"pawl/config"
)

func configCommand() subcommand {
	return subcommand{
		name: "config", words: []string{"check"}, args: "[check]", summary: "print every setting and where it came from, or check them",
		group: groupDaemon,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			set := config.New("config")
			asJSON := addJSON(set.Flags())
			return set.Flags(), func(_ context.Context, args []string) error {
				if len(args) > 0 && args[0] != "check" {
					return usagef("unexpected argument %q, want check or nothing", args[0])
				}
				if err := wantArgs(args, 0, 1); err != nil {
					return err
				}
				if err := set.Load(e.lookup); err != nil {
					return withExit(exitConfig, fmt.Errorf("configuration: %w", err))
				}
				switch {
				case len(args) > 0 && *asJSON:
					return printJSON(e.stdout, map[string]bool{"ok": true})
				case len(args) > 0:
					fmt.Fprintln(e.stdout, "ok")
				case *asJSON:
					return printConfigJSON(e, set)
				default:
					printConfig(e, set)
				}
				return nil
			}
		},
	}
}

// printConfig prints one line a setting, as the file would hold it.
func printConfig(e *env, set *config.Set) {
	table := tabwriter.NewWriter(e.stdout, 0, 8, 2, ' ', 0)
	for _, o := range set.Options {
		if o.Name == "config" {
			continue // a file cannot name another one
		}
		note := o.Origin
		if o.Reload {
			note += ", SIGHUP"
		}
		fmt.Fprintf(table, "%s = %q\t# %s\n", o.Key(), o.Value, note)
	}
	table.Flush()
	if len(set.Config.Users) > 0 {
		fmt.Fprintf(e.stdout, "\n[users] # file %s, SIGHUP; rules are not shown\n", set.Config.File)
		for _, name := range slices.Sorted(maps.Keys(set.Config.Users)) {
			fmt.Fprintf(e.stdout, "%q = \"...\"\n", name)
		}
	}
}

func printConfigJSON(e *env, set *config.Set) error {
	type row struct {
		Name   string `json:"name"`
		Value  string `json:"value"`
		Origin string `json:"origin"`
		Reload bool   `json:"reload"`
	}
	rows := make([]row, len(set.Options))
	for i, o := range set.Options {
		rows[i] = row{o.Key(), o.Value, o.Origin, o.Reload}
	}
	return printJSON(e.stdout, rows)
}
