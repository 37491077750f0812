package state

// A Body is where the bytes of a job lie in the log: attributes and payload,
// in whatever form the engine gives them. The state keeps the place and never
// the bytes. The zero Body is none.
type Body struct{ Generation, Offset, Length, Checksum uint32 }

// QueueID is the place of a queue in the table of queues, from 1. Zero is
// none. A queue that was forgotten gives its ID back.
type QueueID uint32

// Key is a 128-bit keyed hash of the text of a unique key or of a group (see
// State.Hash). The zero Key is none.
type Key [16]byte

// Kind says what a record tells. The numbers and the layout of each kind are
// frozen: what changes gets a new kind, and an old log means for ever what it
// meant. RECORDS.md lists the fields.
type Kind uint8

// The kinds. What each checks before it changes anything stands at Apply.
const (
	KindEnqueue    Kind = 1  // a job begins: ready, or delayed until At
	KindLease      Kind = 2  // the job at the front of its queue is leased until At
	KindAck        Kind = 3  // a leased job is finished and gone
	KindFail       Kind = 4  // a lease ended without success: to Place
	KindRelease    Kind = 5  // a leased job goes back untouched, to the front
	KindExtend     Kind = 6  // a lease ends at At instead
	KindRange      Kind = 7  // delays and TTLs up to (At, Slot) of log time are over
	KindWallRange  Kind = 8  // AT times up to (At, Slot) of wall time are over
	KindLapse      Kind = 9  // the TTL of one job is over, it is gone
	KindDelete     Kind = 10 // a job in any place is gone
	KindBury       Kind = 11 // a job that is not dead goes to the dead letters
	KindRedrive    Kind = 12 // a dead job becomes ready, in Queue
	KindRun        Kind = 13 // a delayed or dead job becomes ready
	KindDelay      Kind = 14 // a waiting job becomes due at At
	KindPriority   Kind = 15 // a waiting job gets another priority
	KindPayload    Kind = 16 // a waiting job gets another body
	KindMove       Kind = 17 // a waiting job goes to another queue
	KindCarry      Kind = 18 // the same body at another place of the log
	KindQueue      Kind = 19 // a queue begins; Text is its key
	KindTouch      Kind = 20 // an empty queue is in use
	KindForget     Kind = 21 // a queue without jobs is gone
	KindSettings   Kind = 22 // a queue's settings, all of them
	KindPause      Kind = 23 // a queue hands nothing out until At
	KindResume     Kind = 24 // a pause is over
	KindKeyRange   Kind = 25 // windows of unique keys up to (At, Slot) are over
	KindCron       Kind = 26 // a recurring enqueue is made or replaced
	KindCronFired  Kind = 27 // it fired; Next and Last of Cron
	KindCronDelete Kind = 28 // it is gone
	KindMeta       Kind = 29 // Text has the value Data
	KindMetaDelete Kind = 30 // Text has no value any more
	KindDrain      Kind = 31 // new jobs are refused, or not any more
	KindClock      Kind = 32 // wall time is log time + At from now on
	KindSecret     Kind = 33 // the key of Hash; once, in a store's first group
	KindTime       Kind = 34 // log time is At from here on
	kindEnd        Kind = 35
)

var kindNames = [kindEnd]string{
	"", "Enqueue", "Lease", "Ack", "Fail", "Release", "Extend", "Range", "WallRange", "Lapse", "Delete", "Bury",
	"Redrive", "Run", "Delay", "Priority", "Payload", "Move", "Carry", "Queue", "Touch", "Forget", "Settings",
	"Pause", "Resume", "KeyRange", "Cron", "CronFired", "CronDelete", "Meta", "MetaDelete", "Drain", "Clock", "Secret", "Time",
}

// String is the kind's name, as in RECORDS.md.
func (k Kind) String() string {
	if k == 0 || k >= kindEnd {
		return "unknown"
	}
	return kindNames[k]
}

// Cause says why a KindFail, KindDelete or KindBury came about. It decides
// which of the totals counts it.
type Cause uint8

// The causes.
const (
	CauseNone    Cause = iota
	CauseNack          // Fail: the worker gave up
	CauseExpire        // Fail: the lease ran out
	CauseBury          // Bury: the worker or an operator said so
	CauseDamage        // Bury: the body on disk is rotten
	CauseDelete        // Delete: JOB DELETE
	CausePurge         // Delete: QUEUE PURGE, QUEUE DELETE
	CauseDeadMax       // Delete: more dead jobs than DEADMAX
	CauseDeadFor       // Delete: dead for longer than DEADFOR
)

// A Record is one fact. It is a flat union: which fields count is said in
// RECORDS.md, all others are zero. Times are log time unless said otherwise,
// and lie between 0 and MaxMillis.
//
// Text, Data, Settings and Cron are nil in all kinds that a job's life is made
// of, so that those records cost no allocation.
type Record struct {
	Kind     Kind
	Place    Place  // Fail: Ready, Delayed or Dead
	Cause    Cause  // Fail, Delete, Bury
	Priority int8   // Enqueue, Priority
	Wall     bool   // Enqueue, Delay: At is wall time
	DropKey  bool   // Redrive, Run, Delay: the job goes on without its unique key
	On       bool   // Drain
	Tries    uint16 // Enqueue, Redrive: failures until dead, 0 is no limit
	Overhead uint16 // Enqueue, Payload: bytes of the body that are not payload
	Slot     Slot
	Queue    QueueID
	Delay    uint32 // Enqueue: seconds, only for the job's ID
	Count    uint32 // ranges: how many jobs or keys it covers, 1 to MaxRange

	Born       Millis // Enqueue: wall time, for the job's ID
	At         Millis // due, deadline, end, or offset: see the kinds
	Expires    Millis // Enqueue, Redrive: end of the TTL, 0 is never
	Backoff    Millis // Enqueue: 0 is none
	BackoffMax Millis // Enqueue: 0 is one hour
	Window     Millis // Enqueue: end of the window of Unique
	Nonce      Nonce  // Lease
	Unique     Key    // Enqueue: 0 is none
	Group      Key    // Enqueue: 0 is none

	Text     []byte    // Queue: key; Fail, Bury: reason; Meta: key; Secret: 16 bytes
	Data     []byte    // Meta: value
	Settings *Settings // Settings
	Cron     *Cron     // Cron; of CronFired Namespace, Name, Next and Last; of CronDelete Namespace and Name
}

// HasBody reports whether the bytes of a body follow the head in the log.
func (k Kind) HasBody() bool {
	return k == KindEnqueue || k == KindPayload || k == KindCarry
}

// Limits of records and of what they describe.
const (
	// MaxMillis bounds every time: 48 bits, the year 10889.
	MaxMillis Millis = 1<<48 - 1
	// Forever is the end of what has none, such as a pause without FOR.
	Forever = MaxMillis
	// MaxRange bounds how much one range record covers.
	MaxRange = 512
	// MaxReasonBytes bounds the reason of a failure.
	MaxReasonBytes = 255
	// MaxReasons bounds the different reasons of one queue; more read "other".
	MaxReasons = 1024
	// MaxQueueKeyBytes bounds a queue key.
	MaxQueueKeyBytes = 3*MaxNameBytes + 2
	// MaxTextBytes bounds every other text in a record, and cron's options.
	MaxTextBytes = 64 << 10
	// MaxDataBytes bounds a meta value and a cron's payload.
	MaxDataBytes = 64 << 20
)

// AddMillis is a + b, which are at most MaxMillis either way, cut to 0 and
// MaxMillis: it never wraps.
func AddMillis(a, b Millis) Millis { return min(max(a+b, 0), MaxMillis) }
