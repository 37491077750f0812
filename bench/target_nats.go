package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// NATS is a nats-server with JetStream, used as a queue by a stream of the
// WorkQueue policy in files with one durable pull consumer: a publish waits for
// the stream's answer; a pull of one message with no_wait; an ack that is
// confirmed.
//
// The client's protocol is a few lines of text, so it is spoken here:
// docs.nats.io/reference/reference-protocols/nats-protocol.
type NATS struct{ Addr string }

// Name implements Target.
func (NATS) Name() string { return "nats" }

// natsConsumer is the durable consumer of each stream.
const natsConsumer = "bench"

// Prepare implements Target: it makes stream and consumer.
func (n NATS) Prepare(ctx context.Context, queue string) error {
	c, err := n.dial(ctx, queue)
	if err != nil {
		return err
	}
	defer c.Close()
	stream := map[string]any{
		"name": queue, "subjects": []string{queue}, "retention": "workqueue", "storage": "file", "num_replicas": 1,
		"max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "discard": "old",
	}
	consumer := map[string]any{"stream_name": queue, "config": map[string]any{
		"durable_name": natsConsumer, "deliver_policy": "all", "ack_policy": "explicit", "ack_wait": benchLease,
		"max_deliver": -1, "max_ack_pending": -1, "max_waiting": 100_000, "replay_policy": "instant",
	}}
	if err := c.request("$JS.API.STREAM.CREATE."+queue, stream); err != nil {
		return fmt.Errorf("make stream: %w", err)
	}
	if err := c.request("$JS.API.CONSUMER.DURABLE.CREATE."+queue+"."+natsConsumer, consumer); err != nil {
		return fmt.Errorf("make consumer: %w", err)
	}
	return nil
}

// Dial implements Target.
func (n NATS) Dial(ctx context.Context, queue string) (Conn, error) { return n.dial(ctx, queue) }

// The subscriptions of a connection, one for the answers to each kind of
// request: the server keeps the order within one, but not between them.
const (
	natsAdd = iota
	natsFetch
	natsAck
	natsKinds
)

func (n NATS) dial(ctx context.Context, queue string) (*natsConn, error) {
	w, err := dial(ctx, n.Addr)
	if err != nil {
		return nil, err
	}
	c := &natsConn{wire: w}
	line, err := c.line()
	if err == nil && !bytes.HasPrefix(line, []byte("INFO ")) {
		err = fmt.Errorf("server says: %.60s, want INFO", line)
	}
	inbox := "_INBOX." + rand.Text()
	c.out = append(c.out, `CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"lang":"go","version":"1"}`+"\r\n"...)
	for kind := range natsKinds {
		c.inbox[kind] = fmt.Appendf(nil, "%s.%d", inbox, kind)
		c.out = fmt.Appendf(c.out, "SUB %s %d\r\n", c.inbox[kind], kind)
	}
	c.out = append(c.out, "PING\r\n"...)
	c.add = fmt.Appendf(nil, "PUB %s %s ", queue, c.inbox[natsAdd])
	const pull = `{"batch":1,"no_wait":true}`
	c.fetch = fmt.Appendf(nil, "PUB $JS.API.CONSUMER.MSG.NEXT.%s.%s %s %d\r\n%s\r\n", queue, natsConsumer, c.inbox[natsFetch], len(pull), pull)
	if err == nil {
		err = c.Flush()
	}
	for err == nil {
		if line, err = c.line(); bytes.Equal(line, []byte("PONG")) {
			return c, nil
		}
	}
	w.Close()
	return nil, err
}

type natsConn struct {
	*wire
	inbox      [natsKinds][]byte
	add, fetch []byte // what such requests begin with
	answers    [natsKinds]natsAnswers
}

// natsAnswers are answers of one kind that were not asked for yet.
type natsAnswers struct {
	handles [][]byte // used again and again
	from    int      // the first that was not asked for
	given   []byte
}

// push keeps a copy of handle; an empty one is an answer without a job.
func (a *natsAnswers) push(handle []byte) {
	if len(a.handles) < cap(a.handles) {
		a.handles = a.handles[:len(a.handles)+1]
	} else {
		a.handles = append(a.handles, nil)
	}
	last := &a.handles[len(a.handles)-1]
	*last = append((*last)[:0], handle...)
}

// pop returns the first, good until the next push.
func (a *natsAnswers) pop() (handle []byte, ok bool) {
	if a.from == len(a.handles) {
		return nil, false
	}
	a.given = append(a.given[:0], a.handles[a.from]...)
	if a.from++; a.from == len(a.handles) {
		a.handles, a.from = a.handles[:0], 0
	}
	return a.given, true
}

func (c *natsConn) Add(payload []byte) {
	c.out = append(c.out, c.add...)
	c.out = strconv.AppendInt(c.out, int64(len(payload)), 10)
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, payload...)
	c.out = append(c.out, "\r\n"...)
}

func (c *natsConn) Fetch() { c.out = append(c.out, c.fetch...) }

func (c *natsConn) Ack(handle []byte) {
	c.out = append(c.out, "PUB "...)
	c.out = append(c.out, handle...)
	c.out = append(c.out, ' ')
	c.out = append(c.out, c.inbox[natsAck]...)
	c.out = append(c.out, " 4\r\n+ACK\r\n"...)
}

func (c *natsConn) ReadAdd() error {
	_, err := c.answer(natsAdd)
	return err
}

func (c *natsConn) ReadAck() error {
	_, err := c.answer(natsAck)
	return err
}

func (c *natsConn) ReadFetch() (handle []byte, found bool, err error) {
	handle, err = c.answer(natsFetch)
	return handle, err == nil && len(handle) > 0, err
}

// answer is the next answer of a kind.
func (c *natsConn) answer(kind int) ([]byte, error) {
	for {
		if handle, ok := c.answers[kind].pop(); ok {
			return handle, nil
		}
		if err := c.read(); err != nil {
			return nil, err
		}
	}
}

// read takes one line of the server and what belongs to it.
func (c *natsConn) read() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	verb, rest, _ := bytes.Cut(line, []byte(" "))
	switch string(verb) {
	case "MSG", "HMSG":
		return c.message(rest, len(verb) > len("MSG"))
	case "PING":
		_, err := c.Write([]byte("PONG\r\n"))
		return err
	case "PONG", "INFO", "+OK":
		return nil
	}
	return fmt.Errorf("server says: %.80s", line)
}

// message reads "subject sid [reply] [header bytes] bytes" and the message.
func (c *natsConn) message(args []byte, headed bool) error {
	var fields [5][]byte
	n := 0
	for field := range bytes.FieldsSeq(args) {
		if n == len(fields) {
			return fmt.Errorf("unexpected message %.80q", args)
		}
		fields[n] = field
		n++
	}
	sizes := 1 // of the fields at the end
	if headed {
		sizes = 2
	}
	if n != 2+sizes && n != 3+sizes {
		return fmt.Errorf("unexpected message %.80q", args)
	}
	kind, err := strconv.Atoi(string(fields[1]))
	if err != nil || kind < 0 || kind >= natsKinds {
		return fmt.Errorf("message for nobody: %.80q", args)
	}
	var reply []byte
	if n == 3+sizes && kind == natsFetch {
		reply = fields[2]
	}
	size, err := strconv.Atoi(string(fields[n-1]))
	if err != nil || size < 0 {
		return fmt.Errorf("unexpected message %.80q", args)
	}
	// The fields lie in the buffer that is read on.
	answers := &c.answers[kind]
	answers.push(reply)
	switch {
	case kind == natsFetch && !headed:
		_, err = c.in.Discard(size + 2)
		return err
	case size+2 > c.in.Size():
		return fmt.Errorf("answer of %d bytes", size)
	}
	body, err := c.in.Peek(size + 2)
	if err == nil {
		err = natsRefusal(kind, body[:size], headed)
		_, discarding := c.in.Discard(size + 2)
		err = errors.Join(err, discarding)
	}
	return err
}

// natsRefusal is the error that an answer means, if it means one: a status line
// other than that there are no messages, or an error in JSON.
func natsRefusal(kind int, body []byte, headed bool) error {
	status, isStatus := bytes.CutPrefix(body, []byte("NATS/1.0 "))
	switch {
	case headed && isStatus && kind == natsFetch && (bytes.HasPrefix(status, []byte("404")) || bytes.HasPrefix(status, []byte("408"))):
		return nil // no messages
	case headed && isStatus && len(status) > 0 && status[0] >= '4':
		return fmt.Errorf("server says: %.80q", status)
	case kind == natsAdd && bytes.Contains(body, []byte(`"error"`)):
		return fmt.Errorf("server says: %.200s", body)
	}
	return nil
}

// request sends one request of the JetStream API and waits for its answer, on
// the subscription of adds, whose answers are JSON as well.
func (c *natsConn) request(subject string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	c.out = fmt.Appendf(c.out, "PUB %s %s %d\r\n%s\r\n", subject, c.inbox[natsAdd], len(b), b)
	if err := c.Flush(); err != nil {
		return err
	}
	err = c.ReadAdd()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("closed by the server: %w", err)
	}
	return err
}
