package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
)

// A world is a store with a small engine on it: it decides, logs and applies as
// the real one does, one group a step, and remembers what the state was after
// each group. So a test can say of any recovered state whether it is exactly a
// prefix of what happened, and whether all that was acknowledged is in it.
type world struct {
	fs    vfs.FS
	dir   string
	rng   *rand.Rand
	past  *past
	store *recovery.Store
	log   *wal.Log
	st    *state.State
	wall  state.Millis
}

// past is what happened to a store in all its lives.
type past struct {
	dumps map[uint64]string // state after each group, by LSN
	acked uint64            // last LSN that was acknowledged as durable
	walls map[uint64]int64
}

func newPast() *past { return &past{dumps: map[uint64]string{}, walls: map[uint64]int64{}} }

// bytesFrom makes an io.Reader of a random number generator.
type bytesFrom struct{ rng *rand.Rand }

func (b bytesFrom) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b.rng.Uint32())
	}
	return len(p), nil
}

func options(fs vfs.FS, dir string) recovery.Options {
	return recovery.Options{FS: fs, Dir: dir, Random: bytesFrom{rand.New(rand.NewPCG(7, 7))}}
}

// generationBytes of a world's log. The smallest there are make many.
const generationBytes = wal.MinGenerationBytes

// openWorld recovers the store in dir and begins to work on it. A recovered
// state that is not one of the past is an error that says so.
func openWorld(fs vfs.FS, dir string, seed uint64, p *past) (*world, error) {
	store, err := recovery.Open(context.Background(), options(fs, dir))
	if err != nil {
		return nil, err
	}
	w := &world{fs: fs, dir: dir, past: p, store: store, st: store.State, rng: rand.New(rand.NewPCG(seed, 1))}
	if err := p.holds(store.State, store.End); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	w.wall = max(state.Millis(store.End.WallTime), 1_700_000_000_000)
	w.log, err = wal.Begin(wal.Options{
		FS: fs, Dir: store.LogDir(), GenerationBytes: generationBytes, Ahead: 1, CacheBytes: -1, Foreground: true,
		Random: bytesFrom{rand.New(rand.NewPCG(seed, 2))},
	}, store.End)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return w, nil
}

// errHistory is a recovered state that never was, or that misses something.
var errHistory = errors.New("not what happened")

// holds compares a recovered state with the past.
func (p *past) holds(st *state.State, end wal.End) error {
	lsn := uint64(end.LSN)
	if lsn < p.acked {
		return fmt.Errorf("%w: the log ends with group %d, but group %d was acknowledged", errHistory, lsn, p.acked)
	}
	if err := st.Check(); err != nil {
		return fmt.Errorf("%w: %w", errHistory, err)
	}
	got := dump(st)
	want, known := p.dumps[lsn]
	if lsn == 0 {
		want, known = dump(state.New()), true
	}
	if !known {
		return fmt.Errorf("%w: group %d never was", errHistory, lsn)
	}
	if got != want {
		return fmt.Errorf("%w: at group %d got\n%s\nwant\n%s", errHistory, lsn, got, want)
	}
	return nil
}

func dump(st *state.State) string {
	var b strings.Builder
	if err := st.Dump(&b); err != nil {
		panic(err)
	}
	return b.String()
}

// fact is a record and its body.
type fact struct {
	r    state.Record
	body []byte
}

// commit logs facts as one group and applies them. On an error the world must
// not be used any more.
func (w *world) commit(facts ...fact) error {
	n := 0
	var heads [][]byte
	for i := range facts {
		heads = append(heads, facts[i].r.AppendHead(nil))
		n += wal.RecordBytes(len(heads[i]), len(facts[i].body))
	}
	g, err := w.log.Open(n)
	if err != nil {
		return err
	}
	w.wall += state.Millis(w.rng.IntN(2000))
	now := w.st.Now() + state.Millis(w.rng.IntN(2000))
	for i := range facts {
		pos := g.Add(heads[i], facts[i].body)
		if err := w.st.Apply(&facts[i].r, state.Body(pos), now); err != nil {
			panic(fmt.Sprintf("the test made a record that does not fit: %v: %+v", err, facts[i].r))
		}
	}
	w.log.Seal(g, int64(now), int64(w.wall))
	w.past.dumps[uint64(g.LSN())] = dump(w.st)
	w.past.walls[uint64(g.LSN())] = int64(w.wall)
	if err := w.log.Commit(g); err != nil {
		return err
	}
	w.past.acked = uint64(g.LSN())
	return nil
}

// queue finds or makes a queue, and the fact that makes it.
func (w *world) queue(key string) (state.QueueID, []fact) {
	if id, ok := w.st.QueueByKey([]byte(key)); ok {
		return id, nil
	}
	id := w.st.NextQueue()
	return id, []fact{{r: state.Record{Kind: state.KindQueue, Queue: id, Text: []byte(key)}}}
}

// enqueue adds one job with a payload of so many bytes.
func (w *world) enqueue(key string, size int) (state.JobID, error) {
	q, facts := w.queue(key)
	slot, reuse := w.st.NextSlot()
	body := make([]byte, size)
	_, _ = bytesFrom{w.rng}.Read(body)
	r := state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: q, Born: w.wall}
	if w.rng.IntN(4) == 0 {
		r.At = w.st.Now() + 60_000
	}
	return state.NewJobID(w.wall, slot, reuse, 0), w.commit(append(facts, fact{r, body})...)
}

// comeAndGo enqueues so many jobs, and then they are deleted, in an order of their
// own.
func (w *world) comeAndGo(jobs int) error {
	var slots []state.Slot
	for range jobs {
		slot, _ := w.st.NextSlot()
		if _, err := w.enqueue("default/default/q0", 5); err != nil {
			return err
		}
		slots = append(slots, slot)
	}
	w.rng.Shuffle(jobs/2, func(i, k int) { slots[i], slots[k] = slots[k], slots[i] })
	for _, slot := range slots {
		if err := w.commit(fact{r: state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CauseDelete}}); err != nil {
			return err
		}
	}
	return nil
}

// lease takes the next job of a queue, if there is one.
func (w *world) lease(key string) (slot state.Slot, err error) {
	q, ok := w.st.QueueByKey([]byte(key))
	if !ok {
		return 0, nil
	}
	slot, block := w.st.NextReady(q, w.st.Now())
	if slot == 0 || block.Why != state.NotBlocked {
		return 0, nil
	}
	r := state.Record{Kind: state.KindLease, Slot: slot, At: w.st.Now() + 600_000}
	_, _ = bytesFrom{w.rng}.Read(r.Nonce[:])
	return slot, w.commit(fact{r: r})
}

// step does one random thing.
func (w *world) step() error {
	key := fmt.Sprintf("default/default/q%d", w.rng.IntN(3))
	switch w.rng.IntN(10) {
	case 0, 1, 2, 3, 4:
		_, err := w.enqueue(key, 1+w.rng.IntN(600))
		return err
	case 5, 6, 7:
		slot, err := w.lease(key)
		if slot == 0 || err != nil {
			return err
		}
		switch w.rng.IntN(4) {
		case 0:
			return nil
		case 1:
			return w.commit(fact{r: state.Record{Kind: state.KindFail, Slot: slot, Cause: state.CauseNack, Place: state.Dead, Text: []byte("no")}})
		default:
			return w.commit(fact{r: state.Record{Kind: state.KindAck, Slot: slot}})
		}
	case 8:
		return w.snapshot()
	default:
		return w.clean()
	}
}

// snapshot writes one of the present state, as the engine does.
func (w *world) snapshot() error {
	if len(w.past.dumps) == 0 {
		return nil
	}
	view := w.st.View()
	defer w.st.Release(view)
	counts := w.st.Counts()
	meta := snapshot.Meta{
		Store: w.store.Identity.ID, History: w.store.Identity.History, LSN: w.past.acked,
		LogTime: w.st.Now(), Wall: w.wall,
		Jobs: counts.Jobs[1] + counts.Jobs[2] + counts.Jobs[3] + counts.Jobs[4],
	}
	durable := snapshot.Beside{Durable: func(context.Context) error { return nil }} // every commit is
	_, err := snapshot.Write(context.Background(), w.fs, w.store.SnapshotDir(), view, meta, durable)
	return err
}

// clean prunes snapshots and drops the generations that nothing needs.
func (w *world) clean() error {
	floor, err := snapshot.Prune(w.fs, w.store.SnapshotDir(), w.wall, 0)
	if err != nil {
		return err
	}
	for _, info := range w.log.Generations() {
		if info.Sealed && uint64(info.LastLSN) <= floor && w.st.Live(info.Generation).Jobs == 0 {
			if err := w.log.Drop(info.Generation); err != nil {
				return err
			}
		}
	}
	return nil
}

// work does so many steps.
func (w *world) work(steps int) error {
	for range steps {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// close stops cleanly.
func (w *world) close() error {
	return errors.Join(w.log.Close(), w.store.Close())
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
