package recovery

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"slices"

	"pawl/state"
	"pawl/wal"
)

// remains is what a group behind the damage says, as far as a list of losses
// needs it.
type remains struct {
	place
	lsn       wal.LSN
	sound     bool
	now, wall state.Millis // log and wall time
	records   []wal.Record
}

// place is where a group stands.
type place struct {
	generation uint32
	offset     int64
}

// behind reads what stands in the log behind the branch's end, says which jobs
// are lost with it, and takes out those of the branch that it had finished.
func (r *repairer) behind(b *branch) error {
	cut := false
	for _, lost := range r.done.Damage {
		cut = cut || lost.First > b.end.LSN
	}
	if !cut && len(r.fs.hidden) == 0 {
		return nil
	}
	var l *losses
	newest := wal.LSN(0)
	err := r.remains(b.end.LSN, func(g *remains) (err error) {
		if l == nil {
			l, err = newLosses(b.state)
		}
		newest = max(newest, g.lsn)
		for i := 0; err == nil && i < len(g.records); i++ {
			l.record(g, g.records[i])
		}
		return err
	})
	if err != nil || l == nil {
		return err
	}
	for i := range r.done.Damage {
		if lost := &r.done.Damage[i]; lost.First > b.end.LSN {
			lost.Last = max(lost.First, newest)
		}
	}
	for _, job := range l.jobs {
		if job.Slot != 0 {
			r.done.Lost = append(r.done.Lost, job)
		}
	}
	dropped := make(map[state.Slot]bool)
	for _, slot := range b.drop {
		dropped[slot] = true
	}
	for slot := range l.finished {
		if job, ok := b.state.Job(slot); ok && !dropped[slot] {
			r.done.Finished = append(r.done.Finished, job.ID)
			b.drop = append(b.drop, slot)
		}
	}
	slices.SortFunc(r.done.Finished, func(a, b state.JobID) int { return bytes.Compare(a[:], b[:]) })
	slices.Sort(b.drop)
	return nil
}

// extend applies the groups that follow the branch's end without a gap, although
// damage before them keeps a start from reading them: damage in groups that a
// snapshot has taken in.
func (r *repairer) extend(b *branch) error {
	if len(r.done.Damage) == 0 {
		return nil
	}
	// First on a copy: a group whose records do not fit must not be half applied.
	scratch, err := copyOf(b.state)
	if err != nil {
		return err
	}
	last := b.end.LSN
	fits := map[place]bool{}
	err = r.remains(b.end.LSN, func(g *remains) error {
		if g.lsn == last+1 && g.sound && r.isHistory(g) && g.apply(scratch) == nil {
			last = g.lsn
			fits[g.place] = true
		}
		return nil
	})
	if err != nil || len(fits) == 0 {
		return err
	}
	return r.remains(b.end.LSN, func(g *remains) error {
		if !fits[g.place] {
			return nil
		}
		if err := g.apply(b.state); err != nil {
			return err
		}
		end, err := r.src.looseEnd(g.lsn, int64(g.now), int64(g.wall))
		b.end = timed(end, b.state)
		return err
	})
}

// isHistory says that a group stands in a linked generation, not behind what the
// link of the next one counts, or in a later one whose first entries are
// damaged.
func (r *repairer) isHistory(g *remains) bool {
	linked := r.src.history.Linked
	if i := r.src.linked(g.generation); i >= 0 {
		return g.offset < linked[i].Length
	}
	return len(linked) == 0 || g.generation > linked[len(linked)-1].Generation
}

func (g *remains) apply(st *state.State) error {
	var r state.Record
	now := g.now
	for _, rec := range g.records {
		if err := applyRecord(st, &r, rec.Head, rec.Pos, &now); err != nil {
			return err
		}
	}
	return nil
}

// remains calls visit for the groups behind an LSN in all generations, in order. It
// has one generation in memory at a time, and visit keeps nothing of a group.
func (r *repairer) remains(after wal.LSN, visit func(*remains) error) error {
	numbers, err := generationNumbers(r.fs.FS, r.dir)
	if err != nil {
		return err
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		var groups []remains
		r.fs.lifted = true
		err := r.src.history.Remains(number, 0, func(g *wal.Stored, sound bool) bool {
			if g.LSN > after {
				groups = append(groups, remains{
					place{g.Generation, g.Offset}, g.LSN, sound, state.Millis(g.LogTime), state.Millis(g.WallTime), g.Records,
				})
			}
			return true
		})
		r.fs.lifted = false
		if _, damaged := errors.AsType[*wal.CorruptError](err); err != nil && !damaged && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		slices.SortStableFunc(groups, func(a, b remains) int { return cmp.Compare(a.lsn, b.lsn) })
		for i := range groups {
			if err := visit(&groups[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// losses follows the lost part of a log.
type losses struct {
	// scratch takes the records that still fit. It only serves to find out the
	// IDs of jobs: a slot's reuse counter is not in the log.
	scratch  *state.State
	queues   map[state.QueueID]string // that began in the lost part
	jobs     []LostJob                // Slot 0 where the lost part finished it again
	lost     map[state.Slot]int       // index in jobs of the one now in the slot
	finished map[state.Slot]bool      // whose job of before the damage is over
}

func newLosses(st *state.State) (*losses, error) {
	scratch, err := copyOf(st)
	return &losses{scratch: scratch, queues: map[state.QueueID]string{}, lost: map[state.Slot]int{}, finished: map[state.Slot]bool{}}, err
}

func (l *losses) record(g *remains, rec wal.Record) {
	var r state.Record
	if _, err := state.Decode(rec.Head, &r); err != nil {
		return
	}
	switch r.Kind {
	case state.KindQueue:
		if g.sound {
			l.queues[r.Queue] = string(r.Text)
		}
	case state.KindForget:
		delete(l.queues, r.Queue)
	case state.KindEnqueue:
		l.over(r.Slot, g.sound)
		l.enqueue(g, &r, rec)
	case state.KindAck, state.KindDelete, state.KindLapse:
		l.over(r.Slot, g.sound)
	}
	// What does not fit is what the list is about.
	_ = l.scratch.Apply(&r, state.Body(rec.Pos), max(l.scratch.Now(), g.now))
}

// over notes that whatever job was in a slot is finished: also when another one
// begins there. Records that may be wrong finish nothing.
func (l *losses) over(slot state.Slot, sound bool) {
	if !sound {
		return
	}
	if i, ok := l.lost[slot]; ok {
		l.jobs[i].Slot, l.jobs[i].Body = 0, nil
		delete(l.lost, slot)
		return
	}
	l.finished[slot] = true
}

func (l *losses) enqueue(g *remains, r *state.Record, rec wal.Record) {
	job := LostJob{
		Slot: r.Slot, Queue: l.queues[r.Queue], Enqueued: r.Born, Priority: r.Priority, Tries: r.Tries,
		Body: bytes.Clone(rec.Body), Overhead: int(r.Overhead), Why: "it stood behind the damage",
	}
	if job.Queue == "" {
		job.Queue = keyOf(l.scratch, r.Queue)
		job.QueueGuessed = job.Queue != ""
	}
	if !g.sound {
		// Any of its bytes may be the wrong one.
		job.Why, job.Body = "its group is damaged", nil
	}
	if slot, reuse := l.scratch.NextSlot(); slot == r.Slot {
		job.ID = state.NewJobID(r.Born, slot, reuse, r.Delay)
	}
	l.lost[r.Slot] = len(l.jobs)
	l.jobs = append(l.jobs, job)
}

// copyOf is an equal state that can be changed apart.
func copyOf(st *state.State) (*state.State, error) {
	view := st.View()
	defer st.Release(view)
	r, w := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, err := view.WriteTo(w)
		w.CloseWithError(err)
	}()
	made, err := state.Load(r)
	r.CloseWithError(err) // or the writer waits for ever
	<-written
	return made, err
}
