//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/history"
	"pawl/internal/torture/workload"
)

// ask sends one command on a connection of its own and returns the first line
// of the answer.
func ask(addr string, args ...string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, daemon.Patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(daemon.Patience)); err != nil {
		return "", err
	}
	request := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write(request); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line), err
}

// until asks again and again until the answer begins with want.
func until(ctx context.Context, addr, want string, args ...string) error {
	deadline := time.Now().Add(daemon.Patience)
	for {
		line, err := ask(addr, args...)
		if err == nil && strings.HasPrefix(line, want) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s still answers %q, %v, not %q", args[0], line, err, want)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// runFull: the disk fills up under a working crew, to the last byte. Producers
// are refused with MISCONF, the daemon lives, and when space comes back it goes
// on by itself.
func runFull(ctx context.Context, args []string) error {
	if done, err := apart(ctx); done {
		return err
	}
	l := newLab("full", args)
	rounds := l.flags.Int("rounds", 3, "how often the disk fills up")
	if err := l.open(ctx); err != nil {
		return err
	}
	defer l.close()
	mount := filepath.Join(l.dir, "mnt")
	if err := os.Mkdir(mount, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=24m,mode=0700"); err != nil {
		return fmt.Errorf("%w: tmpfs: %w", errImpossible, err)
	}
	defer func() { unmount(mount) }()
	sup, err := l.supervisor(filepath.Join(mount, "data"), small...)
	if err != nil {
		return err
	}
	defer sup.Close()
	c := campaign{lab: l, sup: sup, count: *rounds, crew: workload.Options{Clients: 8, Payload: 1 << 10, Pace: 2 * time.Millisecond}}
	c.strike = func(ctx context.Context) error {
		if err := l.running(ctx, sup); err != nil {
			return err
		}
		if err := sleep(ctx, l.between(50*time.Millisecond, 200*time.Millisecond)); err != nil {
			return err
		}
		l.fired.Add(1)
		return l.fullDisk(ctx, sup, filepath.Join(mount, "filler"))
	}
	return c.run(ctx)
}

// running starts the daemon unless it runs.
func (l *lab) running(ctx context.Context, sup *daemon.Supervisor) error {
	if sup.Alive() {
		return nil
	}
	return l.start(ctx, sup)
}

// fullDisk fills the disk that the file filler is on up to the last byte, and
// frees it.
func (l *lab) fullDisk(ctx context.Context, sup *daemon.Supervisor, filler string) error {
	if err := fill(filler); err != nil {
		return err
	}
	if err := until(ctx, sup.Addr(), "-MISCONF", "ENQUEUE", "elsewhere", "x"); err != nil {
		return l.broken("the disk is full: %v", err)
	}
	if !sup.Alive() {
		return l.broken("the disk is full, exit %d: %s", sup.ExitCode(), sup.Stderr())
	}
	if line, err := ask(sup.Addr(), "PING"); err != nil || line != "+PONG" {
		return l.broken("the disk is full: PING answers %q, %v", line, err)
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	l.rec.Event(history.Event{Kind: history.Healed, Incarnation: sup.Incarnation()})
	if err := until(ctx, sup.Addr(), "*2", "ENQUEUE", "elsewhere", "x"); err != nil {
		return l.broken("there is space again: %v", err)
	}
	return nil
}

// fill takes all the space there is.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var end int64
	for size := int64(16 << 20); size > 0; {
		if err := unix.Fallocate(int(f.Fd()), 0, end, size); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		} else {
			end += size
		}
	}
	return nil
}

// runPause: the daemon is stopped for longer than leases last, under clients
// that hold them. Nobody may win twice.
func runPause(ctx context.Context, args []string) error {
	l := newLab("pause", args)
	pauses := l.flags.Int("pauses", 5, "how often the daemon is stopped")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	c := campaign{lab: l, sup: sup, count: *pauses, crew: workload.Options{Lease: 300 * time.Millisecond}}
	c.strike = func(ctx context.Context) error {
		if err := l.running(ctx, sup); err != nil {
			return err
		}
		if err := sleep(ctx, l.between(50*time.Millisecond, 200*time.Millisecond)); err != nil {
			return err
		}
		l.fired.Add(1)
		return l.paused(ctx, sup)
	}
	return c.run(ctx)
}

// paused stops a daemon for about as long as leases last.
func (l *lab) paused(ctx context.Context, sup *daemon.Supervisor) error {
	if err := sup.Pause(); err != nil {
		return err
	}
	if err := sleep(ctx, l.between(100*time.Millisecond, 600*time.Millisecond)); err != nil {
		return err
	}
	return sup.Continue()
}

// refused starts a daemon that must exit with this code and no stack trace, and
// returns what it says.
func (l *lab) refused(ctx context.Context, code int, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, daemon.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, l.binary, append([]string{"serve", "--http-addr", "", "--admin-addr", ""}, args...)...).CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case !ok:
		return "", l.broken("serve %q: got %v, want exit %d\n%s", args, err, code, out)
	case exit.ExitCode() != code:
		return "", l.broken("serve %q: got exit %d, want %d\n%s", args, exit.ExitCode(), code, out)
	case strings.Contains(string(out), "goroutine "):
		return "", l.broken("serve %q left a stack trace:\n%s", args, out)
	}
	return string(out), nil
}

// runDoor: who may come in. A second daemon on the directory is refused with
// 75 and does no harm; SIGTERM ends the first within its time although clients
// sit idle, send half a command, or never read.
func runDoor(ctx context.Context, args []string) error {
	l := newLab("door", args)
	sup, leave, err := l.openDaemon(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	if line, err := ask(sup.Addr(), "ENQUEUE", "q0", "x"); err != nil || line != "*2" {
		return l.broken("an enqueue is answered by %q, %v", line, err)
	}
	addr, err := l.port()
	if err != nil {
		return err
	}
	for _, refused := range []struct {
		code int
		args []string
	}{
		{75, []string{"--dir", l.data(), "--addr", addr}},
		{73, []string{"--dir", filepath.Join(l.dir, "nothing"), "--addr", addr, "--existing"}},
		{78, []string{"--dir", filepath.Join(l.dir, "open"), "--addr", "0.0.0.0:0"}},
		{64, []string{"--no-such-flag"}},
	} {
		if _, err := l.refused(ctx, refused.code, refused.args...); err != nil {
			return err
		}
	}
	if line, err := ask(sup.Addr(), "MOXY.STATS", "q0"); err != nil || line != "*10" {
		return l.broken("after a second daemon was refused the first answers %q, %v", line, err)
	}
	for i := range 30 {
		c, err := net.DialTimeout("tcp", sup.Addr(), daemon.Patience)
		if err != nil {
			return err
		}
		defer c.Close()
		stuck := []string{"", "*3\r\n$7\r\nENQUEUE\r\n$2\r\nq0\r\n$100\r\nhalf", strings.Repeat("*1\r\n$4\r\nPING\r\n", 100)}[i%3]
		if _, err := io.WriteString(c, stuck); err != nil {
			return err
		}
	}
	blocked, err := net.DialTimeout("tcp", sup.Addr(), daemon.Patience)
	if err != nil {
		return err
	}
	defer blocked.Close()
	if _, err := io.WriteString(blocked, "FETCH nowhere 1000 WAIT 600000\r\n"); err != nil {
		return err
	}
	if code, err := sup.Terminate(ctx); err != nil || code != 0 {
		return l.broken("SIGTERM with stuck clients: exit %d, %v: %s", code, err, sup.Stderr())
	}
	return l.judge(4)
}
