package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// wire is a connection with requests collected for one write, and buffered
// replies.
type wire struct {
	stream
	in    *bufio.Reader
	out   []byte
	until time.Time // the read deadline
}

// stream is what a wire needs of a connection; a net.Conn is one.
type stream interface {
	io.ReadWriteCloser
	SetReadDeadline(t time.Time) error
}

// unanswered is how long a server may owe a reply. Some answers never come, such as
// that of NATS to an ACK of a message that it has delivered again and that is gone;
// then the run ends with an error and does not hang.
const unanswered = 4 * time.Minute

func dial(ctx context.Context, addr string) (*wire, error) {
	network := "tcp"
	if strings.Contains(addr, "/") {
		network = "unix"
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newWire(c), nil
}

func newWire(c stream) *wire {
	w := &wire{stream: c}
	w.in = bufio.NewReaderSize(w, 64<<10) // w: the stream may be another later
	return w
}

// ownThread has the goroutine that reads keep a thread of its own while it waits
// for replies.
func (w *wire) ownThread() error {
	s, err := ownThread(w.stream)
	if err == nil {
		w.stream = s
	}
	return err
}

// Flush writes what is collected. The replies must come within the time that a
// server may owe one, or half of it: the deadline is not moved for every request.
func (w *wire) Flush() error {
	if now := time.Now(); w.until.Sub(now) < unanswered/2 {
		w.until = now.Add(unanswered)
		if err := w.SetReadDeadline(w.until); err != nil {
			return err
		}
	}
	_, err := w.Write(w.out)
	w.out = w.out[:0]
	return err
}

// line is the next line without its end, good until the next read.
func (w *wire) line() ([]byte, error) {
	line, err := w.in.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("read reply: %w", err)
	}
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return nil, errors.New("reply line without CR LF")
	}
	return line[:len(line)-2], nil
}

// command collects a RESP command.
func (w *wire) command(args ...[]byte) {
	w.out = append(w.out, '*')
	w.out = strconv.AppendInt(w.out, int64(len(args)), 10)
	for _, a := range args {
		w.out = append(w.out, "\r\n$"...)
		w.out = strconv.AppendInt(w.out, int64(len(a)), 10)
		w.out = append(w.out, "\r\n"...)
		w.out = append(w.out, a...)
	}
	w.out = append(w.out, "\r\n"...)
}

// head reads the first line of a RESP reply: its type and number. An error
// reply is an error.
func (w *wire) head() (kind byte, n int, err error) {
	line, err := w.line()
	if err != nil {
		return 0, 0, err
	}
	if len(line) == 0 {
		return 0, 0, errors.New("empty reply line")
	}
	switch line[0] {
	case '+', '_':
		return line[0], 0, nil
	case '-':
		return 0, 0, fmt.Errorf("server says: %s", line[1:])
	}
	n, err = strconv.Atoi(string(line[1:]))
	if err != nil {
		return 0, 0, fmt.Errorf("unexpected reply %.40q", line)
	}
	return line[0], n, nil
}

// bulk reads the n bytes of a bulk string behind its head, good until the next
// read. Long ones are skipped and nil.
func (w *wire) bulk(n int) ([]byte, error) {
	if n+2 > w.in.Size() {
		_, err := w.in.Discard(n + 2)
		return nil, err
	}
	b, err := w.in.Peek(n + 2)
	if err != nil {
		return nil, err
	}
	w.in.Discard(n + 2)
	return b[:n], nil
}

// skip reads one whole reply and drops it.
func (w *wire) skip() error {
	kind, n, err := w.head()
	if err != nil {
		return err
	}
	switch kind {
	case '$':
		if n >= 0 {
			_, err = w.in.Discard(n + 2)
		}
	case '*', '%':
		if kind == '%' {
			n *= 2
		}
		for ; n > 0 && err == nil; n-- {
			err = w.skip()
		}
	}
	return err
}
