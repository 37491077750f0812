package bench

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// soak loads the daemon for a time with all that is said to make its critical
// section long: cycles, snapshots one behind the other of all that waits, full
// generations that have to be cleaned, and 100,000 leases that end at once, again
// and again. Enqueues come all the time, as the first step of the cycles.
func (o *FootprintOptions) soak(ctx context.Context, s *Server) (r Soak, err error) {
	const cleaned, ended = "pawl_log_cleaned_bytes_total", "pawl_leases_expired_total"
	// Before it is watched: this is no steady load.
	if _, err := o.fill(ctx, s, "leases", leases, 0); err != nil {
		return r, err
	}
	before, err := Scrape(ctx, s.adminAddr)
	if err != nil {
		return r, err
	}
	cleanedBefore, err := scrapeSum(ctx, s.adminAddr, cleaned)
	if err != nil {
		return r, err
	}
	endedBefore, err := scrapeSum(ctx, s.adminAddr, ended)
	if err != nil {
		return r, err
	}
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, load := range []func(context.Context) error{
		func(ctx context.Context) error {
			load := Options{Workload: Cycle, Target: s.Target, Conns: 16, Payload: o.Payload, Duration: o.Soak, Warmup: -1}
			if o.SoakRate > 0 {
				load.Every = time.Second * time.Duration(load.Conns) / time.Duration(o.SoakRate)
			}
			cycles, err := Run(ctx, load)
			r.Cycles = cycles.PerSecond
			return err
		},
		func(ctx context.Context) error {
			for time.Since(began) < o.Soak {
				if err := doOne(ctx, s.Target.(Pawl).Addr, "SNAPSHOT"); err != nil {
					return err
				}
				r.Snapshots++
			}
			return nil
		},
		func(ctx context.Context) error { return o.endLeases(ctx, s, began) },
		func(ctx context.Context) error { return o.churn(ctx, s, began) },
	} {
		wg.Go(func() {
			if err := load(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	after, err := Scrape(ctx, s.adminAddr)
	if err != nil {
		return r, err
	}
	r.Turns = turns(before, after)
	r.Seconds = time.Since(began).Seconds()
	r.LessOwnSync = times(after[EnqueueLessOwnSync].Since(before[EnqueueLessOwnSync]))
	r.LessAllSyncs = times(after[EnqueueLessAllSyncs].Since(before[EnqueueLessAllSyncs]))
	if r.Cleaned, err = scrapeSum(ctx, s.adminAddr, cleaned); err != nil {
		return r, err
	}
	r.Cleaned -= cleanedBefore
	n, err := scrapeSum(ctx, s.adminAddr, ended)
	r.Leases = int(n - endedBefore)
	return r, err
}

// leases is how many end at once in a soak.
const leases = 100_000

// endLeases takes leases that all end in the same second, and waits for it.
func (o *FootprintOptions) endLeases(ctx context.Context, s *Server, began time.Time) error {
	w, err := dial(ctx, s.Target.(Pawl).Addr)
	if err != nil {
		return err
	}
	defer w.Close()
	const (
		each  = 1000 // jobs of one FETCH
		lasts = 10 * time.Second
		rest  = 2 * time.Second
	)
	for time.Since(began)+lasts+rest <= o.Soak {
		end := time.Now().Add(lasts)
		for range leases / each {
			left := strconv.FormatInt(time.Until(end).Milliseconds(), 10)
			w.command([]byte("FETCH"), []byte("leases"), []byte(left), []byte("COUNT"), []byte(strconv.Itoa(each)))
			if err := w.Flush(); err != nil {
				return err
			}
			if err := w.skip(); err != nil {
				return err
			}
		}
		if !sleep(ctx, nil, time.Until(end)+rest) {
			return ctx.Err()
		}
	}
	return nil
}

// churn enqueues jobs of 4 KiB, of which every eighth stays for good and the others
// are purged every second: so generations die but for an eighth, and once the log
// holds twice what is alive they are cleaned.
func (o *FootprintOptions) churn(ctx context.Context, s *Server, began time.Time) error {
	w, err := dial(ctx, s.Target.(Pawl).Addr)
	if err != nil {
		return err
	}
	defer w.Close()
	const (
		batch = 64
		rest  = 25 * time.Millisecond // 10 MB/s leave the disk to the others
	)
	payload := bytes.Repeat([]byte("x"), 4<<10)
	var purged time.Time
	for {
		sent := batch
		for i := range batch {
			queue := "churn"
			if i%8 == 0 {
				queue = "churn-kept"
			}
			w.command([]byte("ENQUEUE"), []byte(queue), payload)
		}
		if time.Since(purged) >= time.Second {
			w.command([]byte("QUEUE"), []byte("PURGE"), []byte("churn"))
			purged = time.Now()
			sent++
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for range sent {
			if err := w.skip(); err != nil {
				return err
			}
		}
		if time.Since(began) >= o.Soak {
			return nil
		}
		if !sleep(ctx, nil, rest) {
			return ctx.Err()
		}
	}
}

// doOne sends one command over a connection of its own.
func doOne(ctx context.Context, addr string, command string) error {
	w, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer w.Close()
	w.command([]byte(command))
	return errors.Join(w.Flush(), w.skip())
}
