package resp_test

import (
	"runtime"
	"strings"
	"testing"

	"pawl/server/resp"
)

// The rest of a long command is read in the lane, and a long reply written there;
// short commands need none.
func TestLongCommandsTakeTheLane(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is nothing to wait with outside of it")
	}
	t.Parallel()
	d, _ := startFake(t, resp.Options{})
	short, long := d.dial(), d.dial()
	for range 20 { // wherever it is served from now on
		short.expect("+PONG", "PING")
	}
	release := d.s.HoldLane()
	before := d.s.Numbers().BytesIn
	payload := strings.Repeat("e", 1<<20)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		long.send(command("ECHO", payload))
	}()
	d.until("the first bytes are read", func() bool { return d.s.Numbers().BytesIn > before })
	const pings = 100
	for range pings {
		short.expect("+PONG", "PING")
	}
	const poller = 64 << 10 // it reads so much before it leaves the connection to a goroutine
	if n := d.s.Numbers().BytesIn - before - pings*uint64(len(command("PING"))); n > poller {
		t.Errorf("%d bytes of a long command are read outside of the lane", n)
	}
	release()
	if got := long.reply(); got != `"`+payload+`"` {
		t.Errorf("got %.40s…", got)
	}
	<-sent
}

// Who waits for a client is not in the lane: those who read nothing, and those who
// send half, are many more than there is room for.
func TestNobodyWaitsInTheLane(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{})
	long := command("ECHO", strings.Repeat("e", 1<<20))
	for range 4 * runtime.GOMAXPROCS(0) {
		go func(lazy *peer) { lazy.nc.Write([]byte(strings.Repeat(long, 8))) }(d.dial())
		d.dial().send(long[:len(long)/2])
	}
	c := d.dial()
	for range 20 {
		c.send(long)
		if got := c.reply(); len(got) != 2+1<<20 {
			t.Fatalf("got %.40s…", got)
		}
	}
}
