//go:build linux

package main

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"pawl/internal/torture/daemon"
	"pawl/internal/torture/workload"
)

// mischief is one way to treat a daemon badly over one connection: what is sent,
// and how. Nobody of them reads an answer.
type mischief struct {
	name string
	send string
	slow bool // byte by byte
	hang bool // stays connected until the round is over
}

// mischiefs are the shapes that servers of this protocol have fallen to. None
// names a queue that the crew uses.
var mischiefs = []mischief{
	{name: "a megabyte announced, a byte sent", send: "*3\r\n$7\r\nENQUEUE\r\n$4\r\nevil\r\n$1048576\r\nx", hang: true},
	{name: "a thousand elements announced", send: "*1024\r\n$4\r\nPING\r\n", hang: true},
	{name: "two billion elements", send: "*2147483647\r\n"},
	{name: "more elements than a word holds", send: "*9223372036854775808\r\n"},
	{name: "less than none", send: "*-2\r\n$-2\r\n*1\r\n$-2\r\n"},
	{name: "numbers with signs and spaces", send: "*+1\r\n$ 4\r\nPING\r\n"},
	{name: "arrays in arrays", send: strings.Repeat("*1\r\n", 200_000)},
	{name: "lone line ends", send: strings.Repeat("\r\n\n\r", 10_000), hang: true},
	{name: "zeros", send: strings.Repeat("\x00", 1<<20)},
	{name: "a line without an end", send: strings.Repeat("A", 1<<20)},
	{name: "a browser", send: "POST /ENQUEUE/evil/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
	{name: "TLS", send: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\xa5", 500)},
	{name: "answers that nobody reads", send: strings.Repeat("*1\r\n$7\r\nCOMMAND\r\n", 20_000), hang: true},
	{name: "deliveries that nobody reads", send: strings.Repeat("*3\r\n$5\r\nFETCH\r\n$4\r\nevil\r\n$3\r\n200\r\n", 20_000), hang: true},
	{name: "a line end in a name", send: "*3\r\n$7\r\nENQUEUE\r\n$8\r\na\r\n+OK\r\n\r\n$1\r\nx\r\n*2\r\n$8\r\nb\r\n-ERR\r\n\r\n$1\r\nx\r\n"},
	{name: "a byte now and then", send: "*3\r\n$7\r\nENQUEUE\r\n$4\r\nevil\r\n$9\r\nabcdefghi\r\n", slow: true},
	{name: "half a command, then gone", send: "*3\r\n$7\r\nENQUEUE\r\n$4\r\nev"},
	{name: "nothing at all", hang: true},
	{name: "a wait without end", send: "*5\r\n$5\r\nFETCH\r\n$4\r\nevil\r\n$5\r\n60000\r\n$4\r\nWAIT\r\n$7\r\n3600000\r\n", hang: true},
}

// most memory a daemon may have taken while it is treated badly: what it needs
// itself, and the ceiling of all buffers, which is 256 MiB.
const mostMemory = 640 << 20

// runHostile: clients that mean it badly, hundreds at a time, beside a crew that
// works. The crew must not notice: its history is judged like any other. The
// daemon must live, keep its memory bounded, and end in time.
func runHostile(ctx context.Context, args []string) error {
	l := newLab("hostile", args)
	rounds := l.flags.Int("rounds", 3, "how often they come")
	each := l.flags.Int("each", 10, "connections of each kind in a round")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	c := campaign{lab: l, sup: sup, count: *rounds, crew: workload.Options{Clients: 8, Pace: 2 * time.Millisecond}}
	c.strike = func(ctx context.Context) error {
		if err := l.running(ctx, sup); err != nil {
			return err
		}
		return l.besiege(ctx, sup, *each)
	}
	return c.run(ctx)
}

// besiege opens all connections of a round and keeps them for a while.
func (l *lab) besiege(ctx context.Context, sup *daemon.Supervisor, each int) error {
	siege, over := context.WithCancel(ctx)
	var conns []net.Conn
	done := make(chan struct{})
	sending := 0
	defer func() {
		over()
		for _, c := range conns {
			c.Close() // whoever still sends stops
		}
		for range sending {
			<-done
		}
	}()
	all := slices.Repeat(mischiefs, each)
	l.rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for _, m := range all {
		conn, err := net.DialTimeout("tcp", sup.Addr(), daemon.Patience)
		if err != nil {
			return l.broken("the daemon does not take a connection: %v", err)
		}
		conns = append(conns, conn)
		l.fired.Add(1)
		sending++
		go func() {
			m.misbehave(siege, conn)
			done <- struct{}{}
		}()
	}
	if err := sleep(ctx, l.between(500*time.Millisecond, 1500*time.Millisecond)); err != nil {
		return err
	}
	if !sup.Alive() {
		return l.broken("exit %d by itself: %s", sup.ExitCode(), sup.Stderr())
	}
	used, err := measure(sup.Pid(), l.data())
	if err != nil {
		return err
	}
	if used.rss > mostMemory {
		return l.broken("%d hostile connections made the daemon take %.0f MiB", len(conns), mib(used.rss))
	}
	if line, err := ask(sup.Addr(), "PING"); err != nil || line != "+PONG" {
		return l.broken("beside %d hostile connections PING answers %q, %v", len(conns), line, err)
	}
	return nil
}

// misbehave sends what there is to send, as far as the daemon takes it.
func (m mischief) misbehave(ctx context.Context, conn net.Conn) {
	if m.slow {
		for _, b := range []byte(m.send) {
			if _, err := conn.Write([]byte{b}); err != nil || sleep(ctx, 20*time.Millisecond) != nil {
				return
			}
		}
	} else if _, err := io.WriteString(conn, m.send); err != nil {
		return // refused and closed, or the round is over
	}
	if m.hang {
		<-ctx.Done()
	}
	conn.Close()
}
