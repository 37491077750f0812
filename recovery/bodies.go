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
	bodies := bodiesOf(st, unread)
	for _, live := range unread {
		if err := src.verifyGeneration(ctx, st, live.Generation, bodies[live.Generation], func(_ state.Job, err error) error { return err }); err != nil {
			return err
		}
		delete(bodies, live.Generation)
		src.report.Bodies += int64(live.Bytes)
		src.progress(Progress{Phase: "bodies", Done: src.report.Bodies, Total: total, Records: src.report.Records})
	}
	return nil
}

// livesOf is what a state needs of the generations. Jobs with empty payloads
// have no body, and need none.
func livesOf(st *state.State) []state.Live {
	return slices.DeleteFunc(st.Lives(), func(live state.Live) bool { return live.Generation == 0 })
}

// unreplayed is what st needs of the generations that replay has not read
// whole: those that begin at or below the snapshot.
func (src *source) unreplayed(st *state.State) (unread []state.Live) {
	for _, live := range livesOf(st) {
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

// verifyGeneration reads bodies in one generation, in the order in which they
// lie there, and gives every damaged one to found, whose error ends it. found
// gets a *DamageError. Jobs that were buried because their body is damaged are
// left out.
func (src *source) verifyGeneration(ctx context.Context, st *state.State, generation uint32, bodies []bodyAt, found func(state.Job, error) error) error {
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
	w := window{f: f, size: size}
	for _, at := range bodies {
		if err := ctx.Err(); err != nil {
			return err
		}
		got := "the end of the file"
		if int64(at.body.Offset)+int64(at.body.Length) <= size {
			b, err := w.at(int64(at.body.Offset), int(at.body.Length))
			if err != nil {
				return fmt.Errorf("read %s: %w", path, err)
			}
			sum := crc32.Checksum(b, castagnoli)
			if sum == at.body.Checksum {
				continue
			}
			got = fmt.Sprintf("checksum %08x instead of %08x", sum, at.body.Checksum)
		}
		job, _ := st.Job(at.slot)
		if job.Place == state.Dead && job.Reason == damagedReason {
			continue
		}
		err := found(job, &DamageError{
			File: path, Offset: int64(at.body.Offset),
			Want: fmt.Sprintf("the payload of job %s, %d bytes", job.ID, at.body.Length), Got: got,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// window reads a file in large pieces for who wants small ones in order.
type window struct {
	f    vfs.File
	size int64
	from int64 // of b in the file
	b    []byte
}

// windowBytes is how much a window reads at once, or one body if that is larger.
const windowBytes = 1 << 20

// at returns n bytes at off, which are in the file, valid until the next call.
func (w *window) at(off int64, n int) ([]byte, error) {
	if off < w.from || off+int64(n) > w.from+int64(len(w.b)) {
		want := int(min(int64(max(n, windowBytes)), w.size-off))
		w.b = slices.Grow(w.b[:0], want)[:want]
		w.from = off
		if got, err := w.f.ReadAt(w.b, off); got < want {
			w.b = w.b[:0]
			return nil, err
		}
	}
	return w.b[off-w.from:][:n], nil
}

// bodyAt is a job and where its body lies.
type bodyAt struct {
	slot state.Slot
	body state.Body
}

// bodiesOf is the jobs with bodies in some generations, by generation and place.
func bodiesOf(st *state.State, lives []state.Live) map[uint32][]bodyAt {
	bodies := make(map[uint32][]bodyAt, len(lives))
	for _, live := range lives {
		bodies[live.Generation] = make([]bodyAt, 0, live.Jobs)
	}
	st.Bodies(func(slot state.Slot, body state.Body) bool {
		if list, wanted := bodies[body.Generation]; wanted {
			bodies[body.Generation] = append(list, bodyAt{slot, body})
		}
		return true
	})
	for _, list := range bodies {
		slices.SortFunc(list, func(a, b bodyAt) int { return cmp.Compare(a.body.Offset, b.body.Offset) })
	}
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
