package bench

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
)

// Beanstalkd is a beanstalkd server: put; reserve-with-timeout 0; delete.
type Beanstalkd struct{ Addr string }

// Name implements Target.
func (Beanstalkd) Name() string { return "beanstalkd" }

// Prepare implements Target; tubes are made by their first use.
func (Beanstalkd) Prepare(context.Context, string) error { return nil }

// Dial implements Target.
func (b Beanstalkd) Dial(ctx context.Context, queue string) (Conn, error) {
	w, err := dial(ctx, b.Addr)
	if err != nil {
		return nil, err
	}
	c := &beanstalkConn{wire: w}
	w.out = fmt.Appendf(w.out, "use %s\r\nwatch %[1]s\r\nignore default\r\n", queue)
	err = w.Flush()
	for _, want := range []string{"USING ", "WATCHING ", "WATCHING "} {
		if err == nil {
			_, err = c.expect(want)
		}
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return c, nil
}

type beanstalkConn struct {
	*wire
	handle [32]byte
}

// expect reads a line and returns what is behind its known beginning.
func (c *beanstalkConn) expect(want string) ([]byte, error) {
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(line, []byte(want))
	if !ok {
		return nil, fmt.Errorf("server says: %.60s, want %s", line, want)
	}
	return rest, nil
}

func (c *beanstalkConn) Add(payload []byte) {
	c.out = append(c.out, "put 0 0 60 "...)
	c.out = strconv.AppendInt(c.out, int64(len(payload)), 10)
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, payload...)
	c.out = append(c.out, "\r\n"...)
}

func (c *beanstalkConn) Fetch() { c.out = append(c.out, "reserve-with-timeout 0\r\n"...) }

func (c *beanstalkConn) Ack(handle []byte) {
	c.out = append(c.out, "delete "...)
	c.out = append(c.out, handle...)
	c.out = append(c.out, "\r\n"...)
}

func (c *beanstalkConn) ReadAdd() error {
	_, err := c.expect("INSERTED ")
	return err
}

func (c *beanstalkConn) ReadAck() error {
	_, err := c.expect("DELETED")
	return err
}

func (c *beanstalkConn) ReadFetch() (handle []byte, found bool, err error) {
	line, err := c.line()
	if err != nil {
		return nil, false, err
	}
	if string(line) == "TIMED_OUT" {
		return nil, false, nil
	}
	rest, ok := bytes.CutPrefix(line, []byte("RESERVED "))
	id, size, ok2 := bytes.Cut(rest, []byte(" "))
	n, err := strconv.Atoi(string(size))
	if !ok || !ok2 || err != nil {
		return nil, false, fmt.Errorf("server says: %.60s", line)
	}
	handle = c.handle[:copy(c.handle[:], id)]
	_, err = c.in.Discard(n + 2)
	return handle, true, err
}
