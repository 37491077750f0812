//go:build linux

package hostile

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Honest is the control of an attack: clients that mean no harm, each sending a
// few PINGs, reading the answers and pausing, so that they and the daemon use as
// much of the processors as attackers and daemon did. How the others fare beside
// them is what a busy machine does to anybody; what goes beyond it is the
// attack's doing.
func Honest(ctx context.Context, f *Field) error {
	const clients, pings = 64, 16
	ctx, stop := context.WithTimeout(ctx, f.For)
	defer stop()
	var rest atomic.Int64 // of each client, between two rounds
	rest.Store(int64(5 * time.Millisecond))
	var working sync.WaitGroup
	round := strings.Repeat(command("PING"), pings)
	for range clients {
		conn, err := f.dial()
		if err != nil {
			return err
		}
		if f.TLS {
			conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // it made the certificate itself
		}
		r := bufio.NewReader(conn)
		if f.Password {
			if _, err := io.WriteString(conn, command("AUTH", Password)); err != nil {
				return err
			}
			if err := skip(r); err != nil {
				return err
			}
		}
		working.Go(func() {
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			for ctx.Err() == nil {
				if _, err := io.WriteString(conn, round); err != nil {
					return
				}
				for range pings {
					if skip(r) != nil {
						return
					}
				}
				_ = sleep(ctx, time.Duration(rest.Load())) // the loop asks
			}
		})
	}
	// More than so much rest is none of these clients, less is all that they can.
	const least, most, tick = 20 * time.Microsecond, time.Second, 100 * time.Millisecond
	before, err := bothCPU(f.Pid)
	for err == nil && sleep(ctx, tick) == nil {
		var after time.Duration
		if after, err = bothCPU(f.Pid); err != nil {
			break
		}
		used := (after - before).Seconds() / tick.Seconds()
		before = after
		factor := 1.3
		if used < f.Share {
			factor = 1 / factor
		}
		rest.Store(int64(min(max(time.Duration(float64(rest.Load())*factor), least), most)))
	}
	stop()
	working.Wait()
	return err
}

// bothCPU is the processor time of a process and this one.
func bothCPU(pid int) (time.Duration, error) {
	other, err := CPU(pid)
	if err != nil {
		return 0, err
	}
	own, err := CPU(os.Getpid())
	return other + own, err
}
