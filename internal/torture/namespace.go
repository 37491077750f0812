//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"pawl/internal/child"
)

// apart runs the whole command again in a mount namespace of its own, so that
// nothing that a layer mounts outlives it, and returns true with how that
// ended. In the namespace it returns false.
func apart(ctx context.Context) (done bool, err error) {
	const mark = "PAWL_TORTURE_APART"
	if os.Getenv(mark) != "" {
		return false, nil
	}
	if os.Geteuid() != 0 {
		return true, fmt.Errorf("%w: mounting needs root", errImpossible)
	}
	self, err := os.Executable()
	if err != nil {
		return true, err
	}
	cmd := exec.CommandContext(ctx, self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// An interrupt, and SIGTERM, let the child unmount what it has mounted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	mounted, err := child.Start(cmd)
	if err != nil {
		return true, fmt.Errorf("%w: a mount namespace: %w", errImpossible, err)
	}
	if state := mounted.State(); !state.Success() {
		os.Exit(state.ExitCode()) // what there is to say has been said by the child
	}
	return true, nil
}
