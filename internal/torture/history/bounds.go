package history

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// exitCodes are those the manual lists (sysexits.h): clean, usage, damaged,
// cannot create, I/O error, locked, permission, configuration.
var exitCodes = []int{0, 64, 65, 73, 74, 75, 77, 78}

// checkExits: R1.
func (c *checker) checkExits() {
	for i, e := range c.events {
		if e.Kind != Exited {
			continue
		}
		asked := slices.ContainsFunc(c.events[:i], func(b Event) bool {
			return b.Incarnation == e.Incarnation && (b.Kind == Terminate || b.Kind == SyncFailed)
		})
		switch {
		case !slices.Contains(exitCodes, e.Code):
			c.report("R1", "incarnation %d exited with %d, which means nothing: %s", e.Incarnation, e.Code, e.Text)
		case strings.Contains(e.Text, "panic:") || strings.Contains(e.Text, "goroutine "):
			c.report("R1", "incarnation %d left a stack trace: %s", e.Incarnation, e.Text)
		case e.Code != 0 && strings.TrimSpace(e.Text) == "":
			c.report("R1", "incarnation %d exited with %d and did not say why", e.Incarnation, e.Code)
		case !asked:
			c.report("R1", "incarnation %d exited with %d, and nobody had asked it to: %s", e.Incarnation, e.Code, e.Text)
		}
	}
}

const second = time.Second

// checkBounds: L1 to L8.
func (c *checker) checkBounds() {
	for i, e := range c.events {
		next := func(kind EventKind) (Time, bool) {
			for _, later := range c.events[i+1:] {
				if later.Kind == kind && later.Incarnation == e.Incarnation {
					return later.At, true
				}
			}
			return 0, false
		}
		switch e.Kind {
		case Start:
			// Limit may hold the allowance for the size of the store, in nanoseconds.
			if at, ok := next(Ready); ok && at-e.At > second+time.Duration(e.Limit) {
				c.report("L1", "incarnation %d was ready after %v", e.Incarnation, at-e.At)
			}
		case Terminate:
			exit := slices.IndexFunc(c.events, func(x Event) bool { return x.Kind == Exited && x.Incarnation == e.Incarnation })
			if exit < 0 || c.events[exit].At-e.At > 10*second || c.events[exit].Code != 0 {
				c.report("L6", "incarnation %d did not end with 0 within 10 s of SIGTERM", e.Incarnation)
			}
		case Healed:
			for _, op := range c.ops {
				if op.Incarnation == e.Incarnation && op.Kind == Enqueue && op.Outcome == No && op.Call > e.At+5*second {
					c.report("L4", "an enqueue %v after the fault was healed was refused: %s", op.Call-e.At, op.Error)
					break
				}
			}
		case Disk:
			if e.Limit > 0 && e.Bytes > e.Limit {
				c.report("L5", "the directory holds %d bytes at %v, the formula allows %d", e.Bytes, e.At, e.Limit)
			}
		}
	}
	for _, op := range c.ops {
		if op.Outcome == Unknown {
			continue
		}
		if op.Return-op.Call > op.Wait+second {
			c.report("L7", "a client's %s took %v", op.Kind, op.Return-op.Call)
		}
		for _, g := range op.Grants {
			j := c.byName[g.Nonce]
			if op.Wait == 0 || j == nil || len(j.enqueues) != 1 || len(j.grants) != 1 {
				continue
			}
			if e := j.enqueues[0]; op.Return-max(op.Call, e.Return+e.Delay) > second {
				c.report("L3", "a waiting fetch got job %016x %v after both were there", g.Nonce, op.Return-max(op.Call, e.Return+e.Delay))
			}
		}
	}
	c.checkRedelivery()
	if c.drain != never && !c.done {
		c.report("L8", "the backlog did not drain")
	}
}

// reaperGrace is how long after its end a lease may be unnoticed: L2.
const reaperGrace = 2 * second

// checkRedelivery: L2. A fetch that found nothing although a lease was long
// over and its job came back only later.
func (c *checker) checkRedelivery() {
	empties := map[string][]*Op{}
	for _, op := range c.ops {
		if op.Kind == Fetch && op.Outcome == OK && len(op.Grants) == 0 {
			empties[op.Queue] = append(empties[op.Queue], op)
		}
	}
	for _, j := range c.jobs {
		if len(j.enqueues) != 1 || j.enqueues[0].Backoff {
			continue
		}
		for i := 1; i < len(j.grants); i++ {
			a, b := j.grants[i-1], j.grants[i]
			if j.given(a, b.ret()) {
				continue
			}
			over := c.latestEnd(j, a)
			if over == never {
				continue
			}
			over += reaperGrace
			found := empties[j.enqueues[0].Queue] // by call
			first, _ := slices.BinarySearchFunc(found, over, func(op *Op, t Time) int { return cmp.Compare(op.Call, t+1) })
			for _, f := range found[first:] {
				if f.Call >= b.call() {
					break
				}
				if f.Return < b.call() && !c.perhapsLeased(j.enqueues[0].Queue, f.Call, f.Return) {
					c.report("L2", "the lease of job %016x was over by %v, but a fetch called at %v found nothing", j.nonce, over, f.Call)
					break
				}
			}
		}
	}
}
