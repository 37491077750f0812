// Package engine is the one writer: it decides what commands do, makes the
// records, applies them to the state, and makes them durable in groups.
//
// A command is a struct; its answer comes back in it, and may be shown once
// Wait has said that it is durable:
//
//	cmd := &engine.Enqueue{Queue: key, Payload: payload}
//	if err := e.Do(cmd); err != nil {
//		return err // the storage: ErrUnknown, ErrUnanswered, ErrFailed, ErrClosed
//	}
//	if err := cmd.Err(); err != nil {
//		return err // the command was refused and changed nothing
//	}
//	reply(cmd.ID)
//
// There are two critical sections. In the first (enter and leave) commands are
// decided, in memory, without IO, by whoever submits them. In the second
// (commits) one goroutine at a time writes a group and syncs it. The state runs
// ahead of the disk by the groups between the two, but no reply does.
//
// Time goes by only when somebody calls Turn; that is the reaper's work.
package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal"
)

// LSN numbers groups of the log, from 1.
type LSN = wal.LSN

// Start is what a start hands over: the recovered state and a log that has been
// begun behind it. Wiring, in cmd:
//
//	store, err := recovery.Open(ctx, recovery.Options{Dir: dir})
//	log, err := wal.Begin(wal.Options{Dir: store.LogDir()}, store.End)
//	e, err := engine.New(engine.Options{}, engine.Start{
//		State: store.State, Log: log, End: store.End,
//		Dir: store.Dir, LogDir: store.LogDir(), SnapshotDir: store.SnapshotDir(),
//		Store: store.Identity.ID, History: store.Identity.History,
//		Recovered: store.Report.Took, Release: store,
//	})
//	go reaper.New(e).Run(ctx)
//	…
//	err = e.Close(ctx) // also closes log and store
type Start struct {
	State *state.State // the engine's from now on
	Log   *wal.Log     // the engine's from now on; Close closes it
	End   wal.End      // what Log was begun behind

	FS          vfs.FS // nil is vfs.OS{}
	Dir         string // data directory
	LogDir      string // below Dir
	SnapshotDir string // below Dir
	Store       snapshot.StoreID
	History     uint32
	// Files are the other files of the data directory, by name, that a backup
	// must have.
	Files []string

	Recovered time.Duration // how long the start took

	// Release is closed last: it lets go of the directory. nil is nothing.
	Release io.Closer
}

// Engine owns state and log after the start. All methods may be called from
// any goroutine.
type Engine struct {
	opt   Options
	start Start
	log   *wal.Log
	fs    vfs.FS

	// mu is the critical section. The fields below are guarded by it.
	mu        sync.Mutex
	st        *state.State
	clock     clock
	entered   time.Time     // when the present stay began
	cpu       time.Duration // threadCPU then, with Options.MeasureCPU
	now       state.Millis
	open      *wal.Group   // nil when there is none
	dated     state.Millis // log time of the open group: of its first record
	whole     bool         // a transaction has made room: open must not be sealed before its end
	hasty     bool         // the present stay is TrySubmit's, and waits for no room
	hung      bool         // a command of the present Submit has waited for room in vain, whatever it answers
	sealed    []*wal.Group // oldest first, not yet taken by a leader
	last      LSN          // of the newest group with records, open or not
	head      []byte       // scratch of record
	body      []byte       // scratch of doEnqueue
	r         state.Record // scratch of the deciders
	slots     []state.Slot // scratch
	nonces    *mathrand.ChaCha8
	waiters   waiters
	tally     tally
	runs      runs
	promise   state.Millis         // when Turn is due, as the reaper was told
	schedules map[cronKey]Schedule // of crons that were looked at
	caught    map[cronKey]int      // slots made up for, of crons that are late

	pending     atomic.Int64  // bytes of groups that are not safe
	down        atomic.Uint64 // lsnFailed or lsnClosed; 0 while commands are taken
	damaged     atomic.Uint64
	full        atomic.Bool // new jobs are refused for want of disk
	limits      limits
	published   atomic.Pointer[Numbers]
	publishedAt state.Millis // guarded by mu
	began       state.Totals // when the engine was opened
	census      censusCache

	commits   commits
	watch     *time.Timer // looks at waiting commands
	flush     *time.Timer // commits what nobody waits for
	flushing  atomic.Bool
	wake      chan struct{} // see Wake
	views     chan struct{} // one view of the state at a time
	lookbacks chan struct{} // one JobHistory at a time

	keeper keeper // snapshots, cleaning, generations

	syncTime, groupRecords, groupBytes, waitTime, runTime, turnTime, turnCPU, lateTime, lessOwn, lessAll histogram

	closing sync.Once
	closed  error         // of Close
	done    chan struct{} // closed when Close is over
}

// New takes over a recovered state and its log. It writes nothing by itself but
// the first record of a new store.
func New(opt Options, start Start) (*Engine, error) {
	opt = opt.withDefaults()
	if err := opt.validate(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if start.State == nil || start.Log == nil {
		return nil, errors.New("engine: a start needs a state and a log")
	}
	if start.FS == nil {
		start.FS = vfs.OS{}
	}
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	e := &Engine{
		opt: opt, start: start, log: start.Log, fs: start.FS, st: start.State,
		clock:     newClock(looker(), max(start.State.Now(), state.Millis(start.End.LogTime)), state.Millis(start.End.WallTime)),
		last:      start.End.LSN,
		nonces:    mathrand.NewChaCha8(seed),
		promise:   state.Forever,
		schedules: make(map[cronKey]Schedule),
		caught:    make(map[cronKey]int),
		wake:      make(chan struct{}, 1),
		views:     make(chan struct{}, 1),
		lookbacks: make(chan struct{}, 1),
		began:     start.State.Totals(),
		done:      make(chan struct{}),
	}
	e.syncTime.unit, e.turnTime.unit = 10, 1        // µs
	e.turnCPU.unit, e.lateTime.unit = 1, 625        // µs; 10 ms is a bound
	e.lessOwn.unit, e.lessAll.unit = 78_125, 78_125 // ns; 20 ms is a bound
	e.groupRecords.unit, e.groupBytes.unit = 1, 256
	e.waitTime.unit, e.runTime.unit = 1, 1 // ms
	e.commits.failed = make(chan struct{})
	e.commits.quiet.init()
	e.commits.safe.Store(uint64(start.End.LSN))
	e.watch = time.AfterFunc(time.Hour, e.watchWaiting)
	e.flush = time.AfterFunc(time.Hour, e.flushOpen)
	e.limits.set(Limits{
		MaxWaiters: opt.MaxWaiters, MaxMemory: opt.MaxMemory, MaxDisk: opt.MaxDisk,
		SnapshotBytes: opt.SnapshotBytes, SnapshotRate: opt.SnapshotRate, SnapshotInterval: opt.SnapshotInterval, Keep: opt.Keep,
	})
	e.keeper.init(e)
	if err := e.begin(); err != nil {
		e.keeper.stop()
		return nil, fmt.Errorf("engine: %w", err)
	}
	e.keeper.run()
	return e, nil
}

// begin writes what a new store begins with, and the offset of the wall clock
// where it is another than when the store was closed.
func (e *Engine) begin() error {
	if !e.enter() {
		return e.refusal()
	}
	if e.st.Now() == 0 && e.start.End.LSN == 0 {
		if err := e.room(2 * recordRoom); err != nil {
			e.leave()
			return err
		}
		secret := make([]byte, 16)
		e.nonces.Read(secret)
		e.record(&state.Record{Kind: state.KindSecret, Text: secret}, nil)
		e.record(&state.Record{Kind: state.KindClock, At: e.clock.offset}, nil)
	} else if offset := e.clock.offset; offset != e.st.Offset() {
		if err := e.room(recordRoom); err != nil {
			e.leave()
			return err
		}
		e.record(&state.Record{Kind: state.KindClock, At: offset}, nil)
	}
	return e.Wait(e.leave())
}

// Failed is closed when the storage has failed; Failure says how.
func (e *Engine) Failed() <-chan struct{} { return e.commits.failed }

// Failure is nil while the storage works.
func (e *Engine) Failure() error {
	select {
	case <-e.commits.failed:
		return e.commits.cause
	default:
		return nil
	}
}

// Close refuses what comes from now on with ErrClosed, makes durable what was
// decided, writes the closed marker and releases the directory. Blocked fetchers
// are refused. Only the first call does anything; all return the same, once it
// is over. A context that ends gives up the waiting for the disk: the next start
// recovers. The directory then stays locked until the process is gone, because a
// write to it may still be under way.
func (e *Engine) Close(ctx context.Context) error {
	e.closing.Do(func() {
		defer close(e.done)
		e.closed = e.close(ctx)
	})
	<-e.done
	return e.closed
}

func (e *Engine) close(ctx context.Context) error {
	e.mu.Lock()
	e.down.CompareAndSwap(0, uint64(lsnClosed))
	last := e.last
	for _, l := range e.waiters.lines {
		for l.first != nil {
			w := l.first.w
			e.waiters.leave(w)
			w.Fetch.refuse(ErrClosed)
			w.LSN = lsnNothing
			w.C <- struct{}{}
		}
	}
	e.mu.Unlock()
	over := make(chan error, 1)
	go func() {
		e.keeper.stop()
		err := e.Wait(last)
		for err == ErrUnanswered { // it may answer yet: ctx says how long that is waited for
			err = e.Wait(last)
		}
		if err == nil {
			e.endGroups()
		}
		e.watch.Stop()
		e.flush.Stop()
		if closing := e.log.Close(); err == nil {
			err = closing
		}
		over <- err
	}()
	var err error
	select {
	case err = <-over:
	case <-ctx.Done():
		return fmt.Errorf("close: the disk does not answer: %w", ctx.Err())
	}
	if e.start.Release != nil {
		if release := e.start.Release.Close(); err == nil {
			err = release
		}
	}
	return err
}

// endGroups takes the group back that may be open, which has no records, for the log
// wants every group that it opened. Nobody leads after it.
func (e *Engine) endGroups() {
	e.takeLead()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open != nil {
		e.seal()
	}
}

// Dump writes the state as text, for tests and tools. It holds up everything
// else meanwhile.
func (e *Engine) Dump(w io.Writer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.st.Dump(w)
}

// Check says what is wrong with the state, nil when all its indexes and counts
// agree. It looks at everything, and holds up everything else meanwhile.
func (e *Engine) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.st.Check()
}
