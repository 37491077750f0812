package recovery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"pawl/internal/vfs"
	"pawl/state"
	"pawl/wal"
)

// DumpOptions say what to print. Filters that are zero let everything pass.
type DumpOptions struct {
	FS   vfs.FS // vfs.OS{}
	Dir  string
	Live bool // as in CheckOptions

	Job   state.JobID // only what happened to this job
	Queue string      // only what happened in this queue (a queue key)
	From  wal.LSN     // only this group and later ones
	JSON  bool        // one object a line instead of text
}

// Dump prints the records of a log, one a line, oldest first.
//
// It follows them from the oldest sound snapshot on with a State, and can
// therefore say which job and queue each is about and what became of the job.
// Older groups, which only lie in the log because a job's payload or a restore
// needs them, are printed as they stand, and only without a filter for a job or
// queue. Damage ends it, with everything before it printed.
func Dump(ctx context.Context, w io.Writer, opt DumpOptions) error {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	return withStore(opt.FS, opt.Dir, opt.Live, func(fsys vfs.FS) error {
		src, err := survey(fsys, filepath.Clean(opt.Dir), false)
		if err != nil {
			return err
		}
		d := &dumper{src: src, opt: opt, w: w}
		return d.run(ctx)
	})
}

type dumper struct {
	src *source
	opt DumpOptions
	w   io.Writer
	st  *state.State // nil before the snapshot
}

func (d *dumper) filtered() bool { return d.opt.Job != state.JobID{} || d.opt.Queue != "" }

func (d *dumper) run(ctx context.Context) error {
	st, base, err := d.base(ctx)
	if err != nil {
		return err
	}
	if !d.filtered() {
		if err := d.before(ctx, base); err != nil {
			return err
		}
	}
	d.st = st
	if err := d.snapshot(base); err != nil {
		return err
	}
	r, err := d.src.history.Reader(wal.ReaderOptions{After: base, Vouched: d.src.vouched()})
	if err != nil {
		return judged(err)
	}
	for r.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.group(r.Group()); err != nil {
			return err
		}
	}
	return judged(r.Err())
}

// base is the state of the oldest snapshot that is sound, or the empty one.
func (d *dumper) base(ctx context.Context) (*state.State, wal.LSN, error) {
	for i := len(d.src.snapshots) - 1; i >= 0; i-- {
		file := d.src.snapshots[i]
		st, err := d.src.load(ctx, file)
		if err == nil {
			return st, wal.LSN(file.LSN), nil
		}
		if isOtherProgram(err) || !IsDamage(err) {
			return nil, 0, err
		}
	}
	return state.New(), 0, nil
}

// before prints the groups that the snapshot has taken in.
func (d *dumper) before(ctx context.Context, base wal.LSN) error {
	for _, info := range d.src.history.Linked {
		if info.FirstLSN > base {
			return nil
		}
		r, err := d.src.history.Generation(info.Generation)
		if err != nil {
			return judged(err)
		}
		for r.Next() && r.Group().LSN <= base {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := d.group(r.Group()); err != nil {
				return err
			}
		}
		if err := r.Err(); err != nil {
			return judged(err)
		}
	}
	return nil
}

// snapshot says where the filtered job or queue stood when the state begins.
func (d *dumper) snapshot(base wal.LSN) error {
	if base == 0 || d.opt.From > base {
		return nil
	}
	e := event{LSN: base, Time: d.st.Wall(d.st.Now()), Kind: "snapshot"}
	if slot, ok := d.st.Lookup(d.opt.Job); ok {
		job, _ := d.st.Job(slot)
		e.job(d.st, job)
	} else if d.opt.Job != (state.JobID{}) {
		return nil
	}
	if q, ok := d.st.QueueByKey([]byte(d.opt.Queue)); ok {
		queue := d.st.Queue(q)
		e.Queue = queue.Key
		e.add("ready", queue.Ready).add("delayed", queue.Delayed).add("leased", queue.Leased).add("dead", queue.Dead)
	}
	if !d.filtered() {
		c := d.st.Counts()
		e.add("jobs", jobsIn(c)).add("queues", c.Queues)
	}
	return d.print(&e)
}

// group prints the records of one group that pass, and applies them.
func (d *dumper) group(g *wal.Stored) error {
	var r state.Record
	now, wall := state.Millis(g.LogTime), state.Millis(g.WallTime-g.LogTime)
	shown := now
	for i, stored := range g.Records {
		if _, err := state.Decode(stored.Head, &r); err != nil {
			return d.src.misfit(g.Generation, g.Offset, g.LSN, err)
		}
		if r.Kind == state.KindTime {
			shown = r.At
		}
		e := event{LSN: g.LSN, Index: i, Generation: g.Generation, Offset: g.Offset, Time: shown + wall, Kind: kindName(r.Kind)}
		e.record(&r, stored)
		passes := !d.filtered()
		if d.st != nil {
			before := d.look(r.Slot)
			if err := applyRecord(d.st, &r, stored.Head, stored.Pos, &now); err != nil {
				return d.src.misfit(g.Generation, g.Offset, g.LSN, err)
			}
			passes = d.about(&e, &r, before) || passes
		}
		if !passes || g.LSN < d.opt.From {
			continue
		}
		if err := d.print(&e); err != nil {
			return err
		}
	}
	return nil
}

// look is what of the state a record could change that is asked for.
func (d *dumper) look(slot state.Slot) (l looked) {
	l.job, l.found = d.st.Job(slot)
	if watched, ok := d.st.Lookup(d.opt.Job); ok {
		l.watched, _ = d.st.Job(watched)
	}
	if q, ok := d.st.QueueByKey([]byte(d.opt.Queue)); ok {
		l.queue = d.st.Queue(q)
	}
	return l
}

type looked struct {
	job     state.Job // at the record's slot
	found   bool
	watched state.Job   // of DumpOptions.Job
	queue   state.Queue // of DumpOptions.Queue
}

// about names the job and queue of a record that was applied, and says whether
// it passes the filter.
func (d *dumper) about(e *event, r *state.Record, before looked) (passes bool) {
	after := d.look(r.Slot)
	isRange := r.Kind == state.KindRange || r.Kind == state.KindWallRange || r.Kind == state.KindKeyRange
	switch {
	case isRange:
	case after.found:
		e.job(d.st, after.job)
	case before.found:
		e.job(d.st, before.job)
		e.add("gone", true)
	case r.Queue != 0:
		if e.Queue = string(r.Text); r.Kind != state.KindQueue {
			e.Queue = keyOf(d.st, r.Queue)
		}
	}
	if d.opt.Job != (state.JobID{}) && before.watched != after.watched {
		if isRange && after.watched.Slot != 0 {
			e.job(d.st, after.watched)
		}
		return true
	}
	return d.opt.Queue != "" && (e.Queue == d.opt.Queue || before.queue != after.queue)
}

// keyOf is the key of a queue, empty when there is no such queue.
func keyOf(st *state.State, q state.QueueID) (key string) {
	st.Queues(func(id state.QueueID) bool {
		if id == q {
			key = st.QueueKey(q)
		}
		return id < q
	})
	return key
}

// event is one line.
type event struct {
	LSN        wal.LSN
	Index      int
	Generation uint32
	Offset     int64
	Time       state.Millis // wall
	Kind       string
	Job        string
	Queue      string
	fields     []field
}

type field struct {
	name  string
	value any // string, bool or a number
}

func (e *event) add(name string, value any) *event {
	e.fields = append(e.fields, field{name, value})
	return e
}

// job names the job and says where it is now.
func (e *event) job(st *state.State, j state.Job) {
	e.Job, e.Queue = j.ID.String(), st.QueueKey(j.Queue)
	e.add("place", j.Place.String())
	if j.Attempt != 0 {
		e.add("attempt", j.Attempt)
	}
}

// record adds the fields of a record that are not zero.
func (e *event) record(r *state.Record, stored wal.Record) {
	number := func(name string, v int64) {
		if v != 0 {
			e.add(name, v)
		}
	}
	text := func(name string, b []byte) {
		if len(b) > 0 {
			e.add(name, string(b))
		}
	}
	number("slot", int64(r.Slot))
	if r.Place != 0 {
		e.add("to", r.Place.String())
	}
	if int(r.Cause) < len(causeNames) && r.Cause != state.CauseNone {
		e.add("cause", causeNames[r.Cause])
	}
	number("queue_id", int64(r.Queue))
	number("at", int64(r.At))
	number("expires", int64(r.Expires))
	number("priority", int64(r.Priority))
	number("tries", int64(r.Tries))
	number("backoff", int64(r.Backoff))
	number("count", int64(r.Count))
	if r.Wall {
		e.add("wall", true)
	}
	if r.DropKey {
		e.add("drop_key", true)
	}
	if r.Kind == state.KindDrain {
		e.add("on", r.On)
	}
	if r.Kind == state.KindLease {
		e.add("lease", state.LeaseID{Slot: r.Slot, Nonce: r.Nonce}.String())
	}
	switch r.Kind {
	case state.KindQueue:
		text("key", r.Text)
	case state.KindMeta, state.KindMetaDelete:
		text("key", redacted(r.Text))
	case state.KindFail, state.KindBury:
		text("reason", r.Text)
	}
	if r.Cron != nil {
		e.add("cron", r.Cron.Namespace+"/"+r.Cron.Name)
	}
	if r.Kind.HasBody() {
		e.add("body", stored.Pos.String())
	}
}

// redacted is the key of a value without what only its owner may know: the last
// part of "token/POOL/NAMESPACE/TOKEN" and "limit/POOL/NAMESPACE/TOKEN".
func redacted(key []byte) []byte {
	if !bytes.HasPrefix(key, []byte("token/")) && !bytes.HasPrefix(key, []byte("limit/")) {
		return key
	}
	return append(bytes.Clone(key[:bytes.LastIndexByte(key, '/')+1]), '*')
}

var causeNames = [...]string{"", "nack", "expire", "bury", "damage", "delete", "purge", "deadmax", "deadfor"}

var kindNames = [...]string{
	state.KindEnqueue: "enqueue", state.KindLease: "lease", state.KindAck: "ack", state.KindFail: "fail",
	state.KindRelease: "release", state.KindExtend: "extend", state.KindRange: "range", state.KindWallRange: "wall_range",
	state.KindLapse: "lapse", state.KindDelete: "delete", state.KindBury: "bury", state.KindRedrive: "redrive",
	state.KindRun: "run", state.KindDelay: "delay", state.KindPriority: "priority", state.KindPayload: "payload",
	state.KindMove: "move", state.KindCarry: "carry", state.KindQueue: "queue", state.KindTouch: "touch",
	state.KindForget: "forget", state.KindSettings: "settings", state.KindPause: "pause", state.KindResume: "resume",
	state.KindKeyRange: "key_range", state.KindCron: "cron", state.KindCronFired: "cron_fired",
	state.KindCronDelete: "cron_delete", state.KindMeta: "meta", state.KindMetaDelete: "meta_delete",
	state.KindDrain: "drain", state.KindClock: "clock", state.KindSecret: "secret",
	state.KindTime: "time",
}

func kindName(k state.Kind) string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "kind_" + strconv.Itoa(int(k))
}

func (d *dumper) print(e *event) error {
	if d.opt.JSON {
		return e.printJSON(d.w)
	}
	return e.printText(d.w)
}

func (e *event) printText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d.%d %s %s", e.LSN, e.Index, e.timeText(), e.Kind)
	if e.Job != "" {
		fmt.Fprintf(&b, " job=%s", e.Job)
	}
	if e.Queue != "" {
		fmt.Fprintf(&b, " queue=%s", plain(e.Queue))
	}
	for _, f := range e.fields {
		if s, ok := f.value.(string); ok {
			f.value = plain(s)
		}
		fmt.Fprintf(&b, " %s=%v", f.name, f.value)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func (e *event) timeText() string {
	return time.UnixMilli(int64(e.Time)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// plain quotes what would not be one readable word.
func plain(s string) string {
	quoted := strconv.Quote(s)
	if s != "" && !strings.ContainsAny(s, " =") && quoted == `"`+s+`"` {
		return s
	}
	return quoted
}

func (e *event) printJSON(w io.Writer) error {
	all := []field{{"lsn", uint64(e.LSN)}, {"index", e.Index}, {"generation", e.Generation}, {"offset", e.Offset}, {"time", e.timeText()}, {"kind", e.Kind}}
	if e.Job != "" {
		all = append(all, field{"job", e.Job})
	}
	if e.Queue != "" {
		all = append(all, field{"queue", e.Queue})
	}
	b := []byte{'{'}
	for i, f := range append(all, e.fields...) {
		if i > 0 {
			b = append(b, ',')
		}
		if s, ok := f.value.(string); ok && !utf8.ValidString(s) {
			f.value = map[string][]byte{"base64": []byte(s)}
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return err
		}
		b = append(append(strconv.AppendQuote(b, f.name), ':'), value...)
	}
	_, err := w.Write(append(b, '}', '\n'))
	return err
}
