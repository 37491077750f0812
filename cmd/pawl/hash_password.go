package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"pawl/acl"
)

func hashPasswordCommand() subcommand {
	return subcommand{
		name: "hash-password", summary: "read a password from standard input, print the rule that stands for it", group: groupTools,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("hash-password")
			asJSON := addJSON(fs)
			return fs, func(_ context.Context, args []string) error {
				if err := wantArgs(args, 0, 0); err != nil {
					return err
				}
				if isTerminalInput(e.stdin) {
					fmt.Fprint(e.stderr, "password (it will be seen): ")
				}
				line, err := bufio.NewReader(e.stdin).ReadString('\n')
				if err != nil && !errors.Is(err, io.EOF) {
					return withExit(exitIO, err)
				}
				password := strings.TrimRight(line, "\r\n")
				if password == "" {
					return usagef("no password on standard input")
				}
				if *asJSON {
					return printJSON(e.stdout, map[string]any{"rule": fmt.Sprint(acl.NewPassword(password))})
				}
				fmt.Fprintln(e.stdout, acl.NewPassword(password))
				return nil
			}
		},
	}
}
