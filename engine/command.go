package engine

import "pawl/state"

// A Command is one wish of one client, with the place for its answer. Every
// command is a struct of this package, passed by pointer; the engine fills its
// answer fields and its error while it decides, and nobody may read or show
// them before Wait has returned nil for the LSN that Submit gave.
//
// Slices in a command belong to the caller and are not kept by the engine.
// Strings and slices in an answer belong to the caller once it has them.
//
// Refused commands change nothing. Their error is one of this package's
// sentinels or a *Refusal; which of them a command can meet is said at it.
type Command interface {
	// Err is why the command was refused, nil when it was carried out.
	Err() error
	refuse(error)
}

// Outcome is embedded by every command.
type Outcome struct{ err error }

// Err implements Command.
func (o *Outcome) Err() error       { return o.err }
func (o *Outcome) refuse(err error) { o.err = err }

// Attr is one attribute of a job: at most 16 a job, 255 bytes each part.
type Attr struct{ Name, Value []byte }

// Optional numbers: a request's own option wins over the queue's default.
type Optional[T any] struct {
	Set   bool
	Value T
}

// Some is an option that was given.
func Some[T any](v T) Optional[T] { return Optional[T]{true, v} }

// Backoff is the wait after a failure: Base × 2^(failures−1), at most Max, of
// which a random half to all is taken. A zero Base is none. A zero Max is one
// hour.
type Backoff struct{ Base, Max state.Millis }

// Enqueue adds one job. Refusals: ErrEmptyName, ErrNameTooLong, ErrTooLarge,
// ErrTTLShorter, ErrAttrs, ErrQueueFull, ErrDraining, ErrNoMemory, ErrNoSpace,
// ErrTooMany.
type Enqueue struct {
	Outcome
	Queue   []byte // queue key
	Payload []byte

	Delay    state.Millis           // from now, 0 is none
	At       Optional[state.Millis] // wall time, Unix milliseconds; excludes Delay
	TTL      Optional[state.Millis] // from now; 0 is no limit
	Priority int8
	Tries    Optional[uint16] // failures until dead; 0 is no limit
	Backoff  Optional[Backoff]
	Unique   []byte       // nil is none; at most 255 bytes
	For      state.Millis // window of Unique; 0 is 60,000
	Group    []byte       // nil is none; at most 255 bytes
	Attrs    []Attr

	// Answer.
	ID        state.JobID
	Duplicate bool // a live job with the same key exists; ID is that job's

	prefix     []byte // of the body
	bySchedule bool   // a cron's, which a drain does not stop
}

// Fetch takes leases on the next jobs of the first of Queues that has any,
// then of the next, until Count are taken.
type Fetch struct {
	Outcome
	Queues  [][]byte     // queue keys, in order of preference; at most 1,024
	LeaseMs state.Millis // 0 ends at once (lmstfy's ttr 0)
	Count   int          // 0 is 1
	// Answer: empty when there was none. Each delivery must be given to exactly
	// one of Engine.Load, Engine.Undeliver or Engine.Forget.
	Jobs []Delivery
}

// Delivery is one leased job on its way to a worker.
type Delivery struct {
	Lease      state.LeaseID
	ID         state.JobID
	Queue      string // queue key
	Attempt    uint32 // from 1
	Failures   uint32
	Tries      uint16 // 0 is no limit
	Priority   int8
	EnqueuedAt state.Millis // wall
	Deadline   state.Millis // wall
	TTLLeft    state.Millis // until the job expires; 0 is never

	// Filled by Engine.Load or Engine.TryLoad.
	Payload []byte
	Attrs   []Attr

	body body // owned by the engine
}

// Ack finishes the jobs of the leases. Refusal of a single one: ErrNoLease.
// With several, Err is nil and Done says which; ErrPartly where it was interrupted.
type Ack struct {
	Outcome
	Leases []state.LeaseID
	Done   []bool
}

// Nack gives a job back as failed. Refusal: ErrNoLease.
type Nack struct {
	Outcome
	Lease  state.LeaseID
	Delay  Optional[state.Millis] // instead of the job's backoff
	Reason []byte                 // cut to 255 bytes
}

// Release gives a job back untouched, at the head of its queue. Refusal: ErrNoLease.
type Release struct {
	Outcome
	Lease state.LeaseID
}

// Bury sends a job straight to the dead letters. Refusal: ErrNoLease.
type Bury struct {
	Outcome
	Lease  state.LeaseID
	Reason []byte
}

// Extend moves a lease's deadline to LeaseMs from now; it may shorten.
// Refusals: ErrNoLease, ErrTimeout.
type Extend struct {
	Outcome
	Lease    state.LeaseID
	LeaseMs  state.Millis
	Deadline state.Millis // answer: wall time, Unix milliseconds
}

// Multi is a transaction: all of Commands in one log entry, or none. Takes
// Enqueue, Ack, Nack, Release, Bury, Extend, JobDelete, of MaxMulti jobs together at
// most: ErrTooMany. If any is refused, Err is an *AbortError that names it, and
// nothing has changed.
type Multi struct {
	Outcome
	Commands []Command
}

// JobGet answers everything known of a job; Found is false when there is none.
type JobGet struct {
	Outcome
	ID    state.JobID
	Queue []byte // when set, the job must be in this queue to be found
	Found bool
	Job   JobView
}

// JobView is a job as operators see it. Times are wall, Unix milliseconds; 0
// is none. Give it to Engine.LoadView for payload and attributes, or to
// Engine.ForgetView.
type JobView struct {
	ID         state.JobID
	Queue      string // queue key
	Place      state.Place
	Priority   int8
	Attempt    uint32
	Failures   uint32
	Tries      uint16
	Backoff    Backoff
	EnqueuedAt state.Millis
	DueAt      state.Millis // delayed: becomes ready
	Deadline   state.Millis // leased: lease ends
	ExpiresAt  state.Millis // TTL
	DiedAt     state.Millis // dead
	Lease      state.LeaseID
	Reason     string // of the last failure
	Unique     []byte // nil when none, or when the job came back from the dead without it
	Group      []byte
	Bytes      int // payload's size

	Payload []byte
	Attrs   []Attr

	body    body
	keyless bool // the job holds no unique key
}

// JobDelete removes jobs in any place, in the order given; a leased one's
// lease ends. Queue, when set, must be the job's. ErrPartly where it was interrupted.
type JobDelete struct {
	Outcome
	IDs     []state.JobID
	Queue   []byte
	Deleted int
}

// JobEdit changes one waiting job (ready, delayed, dead); exactly one of the
// fields is used, by Kind. Refusals: ErrNoJob, ErrBusyJob, and for payload and
// move those of Enqueue, ErrUniqueTaken.
type JobEdit struct {
	Outcome
	ID       state.JobID
	Kind     EditKind
	Delay    state.Millis
	Priority int8
	Payload  []byte
	Queue    []byte

	prefix []byte     // of the body, for EditPayload
	of     state.Body // the body it was read from
}

// EditKind is what a JobEdit does.
type EditKind uint8

// The edits: RUN makes a job ready now, DELAY makes it due Delay from now.
const (
	EditRun EditKind = iota + 1
	EditDelay
	EditPriority
	EditPayload
	EditMove
)

// Stats is MOXY.STATS. An unknown queue has zeros.
type Stats struct {
	Outcome
	Queue                        []byte
	Ready, Leased, Dead, Delayed int64
}

// QueueList answers the keys of a pool's queues that match, sorted.
type QueueList struct {
	Outcome
	Pool  string
	Match []byte // glob over the display name; nil is all; at most 1,024 bytes
	Keys  []string
}

// QueueInfo answers all that is known of one queue.
type QueueInfo struct {
	Outcome
	Queue []byte
	Found bool
	Info  QueueView
}

// QueueView is a queue as operators see it.
type QueueView struct {
	Key                          string
	Serial                       uint64 // of this queue: another one of the same key has a higher one
	Ready, Delayed, Leased, Dead int64
	Bytes                        int64 // payload bytes of ready, delayed and leased jobs
	Paused                       bool
	PausedUntil                  state.Millis // wall; 0 with Paused is for ever
	OldestReadyMs                state.Millis // age of the oldest ready job; 0 is none
	NextDueMs                    state.Millis // until the next delayed job; 0 is none
	Waiting                      int64        // fetchers waiting
	Totals                       state.Totals
	Settings                     state.Settings
}

// QueuePeek answers one page of jobs in delivery order.
type QueuePeek struct {
	Outcome
	Queue []byte
	Place state.Place
	Count int    // 0 is 10, at most 100
	After []byte // cursor of the page before, or a job ID; nil is the first
	Next  []byte // cursor of the next page; nil is the end
	Jobs  []JobView
}

// QueuePause stops deliveries of a queue; For 0 is until QueueResume.
type QueuePause struct {
	Outcome
	Queue []byte
	For   state.Millis
}

// QueueResume ends a pause.
type QueueResume struct {
	Outcome
	Queue []byte
}

// QueuePurge removes what existed when it began, in turns. Engine.Purge runs
// it; it is no command of Submit. Places empty is ready and delayed. Limit 0
// is all, else the oldest that many.
type QueuePurge struct {
	Outcome
	Queue   []byte
	Places  []state.Place
	Limit   int64
	Removed int64
}

// QueueRedrive moves dead jobs to ready, oldest first, in turns; Engine.Redrive
// runs it. Count 0 is all. To, Tries and TTL change the jobs on their way.
type QueueRedrive struct {
	Outcome
	Queue []byte
	Count int64
	To    []byte
	Tries Optional[uint16]
	TTL   Optional[state.Millis]
	Moved int64
}

// QueueSet replaces the settings that are named, QueueReset all of them.
type QueueSet struct {
	Outcome
	Queue    []byte
	Settings state.Settings
	Which    state.SettingSet // which of Settings to take
}

// QueueReset gives a queue the default settings.
type QueueReset struct {
	Outcome
	Queue []byte
}

// QueueDelete removes a queue and all its jobs. Refusal: ErrQueueLeased.
type QueueDelete struct {
	Outcome
	Queue []byte
	Found bool
}

// CronSet makes or replaces a recurring enqueue. Spec and zone must be valid
// (see ParseCron).
type CronSet struct {
	Outcome
	Cron state.Cron

	schedule Schedule
	bad      error
}

// CronDelete removes one.
type CronDelete struct {
	Outcome
	Namespace string // "pool/namespace"
	Name      string
	Deleted   bool
}

// CronList answers all of a pool, or of one namespace, sorted by name.
type CronList struct {
	Outcome
	Namespace string // "pool/" prefix or "pool/namespace"
	Crons     []state.Cron
}

// Drain turns the refusal of new jobs on or off, durably.
type Drain struct {
	Outcome
	On bool
}

// MetaSet stores a small value that is not a job under a key: users, tokens and
// limiters of the servers. The engine does not look into it. A nil value
// deletes. IfAbsent refuses with ErrExists where the key stands already. Keys
// and values are at most 64 KiB; there are at most 100,000.
type MetaSet struct {
	Outcome
	Key      string // "user/NAME", "token/POOL/NS/TOKEN", "limit/POOL/NS/TOKEN"
	Value    []byte
	IfAbsent bool
	Existed  bool
}

// MetaGet answers one value; nil is none.
type MetaGet struct {
	Outcome
	Key   string
	Value []byte
}

// MetaList answers all pairs whose key begins with Prefix, sorted by key.
type MetaList struct {
	Outcome
	Prefix string
	Pairs  []MetaPair
}

// MetaPair is one key and value.
type MetaPair struct {
	Key   string
	Value []byte
}
