package bench

import (
	"context"
	"fmt"
)

// Redis is a Redis server used as a queue by Streams with one consumer group:
// XADD; XREADGROUP; XACK and XDEL.
type Redis struct{ Addr string }

// Name implements Target.
func (Redis) Name() string { return "redis" }

// Prepare implements Target: it makes stream and group.
func (r Redis) Prepare(ctx context.Context, queue string) error {
	w, err := dial(ctx, r.Addr)
	if err != nil {
		return err
	}
	defer w.Close()
	w.command([]byte("XGROUP"), []byte("CREATE"), []byte(queue), []byte("g"), []byte("0"), []byte("MKSTREAM"))
	if err := w.Flush(); err != nil {
		return err
	}
	return w.skip()
}

// Dial implements Target.
func (r Redis) Dial(ctx context.Context, queue string) (Conn, error) {
	w, err := dial(ctx, r.Addr)
	if err != nil {
		return nil, err
	}
	c := &redisConn{wire: w, queue: []byte(queue)}
	for _, word := range []string{"XADD", "*", "p", "XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", ">", "XACK", "XDEL"} {
		c.words = append(c.words, []byte(word))
	}
	return c, nil
}

type redisConn struct {
	*wire
	queue  []byte
	words  [][]byte
	handle [64]byte
}

func (c *redisConn) Add(payload []byte) {
	c.command(c.words[0], c.queue, c.words[1], c.words[2], payload)
}

func (c *redisConn) Fetch() {
	c.command(c.words[3], c.words[4], c.words[5], c.words[6], c.words[7], c.words[8], c.words[9], c.queue, c.words[10])
}

func (c *redisConn) Ack(handle []byte) {
	c.command(c.words[11], c.queue, c.words[5], handle)
	c.command(c.words[12], c.queue, handle)
}

func (c *redisConn) ReadAdd() error { return c.skip() }

func (c *redisConn) ReadAck() error {
	if err := c.skip(); err != nil {
		return err
	}
	return c.skip()
}

// ReadFetch reads [[stream, [[id, [field, value]]]]].
func (c *redisConn) ReadFetch() (handle []byte, found bool, err error) {
	kind, n, err := c.head()
	if err != nil {
		return nil, false, err
	}
	if n <= 0 {
		return nil, false, nil
	}
	if kind != '*' || n != 1 {
		return nil, false, fmt.Errorf("unexpected reply to XREADGROUP: %c%d", kind, n)
	}
	if _, _, err = c.head(); err != nil { // [stream, entries]
		return nil, false, err
	}
	if err = c.skip(); err != nil { // its name
		return nil, false, err
	}
	for range 2 { // [entry], [id, fields]
		if _, _, err = c.head(); err != nil {
			return nil, false, err
		}
	}
	_, size, err := c.head()
	if err != nil {
		return nil, false, err
	}
	id, err := c.bulk(size)
	if err != nil {
		return nil, false, err
	}
	handle = c.handle[:copy(c.handle[:], id)]
	return handle, true, c.skip()
}
