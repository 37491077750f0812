package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// PawlHTTP is a Pawl daemon, or an lmstfy, over lmstfy's HTTP API: PUT; GET
// with timeout 0; DELETE.
type PawlHTTP struct {
	Addr      string
	Namespace string
	Token     string
	Server    string // its name; empty is pawl-http
}

// Name implements Target.
func (p PawlHTTP) Name() string {
	if p.Server != "" {
		return p.Server
	}
	return "pawl-http"
}

// Prepare implements Target; queues are made by their first job.
func (PawlHTTP) Prepare(context.Context, string) error { return nil }

// Dial implements Target.
func (p PawlHTTP) Dial(ctx context.Context, queue string) (Conn, error) {
	w, err := dial(ctx, p.Addr)
	if err != nil {
		return nil, err
	}
	path := "/api/" + p.Namespace + "/" + queue
	common := " HTTP/1.1\r\nHost: " + p.Addr + "\r\nX-Token: " + p.Token + "\r\n"
	return &httpConn{
		wire:   w,
		put:    []byte("PUT " + path + "?ttl=0&tries=65535&delay=0" + common + "Content-Length: "),
		get:    []byte("GET " + path + "?ttr=60&timeout=0" + common + "\r\n"),
		delete: []byte("DELETE " + path + "/job/"),
		tail:   []byte(common + "\r\n"),
	}, nil
}

type httpConn struct {
	*wire
	put, get, delete, tail []byte
	body                   []byte
	handle                 [64]byte
}

func (c *httpConn) Add(payload []byte) {
	c.out = append(c.out, c.put...)
	c.out = strconv.AppendInt(c.out, int64(len(payload)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, payload...)
}

func (c *httpConn) Fetch() { c.out = append(c.out, c.get...) }

func (c *httpConn) Ack(handle []byte) {
	c.out = append(append(append(c.out, c.delete...), handle...), c.tail...)
}

func (c *httpConn) ReadAdd() error { return c.want(201) }
func (c *httpConn) ReadAck() error { return c.want(204) }

func (c *httpConn) want(status int) error {
	got, err := c.response()
	if err == nil && got != status {
		err = fmt.Errorf("server says: %d %.80s", got, c.body)
	}
	return err
}

func (c *httpConn) ReadFetch() (handle []byte, found bool, err error) {
	status, err := c.response()
	switch {
	case err != nil:
		return nil, false, err
	case status == 404:
		return nil, false, nil
	case status != 200:
		return nil, false, fmt.Errorf("server says: %d %.80s", status, c.body)
	}
	_, rest, ok := bytes.Cut(c.body, []byte(`"job_id":"`))
	id, _, ok2 := bytes.Cut(rest, []byte(`"`))
	if !ok || !ok2 || len(id) > len(c.handle) {
		return nil, false, fmt.Errorf("no job_id in %.80s", c.body)
	}
	return c.handle[:copy(c.handle[:], id)], true, nil
}

// response reads one response; its body stays in c.body until the next one.
func (c *httpConn) response() (status int, err error) {
	line, err := c.line()
	if err != nil {
		return 0, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, fmt.Errorf("unexpected status line %.40q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, fmt.Errorf("unexpected status line %.40q", line)
	}
	length := 0
	for {
		line, err := c.line()
		if err != nil {
			return 0, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 || length > 64<<20 {
				return 0, fmt.Errorf("unexpected length %.40q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return 0, errors.New("chunked response, want one with its length")
		}
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.in, c.body)
	return status, err
}
