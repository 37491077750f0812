package resp_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"

	"pawl/engine"
	"pawl/server/resp"
	"pawl/state"
)

// nullEngine says yes to everything and allocates nothing, so that what is
// measured is the edge.
type nullEngine struct {
	fakeEngine
	lease state.LeaseID
}

var benchPayload = bytes.Repeat([]byte("p"), 100)

func (n *nullEngine) Submit(cmds ...engine.Command) engine.LSN {
	for _, cmd := range cmds {
		switch c := cmd.(type) {
		case *engine.Fetch:
			c.Jobs = append(c.Jobs[:0], engine.Delivery{Lease: n.lease, Queue: "default/default/q"})
		case *engine.Ack:
			c.Done = append(c.Done, true)
		}
	}
	return 1
}
func (n *nullEngine) TrySubmit(cmds ...engine.Command) (lsn engine.LSN, decided int) {
	return n.Submit(cmds...), len(cmds)
}
func (n *nullEngine) Wait(engine.LSN) error { return nil }
func (n *nullEngine) Load(d *engine.Delivery) error {
	d.Payload = append(d.Payload[:0], benchPayload...)
	return nil
}

func (n *nullEngine) TryLoad(d *engine.Delivery) bool { return n.Load(d) == nil }

// cycle is a client that allocates nothing either.
type cycle struct {
	nc    net.Conn
	send  []byte
	reply []byte
}

func (c *cycle) run(t testing.TB) {
	if _, err := c.nc.Write(c.send); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c.nc, c.reply); err != nil {
		t.Fatal(err)
	}
}

// startCycle connects a client that sends depth times ENQUEUE, FETCH and ACK at
// once.
func startCycle(t testing.TB, depth int) *cycle {
	t.Helper()
	s := resp.New(resp.Options{Loop: loopUnderTest()})
	null := &nullEngine{lease: state.LeaseID{Slot: 7}}
	null.failed = make(chan struct{})
	if err := s.SetEngine(null); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(context.Background(), l)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	one := command("MOXY.ENQUEUE", "q", string(benchPayload)) + command("MOXY.FETCH", "q", "30000") + command("MOXY.ACK", null.lease.String())
	const replies = "*2\r\n$7\r\ntask_id\r\n$26\r\n00000000000000000000000000\r\n" +
		"*6\r\n$8\r\nlease_id\r\n$23\r\n00000000000000000000000\r\n$7\r\ntask_id\r\n$26\r\n00000000000000000000000000\r\n$7\r\npayload\r\n$100\r\n\r\n+OK\r\n"
	return &cycle{nc: nc, send: bytes.Repeat([]byte(one), depth), reply: make([]byte, depth*(len(replies)+len(benchPayload)))}
}

func BenchmarkCycle(b *testing.B) {
	for _, depth := range []int{1, 64} {
		b.Run(map[int]string{1: "alone", 64: "pipelined"}[depth], func(b *testing.B) {
			c := startCycle(b, depth)
			b.ReportAllocs()
			for b.Loop() {
				c.run(b)
			}
			b.ReportMetric(float64(b.N*depth)/b.Elapsed().Seconds(), "cycles/s")
		})
	}
}

// The plain life of a job costs the edge no allocation.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, depth := range []int{4, 8} { // with the poller, and with a goroutine
		c := startCycle(t, depth)
		c.run(t)
		if per := testing.AllocsPerRun(500, func() { c.run(t) }); per > 1 {
			t.Errorf("%d cycles made %v allocations", depth, per)
		}
	}
}
