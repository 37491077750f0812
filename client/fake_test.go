package client_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pawl/client"
)

// fake is a server that answers commands by a function, to show the client what
// no real daemon does on purpose.
type fake struct {
	addr     string
	accepted atomic.Int64
	// answer gives the raw reply; false closes the connection after it.
	answer func(args []string) (reply string, stay bool)

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

// newFake starts one that answers HELLO by itself and ends with the test.
func newFake(t *testing.T, answer func(args []string) (string, bool)) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{addr: l.Addr().String(), answer: answer}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.accepted.Add(1)
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			wg.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		f.cut()
		wg.Wait()
	})
	return f
}

// cut closes all connections.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		args, err := readCommand(in)
		if err != nil {
			return
		}
		reply, stay := "+OK\r\n", true
		if args[0] != "HELLO" {
			reply, stay = f.answer(args)
		}
		if _, err := io.WriteString(c, reply); err != nil || !stay {
			return
		}
	}
}

func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readNumber(in, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readNumber(in, '$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, nil
}

func readNumber(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("got %q, want %c", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

func (f *fake) client(t *testing.T) *client.Client {
	c := client.New(client.Options{Addr: f.addr})
	t.Cleanup(func() { c.Close() })
	return c
}
