//go:build linux

package main

import (
	"context"
	"time"

	"pawl/internal/record"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/history"
	"pawl/internal/torture/workload"
)

// campaign is faults, one after the other, under a crew of clients that work.
//
// A long one is judged in parts, so that the history of a part stays small
// enough for memory and judge: after every [partOps] operations the crew stops,
// all queues are drained, and the verdict is added up. The store goes on. The
// next part has queues of its own, and what was left of the old ones, dead
// letters, must stand still from then on; task and lease IDs must be new over
// all parts.
type campaign struct {
	*lab
	sup   *daemon.Supervisor
	crew  workload.Options // but for Seed, First and Part
	count int              // strikes, at most
	until time.Time        // the last strike begins before this; zero is no limit
	// strike does one fault and adds what took place to lab.fired. It starts
	// the daemon if it needs one.
	strike func(ctx context.Context) error
	// calm, if not nil, ends what strike left behind, before the daemon is
	// started for the drain.
	calm func(ctx context.Context) error
}

// partOps is how many operations are judged together: a few seconds of a core,
// and some hundred megabytes.
const partOps = 150_000

// run plays the campaign and puts it on record.
func (c *campaign) run(ctx context.Context) error {
	var total history.Report
	var crews []*workload.Crew
	var left []history.Op // of old queues, the last look at the counters
	for struck, part := 0, 0; part == 0 || c.more(struck); part++ {
		opt := c.crew
		opt.Seed, opt.Part = c.seed, part
		crew := workload.New(opt, c.sup, c.rec)
		err := withCrew(ctx, crew, func() error {
			for ops := 0; c.more(struck) && ops < partOps; ops, _ = c.rec.Count() {
				if err := c.strike(ctx); err != nil {
					return err
				}
				struck++
			}
			if c.calm != nil {
				if err := c.calm(ctx); err != nil {
					return err
				}
			}
			return c.running(ctx, c.sup)
		})
		if err != nil {
			return err
		}
		if err := c.end(ctx, c.sup, crew, crews...); err != nil {
			return err
		}
		h := c.rec.History()
		h.Ops = append(h.Ops, left...)
		report, err := c.verdict(h)
		if err != nil {
			return err
		}
		total.Add(report)
		left, crews = history.LastLooks(h), append(crews, crew)
		c.rec.Forget()
	}
	return c.account(record.Run{Cases: total.Ops, Faults: int(c.fired.Load()), Undecided: total.Undecided}, total.String())
}

func (c *campaign) more(struck int) bool {
	return struck < c.count && (c.until.IsZero() || time.Now().Before(c.until))
}
