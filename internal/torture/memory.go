//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/hostile"
	"pawl/internal/torture/workload"
)

// runMemory: the daemon under a working crew has less memory than it needs, now
// while it works and now while it starts. Either the kernel gives it none, which
// the Go runtime does not survive, or kills it (memory cgroup). Both are a death
// at a moment when memory is asked for, and the next start must make it good.
func runMemory(ctx context.Context, args []string) error {
	l := newLab("memory", args)
	deaths := l.flags.Int("deaths", 8, "how often there is too little memory")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	s := &shortage{lab: l, sup: sup, group: filepath.Join("/sys/fs/cgroup/memory", filepath.Base(l.dir))}
	if err := os.Mkdir(s.group, 0o700); err != nil {
		fmt.Printf("memory: without a memory cgroup: %v\n", err)
		s.group = ""
	} else {
		defer func() {
			sup.Close() // while somebody is in it, it cannot go
			os.Remove(s.group)
		}()
	}
	c := campaign{lab: l, sup: sup, count: *deaths, crew: workload.Options{Clients: 8, Payload: 8 << 10, Pace: time.Millisecond}}
	c.strike = s.strike
	if err := c.run(ctx); err != nil {
		return err
	}
	fmt.Printf("memory: %d allocations refused, %d processes killed, %d starts with enough all the same\n", s.refused, s.killed, s.enough)
	return nil
}

// shortage is the layer's lab and what has happened.
type shortage struct {
	*lab
	sup                     *daemon.Supervisor
	group                   string // of memory; empty where there are none
	refused, killed, enough int
}

// strike is one life of the daemon, to its death.
func (s *shortage) strike(ctx context.Context) error {
	if s.rng.IntN(3) == 0 {
		return s.atStart(ctx)
	}
	if err := s.running(ctx, s.sup); err != nil {
		return err
	}
	if err := sleep(ctx, s.between(50*time.Millisecond, 300*time.Millisecond)); err != nil {
		return err
	}
	var err error
	if s.group != "" && s.rng.IntN(2) == 0 {
		err = s.enclose(4<<20 + s.rng.Int64N(12<<20))
	} else {
		err = s.limit(s.rng.Uint64N(8 << 20))
	}
	if err != nil {
		return err
	}
	// Who cannot connect or write meets a daemon that is dying.
	for range 64 {
		c, err := s.eat()
		if err != nil {
			break
		}
		defer c.Close()
	}
	return s.died(ctx)
}

// atStart has the daemon start with little memory, which it learns of early or late.
func (s *shortage) atStart(ctx context.Context) error {
	if err := s.sup.Start(); err != nil {
		return err
	}
	if err := sleep(ctx, s.between(0, 20*time.Millisecond)); err != nil {
		return err
	}
	if err := s.limit(s.rng.Uint64N(4 << 20)); err != nil {
		return err
	}
	for s.sup.Alive() {
		if line, err := ask(s.sup.Addr(), "MOXY.STATS", "probe"); err == nil && strings.HasPrefix(line, "*") {
			s.enough++
			return s.sup.Kill()
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
	return s.died(ctx)
}

// limit leaves the process so many bytes beyond what it has.
func (s *shortage) limit(more uint64) error {
	has, err := hostile.Memory(s.sup.Pid(), "VmData")
	if err != nil {
		return fmt.Errorf("what memory the daemon has: %w", err)
	}
	most := uint64(has) + more
	if err := unix.Prlimit(s.sup.Pid(), unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
		return fmt.Errorf("%w: limit of another process: %w", errImpossible, err)
	}
	return nil
}

// enclose has the kernel kill the process when it takes as many bytes more, its
// part of the page cache included.
func (s *shortage) enclose(more int64) error {
	return errors.Join(
		os.WriteFile(filepath.Join(s.group, "memory.limit_in_bytes"), []byte(strconv.FormatInt(more, 10)), 0),
		os.WriteFile(filepath.Join(s.group, "cgroup.procs"), []byte(strconv.Itoa(s.sup.Pid())), 0))
}

// eat makes the daemon hold a MiB: a command that is all but complete, which leaves
// nothing in the store.
func (s *shortage) eat() (net.Conn, error) {
	const size = 1 << 20
	c, err := net.DialTimeout("tcp", s.sup.Addr(), daemon.Patience)
	if err != nil {
		return nil, err
	}
	err = c.SetDeadline(time.Now().Add(daemon.Patience))
	if err == nil {
		_, err = fmt.Fprintf(c, "*3\r\n$7\r\nENQUEUE\r\n$9\r\nelsewhere\r\n$%d\r\n%s", size, strings.Repeat("x", size-1))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// wanted is what the Go runtime says when it ends for want of memory, of a thread's
// stack too.
var wanted = regexp.MustCompile(`fatal error: .*(out of memory|cannot allocate memory|cannot map pages)|runtime/cgo: pthread_create failed`)

// died waits for the death, which must have been for want of memory.
func (s *shortage) died(ctx context.Context) error {
	if err := s.sup.WaitGone(ctx); err != nil {
		return s.broken("with too little memory: %v", err)
	}
	said := s.sup.Stderr()
	switch code := s.sup.ExitCode(); {
	case code == 128+int(unix.SIGKILL):
		s.killed++
	case code == 2 && wanted.MatchString(said):
		s.refused++
	default:
		return s.broken("with too little memory, exit %d: %s", code, said)
	}
	s.fired.Add(1)
	s.sup.Killed()
	return nil
}
