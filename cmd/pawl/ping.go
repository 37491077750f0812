package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

func pingCommand() subcommand {
	return subcommand{
		name: "ping", summary: "say whether the daemon serves jobs, by exit code; --wait for it", group: groupQueues,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("ping")
			wait := fs.Duration("wait", 0, "until it does, at most this long")
			r := addRemote(e, fs)
			r.addJSON()
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 0, 0); err != nil {
					return err
				}
				c, err := r.client()
				if err != nil {
					return err
				}
				defer c.Close()
				begun := time.Now()
				for {
					err := serves(ctx, c)
					if err == nil {
						if r.asJSON {
							return printJSON(e.stdout, map[string]any{"serves": true, "after_ms": time.Since(begun).Milliseconds()})
						}
						fmt.Fprintln(e.stdout, "PONG")
						return nil
					}
					if err = remoteExit(err); exitCode(err) == exitDenied || time.Since(begun) >= *wait {
						return err
					}
					select {
					case <-ctx.Done():
						return err
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
		},
	}
}

// serves is nil when the daemon has its jobs: PING alone answers while it is
// still loading them, and so does INFO, which says so.
func serves(ctx context.Context, c *client.Client) error {
	if err := c.Ping(ctx); err != nil {
		return err
	}
	v, err := c.Do(ctx, "INFO")
	if err != nil {
		return err
	}
	if infoNumber(v.Text, "loading") != 0 {
		return errors.New("the daemon is still loading its jobs")
	}
	return nil
}
