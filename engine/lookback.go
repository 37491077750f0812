package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"pawl/state"
	"pawl/wal"
)

// A job's history is read from the log, not kept: a job has 64 bytes in memory,
// and most are never asked about. A record names the slot of its job, and the ID
// says when the job began, so the search begins with the generation of that
// moment and needs no state of the past. It goes on when the job has ended: how
// often the slot was used since says whether the ID is that job's.

// JobEvent is one record about a job. Times are wall time.
type JobEvent struct {
	LSN   LSN
	Index int // of the record in its group
	At    state.Millis
	// What happened: enqueue, lease, extend, ack, nack, expire, release, due,
	// lapse, bury, damage, redrive, run, delay, priority, payload, move, or why it
	// was removed: delete, purge, deadmax, deadfor. And gap: what is damaged in the
	// log from there on was left out.
	What     string
	Place    state.Place   // where the job is from then on; 0 is gone
	Attempt  uint32        // deliveries so far; 0 is none, or not known
	Lease    state.LeaseID // of lease
	Until    state.Millis  // lease, extend: end of the lease; delayed: when it is due; 0 is none
	Priority int8          // of enqueue and priority
	Tries    uint16        // of enqueue and redrive; 0 is no limit, or as before
	Reason   string
	Queue    string // key; of enqueue, redrive and move; empty is not known any more
}

// JobHistory is what the log still says of a job.
type JobHistory struct {
	Events []JobEvent // oldest first
	// Complete: the events begin with the job's enqueue, and there is no gap.
	// Otherwise that part of the log has gone, and delays and times to live that
	// ended may be missing.
	Complete bool
	// Next is the first group that was not looked at, for another call; 0 is none.
	Next  LSN
	Bytes int64 // of log that were read
}

// Bounds of one JobHistory.
const (
	lookbackBytes  = 256 << 20 // but one generation is read, however large
	lookbackEvents = 1000      // it ends behind the group with the last of them
)

// JobHistory looks a job up in the log, from group from on; 0 is from its
// enqueue. It shows what a reply could, reads at most 256 MiB, or one generation,
// and ends with the group that has the 1,000th event; Next says where to go on. It
// takes half of the speed it could, one call at a time. A job that never was, or
// whose time has gone from the log, has no events. Where the log is damaged there is
// a gap, and of a job that is over nothing behind it: the slot may have had another
// since.
func (e *Engine) JobHistory(ctx context.Context, id state.JobID, from LSN) (JobHistory, error) {
	select {
	case e.lookbacks <- struct{}{}:
		defer func() { <-e.lookbacks }()
	case <-ctx.Done():
		return JobHistory{}, ctx.Err()
	}
	if !e.enter() {
		return JobHistory{}, e.refusal()
	}
	l := &lookback{id: id, end: e.last}
	reuse, known := e.st.LastReuse(id.Slot())
	if slot, ok := e.st.Lookup(id); ok {
		job, _ := e.st.Job(slot)
		l.alive, l.home = true, job.Queue
	}
	if err := e.Wait(e.leave()); err != nil {
		return JobHistory{}, err
	}
	if !known {
		return JobHistory{}, nil
	}
	if err := l.read(ctx, e.log, from); err != nil {
		return JobHistory{}, fmt.Errorf("look back: %w", err)
	}
	h := l.choose(reuse, from != 0)
	e.nameQueues(l, h.Events)
	return h, nil
}

// nameQueues gives events the keys of their queues. A number that a later record
// gave to another queue is known only from there on.
func (e *Engine) nameQueues(l *lookback, events []JobEvent) {
	if !e.enter() {
		return
	}
	defer e.leave()
	for i := range events {
		q, ok := l.queues[eventAt{events[i].LSN, events[i].Index}]
		switch {
		case !ok:
		case q.key != "":
			events[i].Queue = q.key
		case l.gap && q.id != l.home: // what began in the gap is not known
		case !l.begun[q.id] && e.st.QueueExists(q.id):
			events[i].Queue = e.st.QueueKey(q.id)
		}
	}
}

type eventAt struct {
	lsn   LSN
	index int
}

// lookback is one search.
type lookback struct {
	id    state.JobID
	end   LSN           // the last group to look at
	alive bool          // the job is there: from its enqueue on all of the slot's records are about it
	home  state.QueueID // where it is then

	lives  []*life // jobs that may be the one, in order
	now    *life   // that has the slot; nil is nobody of interest
	uses   int     // enqueues into the slot
	seen   LSN     // the last group that was read
	gap    bool    // something could not be read
	r      *wal.Reader
	bytes  int64
	events int
	next   LSN
	begun  map[state.QueueID]bool   // queues that began in what was read
	names  map[state.QueueID]string // their keys
	queues map[eventAt]queueName
}

type queueName struct {
	id  state.QueueID
	key string // empty: not begun in what was read so far
}

// life is what is known of one job in the slot.
type life struct {
	use     int // which use of the slot, by lookback.uses; 0 began before what was read
	events  []JobEvent
	gap     bool
	place   state.Place // 0 is unknown, or over
	over    bool
	wall    bool         // delayed until a wall time
	due     state.Millis // delayed: log time, or wall time; leased: end of the lease, log time
	expires state.Millis // log time; 0 is none, or not known
	attempt uint32       // unless use is 0
}

// clockSlack is how far the wall times of IDs and groups may be apart: a clock
// that is set changes both, but not at once.
const clockSlack = 60_000

func (l *lookback) read(ctx context.Context, log *wal.Log, from LSN) error {
	history, err := log.History()
	if err != nil {
		return err
	}
	l.begun, l.names, l.queues = map[state.QueueID]bool{}, map[state.QueueID]string{}, map[eventAt]queueName{}
	infos := history.Linked
	if from == 0 {
		infos = history.Since(int64(l.id.Wall()) - clockSlack)
	}
	damaged := history.Damaged
	for i, info := range infos {
		for ; len(damaged) > 0 && damaged[0].Generation < info.Generation; damaged = damaged[1:] {
			if l.seen > 0 { // else it is before what is looked for
				l.skip(l.seen + 1)
			}
		}
		if info.FirstLSN > l.end {
			return nil
		}
		if i+1 < len(infos) && infos[i+1].FirstLSN <= from {
			continue
		}
		if l.bytes > 0 && l.bytes+info.Length > lookbackBytes {
			l.next = info.FirstLSN
			return nil
		}
		began := time.Now()
		l.bytes += info.Length
		over, err := l.generation(history, info.Generation, from)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has gone meanwhile
		}
		if damage, ok := errors.AsType[*wal.CorruptError](err); ok {
			l.skip(damage.LSN)
			err = nil
		}
		if err != nil || over {
			return err
		}
		rest := time.NewTimer(time.Since(began))
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// generation looks through one; over says that nothing behind it matters.
func (l *lookback) generation(history *wal.History, number uint32, from LSN) (over bool, err error) {
	if l.r == nil {
		l.r, err = history.Generation(number)
	} else {
		err = l.r.Again(number)
	}
	if err != nil {
		return false, err
	}
	r := l.r
	var rec state.Record
	for r.Next() {
		g := r.Group()
		if g.LSN > l.end {
			return true, nil // it may be unfinished
		}
		if g.LSN < from {
			continue
		}
		l.seen = g.LSN
		for i, stored := range g.Records {
			if slot := state.SlotOf(stored.Head); slot != 0 && slot != l.id.Slot() {
				continue // nearly all: half of the search would be decoding them
			}
			if _, err := state.Decode(stored.Head, &rec); err != nil {
				return false, fmt.Errorf("group %d: %w", g.LSN, err)
			}
			l.record(&rec, g, i)
		}
		if g.LSN == l.end {
			return true, nil
		}
		if l.events >= lookbackEvents {
			l.next = g.LSN + 1
			return true, nil
		}
	}
	return false, r.Err()
}

// skip goes on behind damage, which begins with a group. What was missed may have
// ended the job and given its slot to another.
func (l *lookback) skip(lsn LSN) {
	l.gap = true
	if l.now == nil || l.now.over {
		return
	}
	l.now.gap, l.now.place, l.now.due, l.now.expires = true, 0, 0, 0
	wall, _ := l.r.DamagedAt() // 0 where no header is whole
	l.add(JobEvent{What: "gap"}, &wal.Stored{LSN: lsn, WallTime: wall}, 0)
	if !l.alive {
		l.now = nil
	}
}

// record takes in one record.
func (l *lookback) record(r *state.Record, g *wal.Stored, index int) {
	switch r.Kind {
	case state.KindQueue:
		l.begun[r.Queue], l.names[r.Queue] = true, string(r.Text)
		return
	case state.KindRange, state.KindWallRange:
		if l.now != nil {
			l.ranges(r, g, index)
		}
		return
	}
	if r.Slot != l.id.Slot() || r.Kind == state.KindCarry || r.Kind == state.KindKeyRange {
		return
	}
	if r.Kind == state.KindEnqueue {
		l.uses++
		l.now = nil
		if r.Born == l.id.Wall() && r.Delay == l.id.DelaySeconds() {
			if len(l.lives) == 1 && l.lives[0].use == 0 {
				l.lives = nil // who had the slot before
			}
			l.now = &life{use: l.uses}
			l.lives = append(l.lives, l.now)
		}
	} else if l.now == nil && l.uses == 0 && len(l.lives) == 0 {
		l.now = &life{} // its enqueue came before what is read
		l.lives = append(l.lives, l.now)
	}
	if l.now == nil || l.now.over {
		return
	}
	event := l.now.take(r, state.Millis(g.WallTime-g.LogTime), l.id.Slot())
	l.add(event, g, index)
	if r.Queue != 0 {
		l.queues[eventAt{g.LSN, index}] = queueName{r.Queue, l.names[r.Queue]}
	}
}

func (l *lookback) add(event JobEvent, g *wal.Stored, index int) {
	event.LSN, event.Index, event.At = g.LSN, index, state.Millis(g.WallTime)
	if event.Place = l.now.place; l.now.use > 0 {
		event.Attempt = l.now.attempt
	}
	l.now.events = append(l.now.events, event)
	l.events++
}

// ranges says whether a record that ends delays and times to live up to a point
// has ended the job's.
func (l *lookback) ranges(r *state.Record, g *wal.Stored, index int) {
	j := l.now
	reached := func(at state.Millis) bool {
		return at < r.At || at == r.At && l.id.Slot() <= r.Slot
	}
	delayed := j.place == state.Delayed && j.wall == (r.Kind == state.KindWallRange) && reached(j.due)
	lapsed := r.Kind == state.KindRange && j.expires != 0 && reached(j.expires)
	switch j.place {
	case state.Ready, state.Delayed:
	case state.Leased: // a lease that ends before has a record of its own
		lapsed = lapsed && j.expires <= j.due
	default:
		lapsed = false
	}
	switch {
	case lapsed && (!delayed || j.expires <= j.due):
		j.place, j.over = 0, true
		l.add(JobEvent{What: "lapse"}, g, index)
	case delayed:
		j.place = state.Ready
		l.add(JobEvent{What: "due"}, g, index)
	}
}

// take changes a life by a record of its slot. offset is wall time less log time.
func (j *life) take(r *state.Record, offset state.Millis, slot state.Slot) JobEvent {
	e := JobEvent{Reason: string(r.Text)}
	end := func(what string) { e.What, j.place, j.over = what, 0, true }
	delay := func() {
		j.place, j.due, j.wall = state.Delayed, r.At, r.Wall
		if e.Until = r.At; !r.Wall {
			e.Until += offset
		}
	}
	switch r.Kind {
	case state.KindEnqueue:
		e.What, j.place, j.expires = "enqueue", state.Ready, r.Expires
		if r.At != 0 {
			delay()
		}
		e.Priority, e.Tries = r.Priority, r.Tries
	case state.KindLease:
		j.attempt++
		e.What, j.place, j.due = "lease", state.Leased, r.At
		e.Lease, e.Until = state.LeaseID{Slot: slot, Nonce: r.Nonce}, r.At+offset
	case state.KindExtend:
		e.What, e.Until, j.due = "extend", r.At+offset, r.At
	case state.KindAck:
		end("ack")
	case state.KindFail:
		e.What = "nack"
		if r.Cause == state.CauseExpire {
			e.What = "expire"
		}
		if j.place = r.Place; r.Place == state.Delayed {
			delay()
		}
	case state.KindRelease:
		e.What, j.place = "release", state.Ready
	case state.KindLapse:
		end("lapse")
	case state.KindDelete:
		end(deleteCauses[r.Cause])
	case state.KindBury:
		e.What, j.place = "bury", state.Dead
		if r.Cause == state.CauseDamage {
			e.What = "damage"
		}
	case state.KindRedrive:
		e.What, j.place, j.expires, e.Tries = "redrive", state.Ready, r.Expires, r.Tries
	case state.KindRun:
		e.What, j.place = "run", state.Ready
	case state.KindDelay:
		e.What = "delay"
		delay()
	case state.KindPriority:
		e.What, e.Priority = "priority", r.Priority
	case state.KindPayload:
		e.What = "payload"
	case state.KindMove:
		e.What = "move"
	}
	if j.place == state.Dead {
		j.expires = 0 // a dead job has no time to live, nor when it comes back
	}
	return e
}

var deleteCauses = map[state.Cause]string{
	state.CauseDelete: "delete", state.CausePurge: "purge", state.CauseDeadMax: "deadmax", state.CauseDeadFor: "deadfor",
}

// choose gives the life of the job itself. last is the reuse counter of the last
// job in the slot; counting back from it tells jobs apart that the slot had in
// one millisecond, and refuses an ID that no job had. Where not all of the log
// could be read, slot and moment must do. continued says that the enqueue was in an earlier call.
func (l *lookback) choose(last uint16, continued bool) JobHistory {
	h := JobHistory{Next: l.next, Bytes: l.bytes}
	certain := l.next == 0 && !l.gap // all uses were counted
	for i, j := range l.lives {
		switch {
		case l.alive && i < len(l.lives)-1:
			continue // the slot is its own since the last
		case l.alive:
		case certain && last-uint16(l.uses-j.use) != l.id.Reuse():
			continue
		case j.use == 0 && !certain && !continued:
			continue
		}
		h.Events, h.Complete = j.events, j.use > 0 && !j.gap
		if j.over {
			h.Next = 0
		}
	}
	return h
}
