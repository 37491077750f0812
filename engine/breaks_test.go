package engine_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/internal/seeds"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// Commands of many, and many commands at once, let others in again and again. Where the
// others do nothing, that is not to be seen: random commands get the same answers and
// leave the same state whether there are no breaks, or one after every 16, 32, 48 or 80
// jobs, or at random, and whether they may wait or not.
func TestBreaksChangeNothing(t *testing.T) {
	games := 8
	if testing.Short() {
		games = 1
	}
	empty := waltest.NewDisk() // of one store, for its secret is in what keys are hashed to
	synctest.Test(t, func(t *testing.T) { storeOn(t, empty).close() })
	for i := range games {
		name := fmt.Sprint(t.Name(), " game ", i)
		whole := playInBreaks(t, empty, name, func() bool { return false }, false)
		for _, every := range []int{0, 1, 2, 3, 5} {
			for _, try := range []bool{false, true} {
				looks, rng := 0, seeds.Rand(fmt.Sprint(name, every))
				broken := playInBreaks(t, empty, name, func() bool {
					looks++
					return every == 0 && rng.IntN(2) == 0 || every != 0 && looks%every == 0
				}, try)
				for step := range max(len(whole), len(broken)) {
					if step >= len(whole) || step >= len(broken) || whole[step] != broken[step] {
						t.Fatalf("%s, step %d, a break at every %d looks (0 is at random), TrySubmit %t: got\n%s\nwithout breaks\n%s\n(%s)",
							name, step, every, try, lineOf(broken, step), lineOf(whole, step), seeds.Replay())
					}
				}
			}
		}
	}
}

func lineOf(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return "nothing"
}

// breaker sends random commands, and writes down their answers. It draws the same as
// long as the answers are the same.
type breaker struct {
	*shop
	rng    *rand.Rand
	try    bool
	ids    []state.JobID
	leases []state.LeaseID
}

// playInBreaks plays one game, where over says of every look at the clock whether the
// stay has been long enough, and gives answers and states.
func playInBreaks(t *testing.T, empty *waltest.Disk, game string, over func() bool, try bool) (said []string) {
	synctest.Test(t, func(t *testing.T) {
		p := &breaker{shop: storeOn(t, empty.Kill()), rng: seeds.Rand(game), try: try}
		defer func() { p.close() }()
		for step := range 40 {
			p.e.Elapse(func(time.Time) time.Duration {
				if over() {
					return time.Second
				}
				return 0
			})
			said = append(said, p.submit(p.commands()))
			p.e.Elapse(nil)
			if step%4 == 3 {
				said = append(said, leaseNonce.ReplaceAllString(placeless(p.dump()), ""))
			}
			p.sleepOrNot()
		}
		if err := p.e.Check(); err != nil {
			t.Fatal(err)
		}
		before := p.dump()
		p.reopen()
		p.differ("after a restart of "+game, placeless(p.dump()), placeless(before))
	})
	return said
}

// storeOn opens an engine on a disk.
func storeOn(t *testing.T, disk *waltest.Disk) *shop {
	s := &shop{t: t, fs: disk, dir: "data", log: wal.Options{GenerationBytes: 256 << 10}}
	s.open()
	return s
}

// leaseNonce is drawn anew by each engine.
var leaseNonce = regexp.MustCompile(` lease=[0-9a-f]+`)

// sleepOrNot lets time go by, with or without a turn of the reaper behind it: a FETCH
// also meets what nobody has ended yet.
func (p *breaker) sleepOrNot() {
	if p.rng.IntN(2) == 0 {
		time.Sleep(time.Duration(p.rng.IntN(40)) * time.Millisecond)
	}
	synctest.Wait()
	if p.rng.IntN(2) == 0 {
		p.turn()
	}
	p.must(&engine.Stats{Queue: key("q0")}) // waits for what the turn has decided
}

// submit has cmds decided, at once or as far as may be without a wait, and then the
// rest, and gives their answers.
func (p *breaker) submit(cmds []engine.Command) string {
	rest := cmds
	for p.try && len(rest) > 0 {
		lsn, decided := p.e.TrySubmit(rest...)
		if err := p.e.Wait(lsn); err != nil {
			p.t.Fatal(err)
		}
		if decided == 0 {
			break
		}
		rest = rest[decided:]
	}
	if err := p.e.Do(rest...); err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	for _, cmd := range cmds {
		p.answer(&b, cmd)
	}
	return b.String()
}

// answer writes what a command says, and keeps what later ones are about.
func (p *breaker) answer(b *strings.Builder, cmd engine.Command) {
	fmt.Fprintf(b, "%T %v", cmd, cmd.Err())
	switch c := cmd.(type) {
	case *engine.Enqueue:
		fmt.Fprint(b, " ", c.ID, c.Duplicate)
		p.ids = append(p.ids, c.ID)
	case *engine.Fetch:
		for i := range c.Jobs {
			d := &c.Jobs[i]
			fmt.Fprint(b, " ", d.ID, d.Attempt, d.Failures, d.Deadline)
			p.leases = append(p.leases, d.Lease)
			p.e.Forget(d)
		}
	case *engine.Ack:
		fmt.Fprint(b, c.Done)
	case *engine.JobDelete:
		fmt.Fprint(b, " ", c.Deleted)
	case *engine.Multi:
		for _, cmd := range c.Commands {
			if c.Err() == nil {
				p.answer(b, cmd)
			}
		}
	}
	b.WriteByte('\n')
}

// commands are those of one pipeline: some of many, or many, or both.
func (p *breaker) commands() (cmds []engine.Command) {
	for range 1 + p.rng.IntN(3) {
		switch p.rng.IntN(8) {
		case 0, 1:
			for range p.rng.IntN(150) {
				cmds = append(cmds, p.enqueue())
			}
		case 2, 3:
			cmds = append(cmds, &engine.Fetch{
				Queues: [][]byte{p.queue(), p.queue()}, LeaseMs: state.Millis(p.rng.IntN(200)), Count: 1 + p.rng.IntN(200),
			})
		case 4:
			cmds = append(cmds, p.ack(p.rng.IntN(200)))
		case 5:
			cmds = append(cmds, p.jobDelete(p.rng.IntN(100)))
		case 6:
			for range p.rng.IntN(60) {
				cmds = append(cmds, p.giveBack())
			}
		case 7:
			m := &engine.Multi{}
			for range 1 + p.rng.IntN(40) {
				m.Commands = append(m.Commands, p.enqueue())
			}
			m.Commands = append(m.Commands, p.ack(50), p.jobDelete(50))
			cmds = append(cmds, m)
		}
	}
	return cmds
}

func (p *breaker) queue() []byte { return key(fmt.Sprint("q", p.rng.IntN(3))) }

func (p *breaker) enqueue() engine.Command {
	c := &engine.Enqueue{Queue: p.queue(), Payload: make([]byte, p.rng.IntN(100)), Priority: int8(p.rng.IntN(3))}
	switch p.rng.IntN(6) {
	case 0:
		c.Delay = state.Millis(p.rng.IntN(50))
	case 1:
		c.TTL = engine.Some(state.Millis(1 + p.rng.IntN(50)))
	case 2:
		c.Group = []byte(fmt.Sprint("g", p.rng.IntN(4)))
	case 3:
		c.Unique = []byte(fmt.Sprint("u", p.rng.IntN(20)))
	}
	return c
}

// ack is of at least two leases, some of which hold; one may be named twice.
func (p *breaker) ack(more int) *engine.Ack {
	c := &engine.Ack{}
	for range 2 + more {
		c.Leases = append(c.Leases, p.lease())
	}
	return c
}

func (p *breaker) lease() state.LeaseID {
	if len(p.leases) == 0 {
		return state.LeaseID{}
	}
	return p.leases[max(0, len(p.leases)-1-p.rng.IntN(300))]
}

func (p *breaker) jobDelete(n int) *engine.JobDelete {
	c := &engine.JobDelete{}
	for range n {
		if len(p.ids) > 0 {
			c.IDs = append(c.IDs, p.ids[max(0, len(p.ids)-1-p.rng.IntN(400))])
		}
	}
	return c
}

// giveBack ends a lease in one of the other ways. There is no backoff: it is drawn.
func (p *breaker) giveBack() engine.Command {
	switch p.rng.IntN(3) {
	case 0:
		return &engine.Nack{Lease: p.lease(), Delay: engine.Some(state.Millis(p.rng.IntN(50)))}
	case 1:
		return &engine.Release{Lease: p.lease()}
	}
	return &engine.Bury{Lease: p.lease()}
}
