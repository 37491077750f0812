//go:build linux

package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

// Crowd is what connections that do nothing cost, and those that wait.
type Crowd struct {
	Idle, Blocked                 int
	IdleBytes, BlockedBytes       int64   // of memory, for each connection
	IdleCPU, BlockedCPU           float64 // of one processor, 1 is all of it
	WakeMedian, WakeP99, WakeMost time.Duration
	Wakes                         int
}

// Measure opens connections to the daemon that runs as process pid, and looks
// for the given time at what they cost; then it has others wait for a job, looks
// again, and wakes some of them, one after the other. WakeMost is the slowest, from
// the ENQUEUE to the job.
func Measure(ctx context.Context, f *Field, pid, idle, blocked, wakes int, look time.Duration, rng *rand.Rand) (Crowd, error) {
	c := Crowd{Idle: idle, Blocked: blocked, Wakes: wakes}
	before, err := Resident(pid)
	if err != nil {
		return c, err
	}
	if err := f.each(ctx, idle, func(_ int, conn net.Conn) error {
		if _, err := io.WriteString(conn, command("PING")); err != nil {
			return err
		}
		return skip(bufio.NewReaderSize(conn, 64))
	}); err != nil {
		return c, err
	}
	if c.IdleCPU, c.IdleBytes, err = cost(ctx, pid, before, idle, look); err != nil {
		return c, err
	}
	f.Leave()

	if err := sleep(ctx, 2*time.Second); err != nil { // their end is noticed
		return c, err
	}
	if before, err = Resident(pid); err != nil {
		return c, err
	}
	waiting := make([]net.Conn, blocked)
	if err := f.each(ctx, blocked, func(i int, conn net.Conn) error {
		waiting[i] = conn
		_, err := io.WriteString(conn, command("FETCH", fmt.Sprintf("wait-%d", i), "60000", "WAIT", "3600000"))
		return err
	}); err != nil {
		return c, err
	}
	if c.BlockedCPU, c.BlockedBytes, err = cost(ctx, pid, before, blocked, look); err != nil {
		return c, err
	}
	producer, err := f.dial()
	if err != nil {
		return c, err
	}
	replies := bufio.NewReader(producer)
	var took []time.Duration
	for _, i := range rng.Perm(blocked)[:wakes] {
		began := time.Now()
		if _, err := io.WriteString(producer, command("ENQUEUE", fmt.Sprintf("wait-%d", i), "x")); err != nil {
			return c, err
		}
		if err := waiting[i].SetReadDeadline(began.Add(time.Minute)); err != nil {
			return c, err
		}
		if err := skip(bufio.NewReader(waiting[i])); err != nil {
			return c, fmt.Errorf("who waits in wait-%d: %w", i, err)
		}
		took = append(took, time.Since(began))
		if err := skip(replies); err != nil {
			return c, err
		}
	}
	slices.Sort(took)
	c.WakeMedian, c.WakeP99, c.WakeMost = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	return c, nil
}

// cost lets a daemon be for three seconds, and then looks at what n connections cost.
func cost(ctx context.Context, pid int, before int64, n int, look time.Duration) (cpu float64, bytes int64, err error) {
	if err := sleep(ctx, 3*time.Second); err != nil { // buffers that are not used are given back
		return 0, 0, err
	}
	used, err := CPU(pid)
	if err != nil {
		return 0, 0, err
	}
	if err := sleep(ctx, look); err != nil {
		return 0, 0, err
	}
	after, err := CPU(pid)
	if err != nil {
		return 0, 0, err
	}
	resident, err := Resident(pid)
	if err != nil {
		return 0, 0, err
	}
	return (after - used).Seconds() / look.Seconds(), (resident - before) / int64(n), nil
}
