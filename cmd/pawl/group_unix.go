//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's Ctrl-C from the command: the worker decides when
// it ends, so that the job is given back properly.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
