//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
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
	// An interrupt lets the child unmount what it has mounted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &exit):
		return true, fmt.Errorf("%w: a mount namespace: %w", errImpossible, err)
	}
	// What there is to say has been said by the child.
	os.Exit(exit.ExitCode())
	return true, nil
}
