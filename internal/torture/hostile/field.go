//go:build linux

package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Field is where one attack takes place.
type Field struct {
	Addr string // of the daemon's Redis clients
	Full bool   // the numbers of the requirement instead of a tenth and less
	Said string // by an attack, when it is at its height
	// Ready, if not nil, is called by an attack that has to do what an honest client
	// does before it can begin, when it begins.
	Ready func()

	// Of Honest: the daemon's process, how much of the processors to use together
	// with it (1 is one of them), and for how long.
	Pid      int
	Share    float64
	For      time.Duration
	Password bool // it must log in
	TLS      bool // clients that mean no harm speak it

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

// either is the number for the short form or the full one.
func (f *Field) either(short, full int) int {
	if f.Full {
		return full
	}
	return short
}

// hold is how long what an attack has set up stays as it is.
func (f *Field) hold() time.Duration {
	if f.Full {
		return 5 * time.Second
	}
	return 300 * time.Millisecond
}

// dial connects. The connection stays open until Leave, also one that nobody
// uses any more.
func (f *Field) dial() (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", f.Addr, 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("attack: %w", err)
	}
	f.mu.Lock()
	f.conns = append(f.conns, conn)
	f.mu.Unlock()
	return conn, nil
}

// Leave closes all connections of the attack.
func (f *Field) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.conns {
		conn.Close()
	}
	f.conns = nil
}

// parallel bounds the connections that are made at a time.
const parallel = 64

// each connects n times, and has every connection do its part, many at a time.
// That the daemon closes the connection, or does not take what is sent, is what
// an attacker must expect.
func (f *Field) each(ctx context.Context, n int, part func(i int, conn net.Conn) error) error {
	return f.some(ctx, n, parallel, part)
}

// all is each with everybody at once.
func (f *Field) all(ctx context.Context, n int, part func(i int, conn net.Conn) error) error {
	return f.some(ctx, n, n, part)
}

func (f *Field) some(ctx context.Context, n, at int, part func(i int, conn net.Conn) error) error {
	var first atomic.Pointer[error]
	var attackers sync.WaitGroup
	gate := make(chan struct{}, at)
	for i := range n {
		if ctx.Err() != nil || first.Load() != nil {
			break
		}
		gate <- struct{}{}
		attackers.Go(func() {
			defer func() { <-gate }()
			conn, err := f.dial()
			if err == nil {
				err = part(i, conn)
			}
			if err != nil && !repelled(err) {
				first.CompareAndSwap(nil, &err)
			}
		})
	}
	attackers.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// repelled says whether an error is how the daemon treats attackers.
func repelled(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrDeadlineExceeded)
}

// send writes text for at most the given time; a daemon that takes no more is
// no error.
func send(conn net.Conn, text string, atMost time.Duration) error {
	if err := conn.SetWriteDeadline(time.Now().Add(atMost)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, text); err != nil && !repelled(err) {
		return err
	}
	return nil
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// command is the bytes of a command.
func command(args ...string) string {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return string(b)
}
