package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"

	"pawl/internal/vfs"
	"pawl/state"
	"pawl/wal"
)

// damagedReason is the reason of jobs that were buried because their body is
// rotten: that is known, and no start is refused for it again.
const damagedReason = "DAMAGED"

// verifyBodies reads the bodies of all jobs in generations that were not
// replayed, unless they are more than limit bytes.
func (src *source) verifyBodies(ctx context.Context, st *state.State, limit int64) error {
	unread := src.unreplayed(st)
	var total int64
	for _, live := range unread {
		total += int64(live.Bytes)
	}
	if total > limit {
		return nil
	}
	for _, live := range unread {
		if err := src.verifyGeneration(ctx, st, live.Generation, func(_ state.Job, err error) error { return err }); err != nil {
			return err
		}
		src.report.Bodies += int64(live.Bytes)
		src.progress(Progress{Phase: "bodies", Done: src.report.Bodies, Total: total, Records: src.report.Records})
	}
	return nil
}

// unreplayed is what st needs of the generations that replay has not read
// whole: those that begin at or below the snapshot.
func (src *source) unreplayed(st *state.State) (unread []state.Live) {
	for _, live := range st.Lives() {
		i := src.linked(live.Generation)
		if i < 0 || uint64(src.history.Linked[i].FirstLSN) <= src.report.SnapshotLSN {
			unread = append(unread, live)
		}
	}
	return unread
}

// linked is where a generation stands in the history's list, -1 where it does
// not.
func (src *source) linked(generation uint32) int {
	return slices.IndexFunc(src.history.Linked, func(info wal.Info) bool { return info.Generation == generation })
}

func (src *source) isLinked(generation uint32) bool { return src.linked(generation) >= 0 }

// verifyGeneration reads the bodies of all jobs in one generation in the order
// in which they lie there, and gives every damaged one to found, whose error
// ends it. found gets a *DamageError. Jobs that were buried because their body
// is damaged are left out.
func (src *source) verifyGeneration(ctx context.Context, st *state.State, generation uint32, found func(state.Job, error) error) error {
	path := wal.SegmentPath(LogDir(src.dir), generation)
	f, err := src.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &DamageError{File: path, Want: "a segment file", Got: "no such file", Err: err}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if src.settle {
		if err := errors.Join(f.Sync(), f.DropCache()); err != nil {
			return err
		}
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	var b []byte
	for _, at := range bodiesIn(st, generation) {
		if err := ctx.Err(); err != nil {
			return err
		}
		job, _ := st.Job(at.slot)
		if job.Place == state.Dead && job.Reason == damagedReason {
			continue
		}
		got := "the end of the file"
		if int64(at.body.Offset)+int64(at.body.Length) <= size {
			b = slices.Grow(b[:0], int(at.body.Length))[:at.body.Length]
			if n, err := f.ReadAt(b, int64(at.body.Offset)); n < len(b) {
				return fmt.Errorf("read %s: %w", path, err)
			}
			sum := crc32.Checksum(b, castagnoli)
			if sum == at.body.Checksum {
				continue
			}
			got = fmt.Sprintf("checksum %08x instead of %08x", sum, at.body.Checksum)
		}
		damage := &DamageError{
			File: path, Offset: int64(at.body.Offset),
			Want: fmt.Sprintf("the payload of job %s, %d bytes", job.ID, at.body.Length), Got: got,
		}
		if err := found(job, damage); err != nil {
			return err
		}
	}
	return nil
}

// bodyAt is a job and where its body lies.
type bodyAt struct {
	slot state.Slot
	body state.Body
}

// bodiesIn is the jobs with bodies in one generation, by place.
func bodiesIn(st *state.State, generation uint32) (bodies []bodyAt) {
	var slots []state.Slot
	for from := state.Slot(0); ; {
		slots, from = st.BodiesIn(slots[:0], generation, from, 1024)
		for _, slot := range slots {
			job, _ := st.Job(slot)
			bodies = append(bodies, bodyAt{slot, job.Body})
		}
		if from == 0 {
			break
		}
	}
	slices.SortFunc(bodies, func(a, b bodyAt) int { return cmp.Compare(a.body.Offset, b.body.Offset) })
	return bodies
}

// readBody reads one body from a segment file, without a look at its checksum.
func readBody(fsys vfs.FS, path string, at state.Body) (b []byte, err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	b = make([]byte, at.Length)
	if n, err := f.ReadAt(b, int64(at.Offset)); n < len(b) {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return b, f.Close()
}
