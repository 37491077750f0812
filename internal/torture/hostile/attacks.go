//go:build linux

package hostile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MiB is what memory is counted in.
const MiB = 1 << 20

// Attack is one way to harm a daemon.
type Attack struct {
	Name string
	Does string // one line, for people
	// Args are flags of the daemon that it needs beside the usual ones.
	Args func(f *Field) []string
	// Bound is by how many bytes the daemon's memory may grow, what the runtime
	// keeps for its next allocations included.
	Bound func(f *Field) int64
	// Others is how many clients work beside it; 0 is 4.
	Others int
	// Password: clients must log in, and the attackers do not.
	Password bool
	// TLS: the daemon speaks nothing else.
	TLS bool
	run func(ctx context.Context, f *Field) error
}

// Run attacks; it returns when the attack is at its height. What it has set up
// stays until Field.Leave.
func (a *Attack) Run(ctx context.Context, f *Field) error { return a.run(ctx, f) }

// Named is the attack of that name, or nil.
func Named(name string) *Attack {
	for _, a := range Attacks() {
		if a.Name == name {
			return &a
		}
	}
	return nil
}

func fixed(bytes int64) func(*Field) int64 { return func(*Field) int64 { return bytes } }

// Attacks are all of them, by the requirement they belong to.
func Attacks() []Attack {
	return []Attack{
		{Name: "strangers", Does: "clients that have not logged in send commands and read no answer", Password: true, Bound: fixed(64 * MiB), run: strangers},
		{Name: "guesses", Does: "clients try passwords, many at a time", Password: true, Bound: fixed(64 * MiB), run: guesses},
		{Name: "held", Does: "clients begin TLS, or something else, on a TLS port, and stay", TLS: true, Bound: fixed(64 * MiB), run: heldHandshakes},
		{Name: "handshakes", Does: "clients go through TLS, hang up and come again", TLS: true, Bound: fixed(64 * MiB), run: handshakes},
		{Name: "announced", Does: "clients announce a payload of 1 MiB and send one byte of it", Bound: fixed(96 * MiB), run: announced},
		{Name: "malformed", Does: "clients send what is no command, arrays nested deeply among it", Bound: fixed(64 * MiB), run: malformed},
		{
			Name: "buffers", Does: "clients have payloads of 1 MiB echoed and read none", run: unreadEchoes,
			Args:  func(f *Field) []string { return []string{"--max-buffers", strconv.Itoa(f.either(32, 256)) + "MiB"} },
			Bound: func(f *Field) int64 { return 2*int64(f.either(32, 256))*MiB + 128*MiB },
		},
		{
			Name: "room", Does: "clients all want more room for their input than there is for all", run: noRoom,
			Args: func(f *Field) []string { return []string{"--max-buffers", strconv.Itoa(f.either(16, 128)) + "MiB"} },
			Bound: func(f *Field) int64 {
				return 2*int64(f.either(16, 128))*MiB + int64(f.either(400, 4000))*24<<10 + 128*MiB
			},
		},
		{
			// Most of it is the log's, through which a gigabyte goes: images of
			// generations, and what of them is garbage until the next collection.
			Name: "unread", Does: "clients fetch jobs of 1 MiB and do not read them", run: unreadJobs, Bound: fixed(256 * MiB),
		},
		{Name: "drip", Does: "clients send one byte a second", Bound: fixed(64 * MiB), run: drip},
		{
			Name: "dials", Does: "more connections than are allowed, then bursts of connections that close at once", run: dials,
			Args:  func(f *Field) []string { return []string{"--max-clients", strconv.Itoa(f.either(300, 10_000))} },
			Bound: func(f *Field) int64 { return int64(f.either(300, 10_000))*24<<10 + 64*MiB },
		},
		{Name: "pipeline", Does: "one client enqueues without a pause, in one pipeline", Others: 16, Bound: fixed(384 * MiB), run: pipeline},
		{
			Name: "queues", Does: "a queue for each job", run: manyQueues,
			Bound: func(f *Field) int64 { return int64(f.either(20_000, 1_000_000))*2<<10 + 128*MiB },
		},
		{
			Name: "due", Does: "delayed jobs that are due in the same millisecond", run: dueAtOnce,
			Bound: func(f *Field) int64 { return int64(f.either(20_000, 1_000_000))*512 + 128*MiB },
		},
	}
}

func strangers(ctx context.Context, f *Field) error {
	one := command("PING") + command("ENQUEUE", "q", "x")
	many := strings.Repeat(one, f.either(2_000, 50_000))
	if err := f.each(ctx, f.either(100, 1000), func(_ int, conn net.Conn) error {
		return send(conn, many, 2*time.Second)
	}); err != nil {
		return err
	}
	return sleep(ctx, f.hold())
}

func announced(ctx context.Context, f *Field) error {
	if err := f.each(ctx, f.either(200, 1000), func(_ int, conn net.Conn) error {
		return send(conn, "*3\r\n$7\r\nENQUEUE\r\n$1\r\nq\r\n$1048576\r\nx", time.Second)
	}); err != nil {
		return err
	}
	return sleep(ctx, f.hold())
}

func malformed(ctx context.Context, f *Field) error {
	bad := []string{
		"*1024\r\n", "*2147483647\r\n", "*9223372036854775807\r\n", "*99999999999999999999\r\n", "*-2\r\n", "*+3\r\n", "*03\r\n",
		"*1\r\n$-1\r\n", "*1\r\n$-2\r\n", "*1\r\n$ 5\r\n", "*1\r\n$9223372036854775807\r\n", "\r", "\n", "\x00", "$4294967297\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n",
		strings.Repeat("a", 70_000), "+" + strings.Repeat("a", 5_000) + "\r\n",
		strings.Repeat("*1\r\n", 200_000) + "$1\r\na\r\n", strings.Repeat("*1024\r\n", 50_000),
	}
	return f.each(ctx, f.either(2, 50)*len(bad), func(i int, conn net.Conn) error {
		if err := send(conn, bad[i%len(bad)], 5*time.Second); err != nil {
			return err
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return nil // it was closed already
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%.40q and the end of the stream leave the connection open", bad[i%len(bad)])
		}
		return nil // whatever it said
	})
}

func unreadEchoes(ctx context.Context, f *Field) error {
	echo := command("ECHO", strings.Repeat("e", 1<<20))
	if err := f.each(ctx, f.either(60, 300), func(_ int, conn net.Conn) error {
		return send(conn, strings.Repeat(echo, 4), 2*time.Second)
	}); err != nil {
		return err
	}
	return sleep(ctx, f.hold())
}

// noRoom has very many clients send most of a payload each, and then nothing.
func noRoom(ctx context.Context, f *Field) error {
	most := "*3\r\n$7\r\nENQUEUE\r\n$1\r\nq\r\n$524288\r\n" + strings.Repeat("x", 100<<10)
	if err := f.all(ctx, f.either(400, 4000), func(_ int, conn net.Conn) error {
		return send(conn, most, 5*time.Second)
	}); err != nil {
		return err
	}
	return sleep(ctx, f.hold())
}

// unreadJobs fetches all jobs and reads none; once the attackers are gone all
// of them must be to be had again.
func unreadJobs(ctx context.Context, f *Field) error {
	jobs, lazy := f.either(60, 1000), f.either(6, 20)
	producer, err := f.dial()
	if err != nil {
		return err
	}
	enqueue, r := command("ENQUEUE", "big", strings.Repeat("j", 1<<20-64)), bufio.NewReader(producer)
	for range jobs {
		if _, err := io.WriteString(producer, enqueue); err != nil {
			return err
		}
		if err := skip(r); err != nil {
			return err
		}
	}
	if f.Ready != nil {
		f.Ready()
	}
	if err := f.each(ctx, lazy, func(_ int, conn net.Conn) error {
		return send(conn, strings.Repeat(command("FETCH", "big", "600000"), jobs/lazy), time.Second)
	}); err != nil {
		return err
	}
	return sleep(ctx, f.hold())
}

// drip sends a command of 61 bytes at one byte a second, from all at a time.
func drip(ctx context.Context, f *Field) error {
	n := f.either(100, 500)
	if err := f.each(ctx, n, func(int, net.Conn) error { return nil }); err != nil {
		return err
	}
	text := command("ENQUEUE", "q", strings.Repeat("d", 40))
	for i := range f.either(2, 60) {
		f.mu.Lock()
		conns := f.conns
		f.mu.Unlock()
		for _, conn := range conns {
			if err := send(conn, text[i%len(text):][:1], time.Second); err != nil {
				return err
			}
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// dials opens more connections than there may be; the answer to those beyond is
// an error line and the end. Then it opens and closes as fast as it can.
func dials(ctx context.Context, f *Field) error {
	allowed, dialed := f.either(300, 10_000), f.either(400, 12_000)
	var mu sync.Mutex
	refused := 0
	if err := f.each(ctx, dialed, func(_ int, conn net.Conn) error {
		if err := send(conn, command("PING"), time.Second); err != nil {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return err
		}
		line, err := bufio.NewReaderSize(conn, 64).ReadString('\n')
		if strings.HasPrefix(line, "-ERR max number of clients") || err != nil {
			mu.Lock()
			refused++
			mu.Unlock()
		}
		return nil
	}); err != nil {
		return err
	}
	if refused < dialed-allowed {
		return fmt.Errorf("%d of %d connections were refused, though only %d are allowed", refused, dialed, allowed)
	}
	f.Leave()
	for range f.either(5, 100) {
		if err := f.each(ctx, 200, func(_ int, conn net.Conn) error { return conn.Close() }); err != nil {
			return err
		}
	}
	return nil
}

// pipelined sends n commands in one pipeline and reads the replies.
func pipelined(ctx context.Context, f *Field, n int, text func(i int) string) error {
	conn, err := f.dial()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	sent := inBackground(func() error {
		w := bufio.NewWriterSize(conn, 256<<10)
		for i := range n {
			if _, err := w.WriteString(text(i)); err != nil {
				return err
			}
		}
		return w.Flush()
	})
	r := bufio.NewReaderSize(conn, 256<<10)
	for range n {
		if err := skip(r); err != nil {
			return err
		}
	}
	return <-sent
}

// inBackground runs f in a goroutine and gives its result.
func inBackground(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

func pipeline(ctx context.Context, f *Field) error {
	one := command("ENQUEUE", "flood", "x")
	return pipelined(ctx, f, f.either(50_000, 1_000_000), func(int) string { return one })
}

func manyQueues(ctx context.Context, f *Field) error {
	return pipelined(ctx, f, f.either(20_000, 1_000_000)-8, func(i int) string { return command("ENQUEUE", fmt.Sprintf("queue-%d", i), "x") })
}

// dueAtOnce returns when the jobs have become ready.
func dueAtOnce(ctx context.Context, f *Field) error {
	at := time.Now().Add(time.Duration(f.either(2, 20)) * time.Second)
	one := command("ENQUEUE", "due", "x", "AT", strconv.FormatInt(at.UnixMilli(), 10))
	if err := pipelined(ctx, f, f.either(20_000, 1_000_000), func(int) string { return one }); err != nil {
		return err
	}
	return sleep(ctx, time.Until(at)+time.Second)
}

// skip reads one reply of RESP2.
func skip(r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	switch line[0] {
	case '-':
		return fmt.Errorf("refused: %s", strings.TrimSpace(line))
	case '$', '*':
		n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
		if err != nil {
			return err
		}
		if line[0] == '$' && n >= 0 {
			_, err = r.Discard(n + 2)
			return err
		}
		for range n {
			if err := skip(r); err != nil {
				return err
			}
		}
	}
	return nil
}
