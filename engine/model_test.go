package engine_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/internal/record"
	"pawl/internal/seeds"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

var operations = flag.Int("operations", 30_000, "random commands that TestModel plays")

// Random commands and steps of time, with restarts, power losses and snapshots
// between them: the answers are those of the reference, a restart changes
// nothing, and the state is sound.
func TestModel(t *testing.T) {
	const perGame = 3000
	games := *operations / perGame
	if testing.Short() {
		games = min(games, 2)
	}
	layer := record.Note(t, "1 model")
	seen := sights{}
	for i := range games {
		name := fmt.Sprint(t.Name(), " game ", i)
		synctest.Test(t, func(t *testing.T) { play(t, name, perGame, seen) })
		layer.Cases += perGame
		if t.Failed() {
			return
		}
	}
	seen.judge(t, games*perGame >= 900_000)
}

// player sends random commands to engine and reference and compares the answers.
type player struct {
	*shop
	r      *reference
	rng    *rand.Rand
	disk   *waltest.Disk
	game   string
	ids    []state.JobID
	leases []state.LeaseID
	last   []engine.Command // the latest at the end
	silent bool             // an aborted transaction's commands have no answers
	seen   sights
}

func (p *player) answered(cmd engine.Command) bool { return cmd.Err() == nil && !p.silent }

// do notes the command for a failure's message.
func (p *player) do(cmd engine.Command) error {
	p.last = append(p.last[max(0, len(p.last)-10):], cmd)
	return p.shop.do(cmd)
}

func play(t *testing.T, game string, steps int, seen sights) {
	disk := waltest.NewDisk()
	s := &shop{t: t, fs: disk, dir: "data", opt: engine.Options{SnapshotBytes: 64 << 10}, log: wal.Options{GenerationBytes: 16 << 10}}
	s.open()
	defer func() { s.close() }()
	r := &reference{jobs: map[string]*refJob{}, queues: map[string]*refQueue{}, crons: map[string]*refCron{}, totals: map[[2]string]int64{}}
	p := &player{shop: s, r: r, rng: seeds.Rand(game), disk: disk, game: game, seen: seen}
	p.pass(0)
	for i, every := range []int64{300_000, 600_000, 3_600_000} {
		catchup := []string{"one", "none", "all"}[i]
		p.must(&engine.QueueSet{Queue: key(catchup), Settings: state.Settings{MaxLen: 1 << 40}, Which: state.SetMaxLen})
		p.must(&engine.CronSet{Cron: state.Cron{
			Namespace: "default/default", Name: catchup, Spec: fmt.Sprintf("@every %ds", every/1000), Queue: string(key(catchup)), Catchup: state.Catchup(i),
		}})
		p.r.crons[catchup] = &refCron{every: every, last: p.r.now / every, makesUp: []int64{1, 0, 1000}[i]}
	}
	for i := range steps {
		p.step()
		p.pass(0)
		if i%20 == 19 {
			p.compare()
		}
		if i%500 == 499 {
			p.restart(i)
		}
	}
	for what, n := range p.r.totals {
		p.seen["total of "+what[1]] += int(n)
	}
}

// restart stops the engine, or cuts its power, and begins again.
func (p *player) restart(step int) {
	p.t.Helper()
	if err := p.e.Check(); err != nil {
		p.fatal("step %d: %v", step, err)
	}
	if p.pick(3) == 0 {
		if err := p.e.Snapshot(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
	}
	p.counts("q0") // waits for all that was decided, also by turns
	before := p.dump()
	if p.pick(2) == 0 {
		p.seen.saw("times a restart")
		p.reopen()
	} else {
		p.seen.saw("times a power cut") // all that was answered survives the power
		old := p.e
		p.disk = p.disk.Crash(func(int) waltest.Keep { return waltest.Keep{} })
		p.fs = p.disk
		p.open()
		_ = old.Close(context.Background())
	}
	p.differ(fmt.Sprintf("step %d of %s, after the restart (%s)", step, p.game, seeds.Replay()), placeless(p.dump()), placeless(before))
	p.pass(0)
}

// placeless is a dump without what cleaning changes: the places of bodies, and
// the time of the last record.
func placeless(dump string) string {
	return strings.TrimRight(bodyPlace.ReplaceAllString(dump, ""), "\n")
}

var bodyPlace = regexp.MustCompile(`(?m)^now=[0-9]+| body=[0-9/+a-f]+|^ *generation .*$`)

func (p *player) fatal(format string, args ...any) {
	p.t.Helper()
	for _, cmd := range p.last {
		p.t.Logf("%T %+v", cmd, cmd)
	}
	p.t.Fatalf("%s: %s (%s)", p.game, fmt.Sprintf(format, args...), seeds.Replay())
}

func (p *player) pick(n int) int { return p.rng.IntN(n) }

// span is a time of up to n milliseconds, or 0.
func (p *player) span(n int) int64 { return int64(p.pick(2) * p.pick(n)) }

func (p *player) name() string { return fmt.Sprintf("q%d", p.pick(3)) }

// pass lets time go by in both, and has the reference learn how long backoffs
// came out, which are drawn.
func (p *player) pass(d time.Duration) {
	p.t.Helper()
	time.Sleep(d)
	// While a group lies unwritten or is being written, what comes is dated by it,
	// and a rate counts from then; the reference has one clock.
	synctest.Wait()
	p.turn()
	p.must(&engine.JobGet{}) // waits for what the turn has decided
	p.r.pass(time.Now().UnixMilli())
	for _, j := range p.r.jobs {
		if j.loose == 0 || j.place != "delayed" {
			continue
		}
		due := int64(p.get(j.id).DueAt)
		if due < j.loose || due > j.due {
			p.fatal("job %s comes back at %d, want %d to %d", j.id, due, j.loose, j.due)
		}
		j.due, j.loose = due, 0
	}
}

func (p *player) get(id string) engine.JobView {
	p.t.Helper()
	parsed, err := state.ParseJobID([]byte(id))
	if err != nil {
		p.t.Fatal(err)
	}
	g := &engine.JobGet{ID: parsed}
	p.must(g)
	if !g.Found {
		p.fatal("job %s is gone, want it in %+v", id, p.r.jobs[id])
	}
	if err := p.e.LoadView(&g.Job); err != nil {
		p.t.Fatal(err)
	}
	return g.Job
}

// refusals are the reference's words for the engine's errors.
var refusals = map[string]error{
	"": nil, "ttl": engine.ErrTTLShorter, "draining": engine.ErrDraining, "full": engine.ErrQueueFull, "taken": engine.ErrUniqueTaken,
	"no lease": engine.ErrNoLease, "no job": engine.ErrNoJob, "busy": engine.ErrBusyJob, "leased": engine.ErrQueueLeased,
}

func (p *player) wantErr(cmd engine.Command, refusal string) {
	p.t.Helper()
	if want := refusals[refusal]; !errors.Is(cmd.Err(), want) || want == nil && cmd.Err() != nil {
		p.fatal("%T %+v: got %v, want %v", cmd, cmd, cmd.Err(), want)
	}
}

// play carries out a command, and then what the reference does for it.
func (p *player) play(cmd engine.Command, what func(*reference) string) {
	p.t.Helper()
	_ = p.do(cmd)
	refusal := what(p.r)
	p.wantErr(cmd, refusal)
	p.seen.answer(cmd, refusal)
}

func (p *player) step() {
	switch n := p.pick(100); {
	case n < 64:
		p.play(p.command(len(p.r.jobs) > 25))
	case n < 72:
		p.transaction()
	case n < 78:
		p.operate()
	case n < 80:
		p.setUp()
	case n < 82:
		p.late()
	case n < 99:
		p.pass(time.Duration(p.pick(15)) * time.Millisecond)
	default:
		if p.pass(time.Duration(p.pick(3000)) * time.Millisecond); p.pick(10) == 0 {
			p.pass(time.Duration(p.pick(5_000_000)) * time.Millisecond)
		}
	}
}

// late lets time go by while the reaper sleeps. What has ended by then stands
// where it stood, but a lease, a key or a pause that is over is over.
func (p *player) late() {
	span := int64(p.pick(30))
	if moments := p.moments(); len(moments) > 0 && p.pick(2) == 0 {
		span = moments[p.pick(len(moments))] - p.r.now // at the very millisecond
	}
	time.Sleep(time.Duration(span) * time.Millisecond)
	synctest.Wait()
	p.r.now = time.Now().UnixMilli()
	for range 1 + p.pick(4) {
		if p.pick(3) == 0 {
			p.play(p.enqueueCommand())
		} else {
			p.play(p.leaseCommand(55 + p.pick(45)))
		}
	}
	p.seen.saw("times a command came before the reaper")
}

// moments are the times before long at which something ends.
func (p *player) moments() (all []int64) {
	for _, j := range p.r.sorted(func(*refJob) bool { return true }, (*refJob).age) {
		for _, at := range []int64{j.due, j.expires, j.keyUntil} {
			if p.r.now < at && at < p.r.now+100 {
				all = append(all, at)
			}
		}
	}
	return all
}

// command is a random one of those that a job's life is made of, and what the
// reference does for it. few keeps the number of jobs small.
func (p *player) command(few bool) (engine.Command, func(*reference) string) {
	n := p.pick(100)
	if few {
		n = 25 + n*3/4
	}
	switch {
	case n < 30:
		return p.enqueueCommand()
	case n < 55:
		return p.fetchCommand()
	}
	cmd, what := p.leaseCommand(n)
	return cmd, what
}

func (p *player) enqueueCommand() (engine.Command, func(*reference) string) {
	c := &engine.Enqueue{Payload: []byte(strings.Repeat("x", p.pick(30))), Priority: int8(p.pick(3) - 1)}
	name := p.name()
	c.Queue = key(name)
	options := map[string]int64{}
	switch p.pick(6) {
	case 0, 1:
		options["Delay"] = int64(p.pick(60))
		c.Delay = state.Millis(options["Delay"])
	case 2:
		options["At"] = p.r.now + int64(p.pick(80)) - 20
		c.At = engine.Some(state.Millis(options["At"]))
	}
	if p.pick(4) == 0 {
		options["TTL"] = p.span(200)
		c.TTL = engine.Some(state.Millis(options["TTL"]))
	}
	if p.pick(2) == 0 {
		options["Tries"] = int64(p.pick(4))
		c.Tries = engine.Some(uint16(options["Tries"]))
	}
	if p.pick(3) == 0 {
		options["Backoff"], options["BackoffMax"] = p.span(40), p.span(100)
		c.Backoff = engine.Some(engine.Backoff{Base: state.Millis(options["Backoff"]), Max: state.Millis(options["BackoffMax"])})
	}
	if p.pick(5) < 2 {
		options["For"] = int64(1 + p.pick([]int{40, 2000}[p.pick(2)]))
		c.Unique, c.For = []byte(fmt.Sprint(p.pick(6))), state.Millis(options["For"])
	}
	if p.pick(2) == 0 {
		c.Group = []byte(fmt.Sprint("g", p.pick(4)))
	}
	for i := range p.pick(10) / 7 {
		c.Attrs = append(c.Attrs, engine.Attr{Name: []byte(fmt.Sprint("a", i)), Value: []byte(fmt.Sprint(p.pick(9)))})
	}
	return c, func(r *reference) string {
		j := &refJob{
			id: c.ID.String(), slot: int64(c.ID.Slot()), queue: name, payload: string(c.Payload), group: string(c.Group), unique: string(c.Unique),
			priority: int64(c.Priority), attrs: fmt.Sprintf("%s", c.Attrs),
		}
		if p.silent {
			j.id = fmt.Sprint("none ", r.next()) // it never got one
		} else if r.jobs[j.id] != nil && !c.Duplicate && c.Err() == nil {
			p.fatal("job %v twice", c.ID)
		}
		duplicate, refusal := r.enqueue(j, options)
		if p.answered(c) && refusal == "" && (c.Duplicate != (duplicate != "") || c.Duplicate && j.id != duplicate) {
			p.fatal("enqueue: got %s, duplicate %v, want %q", j.id, c.Duplicate, duplicate)
		}
		if p.answered(c) && !c.Duplicate {
			p.ids = append(p.ids, c.ID)
		}
		for option := range options {
			p.seen.saw("Enqueue with", option)
		}
		if duplicate != "" {
			p.seen.saw("Enqueue: a duplicate of a job that is", r.jobs[duplicate].place)
		}
		return refusal
	}
}

func (p *player) fetchCommand() (engine.Command, func(*reference) string) {
	names := []string{p.name(), p.name()}
	c := &engine.Fetch{Queues: [][]byte{key(names[0]), key(names[1])}, LeaseMs: state.Millis(p.pick(100)), Count: 1 + p.pick(3)}
	return c, func(r *reference) string {
		want := r.fetch(names, int64(c.LeaseMs), c.Count)
		if len(c.Jobs) != len(want) {
			p.fatal("fetch: got %d jobs, want %d", len(c.Jobs), len(want))
		}
		undeliverable := p.pick(10) == 0
		for i, j := range want {
			d := &c.Jobs[i]
			j.lease = d.Lease.String()
			p.leases = append(p.leases, d.Lease)
			got := []any{d.ID.String(), int64(d.Attempt), int64(d.Failures), int64(d.Tries), int64(d.Priority), int64(d.Deadline)}
			if w := []any{j.id, j.attempt, j.failures, j.tries, j.priority, j.due}; !slices.Equal(got, w) {
				p.fatal("fetch: got %v, want %v", got, w)
			}
			if undeliverable {
				continue
			}
			if err := p.e.Load(d); err != nil || string(d.Payload) != j.payload || fmt.Sprintf("%s", d.Attrs) != j.attrs {
				p.fatal("payload of %s: got %q, %s, %v, want %q, %s", j.id, d.Payload, d.Attrs, err, j.payload, j.attrs)
			}
		}
		p.seen.saw(fmt.Sprintf("Fetch: %d of %d", len(want), c.Count))
		if undeliverable {
			if err := p.e.Wait(p.e.Undeliver(c.Jobs)); err != nil {
				p.t.Fatal(err)
			}
			p.seen.saw("times a reply could not be written")
			for _, j := range slices.Backward(want) {
				if r.held(j.lease) != nil {
					r.release(j)
				}
			}
		}
		return ""
	}
}

// recent is one of the last n of all, the zero value where there is none.
func recent[T any](p *player, all []T, n int) (one T) {
	if len(all) > 0 {
		one = all[max(0, len(all)-1-p.pick(n))]
	}
	return one
}

// lease is one that holds, or a late one.
func (p *player) lease() state.LeaseID {
	held := p.r.sorted(func(j *refJob) bool { return j.place == "leased" }, (*refJob).age)
	if len(held) == 0 || p.pick(3) == 0 {
		return recent(p, p.leases, 12)
	}
	id, err := state.ParseLeaseID([]byte(held[p.pick(len(held))].lease))
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// job is one that is there, or was.
func (p *player) job() state.JobID {
	jobs := p.r.sorted(func(j *refJob) bool { return j.place != "gone" }, (*refJob).age)
	if len(jobs) == 0 || p.pick(3) == 0 {
		return recent(p, p.ids, 30)
	}
	id, err := state.ParseJobID([]byte(jobs[p.pick(len(jobs))].id))
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (j *refJob) age() []int64 { return []int64{j.slot} }

// leaseCommand is a command on a lease or job, those that take part in
// transactions.
func (p *player) leaseCommand(n int) (engine.Command, func(*reference) string) {
	lease := p.lease()
	// on does something to the job of the lease, if it holds.
	on := func(do func(*reference, *refJob)) func(*reference) string {
		return func(r *reference) string {
			j := r.held(lease.String())
			if j == nil {
				return "no lease"
			}
			do(r, j)
			return ""
		}
	}
	switch {
	case n < 70:
		if p.pick(4) > 0 {
			return &engine.Ack{Leases: []state.LeaseID{lease}}, on(func(r *reference, j *refJob) { r.end(j, "gone", "Acked") })
		}
		c := &engine.Ack{Leases: []state.LeaseID{lease, p.lease(), lease}}
		return c, func(r *reference) string {
			for i, lease := range c.Leases {
				j := r.held(lease.String())
				if j != nil {
					r.end(j, "gone", "Acked")
				}
				p.seen.saw("Ack of several:", fmt.Sprint(j != nil))
				if p.answered(c) && len(c.Done) == 3 && c.Done[i] != (j != nil) {
					p.fatal("ack: got %v for the lease %d, want %v", c.Done, i, j != nil)
				}
			}
			return ""
		}
	case n < 81:
		c, delay := &engine.Nack{Lease: lease}, int64(-1)
		if p.pick(2) == 0 {
			delay = p.span(50)
			c.Delay = engine.Some(state.Millis(delay))
		}
		if p.pick(2) == 0 {
			c.Reason = []byte(fmt.Sprint("why", p.pick(3)))
		}
		return c, on(func(r *reference, j *refJob) {
			r.fail(j, "Nacked", delay, string(c.Reason))
			p.seen.saw("Nack: then", j.place)
		})
	case n < 87:
		return &engine.Release{Lease: lease}, on((*reference).release)
	case n < 90:
		return &engine.Bury{Lease: lease, Reason: []byte("no")}, on(func(r *reference, j *refJob) {
			r.count(j, "Buried")
			r.end(j, "dead", "Dead")
			j.reason = "no"
		})
	case n < 94:
		c := &engine.Extend{Lease: lease, LeaseMs: state.Millis(p.span(100))}
		return c, on(func(r *reference, j *refJob) {
			if j.due = r.now + int64(c.LeaseMs); p.answered(c) && int64(c.Deadline) != j.due {
				p.fatal("extend: got %d, want %d", c.Deadline, j.due)
			}
		})
	}
	c := &engine.JobDelete{IDs: []state.JobID{p.job(), p.job()}}
	return c, func(r *reference) string {
		n := 0
		for _, id := range c.IDs {
			if j := r.jobs[id.String()]; j != nil && j.place != "gone" {
				r.end(j, "gone", "Deleted")
				n++
			}
		}
		if p.answered(c) && c.Deleted != n {
			p.fatal("delete: got %d, want %d", c.Deleted, n)
		}
		return ""
	}
}

// copy is what a transaction is tried on.
func (r *reference) copy() *reference {
	c := *r
	c.jobs, c.queues, c.totals = maps.Clone(r.jobs), maps.Clone(r.queues), maps.Clone(r.totals)
	for id, j := range r.jobs {
		c.jobs[id] = new(*j)
	}
	for name, q := range r.queues {
		c.queues[name] = new(*q)
	}
	return &c
}

// transaction plays some commands at once. The reference tries them on a copy.
func (p *player) transaction() {
	m := &engine.Multi{}
	var whats []func(*reference) string
	for range 1 + p.pick(4) {
		var cmd engine.Command
		var what func(*reference) string
		if p.pick(3) == 0 && len(p.r.jobs) < 30 {
			cmd, what = p.enqueueCommand()
		} else {
			cmd, what = p.leaseCommand(55 + p.pick(45))
		}
		m.Commands, whats = append(m.Commands, cmd), append(whats, what)
	}
	_ = p.do(m)
	tried := p.r.copy()
	p.silent = m.Err() != nil
	defer func() { p.silent = false }()
	for i, what := range whats {
		refusal := what(tried)
		p.seen.answer(m.Commands[i], refusal, "in EXEC")
		if refusal != "" {
			p.seen.saw("Multi: aborted")
			abort, ok := errors.AsType[*engine.AbortError](m.Err())
			if !ok || abort.Index != i || abort.Err != refusals[refusal] {
				p.fatal("transaction: got %v, want command %d: %v", m.Err(), i+1, refusals[refusal])
			}
			return
		}
	}
	if m.Err() != nil {
		p.fatal("transaction: got %v, want it done", m.Err())
	}
	p.r = tried
	p.seen.saw("Multi: of", fmt.Sprint(len(whats)))
}

// operate is a random command of an operator on jobs.
func (p *player) operate() {
	if n := p.pick(10); n < 7 {
		p.edit(n)
		return
	} else if n < 9 {
		p.redrive()
		return
	}
	name, place := p.name(), []string{"ready", "delayed", "dead"}[p.pick(3)]
	c := &engine.QueuePurge{Queue: key(name), Places: []state.Place{places[place]}}
	if err := p.e.Purge(p.t.Context(), c); err != nil {
		p.t.Fatal(err)
	}
	all := p.r.in(name, place)
	for _, j := range all {
		p.r.end(j, "gone", "Deleted")
	}
	p.seen.saw("Purge of", place, few(len(all)))
	if c.Removed != int64(len(all)) {
		p.fatal("purge of %s: got %d, want %d", place, c.Removed, len(all))
	}
}

var edits = map[engine.EditKind]string{
	engine.EditRun: "JobRun", engine.EditDelay: "JobDelay", engine.EditPriority: "JobPriority", engine.EditPayload: "JobPayload", engine.EditMove: "JobMove",
}

var places = map[string]state.Place{"ready": state.Ready, "delayed": state.Delayed, "leased": state.Leased, "dead": state.Dead}

func (p *player) edit(n int) {
	id, to := p.job(), p.name()
	c := &engine.JobEdit{ID: id, Delay: state.Millis(p.span(100)), Priority: int8(p.pick(3) - 1), Payload: []byte(strings.Repeat("y", p.pick(40))), Queue: key(to)}
	do := func(r *reference, j *refJob) string { return r.delay(j, 0) }
	c.Kind = engine.EditRun
	switch n {
	case 1, 2:
		c.Kind = engine.EditDelay
		do = func(r *reference, j *refJob) string { return r.delay(j, int64(c.Delay)) }
	case 3:
		c.Kind = engine.EditPriority
		do = func(r *reference, j *refJob) string { r.setPriority(j, int64(c.Priority)); return "" }
	case 4:
		c.Kind = engine.EditPayload
		do = func(r *reference, j *refJob) string {
			if more := len(c.Payload) - len(j.payload); j.lives() && more > 0 && r.full(j.queue, 0, more) {
				return "full"
			}
			j.payload = string(c.Payload)
			return ""
		}
	case 5, 6:
		c.Kind = engine.EditMove
		do = func(r *reference, j *refJob) string { return r.move(j, to) }
	}
	p.play(c, func(r *reference) string {
		switch j := r.jobs[id.String()]; {
		case j == nil, j.place == "gone":
			return "no job"
		case j.place == "leased":
			return "busy"
		default:
			was := j.place
			refusal := do(r, j)
			p.seen.saw(fmt.Sprintf("%s of a job that is %s: %s", edits[c.Kind], was, cmp.Or(refusal, "OK")))
			return refusal
		}
	})
}

func (p *player) redrive() {
	from, to := p.name(), p.name()
	c := &engine.QueueRedrive{Queue: key(from), To: key(to), Count: int64(p.pick(4))}
	options := map[string]int64{}
	if p.pick(2) == 0 {
		options["Tries"] = int64(p.pick(3))
		c.Tries = engine.Some(uint16(options["Tries"]))
	}
	if p.pick(3) == 0 {
		options["TTL"] = int64(1 + p.pick(200))
		c.TTL = engine.Some(state.Millis(options["TTL"]))
	}
	if err := p.e.Redrive(p.t.Context(), c); err != nil {
		p.t.Fatal(err)
	}
	moved, refusal := p.r.redrive(from, to, int(c.Count), options)
	p.wantErr(c, refusal)
	p.seen.answer(c, refusal, few(moved))
	if c.Moved != int64(moved) {
		p.fatal("redrive: got %d, want %d", c.Moved, moved)
	}
}

// settings are those of a queue, and below what they are drawn.
var settings = []struct {
	field string
	which state.SettingSet
	most  int
}{
	{"Tries", state.SetTries, 4}, {"TTL", state.SetTTL, 100}, {"Backoff", state.SetBackoff, 40}, {"BackoffMax", state.SetBackoff, 100},
	{"MaxLen", state.SetMaxLen, 12}, {"MaxBytes", state.SetMaxBytes, 200}, {"MaxLeased", state.SetMaxLeased, 4},
	{"RateCount", state.SetRate, 5}, {"RatePer", state.SetRate, 60}, {"DeadMax", state.SetDeadMax, 4}, {"DeadFor", state.SetDeadFor, 300},
}

// setUp is a random command on a queue.
func (p *player) setUp() {
	name := p.name()
	switch n := p.pick(12); {
	case n < 2:
		c := &engine.QueuePause{Queue: key(name), For: state.Millis(p.span(80))}
		p.play(c, func(r *reference) string {
			r.use(name).paused = r.now + cmp.Or(int64(c.For), never)
			return ""
		})
	case n < 5:
		p.play(&engine.QueueResume{Queue: key(name)}, func(r *reference) string {
			if q := r.queues[name]; q != nil {
				q.paused = 0
			}
			return ""
		})
	case n < 8:
		c := &engine.QueueSet{Queue: key(name), Which: state.SettingSet(p.rng.Uint32()) & (2*state.SetDeadFor - 1)}
		given := map[string]int64{}
		for _, s := range settings {
			v := int64(p.pick(3) / 2 * p.pick(s.most))
			if s.field == "RatePer" && c.Settings.RateCount == 0 {
				v = 0
			}
			if to := reflect.ValueOf(&c.Settings).Elem().FieldByName(s.field); to.CanInt() {
				to.SetInt(v)
			} else {
				to.SetUint(uint64(v))
			}
			if c.Which&s.which != 0 {
				given[s.field] = v
			}
		}
		p.play(c, func(r *reference) string { r.set(name, given); return "" })
	case n < 10:
		p.play(&engine.QueueReset{Queue: key(name)}, func(r *reference) string {
			if q := r.queues[name]; q != nil && len(q.settings) > 0 {
				q.settings, q.rateFrom, q.rateUsed = map[string]int64{}, 0, 0
			}
			return ""
		})
	case n < 11:
		c := &engine.QueueDelete{Queue: key(name)}
		p.play(c, func(r *reference) string {
			if c.Found != (r.queues[name] != nil) {
				p.fatal("delete of a queue: got %v", c.Found)
			}
			p.seen.saw("QueueDelete: found", fmt.Sprint(c.Found))
			if len(r.in(name, "leased")) > 0 {
				return "leased"
			}
			r.delete(name)
			return ""
		})
	default:
		c := &engine.Drain{On: !p.r.draining && p.pick(3) == 0}
		p.play(c, func(r *reference) string { r.draining = c.On; return "" })
	}
}

// compare looks at everything.
func (p *player) compare() {
	p.t.Helper()
	list := &engine.QueueList{Pool: state.DefaultPool, Match: []byte("q*")}
	p.must(list)
	if len(list.Keys) != len(p.r.queues) {
		p.fatal("queues: got %v, want %v", list.Keys, p.r.queues)
	}
	for name := range p.r.queues {
		p.compareQueue(name)
	}
	for name, c := range p.r.crons {
		info := &engine.QueueInfo{Queue: key(name)}
		if p.must(info); int64(info.Info.Totals.Enqueued) != c.fired {
			p.fatal("cron %s fired %d times, want %d", name, info.Info.Totals.Enqueued, c.fired)
		}
	}
}

func (p *player) compareQueue(name string) {
	p.t.Helper()
	info := &engine.QueueInfo{Queue: key(name)}
	p.must(info)
	v := reflect.ValueOf(info.Info.Totals)
	for i := range v.NumField() {
		if what := v.Type().Field(i).Name; int64(v.Field(i).Uint()) != p.r.totals[[2]string{name, what}] {
			p.fatal("%s of %s: got %d, want %d", what, name, v.Field(i).Uint(), p.r.totals[[2]string{name, what}])
		}
	}
	bytes := 0
	for _, j := range p.r.jobs {
		if j.queue == name && j.lives() {
			bytes += len(j.payload)
		}
	}
	if info.Info.Bytes != int64(bytes) || info.Info.Paused != (p.r.queues[name].paused > p.r.now) {
		p.fatal("%s: got %+v, want %d bytes, %+v", name, info.Info, bytes, p.r.queues[name])
	}
	for place, number := range places {
		var got []string
		peek := &engine.QueuePeek{Queue: key(name), Place: number, Count: 1 + p.pick(20)}
		for {
			p.must(peek)
			for i := range peek.Jobs {
				got = append(got, peek.Jobs[i].ID.String())
				p.e.ForgetView(&peek.Jobs[i])
			}
			if peek.Next == nil {
				break
			}
			peek.After = peek.Next
		}
		var want []string
		for _, j := range p.r.in(name, place) {
			want = append(want, j.id)
		}
		if !slices.Equal(got, want) {
			p.fatal("%s in %s: got %v, want %v", place, name, got, want)
		}
		if len(want) > 0 {
			p.compareJob(p.r.jobs[want[p.pick(len(want))]])
		}
	}
}

func (p *player) compareJob(j *refJob) {
	p.t.Helper()
	v := p.get(j.id)
	got := []any{
		string(v.Payload), v.Place, int64(v.Priority), int64(v.Attempt), int64(v.Failures), int64(v.Tries), int64(v.Backoff.Base), int64(v.Backoff.Max),
		cmp.Or(int64(v.DueAt), int64(v.Deadline), never), cmp.Or(int64(v.ExpiresAt), never), v.Reason, string(v.Unique), string(v.Group),
	}
	want := []any{
		j.payload, places[j.place], j.priority, j.attempt, j.failures, j.tries, j.backoff, j.most,
		min(j.due, j.wall), min(j.expires, never), j.reason, j.unique, j.group,
	}
	if !slices.Equal(got, want) {
		p.fatal("job %s: got %v, want %v", j.id, got, want)
	}
}
