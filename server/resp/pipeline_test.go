package resp_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"pawl/internal/seeds"
	"pawl/server/resp"
)

// Clients that pipeline, and send nothing more before they have all replies, get
// all of them, whatever stands in a pipeline and however it is cut: connections
// come to the poller and leave it in the middle of what was sent.
func TestEveryCommandIsAnswered(t *testing.T) {
	d := startDaemon(t, resp.Options{})
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var clients sync.WaitGroup
	for i := range 10 {
		c, random := d.dial(), seeds.New(seeds.Nth(t.Name(), i))
		clients.Go(func() {
			for range rounds {
				text, said := pipelineOf(random)
				for len(text) > 0 {
					n := len(text)
					if random.IntN(3) > 0 {
						n = min(n, 1+random.IntN(200))
					}
					c.send(text[:n])
					if text = text[n:]; random.IntN(4) == 0 {
						time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond)
					}
				}
				if err := c.nc.SetReadDeadline(time.Now().Add(patience)); err != nil {
					t.Error(err)
				}
				for k, command := range said {
					if _, err := readReply(c.r); err != nil {
						t.Errorf("reply %d of %d, of %q: %v\n%q", k, len(said), command, err, said)
						return
					}
				}
			}
		})
	}
	clients.Wait()
}

// pipelineOf is some commands, and one by one those that are answered.
func pipelineOf(random *rand.Rand) (text string, said []string) {
	for range 1 + random.IntN(30) {
		q := "q" + strconv.Itoa(random.IntN(3))
		all := [][]string{
			{command("ENQUEUE", q, "x")}, {command("ENQUEUE", q, "y")}, {command("FETCH", q, "1000")},
			{command("FETCH", q, "1000", "WAIT", "3")}, {command("FETCH", q, "50", "COUNT", "5", "WAIT", "2", "OR", "q0", "q1")},
			{command("ACK", "nosuch")}, {command("STATS", q)}, {command("PING")}, {command("INFO", "server")}, {command("JOB", "GET", "nosuch")},
			{command("MULTI"), command("ENQUEUE", q, "z"), command("EXEC")},
		}
		for _, command := range all[random.IntN(len(all))] {
			text += command
			said = append(said, command)
		}
	}
	return text, said
}
