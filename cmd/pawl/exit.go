package main

import (
	"errors"
	"fmt"

	"pawl/recovery"
)

// Exit codes, those of sysexits(3). They are part of what operators and unit
// files rely on.
const (
	exitOK       = recovery.ExitOK
	exitNegative = 1                       // a clean answer that is no: empty queue, unknown job, failed check
	exitUsage    = 64                      // wrong flags or arguments
	exitDamaged  = recovery.ExitDamaged    // data on disk is damaged, foreign or newer
	exitNoServer = 69                      // the daemon cannot be reached
	exitCreate   = recovery.ExitCantCreate // the directory cannot be made
	exitIO       = recovery.ExitIO         // reading, writing or syncing failed
	exitLocked   = recovery.ExitLocked     // another process holds the directory
	exitDenied   = recovery.ExitPermission // permission
	exitConfig   = 78                      // configuration
)

// An exitError carries its exit code to the end of the process. A nil err
// prints nothing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// withExit gives err an exit code; nil stays nil.
func withExit(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// negative ends the process with exit code 1 and nothing printed.
func negative() error { return &exitError{code: exitNegative} }

// A usageError is the fault of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// fail prints err, if there is something to say, and returns its exit code.
func fail(e *env, err error) int {
	code := exitCode(err)
	var exit *exitError
	if err != nil && !(errors.As(err, &exit) && exit.err == nil) {
		fmt.Fprintf(e.stderr, "pawl: %v\n", err)
	}
	return code
}

// exitCode is the code of an error: that of the exitError in it, 64 for a
// usageError, 1 for anything else.
func exitCode(err error) int {
	var exit *exitError
	var use usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &use):
		return exitUsage
	}
	return exitNegative
}
