package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"pawl/config"
	"pawl/internal/vfs"
	"pawl/server/lmstfy"
)

func serveCommand() subcommand {
	return subcommand{
		name: "serve", summary: "run the daemon", group: groupDaemon,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			set := config.New("serve")
			return set.Flags(), func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 0, 0); err != nil {
					return err
				}
				if err := set.Load(e.lookup); err != nil {
					return withExit(exitConfig, fmt.Errorf("configuration: %w", err))
				}
				return serve(ctx, e, set)
			}
		},
	}
}

// serve runs a daemon until ctx ends or it fails.
func serve(ctx context.Context, e *env, set *config.Set) error {
	level := new(slog.LevelVar)
	log := newLogger(e.stderr, &set.Config, level)
	c := set.Config
	var file *lmstfy.Config
	if c.LmstfyFile != "" {
		var err error
		if file, err = lmstfy.LoadConfig(c.LmstfyFile); err != nil {
			return withExit(exitConfig, err)
		}
		takeOver(set, &c, file)
		if c.AdminAddr != "" && !config.Loopback(c.AdminAddr) && len(c.Accounts)+len(file.Accounts) == 0 && !c.Insecure {
			return withExit(exitConfig, fmt.Errorf("admin-addr: %s can be reached from other machines, but neither file names accounts", c.AdminAddr))
		}
	}
	clearEphemeral(log)
	if c.Ephemeral {
		dir, err := makeEphemeral()
		if err != nil {
			return withExit(exitCreate, err)
		}
		defer os.RemoveAll(dir)
		c.Dir, c.Sync = dir, config.SyncNever
	}
	// SIGHUP must not end a process that somebody can find, so this comes before the
	// doors open.
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	d, err := newDaemon(set, &c, file, log, level, e)
	if err != nil {
		return err
	}
	log.Info("starting", "version", versionString(), "pid", os.Getpid(), "dir", c.Dir, "sync", c.Sync.String(), "config", c.File)
	if c.Sync != 0 && !c.Ephemeral {
		log.Warn("an OK does not mean on disk: a power failure may lose acknowledged work", "sync", c.Sync.String())
	}
	err = d.run(ctx, hup)
	var said *exitError
	switch {
	case err == nil:
		log.Info("stopped")
	case errors.As(err, &said) && said.err == nil:
		log.Info("stopped", "exit", said.code)
	default:
		log.Error("stopped", "error", err, "exit", exitCode(err))
	}
	if err != nil {
		return &exitError{code: exitCode(err)} // the log has the rest
	}
	return nil
}

// takeOver lets an lmstfy file say where to listen, unless flags, environment
// or our own file have.
func takeOver(set *config.Set, c *config.Config, file *lmstfy.Config) {
	if set.Option("http-addr").Origin == "default" {
		c.HTTPAddr = fmt.Sprintf("%s:%d", file.Host, file.Port)
	}
	if set.Option("admin-addr").Origin == "default" {
		c.AdminAddr = fmt.Sprintf("%s:%d", file.AdminHost, file.AdminPort)
	}
	if set.Option("log-format").Origin == "default" && file.LogFormat == "json" {
		c.LogFormat = file.LogFormat
	}
}

// listenExit is the error of an address that cannot be listened on, with its
// exit code. When a daemon runs on the very same directory, that is what to
// say: 75.
func listenExit(c *config.Config, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return withExit(exitDenied, err)
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, errSomebodyListens):
		held, lockErr := vfs.OS{}.Lock(c.Dir)
		if errors.Is(lockErr, vfs.ErrLocked) {
			return withExit(exitLocked, fmt.Errorf("open %s: %w", c.Dir, lockErr))
		}
		if lockErr == nil {
			held.Close()
		}
		return withExit(exitConfig, fmt.Errorf("%w; is another daemon running?", err))
	}
	return withExit(exitConfig, err)
}
