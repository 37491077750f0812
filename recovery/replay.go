package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"pawl/internal/vfs"
	"pawl/state"
	"pawl/wal"
)

const (
	// batchHeads is how many bytes of records one batch aims at.
	batchHeads = 256 << 10
	batches    = 3
)

// A batch is some groups on their way from the goroutine that reads and checks
// the log to the one that applies it. Batches are used again and again, so
// that replay does not allocate per record.
type batch struct {
	heads  []byte // all heads, one behind the other
	spans  []span
	groups []groupSpan
	err    error // of the reader, behind the groups; the end of the log has none
	last   bool
	// reached: the last one, and what was wanted ends here, whatever is behind it.
	reached bool
}

// span is one record: where its head ends in heads, and where its body lies.
type span struct {
	end int
	pos wal.Pos
}

// groupSpan is one group: where its records end in spans, and where it stands.
type groupSpan struct {
	end        int
	lsn        wal.LSN
	generation uint32
	offset     int64
	logTime    int64
	wallTime   int64
	bytes      int64
}

func (b *batch) reset() {
	*b = batch{heads: b.heads[:0], spans: b.spans[:0], groups: b.groups[:0]}
}

// add copies what replay needs of a group.
func (b *batch) add(g *wal.Stored) {
	bytes := int64(0)
	for _, r := range g.Records {
		b.heads = append(b.heads, r.Head...)
		b.spans = append(b.spans, span{len(b.heads), r.Pos})
		bytes += int64(len(r.Head)) + int64(len(r.Body))
	}
	b.groups = append(b.groups, groupSpan{len(b.spans), g.LSN, g.Generation, g.Offset, g.LogTime, g.WallTime, bytes})
}

// vouched is the highest LSN that a snapshot's name proves to have been
// durable.
func (src *source) vouched() wal.LSN {
	if len(src.snapshots) == 0 {
		return 0
	}
	return wal.LSN(src.snapshots[0].LSN)
}

// replay applies the groups of the log behind after to st and says where the
// log ends.
func (src *source) replay(ctx context.Context, st *state.State, after wal.LSN) (wal.End, error) {
	src.last = after
	if after >= src.stop {
		src.reached = true
		return src.branchEnd(st) // nothing behind the snapshot is wanted
	}
	r, err := src.history.Reader(wal.ReaderOptions{After: after, Vouched: src.vouched()})
	if err != nil {
		return wal.End{}, judged(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	full, empty := make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		empty <- new(batch)
	}
	total := src.logBytes() // before the reader notes in the history what it finds
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(full)
		src.readGroups(ctx, r, full, empty)
	}()
	st.BeginReplay()
	err = src.applyAll(ctx, st, total, full, empty)
	st.EndReplay()
	cancel()
	<-done
	if err != nil {
		return wal.End{}, err
	}
	if src.partial {
		// Also where the log itself ended: what is behind its last group, such as
		// the mark of a clean stop, belongs to the old history.
		return src.branchEnd(st)
	}
	end := r.End()
	src.report.CutBytes, src.report.Clean = end.Cut, end.Closed
	return end, nil
}

// branchEnd is where the log would end with the last group that was applied.
// That of a snapshot may have gone from the log, or stand behind damage.
func (src *source) branchEnd(st *state.State) (wal.End, error) {
	end, err := src.history.EndAt(src.last)
	if err == nil {
		return end, nil
	}
	err = judged(err)
	if uint64(src.last) != src.report.SnapshotLSN || isOtherProgram(err) || !errors.Is(err, fs.ErrNotExist) && !IsDamage(err) {
		return end, err
	}
	return src.looseEnd(src.last, int64(st.Now()), int64(st.Wall(st.Now())))
}

// looseEnd is the end of a history of which only the state is known: behind a
// generation number that no generation has, as if it had been dropped since.
func (src *source) looseEnd(lsn wal.LSN, logTime, wallTime int64) (wal.End, error) {
	numbers, err := generationNumbers(src.fs, src.dir)
	if err != nil {
		return wal.End{}, err
	}
	gone := slices.Max(append(numbers, 0)) + 1
	return wal.End{
		Store: wal.StoreID(src.identity.ID), Generation: gone, Highest: gone, LSN: lsn,
		LogTime: logTime, WallTime: wallTime,
	}, nil
}

// generationNumbers are the numbers of all generations of a log, linked or not.
func generationNumbers(fsys vfs.FS, dir string) (numbers []uint32, err error) {
	entries, err := fsys.ReadDir(LogDir(dir))
	for _, entry := range entries {
		if n, err := strconv.ParseUint(entry.Name(), 10, 32); err == nil && entry.IsDir() {
			numbers = append(numbers, uint32(n))
		}
	}
	return numbers, err
}

// readGroups fills batches until the log or what is wanted of it ends; the last
// one it sends says so. When ctx ends it leaves without one.
func (src *source) readGroups(ctx context.Context, r *wal.Reader, full chan<- *batch, empty <-chan *batch) {
	for last := false; !last; {
		var b *batch
		select {
		case b = <-empty:
		case <-ctx.Done():
			return
		}
		b.reset()
		for len(b.heads) < batchHeads && !last && ctx.Err() == nil {
			switch more := r.Next(); {
			case !more:
				b.err, last = r.Err(), true
				if wall, known := r.DamagedAt(); known && src.until != nil && src.until(wall) {
					b.err, b.reached = nil, true
				}
			case src.until != nil && src.until(r.Group().WallTime):
				b.reached, last = true, true
			default:
				b.add(r.Group())
				// What follows need not even be readable.
				b.reached = r.Group().LSN >= src.stop
				last = b.reached
			}
			b.last = last
		}
		full <- b // never blocks: there are no more batches than places
	}
}

// applyAll applies batches until the last, an error, or the end of ctx. total is
// how many bytes of log there are, for the progress.
func (src *source) applyAll(ctx context.Context, st *state.State, total int64, full <-chan *batch, empty chan<- *batch) error {
	for b := range full {
		err := src.applyBatch(st, b)
		if err == nil && b.err != nil {
			err = judged(b.err)
		}
		if err != nil || b.last {
			src.reached = b.reached
			return err
		}
		if len(b.groups) == 0 {
			break // ctx ended in the midst of one
		}
		src.progress(Progress{
			Phase: "log", Done: src.report.LogBytes, Total: total,
			Records: src.report.Records, LSN: b.groups[len(b.groups)-1].lsn,
		})
		empty <- b
	}
	return ctx.Err()
}

// logBytes is how much log there is above the snapshot, roughly.
func (src *source) logBytes() (bytes int64) {
	for _, info := range src.history.Linked {
		if uint64(info.FirstLSN) > src.report.SnapshotLSN {
			bytes += info.Size
		}
	}
	return bytes
}

func (src *source) applyBatch(st *state.State, b *batch) error {
	var record state.Record
	i, from := 0, 0
	for _, g := range b.groups {
		now := state.Millis(g.logTime)
		for ; i < g.end; i++ {
			s := b.spans[i]
			head := b.heads[from:s.end]
			from = s.end
			if err := applyRecord(st, &record, head, s.pos, &now); err != nil {
				return src.misfit(g.generation, g.offset, g.lsn, err)
			}
			src.report.Records++
		}
		src.last = g.lsn
		src.report.Groups++
		src.report.LogBytes += g.bytes
	}
	return nil
}

// applyRecord decodes one record into r and applies it at now, which for the first
// of a group is the group's date; it moves now on to the time of the next.
func applyRecord(st *state.State, r *state.Record, head []byte, pos wal.Pos, now *state.Millis) error {
	at, err := state.Decode(head, r)
	if err != nil {
		return err
	}
	if at != len(head) || !r.Kind.HasBody() && !pos.IsZero() {
		return fmt.Errorf("%w: record of kind %d and its body do not go together", state.ErrRecord, r.Kind)
	}
	if err := st.Apply(r, state.Body(pos), *now); err != nil {
		return err
	}
	*now = st.Now()
	return nil
}

// misfit is a group whose bytes are sound and whose records are not: damage, or
// a program that knew more kinds of records.
func (src *source) misfit(generation uint32, offset int64, lsn wal.LSN, err error) error {
	return &DamageError{
		File: wal.SegmentPath(LogDir(src.dir), generation), Offset: offset, LSN: lsn,
		Want: "records that fit the state", Got: err.Error(), Err: err,
	}
}
