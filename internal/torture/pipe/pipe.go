// Package pipe is a client for masses: it writes many commands at once and reads
// their replies, and makes nothing of a reply that nobody asks for.
package pipe

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Conn is one connection. It belongs to one goroutine.
type Conn struct {
	net net.Conn
	in  *bufio.Reader
	out []byte
}

// Dial connects. Every exchange must be over within patience.
func Dial(addr string, patience time.Duration) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		c.Close()
		return nil, err
	}
	return &Conn{net: c, in: bufio.NewReaderSize(c, 64<<10)}, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.net.Close() }

// Add puts one command into the next write.
func (c *Conn) Add(args ...string) {
	c.out = fmt.Appendf(c.out, "*%d\r\n", len(args))
	for _, a := range args {
		c.out = fmt.Appendf(c.out, "$%d\r\n%s\r\n", len(a), a)
	}
}

// Flush writes what was added.
func (c *Conn) Flush() error {
	_, err := c.net.Write(c.out)
	c.out = c.out[:0]
	return err
}

// Error is an error reply.
type Error string

func (e Error) Error() string { return string(e) }

// Read reads one reply: nil, a string, an int64, or a []any of these. An error
// reply is an Error.
func (c *Conn) Read() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("reply line %q does not end in CR LF", line)
	}
	text := line[1 : len(line)-2]
	switch line[0] {
	case '+':
		return text, nil
	case '-':
		return nil, Error(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reply %q: %w", line, err)
	}
	switch {
	case line[0] == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case line[0] == '$':
		body := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, body); err != nil {
			return nil, err
		}
		return string(body[:n]), nil
	case line[0] == '*':
		items := make([]any, n)
		for i := range items {
			if items[i], err = c.Read(); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("reply %q is of no known kind", line)
}

// Do sends one command and reads its reply.
func (c *Conn) Do(args ...string) (any, error) {
	c.Add(args...)
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return c.Read()
}

// All sends n commands, the i-th of which add puts together, a few hundred in
// one write, and gives each reply to got.
func (c *Conn) All(n int, add func(i int), got func(i int, reply any) error) error {
	const atOnce = 500
	for first := 0; first < n; first += atOnce {
		last := min(n, first+atOnce)
		for i := first; i < last; i++ {
			add(i)
		}
		if err := c.Flush(); err != nil {
			return err
		}
		for i := first; i < last; i++ {
			reply, err := c.Read()
			if err != nil {
				return err
			}
			if got != nil {
				if err := got(i, reply); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Field is the value of name in a reply of names and values, nil for none.
func Field(reply any, name string) any {
	items, _ := reply.([]any)
	for i := 0; i+1 < len(items); i += 2 {
		if items[i] == name {
			return items[i+1]
		}
	}
	return nil
}
