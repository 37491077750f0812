//go:build linux

package hostile

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Password is that of the daemon under Attack.Password.
const Password = "a long and secret password"

// pace is between two commands of one of the others: they work, but the machine
// is not theirs.
const pace = 2 * time.Millisecond

// Others are clients that take jobs from ENQUEUE to ACK, each in a queue of its
// own, while others attack.
type Others struct {
	clients []*redis.Client
	stop    context.CancelFunc
	working sync.WaitGroup

	mu    sync.Mutex
	took  []time.Duration // guarded by mu; of each command since the last Took
	first error           // guarded by mu; the first command that failed
}

// StartOthers starts n clients, each of one connection that stays, speaking to
// f.Addr as f says.
func StartOthers(ctx context.Context, f *Field, password string, n int) (*Others, error) {
	ctx, stop := context.WithCancel(ctx)
	o := &Others{stop: stop}
	for i := range n {
		var secure *tls.Config
		if f.TLS {
			secure = &tls.Config{InsecureSkipVerify: true} // our own certificate
		}
		c := redis.NewClient(&redis.Options{
			Addr: f.Addr, TLSConfig: secure, Password: password, Protocol: 2, PoolSize: 1, MaxRetries: -1,
			ReadTimeout: time.Minute, WriteTimeout: time.Minute, PoolTimeout: time.Minute, DialTimeout: time.Minute,
		})
		o.clients = append(o.clients, c)
		if err := c.Do(ctx, "STATS", "probe").Err(); err != nil { // PING is answered while loading
			o.Stop()
			return nil, fmt.Errorf("a client beside the attack: %w", err)
		}
		o.working.Go(func() { o.work(ctx, c, fmt.Sprintf("other-%d", i)) })
	}
	return o, nil
}

func (o *Others) work(ctx context.Context, c *redis.Client, queue string) {
	do := func(args ...any) []string {
		began := time.Now()
		got, err := c.Do(ctx, args...).Result()
		o.note(ctx, time.Since(began), err)
		_ = sleep(ctx, pace) // ctx is asked for below
		fields, _ := got.([]any)
		var texts []string
		for _, field := range fields {
			texts = append(texts, fmt.Sprint(field))
		}
		return texts
	}
	for ctx.Err() == nil {
		do("ENQUEUE", queue, "hello")
		if job := do("FETCH", queue, 60000); len(job) == 6 {
			do("ACK", job[1])
		} else if ctx.Err() == nil {
			o.note(ctx, 0, fmt.Errorf("FETCH of a job that is there gave %q", job))
			return
		}
	}
}

func (o *Others) note(ctx context.Context, took time.Duration, err error) {
	if ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil && !errors.Is(err, redis.Nil) {
		if o.first == nil {
			o.first = err
		}
		return
	}
	o.took = append(o.took, took)
}

// Took gives the 50th and the 99th percentile of the commands since the last
// call, and how many there were. The error is that of a command that failed.
func (o *Others) Took() (p50, p99 time.Duration, n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	took := o.took
	o.took = nil
	if len(took) == 0 {
		return 0, 0, 0, o.first
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], len(took), o.first
}

// Stop ends them.
func (o *Others) Stop() {
	o.stop()
	o.working.Wait()
	for _, c := range o.clients {
		c.Close()
	}
}
