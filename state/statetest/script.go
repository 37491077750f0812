package statetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pawl/state"
)

// Scripts runs the scripts that match glob, each against a state of its own. A
// script is blocks of commands, one a line, a line of four dashes, what they
// answer, and a blank line. Lines that begin with # are comments. With update
// the answers are rewritten, to be reviewed as a diff.
//
// A command is a word, then names, then options as key=value; at=N with any of
// them first moves the time to N. Queues are made when they are first named;
// jobs are numbered, or named by id=. After each command the state is checked,
// and at the end the records are replayed. Commands are what a simple engine
// would do; see the methods of script.
func Scripts(t *testing.T, glob string, update bool) {
	paths, err := filepath.Glob(glob)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts match %s: %v", glob, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			old, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(old))
			if update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(old) {
				t.Errorf("%s: got\n%s", path, difference(string(old), got))
			}
		})
	}
}

// difference shows the first lines that differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d:\n%s\nwant\n%s", i+1,
				strings.Join(g[i:min(i+5, len(g))], "\n"), strings.Join(w[min(i, len(w)):min(i+5, len(w))], "\n"))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// runScript is the script with the answers it gets.
func runScript(t *testing.T, text string) string {
	s := &script{t: t, s: state.New(), ids: map[string]state.JobID{}, names: map[state.JobID]string{}}
	var out strings.Builder
	inAnswer := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "----":
			inAnswer = true
			out.WriteString("----\n")
			out.WriteString(s.out.String())
			s.out.Reset()
		case inAnswer && line != "":
		case line == "" || line[0] == '#':
			inAnswer = false
			out.WriteString(line + "\n")
		default:
			out.WriteString(line + "\n")
			s.run(line)
		}
	}
	s.replay()
	return out.String()
}

type script struct {
	t     *testing.T
	s     *state.State
	now   state.Millis
	out   strings.Builder
	ids   map[string]state.JobID
	names map[state.JobID]string
	log   []entry
	nonce byte

	line string
	args []string
	opts map[string]string
	used map[string]bool
}

func (s *script) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) run(line string) {
	s.line, s.args, s.opts, s.used = line, nil, map[string]string{}, map[string]bool{}
	for _, word := range strings.Fields(line) {
		if key, value, ok := strings.Cut(word, "="); ok {
			s.opts[key] = value
		} else {
			s.args = append(s.args, word)
		}
	}
	s.now = s.millis("at", s.now)
	commands := map[string]func(){
		"enqueue": s.enqueue, "lease": s.lease, "ack": s.ack, "nack": s.nack, "release": s.release, "extend": s.extend,
		"bury": s.bury, "due": s.due, "delete": s.delete, "lapse": s.lapse, "run": s.runJob, "delay": s.delay,
		"priority": s.priority, "payload": s.payload, "move": s.move, "redrive": s.redrive, "carry": s.carry,
		"set": s.set, "pause": s.pause, "resume": s.resume, "touch": s.touch, "forget": s.forget,
		"cron": s.cron, "uncron": s.uncron, "meta": s.meta, "unmeta": s.unmeta, "drain": s.drain, "clock": s.clock, "secret": s.secret, "time": s.time,
		"job": s.job, "info": s.info, "page": s.page, "dump": s.dump, "earliest": s.earliest, "unique": s.unique,
	}
	f := commands[s.args[0]]
	if f == nil {
		s.t.Fatalf("unknown command %q", line)
	}
	f()
	for key := range s.opts {
		if !s.used[key] {
			s.t.Fatalf("unknown option %s in %q", key, line)
		}
	}
	if err := s.s.Check(); err != nil {
		s.t.Fatalf("after %q: %v", line, err)
	}
}

func (s *script) opt(key string) (string, bool) {
	s.used[key] = true
	v, ok := s.opts[key]
	return v, ok
}

func (s *script) num(key string, other int64) int64 {
	v, ok := s.opt(key)
	if !ok {
		return other
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		s.t.Fatalf("%s: %v", s.line, err)
	}
	return n
}

func (s *script) millis(key string, other state.Millis) state.Millis {
	return state.Millis(s.num(key, int64(other)))
}

// after is a time so far from now, 0 when the option is not given.
func (s *script) after(key string) state.Millis {
	if _, ok := s.opt(key); !ok {
		return 0
	}
	return state.AddMillis(s.now, s.millis(key, 0))
}

func (s *script) text(key string) []byte {
	v, _ := s.opt(key)
	return []byte(v)
}

func (s *script) hash(key string) state.Key {
	v, ok := s.opt(key)
	if !ok {
		return state.Key{}
	}
	return s.s.Hash([]byte(v))
}

// arg is the n-th name of the command.
func (s *script) arg(n int) string {
	if n >= len(s.args) {
		s.t.Fatalf("%q: too few names", s.line)
	}
	return s.args[n]
}

// apply logs and applies; it says and returns false when the record does not fit.
func (s *script) apply(r state.Record, body ...state.Body) bool {
	b := append(body, state.Body{})[0]
	head := r.AppendHead(nil)
	var read state.Record
	if _, err := state.Decode(head, &read); err != nil {
		s.t.Fatalf("%q: %v", s.line, err)
	}
	if err := s.s.Apply(&read, b, s.now); err != nil {
		s.say("does not fit: %s", err.(*state.MisfitError).Why)
		return false
	}
	s.log = append(s.log, entry{head, b, s.now})
	return true
}

// replay checks that the log gives the same again.
func (s *script) replay() {
	again := state.New()
	for _, e := range s.log {
		var r state.Record
		state.Decode(e.head, &r)
		if err := again.Apply(&r, e.body, e.now); err != nil {
			s.t.Fatalf("replay: %v", err)
		}
	}
	want := encode(s.t, s.s.View())
	if !bytes.Equal(encode(s.t, again.View()), want) {
		s.t.Error("replay gives another state")
	}
	loaded, err := state.Load(bytes.NewReader(want))
	if err != nil {
		s.t.Fatalf("load: %v", err)
	}
	// Before it is walked: a list may lead back into itself.
	if err := loaded.Check(); err != nil {
		s.t.Fatalf("loaded: %v", err)
	}
	if got, want := dump(s.t, loaded), dump(s.t, s.s); got != want {
		s.t.Errorf("loaded got\n%s\nwant\n%s", got, want)
	}
}

// queue finds or makes a queue; names without slashes are of default/default.
func (s *script) queue(name string) state.QueueID {
	key := []byte(name)
	if strings.Count(name, "/") < 2 {
		key = state.AppendQueueKey(nil, state.DefaultPool, key)
	}
	if id, ok := s.s.QueueByKey(key); ok {
		return id
	}
	id := s.s.NextQueue()
	s.apply(state.Record{Kind: state.KindQueue, Queue: id, Text: key})
	return id
}

// slot is that of a job; 0 when the job is gone.
func (s *script) slot(n int) state.Slot {
	id, ok := s.ids[s.arg(n)]
	if !ok {
		s.t.Fatalf("%q: no job was named %s", s.line, s.arg(n))
	}
	slot, ok := s.s.Lookup(id)
	if !ok {
		return id.Slot()
	}
	return slot
}

func (s *script) name(slot state.Slot) string {
	j, _ := s.s.Job(slot)
	return s.names[j.ID]
}

func (s *script) place(slot state.Slot) string {
	j, ok := s.s.Job(slot)
	if !ok {
		return "gone"
	}
	switch {
	case j.Blocked:
		return "ready, behind its group's head"
	case j.Place == state.Delayed && j.DueWall:
		return fmt.Sprintf("delayed until %d by wall time", j.Due)
	case j.Place == state.Delayed:
		return fmt.Sprintf("delayed until %d", j.Due)
	case j.Place == state.Leased:
		return fmt.Sprintf("leased until %d", j.Deadline)
	}
	return j.Place.String()
}

// did applies a record about a job and says where the job is afterwards.
func (s *script) did(r state.Record, body ...state.Body) {
	name := s.name(r.Slot)
	id := s.ids[name]
	if s.apply(r, body...) {
		if _, ok := s.s.Lookup(id); !ok {
			s.say("%s gone", name)
			return
		}
		s.say("%s %s", name, s.place(r.Slot))
	}
}

// enqueue queue [id= delay= wall= ttl= priority= tries= backoff= backoffmax= unique= for= group= bytes= gen=]
func (s *script) enqueue() {
	q := s.queue(s.arg(1))
	r := state.Record{
		Kind: state.KindEnqueue, Queue: q, Born: s.s.Wall(s.now), At: s.after("delay"), Expires: s.after("ttl"),
		Priority: int8(s.num("priority", 0)), Tries: uint16(s.num("tries", 0)),
		Backoff: s.millis("backoff", 0), BackoffMax: s.millis("backoffmax", 0),
		Unique: s.hash("unique"), Window: s.after("for"), Group: s.hash("group"),
	}
	if wall := s.millis("wall", 0); wall != 0 {
		r.At, r.Wall = wall, true
	}
	if id, ok := s.s.Unique(q, r.Unique, s.now); ok {
		s.say("duplicate of %s", s.names[id])
		return
	}
	slot, reuse := s.s.NextSlot()
	r.Slot = slot
	name, ok := s.opt("id")
	if !ok {
		name = fmt.Sprint(len(s.ids) + 1)
	}
	body := state.Body{Generation: uint32(s.num("gen", 1)), Length: uint32(s.num("bytes", 10))}
	if s.apply(r, body) {
		id := state.NewJobID(r.Born, slot, reuse, 0)
		s.ids[name], s.names[id] = id, name
		s.say("%s %s", name, s.place(slot))
	}
}

// lease queue [for= count=]
func (s *script) lease() {
	q := s.queue(s.arg(1))
	for range s.num("count", 1) {
		slot, block := s.s.NextReady(q, s.now)
		switch {
		case block.Why != state.NotBlocked:
			s.say("blocked by %s until %d", map[state.Why]string{
				state.BlockedPaused: "pause", state.BlockedRate: "rate", state.BlockedMaxLeased: "maxleased",
			}[block.Why], block.Until)
			return
		case slot == 0:
			s.say("(none)")
			return
		}
		s.nonce++
		if !s.apply(state.Record{Kind: state.KindLease, Slot: slot, Nonce: state.Nonce{s.nonce}, At: state.AddMillis(s.now, s.millis("for", 1000))}) {
			return
		}
		j, _ := s.s.Job(slot)
		s.say("%s attempt=%d deadline=%d", s.names[j.ID], j.Attempt, j.Deadline)
	}
}

func (s *script) ack()     { s.did(state.Record{Kind: state.KindAck, Slot: s.slot(1)}) }
func (s *script) release() { s.did(state.Record{Kind: state.KindRelease, Slot: s.slot(1)}) }
func (s *script) lapse()   { s.did(state.Record{Kind: state.KindLapse, Slot: s.slot(1)}) }

// nack job [delay= to=dead reason=]
func (s *script) nack() { s.fail(s.slot(1), state.CauseNack) }

func (s *script) fail(slot state.Slot, cause state.Cause) {
	r := state.Record{Kind: state.KindFail, Slot: slot, Cause: cause, Place: state.Ready, At: s.after("delay"), Text: s.text("reason")}
	if r.At != 0 {
		r.Place = state.Delayed
	}
	if to, ok := s.opt("to"); ok {
		r.Place, _ = state.ParsePlace(to)
	}
	s.did(r)
}

// extend job for=
func (s *script) extend() {
	s.did(state.Record{Kind: state.KindExtend, Slot: s.slot(1), At: s.after("for")})
}

// bury job [reason=]
func (s *script) bury() {
	s.did(state.Record{Kind: state.KindBury, Slot: s.slot(1), Cause: state.CauseBury, Text: s.text("reason")})
}

// delete job [job…], in this order
func (s *script) delete() {
	for i := range s.args[1:] {
		s.did(state.Record{Kind: state.KindDelete, Slot: s.slot(i + 1), Cause: state.CauseDelete})
	}
}

// due [delay= to= reason=], for leases that ran out: does all that is due
func (s *script) due() {
	for n := 0; ; n++ {
		d := s.s.Due(s.now)
		if n > 1000 {
			s.t.Fatalf("%q: something stays due: %+v", s.line, d)
		}
		switch d.Kind {
		case state.DueNothing:
			if n == 0 {
				s.say("(none)")
			}
			return
		case state.DueRange:
			s.apply(state.Record{Kind: state.KindRange, At: d.At, Slot: d.Slot, Count: d.Count})
			s.say("range of %d up to %d", d.Count, d.At)
		case state.DueWallRange:
			s.apply(state.Record{Kind: state.KindWallRange, At: d.At, Slot: d.Slot, Count: d.Count})
			s.say("wall range of %d up to %d", d.Count, d.At)
		case state.DueKeys:
			s.apply(state.Record{Kind: state.KindKeyRange, At: d.At, Slot: d.Slot, Count: d.Count})
			s.say("keys of %d up to %d", d.Count, d.At)
		case state.DueLease:
			s.fail(d.Slot, state.CauseExpire)
		case state.DueDead:
			s.did(state.Record{Kind: state.KindDelete, Slot: d.Slot, Cause: d.Cause})
		case state.DuePause:
			s.apply(state.Record{Kind: state.KindResume, Queue: d.Queue})
			s.say("pause over")
		case state.DueIdle:
			s.say("forgotten: %s", s.s.QueueKey(d.Queue))
			s.apply(state.Record{Kind: state.KindForget, Queue: d.Queue})
		case state.DueCron:
			next := state.AddMillis(d.Cron.Next, s.millis("every", 1000))
			s.say("cron %s for %d", d.Cron.Name, d.Cron.Next)
			s.apply(state.Record{Kind: state.KindCronFired, Cron: &state.Cron{
				Namespace: d.Cron.Namespace, Name: d.Cron.Name, Last: d.Cron.Next, Next: next,
			}})
		}
	}
}

func (s *script) dropKey(slot state.Slot, q state.QueueID) bool {
	j, ok := s.s.Job(slot)
	if q == 0 {
		q = j.Queue
	}
	return ok && j.Place == state.Dead && s.s.KeyTaken(slot, q, s.now)
}

func (s *script) runJob() {
	s.did(state.Record{Kind: state.KindRun, Slot: s.slot(1), DropKey: s.dropKey(s.slot(1), 0)})
}

// delay job for= [wall=]
func (s *script) delay() {
	r := state.Record{Kind: state.KindDelay, Slot: s.slot(1), At: s.after("for"), DropKey: s.dropKey(s.slot(1), 0)}
	if wall := s.millis("wall", 0); wall != 0 {
		r.At, r.Wall = wall, true
	}
	s.did(r)
}

func (s *script) priority() {
	n, _ := strconv.Atoi(s.arg(2))
	s.did(state.Record{Kind: state.KindPriority, Slot: s.slot(1), Priority: int8(n)})
}

// payload job bytes= [gen=]
func (s *script) payload() {
	s.did(state.Record{Kind: state.KindPayload, Slot: s.slot(1)},
		state.Body{Generation: uint32(s.num("gen", 1)), Length: uint32(s.num("bytes", 10))})
}

// carry job [gen= bytes=]
func (s *script) carry() {
	j, _ := s.s.Job(s.slot(1))
	s.did(state.Record{Kind: state.KindCarry, Slot: s.slot(1)},
		state.Body{Generation: uint32(s.num("gen", 1)), Length: uint32(s.num("bytes", int64(j.Body.Length)))})
}

func (s *script) move() {
	s.did(state.Record{Kind: state.KindMove, Slot: s.slot(1), Queue: s.queue(s.arg(2))})
}

// redrive job [to= tries= ttl=]
func (s *script) redrive() {
	slot := s.slot(1)
	j, _ := s.s.Job(slot)
	r := state.Record{Kind: state.KindRedrive, Slot: slot, Queue: j.Queue, Tries: uint16(s.num("tries", int64(j.Tries))), Expires: s.after("ttl")}
	if to, ok := s.opt("to"); ok {
		r.Queue = s.queue(to)
	}
	r.DropKey = s.dropKey(slot, r.Queue)
	s.did(r)
}

// set queue [maxleased= rate= per= deadmax= deadfor=]
func (s *script) set() {
	s.apply(state.Record{Kind: state.KindSettings, Queue: s.queue(s.arg(1)), Settings: &state.Settings{
		MaxLeased: uint32(s.num("maxleased", 0)), RateCount: uint32(s.num("rate", 0)), RatePer: s.millis("per", 0),
		DeadMax: uint64(s.num("deadmax", 0)), DeadFor: s.millis("deadfor", 0),
	}})
}

// pause queue [for=]
func (s *script) pause() {
	until := s.after("for")
	if until == 0 {
		until = state.Forever
	}
	s.apply(state.Record{Kind: state.KindPause, Queue: s.queue(s.arg(1)), At: until})
}

func (s *script) resume() {
	s.apply(state.Record{Kind: state.KindResume, Queue: s.queue(s.arg(1))})
}

func (s *script) touch() {
	s.apply(state.Record{Kind: state.KindTouch, Queue: s.queue(s.arg(1))})
}

func (s *script) forget() {
	s.apply(state.Record{Kind: state.KindForget, Queue: s.queue(s.arg(1))})
}

// cron name next=
func (s *script) cron() {
	s.apply(state.Record{Kind: state.KindCron, Cron: &state.Cron{
		Namespace: "default/default", Name: s.arg(1), Spec: "* * * * *", Queue: "default/default/q", Next: s.millis("next", 0),
	}})
}

func (s *script) uncron() {
	s.apply(state.Record{Kind: state.KindCronDelete, Cron: &state.Cron{Namespace: "default/default", Name: s.arg(1)}})
}

func (s *script) meta() {
	s.apply(state.Record{Kind: state.KindMeta, Text: []byte(s.arg(1)), Data: []byte(s.arg(2))})
}

func (s *script) unmeta() {
	s.apply(state.Record{Kind: state.KindMetaDelete, Text: []byte(s.arg(1))})
}

func (s *script) drain() { s.apply(state.Record{Kind: state.KindDrain, On: s.arg(1) == "on"}) }

// clock offset=
func (s *script) clock() {
	s.apply(state.Record{Kind: state.KindClock, At: s.millis("offset", 0)})
}

// time to=
func (s *script) time() {
	if s.apply(state.Record{Kind: state.KindTime, At: s.millis("to", 0)}) {
		s.now = s.s.Now()
	}
}

func (s *script) secret() {
	s.apply(state.Record{Kind: state.KindSecret, Text: []byte(s.arg(1))})
}

// job name: its line of the dump
func (s *script) job() {
	id := s.ids[s.arg(1)].String()
	for line := range strings.Lines(dump(s.t, s.s)) {
		if strings.Contains(line, id) && !strings.Contains(line, "held by") {
			s.say("%s", strings.TrimSpace(strings.ReplaceAll(line, id, s.arg(1))))
			return
		}
	}
	s.say("(none)")
}

// info queue
func (s *script) info() {
	q := s.s.Queue(s.queue(s.arg(1)))
	s.say("ready=%d delayed=%d leased=%d dead=%d bytes=%d paused=%d oldest=%d next=%d",
		q.Ready, q.Delayed, q.Leased, q.Dead, q.Bytes, q.PausedUntil, q.OldestReady, q.NextDue)
}

// page queue place [after=job max=]
func (s *script) page() {
	place, ok := state.ParsePlace(s.arg(2))
	if !ok {
		s.t.Fatalf("%q: no place", s.line)
	}
	after := state.Slot(0)
	if name, ok := s.opt("after"); ok {
		after, _ = s.s.Lookup(s.ids[name])
	}
	var names []string
	for _, slot := range s.s.Page(nil, s.queue(s.arg(1)), place, after, int(s.num("max", 100))) {
		names = append(names, s.name(slot))
	}
	if names == nil {
		names = []string{"(none)"}
	}
	s.say("%s", strings.Join(names, " "))
}

// unique queue key: whose it is
func (s *script) unique() {
	id, ok := s.s.Unique(s.queue(s.arg(1)), s.s.Hash([]byte(s.arg(2))), s.now)
	if !ok {
		s.say("(free)")
		return
	}
	s.say("%s", s.names[id])
}

func (s *script) earliest() {
	at, ok := s.s.Earliest()
	if !ok {
		s.say("never")
		return
	}
	s.say("%d", at)
}

// dump: all, with the names of jobs
func (s *script) dump() {
	text := dump(s.t, s.s)
	ids := slices.Collect(func(yield func(state.JobID) bool) {
		for id := range s.names {
			if !yield(id) {
				return
			}
		}
	})
	for _, id := range ids {
		text = strings.ReplaceAll(text, id.String(), s.names[id])
	}
	s.out.WriteString(text)
}
