package state

// Job is a copy of what the state knows of one job. Times are log time unless
// said otherwise; 0 is none.
type Job struct {
	ID         JobID
	Slot       Slot
	Queue      QueueID
	Place      Place
	Priority   int8
	Tries      uint16 // failures until dead; 0 is no limit
	Attempt    uint32 // leases so far
	Failures   uint32 // NACKs and leases that ran out, since the enqueue or the last redrive
	Backoff    Millis
	BackoffMax Millis
	Since      Millis // ready, dead: since when
	Due        Millis // delayed: becomes ready; wall time where DueWall
	DueWall    bool
	Deadline   Millis // leased: the lease ends
	Expires    Millis // end of the TTL; a dead job has none
	Lease      LeaseID
	Reason     string // of the last failure
	Unique     Key
	Group      Key
	Blocked    bool // ready, but behind the head of its group
	Size       uint32
	Body       Body
}

// Queue is a copy of what the state knows of one queue.
type Queue struct {
	ID                           QueueID
	Key                          string
	Ready, Delayed, Leased, Dead uint32
	Bytes                        uint64 // payload bytes of ready, delayed and leased jobs
	PausedUntil                  Millis // log time; Forever without an end, 0 when not paused
	OldestReady                  Millis // when the job at the front of its priority became ready, the earliest of them; 0 is none
	NextDue                      Millis // log time; when the next delayed job becomes due, 0 is none
	Totals                       Totals
	Settings                     Settings
}

// Why says why a queue hands nothing out.
type Why uint8

// The reasons. NotBlocked with slot 0 is an empty queue, or one whose ready
// jobs all wait behind the heads of their groups.
const (
	NotBlocked Why = iota
	BlockedPaused
	BlockedRate
	BlockedMaxLeased
)

// Block is why a queue hands nothing out, and until when (log time); Until is 0
// where no time ends it: MaxLeased ends with a lease. Forever is a pause
// without an end. Nobody but the reader wakes at Until.
type Block struct {
	Why   Why
	Until Millis
}

// DueKind is what is to be done about a Due.
type DueKind uint8

// The kinds, each with the record that does away with it.
const (
	DueNothing   DueKind = iota
	DueRange             // KindRange{At, Slot, Count}
	DueWallRange         // KindWallRange{At, Slot, Count}
	DueKeys              // KindKeyRange{At, Slot, Count}
	DueLease             // Slot's lease ran out: KindFail with CauseExpire
	DueDead              // Slot is dead for too long or one too many: KindDelete with Cause
	DuePause             // Queue's pause is over: KindResume, then wake its waiters
	DueIdle              // Queue is empty and unused for IdleFor: KindForget, or KindTouch where fetchers wait
	DueCron              // Cron's Next has come: KindCronFired and the KindEnqueues it makes
)

// Due is something whose time has come.
type Due struct {
	Kind  DueKind
	Cause Cause
	Slot  Slot
	Queue QueueID
	At    Millis
	Count uint32
	Cron  *Cron // belongs to the state, not to be changed
}

// IdleFor is how long an empty queue without settings and pause is kept after
// its last use.
const IdleFor Millis = 3_600_000

// Live is what the jobs of one generation of the log still need of it.
type Live struct {
	Generation uint32
	Jobs       uint64
	Bytes      uint64 // of bodies
}

// Counts are sizes of the whole state.
type Counts struct {
	Jobs   [5]uint64 // by Place
	Queues uint64
	Groups uint64
	Keys   uint64 // unique keys that are held or remembered
	Crons  uint64
	Metas  uint64
	Bytes  uint64 // payload bytes of jobs that are not dead
	Memory uint64 // bytes of memory, estimated
}
