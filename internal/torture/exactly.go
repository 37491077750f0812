//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"pawl/internal/torture/history"
	"pawl/internal/torture/workload"
)

// runUnique: jobs with unique keys, resent by clients whose connections are cut
// between request and answer, while the daemon is killed. Exactly one job a key.
func runUnique(ctx context.Context, args []string) error {
	l := newLab("unique", args)
	keys := l.flags.Int("keys", 10000, "jobs, each with a key of its own")
	clients := l.flags.Int("clients", 16, "clients")
	longest := l.flags.Duration("longest", 400*time.Millisecond, "longest life of the daemon")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	crew := workload.New(workload.Options{Seed: l.seed, Clients: *clients, Plain: true}, sup, l.rec)

	type result struct {
		sent int
		err  error
	}
	finished := make(chan result, 1)
	go func() {
		sent, err := crew.EnqueueOnce(ctx, *keys)
		finished <- result{sent, err}
	}()
	faults, done := 0, result{sent: -1}
	for done.sent < 0 {
		if err := l.start(ctx, sup); err != nil {
			return err
		}
		select {
		case done = <-finished:
			continue
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(l.between(20*time.Millisecond, *longest)):
		}
		if err := sup.Kill(); err != nil {
			return err
		}
		faults++
	}
	if done.err != nil {
		return done.err
	}
	if err := l.end(ctx, sup, crew); err != nil {
		return err
	}
	if there := drainedJobs(l.rec.History()); there != *keys {
		return l.broken("%d keys made %d jobs", *keys, there)
	}
	fmt.Printf("unique: %d keys, %d requests\n", *keys, done.sent)
	return l.judge(faults)
}

// runMulti: tokens are passed on by "acknowledge this and enqueue that" in one
// transaction, while the daemon is killed. As many at the end as at the start.
func runMulti(ctx context.Context, args []string) error {
	l := newLab("multi", args)
	kills := l.flags.Int("kills", 20, "how often the daemon is killed")
	tokens := l.flags.Int("tokens", 200, "tokens")
	clients := l.flags.Int("clients", 16, "clients")
	longest := l.flags.Duration("longest", 300*time.Millisecond, "longest life of the daemon")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	crew := workload.New(workload.Options{Seed: l.seed, Clients: *clients, Queues: 4, Plain: true, Lease: 500 * time.Millisecond}, sup, l.rec)
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	if err := crew.Place(ctx, *tokens); err != nil {
		return err
	}
	passing, stop := context.WithCancel(ctx)
	defer stop()
	idle := make(chan struct{})
	go func() {
		crew.PassOn(passing)
		close(idle)
	}()
	kill := func() error {
		for range *kills {
			if err := sleep(ctx, l.between(20*time.Millisecond, *longest)); err != nil {
				return err
			}
			if err := sup.Kill(); err != nil {
				return err
			}
			if err := l.start(ctx, sup); err != nil {
				return err
			}
		}
		return nil
	}
	err = kill()
	stop()
	<-idle
	if err != nil {
		return err
	}
	if err := l.end(ctx, sup, crew); err != nil {
		return err
	}
	if there := drainedJobs(l.rec.History()); there != *tokens {
		return l.broken("%d tokens became %d", *tokens, there)
	}
	return l.judge(*kills)
}

// drainedJobs counts the different jobs that the drain found.
func drainedJobs(h history.History) int {
	drain := history.Time(-1)
	for _, e := range h.Events {
		if e.Kind == history.Drain {
			drain = e.At
		}
	}
	jobs := map[string]bool{}
	for _, op := range h.Ops {
		if op.Kind == history.Fetch && op.Outcome == history.OK && drain >= 0 && op.Call > drain {
			for _, g := range op.Grants {
				jobs[g.Job] = true
			}
		}
	}
	return len(jobs)
}
