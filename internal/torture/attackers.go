//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"pawl/internal/child"
	"pawl/internal/torture/hostile"
)

// attackers are the clients of one attack, in a process of their own: what they
// compute must not be taken for the daemon's work, nor stand in the way of those
// whose commands are timed.
type attackers struct {
	process *child.Process
	stay    io.Closer // they leave when it is closed
	out     io.Closer
	said    *bufio.Reader // from out
}

// startAttackers has them attack the daemon that runs as process pid.
func startAttackers(ctx context.Context, args ...string) (*attackers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"attacker"}, args...)...)
	cmd.Stderr = os.Stderr
	stay, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd.Stdout = theirs
	process, err := child.Start(cmd)
	if err != nil {
		out.Close()
		return nil, err
	}
	return &attackers{process, stay, out, bufio.NewReader(out)}, nil
}

// height waits until the attack is at its height, and gives what they say of it.
// It calls ready when an attack that needs to prepare something has done so.
func (a *attackers) height(ready func()) (string, error) {
	for {
		line, err := a.said.ReadString('\n')
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "height")
		switch {
		case ok:
			return strings.TrimSpace(text), nil
		case line == "":
			return "", fmt.Errorf("the attackers are gone, %v: %w", a.process.State(), err)
		case strings.TrimSpace(line) != "ready":
			return "", errors.New(strings.TrimSpace(line))
		}
		ready()
	}
}

// leave has them go.
func (a *attackers) leave() error {
	a.stay.Close()
	defer a.out.Close()
	if state := a.process.State(); !state.Success() {
		return fmt.Errorf("the attackers ended with %v", state)
	}
	return nil
}

// runAttacker is the other side of startAttackers.
func runAttacker(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("attacker", flag.ContinueOnError)
	name := flags.String("attack", "", "its name")
	field := &hostile.Field{Ready: func() { fmt.Println("ready") }}
	flags.StringVar(&field.Addr, "addr", "", "of the daemon")
	flags.BoolVar(&field.Full, "full", false, "with the numbers of the requirement")
	flags.IntVar(&field.Pid, "pid", 0, "of the daemon, for -share")
	flags.Float64Var(&field.Share, "share", 0, "instead of an attack, be honest and use as much of the processors, 1 is one, together with the daemon")
	flags.BoolVar(&field.Password, "password", false, "log in, with -share")
	flags.BoolVar(&field.TLS, "tls", false, "speak TLS, with -share")
	flags.DurationVar(&field.For, "for", time.Second, "how long, with -share")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := raiseFiles(); err != nil {
		return err
	}
	defer field.Leave()
	run := hostile.Honest
	if field.Share == 0 {
		a := hostile.Named(*name)
		if a == nil {
			return fmt.Errorf("there is no attack %q", *name)
		}
		run = a.Run
	}
	if err := run(ctx, field); err != nil {
		fmt.Println(err)
		return err
	}
	fmt.Println("height", field.Said)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
