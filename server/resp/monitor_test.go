package resp_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"pawl/server/resp"
)

// The lines of MONITOR stand between the replies of the same connection, never
// inside one, however long it is: a long reply is written in parts.
func TestMonitorBetweenReplies(t *testing.T) {
	for name, size := range map[string]int{"many small elements": 100, "payloads written from where they are": 20_000} {
		t.Run(name, func(t *testing.T) {
			d, _ := startFake(t, resp.Options{})
			m, producer := d.dial(), d.dial()
			const jobs, rounds = 600, 5
			payload := strings.Repeat("p", size)
			for range rounds {
				for range jobs {
					producer.send(command("ENQUEUE", "q", payload))
				}
				for range jobs {
					producer.reply()
				}
			}
			m.expect("+OK", "MONITOR")
			echoing := []*peer{d.dial(), d.dial()}
			for range rounds {
				var others sync.WaitGroup
				for _, c := range echoing {
					others.Go(func() { // all together fewer lines than a MONITOR may be behind
						for range 1500 {
							if _, err := io.WriteString(c.nc, command("ECHO", strings.Repeat("e", 40))); err != nil {
								return
							}
							if _, err := readReply(c.r); err != nil {
								return
							}
						}
					})
				}
				m.send(command("FETCH", "q", "60000", "COUNT", fmt.Sprint(jobs), "META"))
				m.send(command("PING") + command("RESET"))
				for reply := ""; reply != "+RESET"; {
					reply = m.reply()
					switch {
					case strings.HasPrefix(reply, "+1"): // a line
					case strings.HasPrefix(reply, "["):
						if n := strings.Count(reply, `["lease_id" `); n == 0 || strings.Contains(reply, "+") {
							t.Fatalf("a line stands inside a reply of %d jobs: %.200s", n, reply)
						}
					case reply != "+PONG" && reply != "+RESET":
						t.Fatalf("got %.200s", reply)
					}
				}
				others.Wait()
				m.expect("+OK", "MONITOR")
			}
		})
	}
}
