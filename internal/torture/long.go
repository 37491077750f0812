//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"pawl/internal/child"
	"pawl/internal/record"
	"pawl/internal/seeds"
	"pawl/internal/torture/daemon"
)

// runLong runs one layer again and again, each time with the next seed, until
// so many slices of it are on record. What it did before it was stopped, last
// week or by a reboot, is on record and counts: it goes on behind that. A slice
// that is stopped leaves nothing on record and is played from its start.
func runLong(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("long", flag.ContinueOnError)
	to := flags.String("record", "docs/record.tsv", "the record: what is in it counts, each slice adds its lines")
	count := flags.Int("slices", 20, "how many slices are to be on record in the end")
	within := flags.Duration("within", 0, "begin no slice later than this; 0 is no limit")
	rest := flags.Duration("rest", 0, "pause after each slice, for whoever else uses the machine")
	binary := flags.String("binary", "", "the pawl to test; it is built without it")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: torture long [flags] LAYER [flags of the layer]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	words := flags.Args()
	if len(words) == 0 || !hasRecord(words[0]) {
		flags.Usage()
		return errors.New("long needs a layer that can be put on record")
	}
	dir, err := os.MkdirTemp("", "pawl-long-")
	if err != nil {
		return err
	}
	scratch.add(dir)
	defer os.RemoveAll(dir)
	if *binary == "" {
		*binary = filepath.Join(dir, "pawl")
		if err := daemon.Build(ctx, *binary, ""); err != nil {
			return err
		}
	}
	began := time.Now()
	for n := 1; n <= *count; n++ {
		s := sliceOf{words, fmt.Sprintf("%s/%d", seeds.Base(), n)}
		if done, err := s.onRecord(*to); err != nil {
			return err
		} else if done {
			continue
		}
		if *within > 0 && time.Since(began) > *within {
			fmt.Printf("long: %d of %d slices are on record; the same command goes on there\n", n-1, *count)
			return nil
		}
		fmt.Printf("long: slice %d of %d: %s=%q %s\n", n, *count, seeds.Variable, s.seed, strings.Join(words, " "))
		if err := s.play(ctx, *binary, filepath.Join(dir, fmt.Sprintf("slice%d.tsv", n)), *to); err != nil {
			return err
		}
		if err := sleep(ctx, *rest); err != nil {
			return err
		}
	}
	fmt.Printf("long: %d slices are on record\n", *count)
	return nil
}

// hasRecord tells whether a layer takes -record and -binary, as a lab does.
func hasRecord(name string) bool {
	return !slices.Contains([]string{"long", "record", "check", "planted"}, name) &&
		slices.ContainsFunc(layers(), func(l layer) bool { return l.name == name })
}

// sliceOf is one run of a layer with its flags, under a seed of its own.
type sliceOf struct {
	words []string
	seed  string
}

// onRecord tells whether this slice was played.
func (s sliceOf) onRecord(name string) (bool, error) {
	runs, err := record.ReadFile(name)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(runs, func(r record.Run) bool {
		layer, _, _ := strings.Cut(r.Layer, "/")
		return layer == numbered(s.words[0]) && r.Seed == s.seed && r.Parameters == strings.Join(s.words[1:], " ")
	}), nil
}

// play runs the slice and, when it has ended by itself, puts its lines on
// record.
func (s sliceOf) play(ctx context.Context, binary, lines, to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, append(slices.Clone(s.words), "-binary", binary, "-record", lines)...)
	cmd.Env = append(os.Environ(), seeds.Variable+"="+s.seed)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	slice, err := child.Start(cmd)
	if err != nil {
		return err
	}
	state := slice.State()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	runs, err := record.ReadFile(lines)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if err := record.Append(to, r); err != nil {
			return err
		}
	}
	switch state.ExitCode() {
	case 0:
		return nil
	case exitViolated:
		return errViolated
	case exitImpossible:
		return errImpossible
	}
	return fmt.Errorf("the slice ended with %v", state)
}

// runRecord sums records up.
func runRecord(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(flags.Output(), "usage: torture record FILE…") }
	if err := flags.Parse(args); err != nil {
		return err
	}
	var all []record.Run
	for _, name := range flags.Args() {
		runs, err := record.ReadFile(name)
		if err != nil {
			return err
		}
		all = append(all, runs...)
	}
	return record.Table(os.Stdout, record.Sums(all))
}
