// Package engine is the one writer: it decides what commands do, makes the
// records, applies them to the state, and makes them durable in groups.
package engine

import (
	"context"
	"errors"

	"pawl/state"
)

// LSN numbers groups of the log, from 1.
type LSN uint64

// Engine owns state and log after the start. All methods may be called from
// any goroutine.
type Engine struct{}

// body is where a delivery's bytes are, and the hold on them.
type body struct{}

// Submit decides and applies cmds in one step, in order, in one critical
// section, and fills their answers, which nobody may see before Wait(lsn) has
// returned nil.
func (e *Engine) Submit(cmds ...Command) LSN { panic("not yet") }

// Wait returns nil when lsn is durable. ErrUnknown, ErrFailed, ErrHung or
// ErrClosed otherwise. The caller may lead a commit meanwhile.
func (e *Engine) Wait(lsn LSN) error { panic("not yet") }

// Do is Submit and Wait. It returns what Wait says, not the commands' errors.
// A context that ends gives up nothing: the commands have been decided.
func (e *Engine) Do(cmds ...Command) error { panic("not yet") }

// A Waiter is one blocked Fetch.
type Waiter struct {
	// C receives once, when Fetch has its answer and LSN says what to Wait for.
	C     chan struct{}
	Fetch *Fetch
	LSN   LSN
}

// Await tries f at once. Where there is a job, or f is refused, the waiter is nil
// and lsn counts. Else f joins the waiting of all its queues, first come,
// first served, until Cancel or until there is a job. At most
// Options.MaxWaiters wait; beyond it f is refused with ErrBusy.
func (e *Engine) Await(f *Fetch) (w *Waiter, lsn LSN) { panic("not yet") }

// Cancel ends the waiting. False: a job was handed to the waiter before; C has
// it, and the caller must take it or Undeliver it.
func (e *Engine) Cancel(w *Waiter) bool { panic("not yet") }

// Load reads payload and attributes of a delivery whose LSN is durable and
// drops its hold. ErrDamaged: the bytes are rotten, the job has been buried as
// DAMAGED, fetch another one.
func (e *Engine) Load(d *Delivery) error { panic("not yet") }

// Undeliver gives jobs whose reply could not be written back to the heads of
// their queues, untouched, so that the order is kept. It counts as no failure.
func (e *Engine) Undeliver(jobs []Delivery) LSN { panic("not yet") }

// LoadView does for a JobView what Load does for a Delivery.
func (e *Engine) LoadView(v *JobView) error { panic("not yet") }

// ForgetView drops a view without reading it.
func (e *Engine) ForgetView(v *JobView) { panic("not yet") }

// Purge runs a QueuePurge in turns and returns when its last record is durable.
func (e *Engine) Purge(ctx context.Context, p *QueuePurge) error { panic("not yet") }

// Redrive runs a QueueRedrive like Purge.
func (e *Engine) Redrive(ctx context.Context, r *QueueRedrive) error { panic("not yet") }

// Snapshot writes one now, or joins the one under way, and returns when it is
// in place.
func (e *Engine) Snapshot(ctx context.Context) error { panic("not yet") }

// Backup writes a consistent copy of the data directory to dir, which must not
// exist.
func (e *Engine) Backup(ctx context.Context, dir string) error { panic("not yet") }

// Failed is closed when the storage has failed; Failure says how.
func (e *Engine) Failed() <-chan struct{} { panic("not yet") }

// Failure is nil while the storage works.
func (e *Engine) Failure() error { panic("not yet") }

// Close answers what is waiting, writes the closed marker and releases the
// directory. Blocked fetchers get nothing.
func (e *Engine) Close(ctx context.Context) error { panic("not yet") }

// Census is a copy of the queue table, at most a second old; nobody may change
// it. It never waits for a commit.
func (e *Engine) Census() *Census { panic("not yet") }

// Census is what metrics and dashboards read.
type Census struct {
	At     state.Millis // wall
	Queues []QueueView  // sorted by key
	Crons  []state.Cron // sorted
}

// Numbers are counters and gauges of the engine and its log since it opened.
// Reading them never waits for the disk or the critical section.
type Numbers struct {
	Jobs                         [5]int64 // by Place
	QueueCount, GroupCount       int64
	Waiting                      int64 // blocked fetchers
	Enqueued, Delivered, Acked   uint64
	Nacked, Released, Expired    uint64
	Dead, Deleted, Lapsed        uint64
	Duplicates, Refused          uint64
	AppliedLSN, DurableLSN       LSN
	Groups, Records, Syncs       uint64
	LogBytesWritten              uint64
	LogBytes, LiveBytes          int64 // on disk; of records of existing jobs
	Generations                  int64
	OldestUnsyncedMs             int64
	SnapshotLSN                  LSN
	SnapshotAt                   state.Millis // wall; 0 is none
	SnapshotMs                   int64        // how long the last one took
	SnapshotFailures             uint64
	Snapshotting, Full, Draining bool
	DiskFree                     int64
	MemoryBytes                  int64 // of the state
	DamagedBodies, CleanedBytes  uint64
	ClockSteps                   uint64
	CutBytes                     int64 // at the last start
	RecoveredMs                  int64
}

// Numbers reads them.
func (e *Engine) Numbers() Numbers { panic("not yet") }

// ErrDamaged is Load's: the body on disk is not what was written.
var ErrDamaged = errors.New("job body is damaged on disk")
