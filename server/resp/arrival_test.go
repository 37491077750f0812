package resp_test

import (
	"testing"

	"pawl/server/resp"
)

// Each enqueue that is answered is noted once, whoever has the connection and
// whatever stands around it in the pipeline, and not when a FETCH behind it has
// waited for its job.
func TestEnqueuesAreNoted(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	noted := func(want int) {
		t.Helper()
		d.until("all are noted", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.noted > want {
				t.Fatalf("got %d enqueues noted, want %d", f.noted, want)
			}
			return f.noted == want
		})
	}
	one := command("ENQUEUE", "q", "x")
	var all []*peer
	total := 0
	for range 3 {
		c := d.dial()
		c.expect("+PONG", "PING")
		all = append(all, c)
	}
	for _, c := range all {
		c.send(one)
		c.reply()
	}
	total += len(all)
	noted(total)
	for _, c := range all {
		// INFO is not for the poller and has the batch before it settled.
		c.send(one + command("STATS", "q") + one + command("INFO", "server") + one + command("ENQUEUE", "q"))
		for range 6 {
			c.reply()
		}
	}
	total += 3 * len(all)
	noted(total)
	for _, c := range all {
		c.expect("+PONG", "PING") // the poller may have it again
		c.send(one + command("FETCH", "none", "1000", "WAIT", "60000"))
		c.reply()
	}
	total += len(all)
	noted(total) // while they wait
	for _, c := range all {
		c.nc.Close()
	}
}
