//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"pawl/internal/seeds"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/tracee"
	"pawl/internal/torture/workload"
)

// runTrickle: the kernel takes few bytes at a time. Of writes on sockets a part
// goes through, single bytes too, of events some are reported, and calls are
// interrupted, under a crew and kills, with the poller and without. Nothing may be
// lost, doubled or mixed up.
func runTrickle(ctx context.Context, args []string) error {
	l := newLab("trickle", args)
	lives := l.flags.Int("lives", 8, "lives of the daemon, in turns with the poller and without")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	c := campaign{lab: l, sup: sup, count: *lives, crew: workload.Options{Clients: 8}}
	c.strike = func(ctx context.Context) error {
		if sup.Alive() {
			if err := sup.Kill(); err != nil {
				return err
			}
		}
		loop := []string{"poll", "portable"}[sup.Incarnation()%2]
		rng := seeds.New(l.rng.Uint64()) // the tracer's own
		sup.SetOptions(func(o *daemon.Options) {
			o.Args = append(slices.Clone(small), "--loop", loop)
			o.Trace = &tracee.Options{Socket: func(n int) int {
				switch k := rng.IntN(10); {
				case k < 5:
					return n
				case k < 8:
					return 1 + rng.IntN(n)
				case k < 9:
					return 1
				}
				return 0
			}}
		})
		if err := l.start(ctx, sup); err != nil {
			if errors.Is(err, tracee.ErrUnsupported) {
				return fmt.Errorf("%w: %w", errImpossible, err)
			}
			return err
		}
		l.fired.Add(1)
		for end := time.Now().Add(l.between(500*time.Millisecond, 2*time.Second)); time.Now().Before(end); {
			if err := echoesTogether(sup.Addr(), l.rng); err != nil {
				return l.broken("%v; exit %d: %s", err, sup.ExitCode(), sup.Stderr())
			}
		}
		return ctx.Err()
	}
	return c.run(ctx)
}

// echoesTogether has as many connections as the poller wants before it takes any,
// whatever the crew does at the moment.
func echoesTogether(addr string, rng *rand.Rand) error {
	const conns = 12
	errs := make([]error, conns)
	var all sync.WaitGroup
	for i := range errs {
		own := seeds.New(rng.Uint64())
		all.Go(func() { errs[i] = echoes(addr, own) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// echoes has texts echoed: some one by one, for which the poller takes the
// connection, and then some sent all at once. What comes back is them, in their
// order, to the last byte. The crew would take a reply that is cut short for one
// that a kill has cut short.
func echoes(addr string, rng *rand.Rand) error {
	c, err := net.DialTimeout("tcp", addr, daemon.Patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(daemon.Patience / 2)); err != nil {
		return err
	}
	const calm = 8
	for range calm {
		if err := echo(c, rng, 1); err != nil {
			return err
		}
	}
	return echo(c, rng, 1+rng.IntN(20))
}

// echo has texts echoed that are sent at once.
func echo(c net.Conn, rng *rand.Rand, texts int) error {
	var request, want []byte
	for range texts {
		text := bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, rng.IntN(1000))
		bulk := fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text)
		request = append(append(request, "*2\r\n$4\r\nECHO\r\n"...), bulk...)
		want = append(want, bulk...)
	}
	if _, err := c.Write(request); err != nil {
		return fmt.Errorf("send %d bytes of ECHO: %w", len(request), err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("of %d bytes echoed %d came, %v, the same: %v", len(want), n, err, bytes.Equal(got[:n], want[:n]))
	}
	return nil
}
