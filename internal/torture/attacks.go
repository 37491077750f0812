//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"pawl/internal/cert"
	"pawl/internal/record"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/hostile"
)

// runAttacks plays every attack against a daemon of its own, while other clients
// work there. A violation is memory beyond the attack's bound, or a command of
// the others that fails; how long theirs take is printed, and judged with
// -bounds only.
func runAttacks(ctx context.Context, args []string) error {
	l := newLab("attacks", args)
	defer l.close()
	full := l.flags.Bool("full", false, "attack with the numbers of the requirement, not a tenth and less of them")
	control := l.flags.Bool("control", false, "afterwards, have honest clients use as much of the processors, and say how the others fare beside them")
	only := l.flags.String("attack", "", "play these only, by name, with commas between them")
	if err := l.open(ctx); err != nil {
		return err
	}
	if err := raiseFiles(); err != nil {
		return err
	}
	played, violated := 0, 0
	for _, a := range hostile.Attacks() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), a.Name) {
			continue
		}
		played++
		line, broken, err := l.attack(ctx, &a, *full, *control)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		fmt.Printf("attack %-10s %s\n", a.Name, line)
		if broken != "" {
			violated++
			fmt.Printf("attack %-10s violated: %s\nrun again: %s\n", a.Name, broken, l.again())
		}
	}
	if played == 0 {
		return fmt.Errorf("there is no attack %q", *only)
	}
	if err := l.account(record.Run{Cases: played, Faults: played, Violations: violated}, ""); err != nil {
		return err
	}
	if violated > 0 {
		return errViolated
	}
	return nil
}

// attack plays one; broken says which promise did not hold.
func (l *lab) attack(ctx context.Context, a *hostile.Attack, full, control bool) (line, broken string, err error) {
	addr, err := l.port()
	if err != nil {
		return "", "", err
	}
	field := &hostile.Field{Addr: addr, Full: full, TLS: a.TLS}
	var args []string
	if a.Args != nil {
		args = a.Args(field)
	}
	password := ""
	if a.Password {
		password = hostile.Password
		file := filepath.Join(l.dir, "password")
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			return "", "", err
		}
		args = append(args, "--password-file", file)
	}
	if a.TLS {
		certFile, keyFile := filepath.Join(l.dir, "cert.pem"), filepath.Join(l.dir, "key.pem")
		if err := cert.Write(certFile, keyFile, 1); err != nil {
			return "", "", err
		}
		args = append(args, "--tls-cert", certFile, "--tls-key", keyFile)
	}
	dir := filepath.Join(l.dir, a.Name)
	defer os.RemoveAll(dir) // a gigabyte, some of them
	sup := daemon.New(daemon.Options{Binary: l.binary, Dir: dir, Addr: addr, Args: args}, l.rec)
	defer sup.Close()
	if err := sup.Start(); err != nil {
		return "", "", err
	}
	others, err := startOthers(ctx, field, password, max(a.Others, 4))
	if err != nil {
		return "", "", fmt.Errorf("%w\n%s", err, sup.Stderr())
	}
	defer others.Stop()

	calm := 300 * time.Millisecond
	if control {
		calm = time.Second
	}
	if full {
		calm = 5 * time.Second
	}
	if err := pause(ctx, calm); err != nil {
		return "", "", err
	}
	_, basis, _, err := others.Took()
	if err != nil {
		return "", "", fmt.Errorf("before the attack: %w", err)
	}
	before, err := hostile.Resident(sup.Pid())
	if err != nil {
		return "", "", err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	most := hostile.Watch(watching, sup.Pid())
	use, err := l.measured(ctx, sup, others, fmt.Sprintf("-full=%t", full), "-addr", addr, "-attack", a.Name)
	if err != nil {
		return "", "", fmt.Errorf("%w\n%s", err, sup.Stderr())
	}
	_, p99, n, failed := others.Took()
	stop()
	// A short attack may be over before a slow machine has answered anybody.
	for end := time.Now().Add(daemon.Patience); n == 0 && failed == nil && sup.Alive() && time.Now().Before(end); {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return "", "", err
		}
		_, p99, n, failed = others.Took()
	}
	grown, bound := <-most-before, a.Bound(field)
	line = fmt.Sprintf("memory %d MiB and %d MiB more (bound %d); p99 of %d others %v before, %v in %d commands; %v, processors: daemon %.2f, attackers %.2f%s",
		before/hostile.MiB, grown/hostile.MiB, bound/hostile.MiB, max(a.Others, 4), round(basis), round(p99), n,
		use.took.Round(time.Second/10), use.daemon, use.attackers, use.said)
	if control && failed == nil && n > 0 && sup.Alive() {
		if err := pause(ctx, 2*time.Second); err != nil { // what the attack has left behind is cleared
			return "", "", err
		}
		honest, err := l.measured(ctx, sup, others, "-addr", addr, "-pid", fmt.Sprint(sup.Pid()), "-for", (2 * calm).String(),
			"-share", fmt.Sprint(use.daemon+use.attackers), fmt.Sprintf("-password=%t", a.Password), fmt.Sprintf("-tls=%t", a.TLS))
		if err != nil {
			return "", "", fmt.Errorf("the control: %w", err)
		}
		_, fair, _, _ := others.Took()
		line += fmt.Sprintf("; beside honest clients that use %.2f: p99 %v", honest.daemon+honest.attackers, round(fair))
	}
	switch {
	case !sup.Alive():
		broken = "the daemon died: " + sup.Stderr()
	case failed != nil:
		broken = "a command of another client failed: " + failed.Error()
	case n == 0:
		broken = "no command of another client was answered"
	case grown > bound:
		broken = fmt.Sprintf("memory grew by %d bytes", grown)
	case *l.bounds && p99 > 2*basis+20*time.Millisecond:
		broken = fmt.Sprintf("p99 of the others was %v", p99)
	}
	return line, broken, nil
}

// use is what attackers and daemon took of the processors, 1 is one of them.
type use struct {
	daemon, attackers float64
	took              time.Duration
	said              string
}

// measured has attackers do what args say, and returns at the height of it. The
// others are timed from now on, or from when the attackers are ready.
func (l *lab) measured(ctx context.Context, sup *daemon.Supervisor, others *hostile.Others, args ...string) (u use, err error) {
	a, err := startAttackers(ctx, args...)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, a.leave()) }()
	pids := []int{sup.Pid(), a.process.Pid()}
	others.Took()
	began := time.Now()
	before, err := processors(pids)
	if err != nil {
		return u, err
	}
	var prepared string
	u.said, err = a.height(func() {
		_, p99, n, _ := others.Took() // a failure comes again with the next
		prepared = fmt.Sprintf("; before, while all was prepared for %v: p99 %v in %d commands", time.Since(began).Round(time.Second/10), round(p99), n)
		began = time.Now()
		if at, err := processors(pids); err == nil {
			before = at
		}
	})
	if err != nil {
		return u, err
	}
	if u.said != "" {
		u.said = "; " + u.said
	}
	u.said += prepared
	u.took = time.Since(began)
	after, err := processors(pids)
	if err != nil {
		return u, err
	}
	u.daemon, u.attackers = (after[0]-before[0]).Seconds()/u.took.Seconds(), (after[1]-before[1]).Seconds()/u.took.Seconds()
	return u, nil
}

// processors is the processor time of each process so far.
func processors(pids []int) (times []time.Duration, err error) {
	for _, pid := range pids {
		t, err := hostile.CPU(pid)
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	return times, nil
}

// startOthers tries until the daemon has begun to serve.
func startOthers(ctx context.Context, f *hostile.Field, password string, n int) (*hostile.Others, error) {
	for deadline := time.Now().Add(daemon.Patience); ; {
		others, err := hostile.StartOthers(ctx, f, password, n)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return others, err
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// raiseFiles lets this process and the daemon have as many connections as the
// system allows.
func raiseFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// runCrowd measures what connections cost that do nothing, or wait for a job.
func runCrowd(ctx context.Context, args []string) error {
	l := newLab("crowd", args)
	defer l.close()
	idle := l.flags.Int("idle", 10_000, "connections that do nothing")
	blocked := l.flags.Int("blocked", 5_000, "connections that wait for a job")
	wakes := l.flags.Int("wakes", 200, "of these are woken, one after the other")
	look := l.flags.Duration("look", 10*time.Second, "how long the processor is watched")
	if err := l.open(ctx); err != nil {
		return err
	}
	if err := raiseFiles(); err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if need := uint64(max(*idle, *blocked) + 200); limit.Cur < need {
		return fmt.Errorf("%w: %d open files are allowed, %d are needed", errImpossible, limit.Cur, need)
	}
	if *wakes > *blocked || *wakes < 1 || *blocked < 1 || *idle < 1 {
		return errors.New("there must be some of each, and no more are woken than wait")
	}
	sup, err := l.supervisor(l.data(), "--max-clients", fmt.Sprint(max(*idle, *blocked)+100))
	if err != nil {
		return err
	}
	defer sup.Close()
	if err := sup.Start(); err != nil {
		return err
	}
	if err := sup.WaitReady(ctx); err != nil {
		return err
	}
	field := &hostile.Field{Addr: sup.Addr()}
	defer field.Leave()
	c, err := hostile.Measure(ctx, field, sup.Pid(), *idle, *blocked, *wakes, *look, l.rng)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, sup.Stderr())
	}
	fmt.Printf("crowd: %d idle connections cost %d bytes each and %.1f %% of a processor; %d that wait cost %d and %.1f %%\n",
		c.Idle, c.IdleBytes, 100*c.IdleCPU, c.Blocked, c.BlockedBytes, 100*c.BlockedCPU)
	fmt.Printf("crowd: from ENQUEUE to the job of one of %d that wait: median %v, p99 %v, most %v, of %d\n",
		c.Blocked, round(c.WakeMedian), round(c.WakeP99), round(c.WakeMost), c.Wakes)
	violations := 0
	const bound = 64 << 10
	if c.IdleBytes > bound || c.BlockedBytes > bound || *l.bounds && c.WakeP99 > 50*time.Millisecond {
		violations = 1
		fmt.Printf("crowd: violated: a connection may cost %d bytes, and waking 50 ms\nrun again: %s\n", bound, l.again())
	}
	if err := l.account(record.Run{Cases: c.Idle + c.Blocked, Violations: violations}, ""); err != nil {
		return err
	}
	if violations > 0 {
		return errViolated
	}
	return nil
}
