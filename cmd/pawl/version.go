package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"
)

// version is set by the release build (-ldflags "-X main.version=1.2.3").
var version = ""

// versionString is the version of this binary: what the release build set, else
// the revision it was built from, else "dev".
func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "dev-" + s.Value[:12]
			}
		}
	}
	return "dev"
}

func versionCommand() subcommand {
	return subcommand{
		name: "version", summary: "print version, Go version and platform", group: groupTools,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("version")
			short := fs.Bool("short", false, "the version only")
			asJSON := addJSON(fs)
			return fs, func(_ context.Context, args []string) error {
				if err := wantArgs(args, 0, 0); err != nil {
					return err
				}
				if *asJSON {
					return printJSON(e.stdout, map[string]string{"version": versionString(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
				}
				if *short {
					fmt.Fprintln(e.stdout, versionString())
					return nil
				}
				fmt.Fprintf(e.stdout, "pawl %s %s %s/%s\n", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return nil
			}
		},
	}
}
