package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// conn speaks RESP2 over one connection and never sends anything twice: a
// client that resends by itself would hide what the proof is about.
type conn struct {
	net.Conn
	in          *bufio.Reader
	incarnation int // of the daemon at the other end
}

// maxBulk bounds what a reply may announce.
const maxBulk = 64 << 20

// dial connects to the incarnation that runs, as both the number before and
// after agree, so that the two cannot be mixed up around a restart.
func dial(target Target, timeout time.Duration) (*conn, error) {
	before := target.Incarnation()
	c, err := net.DialTimeout("tcp", target.Addr(), timeout)
	if err != nil {
		return nil, err
	}
	if target.Incarnation() != before {
		c.Close()
		return nil, errors.New("the daemon was restarted meanwhile")
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 32<<10), incarnation: before}, nil
}

// value is one RESP value: text and errors in text, arrays in items.
type value struct {
	kind  byte // '+', '-', ':', '$', '*'
	text  string
	num   int64
	null  bool
	items []value
}

func (v value) isError() bool { return v.kind == '-' }

// fields reads an array of names and values.
func (v value) fields() map[string]value {
	m := map[string]value{}
	for i := 0; i+1 < len(v.items); i += 2 {
		m[v.items[i].text] = v.items[i+1]
	}
	return m
}

// appendCommand adds one command to a request.
func appendCommand(b []byte, args ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// exchange sends a request and reads n replies.
func (c *conn) exchange(timeout time.Duration, request []byte, n int) ([]value, error) {
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	replies := make([]value, 0, n)
	for range n {
		v, err := c.read(0)
		if err != nil {
			return replies, err
		}
		replies = append(replies, v)
	}
	return replies, nil
}

// read reads one value strictly: anything that is not RESP2 is an error.
func (c *conn) read(depth int) (value, error) {
	if depth > 8 {
		return value{}, errors.New("reply is nested too deep")
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return value{}, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return value{}, fmt.Errorf("reply line %q does not end in CR LF", line)
	}
	v := value{kind: line[0], text: line[1 : len(line)-2]}
	switch v.kind {
	case '+', '-':
		return v, nil
	case ':', '$', '*':
		if v.num, err = strconv.ParseInt(v.text, 10, 64); err != nil {
			return value{}, fmt.Errorf("reply %q: %w", line, err)
		}
	default:
		return value{}, fmt.Errorf("reply %q is of no known kind", line)
	}
	if v.kind == ':' {
		return v, nil
	}
	if v.num == -1 {
		v.null, v.text = true, ""
		return v, nil
	}
	if v.num < 0 || v.num > maxBulk {
		return value{}, fmt.Errorf("reply announces %d", v.num)
	}
	if v.kind == '$' {
		body := make([]byte, v.num+2)
		if _, err := io.ReadFull(c.in, body); err != nil {
			return value{}, err
		}
		if body[v.num] != '\r' || body[v.num+1] != '\n' {
			return value{}, errors.New("bulk does not end in CR LF")
		}
		v.text = string(body[:v.num])
		return v, nil
	}
	for range v.num {
		item, err := c.read(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
	return v, nil
}
