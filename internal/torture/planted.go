//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pawl/internal/record"
	"pawl/internal/seeds"
	"pawl/internal/torture/daemon"
)

// plant is one bug, laid over the source for one build. Nothing of it is ever
// in the program itself.
type plant struct {
	name     string
	file     string // of the module
	old, new string // old stands in the file exactly once
	// caught says what must fail: "test PACKAGE RUN" for go test, "model PACKAGE
	// RUN OPERATIONS" for a model that plays so much, "layer NAME FLAGS…" for a
	// layer of this program.
	caught string
}

// plants are the bugs that the tests must catch. Most were real bugs of other
// systems; the proof is worth as much as what it finds.
var plants = []plant{
	{
		"reply before the sync", "engine/commit.go",
		"	for {\n		if lsn <= LSN(c.safe.Load()) {\n			return nil\n		}\n		switch lsn {",
		"	for {\n		if lsn < lsnClosed {\n			return nil\n		}\n		switch lsn {",
		"layer trace -starts 1",
	},
	{
		"no sync for a group of one record", "wal/commit.go",
		"	if first || l.opt.Sync == SyncAlways {",
		"	if first || l.opt.Sync == SyncAlways && g.count > 1 {",
		"layer trace -starts 1",
	},
	{
		"sync of another file", "wal/commit.go",
		"	if err := gen.file.Datasync(); err != nil {\n		return l.fail(err)",
		"	if err := l.current.file.Datasync(); err != nil {\n		return l.fail(err)",
		"layer trace -starts 1",
	},
	{
		"no directory sync after the rename of a snapshot", "snapshot/store.go",
		"	for _, d := range []string{dir, filepath.Dir(dir)} {",
		"	for _, d := range []string{filepath.Dir(dir)} {",
		"layer trace -starts 1 -jobs 150",
	},
	{
		"no directory sync for a new generation", "wal/generation.go",
		"	return g, opt.FS.SyncDir(opt.Dir)\n",
		"	return g, nil\n",
		"layer trace -starts 1",
	},
	{
		"a failed sync is tried again", "wal/commit.go",
		"	if err := gen.file.Datasync(); err != nil {\n		return l.fail(err)",
		"	if err := gen.file.Datasync(); err != nil && gen.file.Datasync() != nil {\n		return l.fail(err)",
		"test ./wal .",
	},
	{
		"the error of a sync is dropped", "wal/commit.go",
		"	if err := gen.file.Datasync(); err != nil {\n		return l.fail(err)",
		"	if err := gen.file.Datasync(); err != nil && len(gen.image) == 0 {\n		return l.fail(err)",
		"test ./wal .",
	},
	{
		"an append goes on after a short write", "wal/commit.go",
		"	if err := gen.segment.append(gen.image[from:end], split); err != nil {",
		"	if err := gen.segment.append(gen.image[from:end], split); err != nil && end == 0 {",
		"test ./wal .",
	},
	{
		"a torn tail counts as history", "wal/log.go",
		"	l.putLink(first, end.Generation, int(end.Length))\n",
		"	l.putLink(first, end.Generation, int(end.Length)+64)\n",
		"test ./wal .",
	},
	{
		"a hole before good groups ends the log", "wal/decide.go",
		"	case e.VouchedByEntry >= e.Expected:",
		"	case e.VouchedByEntry > e.Expected+1000:",
		"test ./wal .",
	},
	{
		"no checksum over the content", "wal/format.go",
		"	if checksum(content) != h.contentSum {",
		"	if len(content) > int(h.length) {",
		"test ./wal .",
	},
	{
		"a gap between groups is accepted", "wal/scan.go",
		"	case h.chain != s.last.sum:\n		return errors.New(\"header does not follow the one before\")\n	case h.kind == kindGroup && h.lsn != s.lsn+1:",
		"	case h.kind == kindGroup && h.lsn <= s.lsn:",
		"test ./wal TestEntryTakenOut",
	},
	{
		"a damaged snapshot gives an older state", "wal/reader.go",
		"			return nil, &CorruptError{Path: segmentPath(h.dir, before), Generation: before, LSN: opt.After + 1, Err: ErrMissing}\n",
		"			_ = before\n			break\n",
		"test ./wal TestLinks",
	},
	{
		"generations go before the snapshot's directory is synced", "snapshot/store.go",
		"	for _, d := range []string{dir, filepath.Dir(dir)} {",
		"	for _, d := range []string{} {",
		"layer trace -starts 1 -jobs 150",
	},
	{
		"an ack is applied, but not logged", "engine/lease.go",
		"		e.endLease(slot)\n		return true\n",
		"		if err := e.st.Apply(&e.r, state.Body{}, e.now); err != nil {\n			panic(err)\n		}\n		return true\n",
		"layer kill -kills 6",
	},
	{
		"a lease is applied, but not logged", "engine/fetch.go",
		"	e.record(&e.r, nil)\n	if j.Attempt == 0 {",
		"	if err := e.st.Apply(&e.r, state.Body{}, e.now); err != nil {\n		panic(err)\n	}\n	if j.Attempt == 0 {",
		"layer kill -kills 6",
	},
	{
		"leases follow the wall clock", "engine/clock.go",
		"	now = max(c.last, c.base+state.Millis((r.mono-c.from)/time.Millisecond))",
		"	now = max(c.last, state.Millis(r.wall/time.Millisecond))",
		"layer clock -jumps 8 -drain 20s",
	},
	{
		"DRAIN is applied, but not logged", "engine/meta.go",
		"		e.record(&state.Record{Kind: state.KindDrain, On: c.On}, nil)\n",
		"		if err := e.st.Apply(&state.Record{Kind: state.KindDrain, On: c.On}, state.Body{}, e.now); err != nil {\n			panic(err)\n		}\n",
		"layer orders -kills 10",
	},
	{
		"CONFIG SET is written into the configuration", "cmd/pawl/reload.go",
		"	d.set = next\n	return nil\n",
		"	d.set = next\n	if users == nil {\n		return os.WriteFile(c.File, []byte(\"log_level = \\\"info\\\"\\n\"), 0o600)\n	}\n	return nil\n",
		"layer orders -kills 10",
	},
	{
		"what a socket took of a reply counts as all of it", "server/resp/descriptor_linux.go",
		"	c.srv.stats.bytesOut.Add(uint64(n))\n	return n",
		"	c.srv.stats.bytesOut.Add(uint64(n))\n	return max(n, len(b)*min(n, 1))",
		"layer trickle -lives 4 -drain 20s",
	},
	{
		"a start takes a set clock for time gone by", "engine/submit.go",
		"	e.clock.offset = offset\n	e.record(",
		"	e.record(",
		"layer clock -jumps 12 -drain 20s",
	},
	{
		"an old lease is accepted", "state/read.go",
		"	if j.place() != Leased || s.extraOf(j).nonce != id.Nonce {",
		"	if j.place() != Leased {",
		"layer pause",
	},
	{
		"a job that came back is given to two", "engine/fetch.go",
		"Nonce: d.Lease.Nonce, At: e.now + span}",
		"Nonce: d.Lease.Nonce, At: e.now + span/state.Millis(1+9*min(j.Attempt, 1))}",
		"layer pause",
	},
	{
		"replay applies a group twice", "recovery/replay.go",
		"ReaderOptions{After: after,",
		"ReaderOptions{After: after - min(after, 1),",
		"test ./recovery .",
	},
	{
		"attempts start again after a restart", "state/learn.go",
		"	c.run.Jobs++\n",
		"	j.when &^= 0xffff\n	c.run.Jobs++\n",
		"test ./state .",
	},
	{
		"the order is lost at a restart", "state/view.go",
		"	each(&s.groups, func(i uint32, g *group) {\n		if g.serial != 0 {",
		"	each(&s.levels, func(_ uint32, l *level) { l.first, l.last = l.last, l.first })\n	each(&s.groups, func(i uint32, g *group) {\n		if g.serial != 0 {",
		"test ./state/... .",
	},
	{
		"stats run ahead of the disk", "engine/submit.go",
		"	lsn = e.leave()\n	for _, cmd := range cmds {\n		switch c := cmd.(type) {\n",
		"	lsn = e.leave()\n	for _, cmd := range cmds {\n		switch c := cmd.(type) {\n		case *Stats:\n			lsn = lsnNothing\n",
		"test ./engine .",
	},
	{
		"what a dead process wrote is shown before it is synced", "recovery/open.go",
		"	created := false\n	src, err := survey(opt.FS, opt.Dir, true)",
		"	created := false\n	src, err := survey(opt.FS, opt.Dir, false)",
		"test ./recovery TestPowerCutAfterAKill",
	},
}

// plantedTimeout is for the tests of one package with a bug in it. They take some
// seconds; what takes this long hangs, and a test that hangs on a wrong state has
// not said what is wrong.
const plantedTimeout = 3 * time.Minute

// errNoPlace: the source has changed where the bug belongs.
var errNoPlace = errors.New("its place is not in the source any more")

// runPlanted lays each bug over the source and demands that it is caught.
func runPlanted(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("planted", flag.ContinueOnError)
	only := flags.String("only", "", "only the bugs whose name contains this")
	parallel := flags.Int("j", 2, "bugs at the same time")
	strict := flags.Bool("strict", true, "a bug whose place is not in the source any more is a failure, too")
	to := flags.String("record", "", "append a line about this run to the record in this file")
	verbose := flags.Bool("v", false, "print what the tests said")
	caughtBy := flags.String("caught", "", "let this catch them instead of what is written down")
	ofRules := flags.Bool("rules", false, "break the rules of a job's life instead, for the reference of the engine to notice")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := daemon.Root(ctx)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "pawl-planted-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	var chosen []plant
	bugs := plants
	if *ofRules {
		bugs = rules
	}
	for _, p := range bugs {
		if strings.Contains(p.name, *only) {
			if *caughtBy != "" {
				p.caught = *caughtBy
			}
			chosen = append(chosen, p)
		}
	}
	began := time.Now()
	outcomes := make([]error, len(chosen))
	turns := make(chan int)
	var workers sync.WaitGroup
	for range *parallel {
		workers.Go(func() {
			for i := range turns {
				began := time.Now()
				out, err := chosen[i].hunt(ctx, root, filepath.Join(scratch, fmt.Sprint(i)))
				outcomes[i] = err
				verdict := "caught by " + chosen[i].caught
				if err != nil {
					verdict = "not caught: " + err.Error()
				}
				fmt.Printf("planted: %s: %s (%v)\n", chosen[i].name, verdict, time.Since(began).Round(100*time.Millisecond))
				if *verbose || err != nil {
					fmt.Printf("%s\n", out)
				}
			}
		})
	}
	for i := range chosen {
		turns <- i
	}
	close(turns)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	caught, missed, skipped := 0, 0, 0
	for _, err := range outcomes {
		switch {
		case err == nil:
			caught++
		case errors.Is(err, errImpossible), errors.Is(err, errNoPlace) && !*strict:
			skipped++
		default:
			missed++
		}
	}
	fmt.Printf("planted: %d cases, %d caught, %d not planted, %d violations\n", len(chosen), caught, skipped, missed)
	if *to != "" {
		if err := record.Append(*to, record.Run{
			Date: time.Now(), Commit: record.Commit(), Layer: "planted bugs", Seed: seeds.Base(), Parameters: strings.Join(flags.Args(), " "),
			Cases: len(chosen), Faults: caught + missed, Violations: missed, Seconds: time.Since(began).Seconds(),
		}); err != nil {
			return err
		}
	}
	if missed > 0 {
		return errViolated
	}
	return nil
}

// hunt gives a layer, which may be unlucky, three tries to catch the bug. A test
// has one.
func (p *plant) hunt(ctx context.Context, root, scratch string) (output string, err error) {
	tries := 1
	if strings.HasPrefix(p.caught, "layer ") {
		tries = 3
	}
	for try := range tries {
		output, err = p.grow(ctx, root, filepath.Join(scratch, fmt.Sprint(try)))
		if err == nil || ctx.Err() != nil || errors.Is(err, errImpossible) || errors.Is(err, errNoPlace) {
			break
		}
	}
	return output, err
}

// grow builds with the bug in it and returns nil if that is caught.
func (p *plant) grow(ctx context.Context, root, scratch string) (output string, err error) {
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(root, p.file)
	source, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), p.old); n != 1 {
		return "", fmt.Errorf("%w: %s has it %d times", errNoPlace, p.file, n)
	}
	changed := filepath.Join(scratch, "planted.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), p.old, p.new, 1)), 0o600); err != nil {
		return "", err
	}
	overlay := filepath.Join(scratch, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {name: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	words := strings.Fields(p.caught)
	var cmd *exec.Cmd
	switch words[0] {
	case "test":
		run := strings.Join(words[2:], " ")
		cmd = exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-short", "-count=1", "-failfast", "-timeout", plantedTimeout.String(), "-run", run, words[1])
		cmd.Dir = root
	case "model":
		cmd = exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count=1", "-timeout", plantedTimeout.String(), "-run", words[2]+"$", words[1], "-operations", words[3])
		cmd.Dir = root
	case "layer":
		binary := filepath.Join(scratch, "pawl")
		if err := daemon.Build(ctx, binary, overlay); err != nil {
			return "", err
		}
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		cmd = exec.CommandContext(ctx, self, append(words[1:], "-binary", binary, "-dir", filepath.Join(scratch, "dir"))...)
		cmd.Env = append(os.Environ(), "TMPDIR="+scratch)
	default:
		return "", fmt.Errorf("nothing is known of %q", words[0])
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	exit, ran := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return out.String(), errors.New("everything passed")
	case !ran:
		return out.String(), err
	case words[0] == "layer" && exit.ExitCode() == exitImpossible:
		return out.String(), errImpossible
	case words[0] == "layer" && exit.ExitCode() != exitViolated:
		return out.String(), fmt.Errorf("the layer did not run: exit %d", exit.ExitCode())
	case words[0] != "layer" && strings.Contains(out.String(), "panic: test timed out after"):
		return out.String(), fmt.Errorf("the tests did not end within %v", plantedTimeout)
	case words[0] != "layer" && !slices.ContainsFunc([]string{"--- FAIL", "panic:"}, func(s string) bool { return strings.Contains(out.String(), s) }):
		return out.String(), errors.New("the test did not run")
	}
	return out.String(), nil
}
