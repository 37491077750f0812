package recovery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
)

// A branch is a state of a store's past, or what is left of a damaged one, from
// which a new history is to begin.
type branch struct {
	state *state.State
	end   wal.End      // where the old history ends
	drop  []state.Slot // jobs that do not come along
	carry []bodyAt     // jobs whose bodies come along without their generation
}

// fork writes the branch into a directory, which the caller has made and locked, as
// a store of the same ID and the next history number. The generations that hold bodies
// are copied, a new one is linked behind the end, and one snapshot is written.
// Then everything is read back. When fork returns nil the directory is durable
// and opens as the branch says.
func (src *source) fork(ctx context.Context, to string, b branch) error {
	if err := makeEmpty(src.fs, to); err != nil {
		return err
	}
	if err := src.copyGenerations(ctx, to, b); err != nil {
		return err
	}
	meta := snapshot.Meta{Store: src.identity.ID, History: src.identity.History + 1}
	if err := src.beginHistory(to, &b, &meta); err != nil {
		return err
	}
	view := b.state.View()
	defer b.state.Release(view)
	closed := snapshot.Beside{Durable: func(context.Context) error { return nil }}
	if _, err := snapshot.Write(ctx, src.fs, SnapshotDir(to), view, meta, closed); err != nil {
		return err
	}
	id := src.identity
	id.History = meta.History
	if err := writeIdentity(src.fs, to, id); err != nil {
		return err
	}
	if err := src.fs.SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	return readsBack(ctx, src.fs, to, b.state)
}

// makeEmpty makes a directory ready for a store. What an interrupted try left in it
// is removed.
func makeEmpty(fsys vfs.FS, dir string) error {
	if err := vfs.RemoveBelow(fsys, dir); err != nil {
		return err
	}
	for _, dir := range []string{LogDir(dir), SnapshotDir(dir)} {
		if err := fsys.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// copyGenerations copies what holds bodies of the branch, and the generation
// that its log ends in.
func (src *source) copyGenerations(ctx context.Context, to string, b branch) error {
	wanted := []uint32{b.end.Generation}
	for _, live := range livesOf(b.state) {
		if live.Generation != b.end.Generation && src.isLinked(live.Generation) {
			wanted = append(wanted, live.Generation)
		}
	}
	for _, number := range wanted {
		from := wal.SegmentPath(LogDir(src.dir), number)
		made := wal.SegmentPath(LogDir(to), number)
		if err := src.fs.Mkdir(filepath.Dir(made), 0o700); err != nil {
			return err
		}
		err := copyFile(ctx, src.fs, from, made, src.lengthOf(number, b.end))
		if errors.Is(err, fs.ErrNotExist) {
			// All jobs in it are dropped, or the log ended with it and it has gone.
			if err := src.fs.Remove(filepath.Dir(made)); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := src.fs.SyncDir(filepath.Dir(made)); err != nil {
			return err
		}
	}
	return src.fs.SyncDir(LogDir(to))
}

// lengthOf is how many bytes of a generation are history.
func (src *source) lengthOf(number uint32, end wal.End) int64 {
	if number == end.Generation {
		return int64(end.Length)
	}
	for _, info := range src.history.Linked {
		if info.Generation == number {
			return info.Length
		}
	}
	return math.MaxInt64
}

// beginHistory links a new generation behind the branch's end and logs what it
// drops and carries. It fills in what the snapshot of the result says of itself.
func (src *source) beginHistory(to string, b *branch, meta *snapshot.Meta) error {
	opt := toolLog(src.fs, LogDir(to))
	opt.GenerationBytes = min(max(opt.GenerationBytes, 2*b.logBytes()), wal.DefaultGenerationBytes)
	b.end.Linked, b.end.Unused = nil, nil // nothing of the old directory is to be tidied in the new one
	l, err := wal.Begin(opt, b.end)
	if err != nil {
		return err
	}
	meta.LSN = uint64(b.end.LSN)
	now := max(b.state.Now(), state.Millis(b.end.LogTime))
	meta.LogTime, meta.Wall = now, state.Millis(b.end.WallTime)
	err = logDrops(l, b, meta)
	for _, at := range b.carry {
		if err == nil {
			err = src.logCarry(l, b, meta, at)
		}
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	meta.Jobs = jobsIn(b.state.Counts())
	return l.Close()
}

// logBytes is how much the branch logs of what it drops and carries, at most.
func (b *branch) logBytes() int {
	const head = 64 // of a record, without its body
	n := head * len(b.drop)
	for _, at := range b.carry {
		n += wal.RecordBytes(head, int(at.body.Length))
	}
	return n
}

// logDrops deletes the dropped jobs by records, in as many groups as it takes.
func logDrops(l *wal.Log, b *branch, meta *snapshot.Meta) error {
	var head []byte
	for rest := b.drop; len(rest) > 0; {
		g, err := l.Open(wal.RecordBytes(64, 0))
		if err != nil {
			return err
		}
		for len(rest) > 0 && !g.Full() {
			r := state.Record{Kind: state.KindDelete, Slot: rest[0], Cause: state.CauseDelete}
			head = r.AppendHead(head[:0])
			if !g.Fits(wal.RecordBytes(len(head), 0)) {
				break
			}
			if err := b.state.Apply(&r, state.Body{}, meta.LogTime); err != nil {
				return fmt.Errorf("drop job in slot %d: %w", rest[0], err)
			}
			g.Add(head, nil)
			rest = rest[1:]
		}
		l.Seal(g, int64(meta.LogTime), int64(meta.Wall))
		if err := l.Commit(g); err != nil {
			return err
		}
		meta.LSN = uint64(g.LSN())
	}
	return nil
}

// logCarry writes one body into the new log.
func (src *source) logCarry(l *wal.Log, b *branch, meta *snapshot.Meta, at bodyAt) error {
	if _, ok := b.state.Job(at.slot); !ok {
		return nil // dropped
	}
	body, err := readBody(src.fs, wal.SegmentPath(LogDir(src.dir), at.body.Generation), at.body)
	if err != nil {
		return err
	}
	r := state.Record{Kind: state.KindCarry, Slot: at.slot}
	head := r.AppendHead(nil)
	g, err := l.Open(wal.RecordBytes(len(head), len(body)))
	if err != nil {
		return err
	}
	pos := g.Add(head, body)
	if err := b.state.Apply(&r, state.Body(pos), meta.LogTime); err != nil {
		return fmt.Errorf("carry the payload of slot %d: %w", at.slot, err)
	}
	l.Seal(g, int64(meta.LogTime), int64(meta.Wall))
	meta.LSN = uint64(g.LSN())
	return l.Commit(g)
}

// readsBack checks a directory as a start would find it and compares it with
// the state that it was made of.
func readsBack(ctx context.Context, fsys vfs.FS, dir string, want *state.State) error {
	health, err := check(ctx, fsys, dir, nil)
	if err != nil {
		return fmt.Errorf("read back %s: %w", dir, err)
	}
	if err := errors.Join(health.Problems...); err != nil {
		return fmt.Errorf("read back %s: %w", dir, err)
	}
	// Their hashes: a dump is several times as large as the state.
	got, wanted := sha256.New(), sha256.New()
	if err := errors.Join(health.State.Dump(got), want.Dump(wanted)); err != nil {
		return err
	}
	if !bytes.Equal(got.Sum(nil), wanted.Sum(nil)) {
		return fmt.Errorf("read back %s: it holds another state than was written", dir)
	}
	return nil
}
