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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/client"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/workload"
)

// runOrders: an operator gives orders beside a crew that works, and SIGKILL meets
// the daemon while it carries them out: SIGHUP with a new configuration, also
// while it starts, CONFIG SET, and DRAIN. Every start works, with what the file
// says and nothing else; DRAIN is as it was last answered; and the file is the
// operator's, to the byte.
func runOrders(ctx context.Context, args []string) error {
	l := newLab("orders", args)
	kills := l.flags.Int("kills", 20, "how often the daemon is killed")
	sup, leave, err := l.openDaemon(ctx)
	if err != nil {
		return err
	}
	defer leave()
	o := &orders{lab: l, sup: sup, file: filepath.Join(l.dir, "pawl.toml"), draining: []bool{false}}
	if err := o.write(o.drawText()); err != nil {
		return err
	}
	sup.SetOptions(func(opt *daemon.Options) { opt.Args = []string{"--generation-size", "64KiB", "--config", o.file} })
	o.client = client.New(client.Options{Addr: sup.Addr(), Timeout: daemon.Patience})
	defer o.client.Close()
	c := campaign{lab: l, sup: sup, count: *kills, crew: workload.Options{Clients: 8, Payload: 1 << 10}, strike: o.strike, calm: o.calm}
	return c.run(ctx)
}

// orders is the operator, who is one goroutine.
type orders struct {
	*lab
	sup    *daemon.Supervisor
	client *client.Client
	file   string // the configuration
	text   []byte // what stands in it
	bad    bool   // it cannot be read
	// draining is what DRAIN may be now: more than one thing behind an order that
	// was not answered.
	draining []bool
}

// choices are options that can change while the daemon runs, in the words of
// CONFIG GET. The first of each is not the default.
var choices = []struct {
	name   string
	values []string
}{
	{"log_level", []string{"warn", "info"}},
	{"keep", []string{"1h0m0s", "100ms", "0s"}},
	{"snapshot_bytes", []string{"64KiB", "128KiB", "1MiB"}},
	{"snapshot_interval", []string{"1m0s", "15m0s"}},
	{"max_waiters", []string{"1000", "2000"}},
}

func draw[T any](rng *rand.Rand, values []T) T { return values[rng.IntN(len(values))] }

// drawText is a new configuration.
func (o *orders) drawText() []byte {
	var text []byte
	for _, c := range choices {
		if value := draw(o.rng, c.values); c.name == "max_waiters" {
			text = fmt.Appendf(text, "%s = %s\n", c.name, value)
		} else {
			text = fmt.Appendf(text, "%s = %q\n", c.name, value)
		}
	}
	return text
}

// write puts text where the daemon finds it.
func (o *orders) write(text []byte) error {
	o.text = text
	fresh := o.file + ".new"
	return errors.Join(os.WriteFile(fresh, text, 0o600), os.Rename(fresh, o.file))
}

// strike is one life of the daemon.
func (o *orders) strike(ctx context.Context) error {
	if err := o.begin(ctx); err != nil {
		return err
	}
	if err := o.holds(ctx); err != nil {
		return err
	}
	for range o.rng.IntN(3) {
		if err := sleep(ctx, o.between(0, 50*time.Millisecond)); err != nil {
			return err
		}
		if err := o.order(ctx); err != nil {
			return err
		}
	}
	o.fired.Add(1)
	return o.killAmongOrders(ctx)
}

// begin starts the daemon, of a bad configuration in vain, and half of the times
// has it reload at once.
func (o *orders) begin(ctx context.Context) error {
	if o.bad {
		said, err := o.refused(ctx, 78, "--dir", o.data(), "--addr", o.sup.Addr(), "--config", o.file)
		if err != nil {
			return err
		}
		if !strings.Contains(said, o.file) {
			return o.broken("with half a configuration a start says %q", said)
		}
		o.bad = false
		if err := o.write(o.drawText()); err != nil {
			return err
		}
	}
	if o.rng.IntN(2) == 0 {
		return o.start(ctx, o.sup)
	}
	if err := o.sup.Start(); err != nil {
		return err
	}
	for { // from when it can be found
		c, err := net.DialTimeout("tcp", o.sup.Addr(), daemon.Patience)
		if err == nil {
			c.Close()
			break
		}
		if !o.sup.Alive() {
			break
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	for range 3 {
		if err := o.sup.Reload(); err != nil {
			return err
		}
		if err := sleep(ctx, o.between(0, 5*time.Millisecond)); err != nil {
			return err
		}
	}
	if err := o.sup.WaitReady(ctx); err != nil {
		return o.broken("SIGHUP while starting: %v", err)
	}
	return nil
}

// holds looks whether all is as file and orders say.
func (o *orders) holds(ctx context.Context) error {
	info, err := o.client.Do(ctx, "INFO")
	if err != nil {
		return o.broken("INFO: %v", err)
	}
	on := strings.Contains(info.Text, "\r\ndraining:1\r\n")
	if !slices.Contains(o.draining, on) {
		return o.broken("after a restart draining is %t, the last orders were %t", on, o.draining)
	}
	o.draining = []bool{on} // what was shown once stays
	for _, c := range choices {
		if got, err := o.get(ctx, c.name); err != nil || !o.stands(c.name, got) {
			return o.broken("after a start %s is %q, %v; the file says\n%s", c.name, got, err, o.text)
		}
	}
	if text, err := os.ReadFile(o.file); err != nil || !bytes.Equal(text, o.text) {
		return o.broken("somebody has written the configuration: %v\n%s\nwant\n%s", err, text, o.text)
	}
	return nil
}

func (o *orders) get(ctx context.Context, name string) (string, error) {
	v, err := o.client.Do(ctx, "CONFIG", "GET", name)
	return v.Field(name).Text, err
}

// stands tells whether the file gives an option this value.
func (o *orders) stands(name, value string) bool {
	return bytes.Contains(o.text, []byte(name+" = "+value+"\n")) || bytes.Contains(o.text, fmt.Appendf(nil, "%s = %q\n", name, value))
}

// order gives one order and waits until it holds.
func (o *orders) order(ctx context.Context) error {
	switch o.rng.IntN(3) {
	case 0:
		return o.drain(ctx, o.rng.IntN(3) == 0)
	case 1:
		c := draw(o.rng, choices)
		value := draw(o.rng, c.values)
		if _, err := o.client.Do(ctx, "CONFIG", "SET", c.name, value); err != nil {
			return o.broken("CONFIG SET %s %s: %v", c.name, value, err)
		}
		if got, err := o.get(ctx, c.name); err != nil || got != value {
			return o.broken("CONFIG SET %s %s was answered OK, and it is %q, %v", c.name, value, got, err)
		}
		return nil
	}
	if err := o.write(o.drawText()); err != nil {
		return err
	}
	if err := o.sup.Reload(); err != nil {
		return err
	}
	deadline := time.Now().Add(daemon.Patience)
	for _, c := range choices {
		for {
			got, err := o.get(ctx, c.name)
			if err != nil {
				return o.broken("CONFIG GET while it reloads: %v", err)
			}
			if o.stands(c.name, got) {
				break
			}
			if time.Now().After(deadline) {
				return o.broken("after SIGHUP %s stays %q; the file says\n%s", c.name, got, o.text)
			}
			if err := sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain gives the order and sees that it holds at once.
func (o *orders) drain(ctx context.Context, on bool) error {
	if _, err := o.client.Do(ctx, "DRAIN", onOff(on)); err != nil {
		return o.broken("DRAIN %s: %v", onOff(on), err)
	}
	o.draining = []bool{on}
	_, err := o.client.Do(ctx, "ENQUEUE", "elsewhere", "x")
	answer, isError := errors.AsType[*client.Error](err)
	if refused := isError && answer.Word == "PAUSED"; refused != on || err != nil && !refused {
		return o.broken("behind DRAIN %s an enqueue is answered %v", onOff(on), err)
	}
	return nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// killAmongOrders sends several orders and SIGKILL behind them, and learns from
// the answers that came which of them must hold.
func (o *orders) killAmongOrders(ctx context.Context) error {
	text := o.drawText()
	if o.bad = o.rng.IntN(6) == 0; o.bad {
		text = append(text, "keep = \"1h"...)
	}
	if o.rng.IntN(2) == 0 || o.bad {
		if err := o.write(text); err != nil {
			return err
		}
	}
	c, err := net.DialTimeout("tcp", o.sup.Addr(), daemon.Patience)
	if err != nil {
		return o.broken("connect: %v", err)
	}
	defer c.Close()
	var request strings.Builder
	drains := make([]string, 1+o.rng.IntN(4)) // each order's word for DRAIN, "" for CONFIG SET
	for i := range drains {
		if o.rng.IntN(2) == 0 {
			drains[i] = onOff(o.rng.IntN(3) == 0)
			fmt.Fprintf(&request, "DRAIN %s\r\n", drains[i])
		} else {
			choice := draw(o.rng, choices)
			fmt.Fprintf(&request, "CONFIG SET %s %s\r\n", choice.name, draw(o.rng, choice.values))
		}
	}
	send := []func() error{
		o.sup.Reload,
		func() error { _, err := io.WriteString(c, request.String()); return err },
	}
	first := o.rng.IntN(2)
	for i := range send {
		if err := send[(first+i)%2](); err != nil {
			return o.broken("give orders: %v", err)
		}
	}
	if err := sleep(ctx, o.between(0, 3*time.Millisecond)); err != nil {
		return err
	}
	if !o.sup.Alive() {
		return o.broken("orders ended it, exit %d: %s", o.sup.ExitCode(), o.sup.Stderr())
	}
	if err := o.sup.Kill(); err != nil {
		return err
	}
	if err := c.SetDeadline(time.Now().Add(daemon.Patience)); err != nil {
		return err
	}
	answers, _ := io.ReadAll(c) // what it could still say
	answered := strings.Count(string(answers), "\r\n")
	if string(answers) != strings.Repeat("+OK\r\n", answered) && !strings.HasPrefix(strings.Repeat("+OK\r\n", len(drains)), string(answers)) {
		return o.broken("orders were answered %q", answers)
	}
	for i, word := range drains {
		switch {
		case word == "":
		case i < answered:
			o.draining = []bool{word == "on"}
		default:
			o.draining = append(o.draining, word == "on")
		}
	}
	return nil
}

// calm lets jobs in again.
func (o *orders) calm(ctx context.Context) error {
	if err := o.begin(ctx); err != nil {
		return err
	}
	if err := o.holds(ctx); err != nil {
		return err
	}
	return o.drain(ctx, false)
}
