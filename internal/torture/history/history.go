// Package history records what clients of a daemon saw and judges it: given
// every call, every return and every fault on one clock, it says which of the
// daemon's promises were broken.
//
// It is a black box's judge. It knows the daemon only by its replies, signals,
// exits and the size of its directory, and shares no code with it. Jobs are
// known by the nonce in their payload, because a reply that was lost carries no
// ID, and only the nonce can tell later whether the job exists.
//
//	rec := history.NewRecorder()
//	op := rec.Call(history.Op{Kind: history.Enqueue, Queue: "mail", Nonce: 7})
//	… send, read …
//	rec.Return(op, history.OK)
//	report := history.Check(rec.History(), history.Options{})
//
// The invariants carry the names S1 to S23 (safety), L1 to L8 (bounds on time
// and space) and R1 (honesty at start); [Explain] says each in a sentence.
//
// The queue checker follows Jepsen's total-queue (attempted, acknowledged,
// lost, unexpected, duplicated), with leases, time and crashes added. S16 is
// checked for linearizability by porcupine: Wing and Gong, "Testing and
// Verifying Concurrent Objects", 1993; Lowe, "Testing for linearizability", 2017.
package history

import "time"

// Kind is what an operation asked for.
type Kind string

// The operations that the checker understands.
const (
	Enqueue Kind = "enqueue"
	Fetch   Kind = "fetch"
	Ack     Kind = "ack"
	Nack    Kind = "nack"
	Release Kind = "release"
	Bury    Kind = "bury"
	Extend  Kind = "extend"
	Delete  Kind = "delete" // JOB DELETE
	Edit    Kind = "edit"   // JOB PAYLOAD
	Redrive Kind = "redrive"
	Stats   Kind = "stats"
	Peek    Kind = "peek"
)

// Outcome is what the client may conclude from the answer it had.
type Outcome string

const (
	// OK is a success reply, read to its last byte.
	OK Outcome = "ok"
	// No is a refusal that says nothing happened.
	No Outcome = "no"
	// Unknown is everything else: no reply, a broken connection, a timeout,
	// an error that leaves it open. The effect may come until the death of the
	// process that was asked, and not later.
	Unknown Outcome = "unknown"
)

// NoLease is the error line that says a lease is unknown, finished or ended.
const NoLease = "ERR lease does not exist"

// Time is a moment on the recorder's monotonic clock, nanoseconds since the
// recorder was made.
type Time = time.Duration

// Op is one operation of one client. The zero value of a field means that it
// does not apply.
type Op struct {
	Client      int
	Kind        Kind
	Incarnation int // of the daemon that was asked, from 1
	Call        Time
	Return      Time // all bytes read; of an Unknown, when the client gave up
	Outcome     Outcome
	Error       string `json:",omitempty"` // the error line, of No and Unknown

	Queue string `json:",omitempty"`
	Nonce uint64 `json:",omitempty"` // Enqueue, Edit: in the payload; Delete: of the job
	Job   string `json:",omitempty"` // task ID: in Enqueue's answer, asked for by Delete and Edit
	Lease string `json:",omitempty"` // Ack, Nack, Release, Bury, Extend

	LeaseFor  time.Duration `json:",omitempty"` // Fetch, Extend
	Wait      time.Duration `json:",omitempty"` // Fetch: how long it was ready to block
	Delay     time.Duration `json:",omitempty"` // Enqueue, Nack
	Priority  int           `json:",omitempty"` // Enqueue
	Tries     int           `json:",omitempty"` // Enqueue: failures until dead, 0 is no limit
	Backoff   bool          `json:",omitempty"` // Enqueue: a failure delays it
	Unordered bool          `json:",omitempty"` // Enqueue: stands in a group, so not in FIFO order
	Unique    string        `json:",omitempty"` // Enqueue
	For       time.Duration `json:",omitempty"` // Enqueue: window of Unique
	Batch     int           `json:",omitempty"` // operations with one number were one transaction
	Duplicate bool          `json:",omitempty"` // Enqueue: answered with a job that was there
	Or        []string      `json:",omitempty"` // Fetch: further queues
	Digest    uint64        `json:",omitempty"` // Enqueue, Edit: of the payload's bytes

	Grants []Grant  `json:",omitempty"` // Fetch, OK: empty means there was no job
	Shown  []uint64 `json:",omitempty"` // Peek: nonces
	Dead   bool     `json:",omitempty"` // Peek: of the dead letters
	Count  *Counts  `json:",omitempty"` // Stats
	Quiet  bool     `json:",omitempty"` // Stats: nothing open, all leases and delays long over
}

// Grant is one delivery in the answer of a Fetch.
type Grant struct {
	Nonce   uint64
	Job     string
	Lease   string
	Intact  bool   // the payload's own checksum holds
	Digest  uint64 // of the payload's bytes
	Attempt int    `json:",omitempty"` // 0 when not asked for
}

// Counts is the answer of MOXY.STATS; Delayed is -1 when it was not asked for.
type Counts struct{ Ready, Processing, Dead, ActiveLeases, Heap, Delayed int }

// EventKind is something that happened to the daemon or its surroundings.
type EventKind string

// The events that the checker understands.
const (
	Start      EventKind = "start"       // the process was started
	Ready      EventKind = "ready"       // it answered about jobs
	Killed     EventKind = "killed"      // dead by SIGKILL or power loss; At is after its death
	Exited     EventKind = "exited"      // dead by itself or after SIGTERM; Code, Text
	Terminate  EventKind = "terminate"   // SIGTERM sent
	SyncFailed EventKind = "sync-failed" // the harness made a sync or log write fail
	Healed     EventKind = "healed"      // a storage fault that needs no restart is over
	Drain      EventKind = "drain"       // no more enqueues; consumers empty all queues
	Drained    EventKind = "drained"     // all queues empty, nothing leased
	Disk       EventKind = "disk"        // Bytes used in the directory, Limit by the formula
)

// Event is one of those, of one incarnation of the daemon.
type Event struct {
	At          Time
	Kind        EventKind
	Incarnation int
	WallOffset  time.Duration // wall clock minus recorder's clock; moves when the wall clock is stepped
	Code        int           `json:",omitempty"`
	Text        string        `json:",omitempty"` // standard error, shortened
	Bytes       int64         `json:",omitempty"`
	Limit       int64         `json:",omitempty"`
}

// History is everything that was seen, in no particular order.
type History struct {
	Ops    []Op
	Events []Event
}

// LastLooks returns, for each queue, the last look at its counters that is known
// to be whole, to stand at the head of the next part of a history. It is not
// quiet there, since what happened to the queue is in the part before.
func LastLooks(h History) []Op {
	last := map[string]Op{}
	for _, op := range h.Ops {
		if op.Kind != Stats || op.Outcome != OK || op.Count == nil || op.Count.Delayed < 0 {
			continue
		}
		if before, there := last[op.Queue]; !there || before.Return < op.Return {
			op.Quiet = false
			last[op.Queue] = op
		}
	}
	looks := make([]Op, 0, len(last))
	for _, op := range last {
		looks = append(looks, op)
	}
	return looks
}
