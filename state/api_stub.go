package state

import "io"

// State is everything that Pawl knows but the bodies of jobs. See the package
// comment for who may use it.
type State struct{}

// New is the state of an empty log.
func New() *State { panic("not yet") }

// Apply makes the change that r tells, at log time now, which never goes back.
// body is where the record's body lies, zero for kinds without one. r and what
// it points to are not kept.
//
// An error is a *MisfitError: the record does not fit the state, so the log is
// damaged or there is a bug. All checks come before the first change: a record
// with an error has changed nothing.
func (s *State) Apply(r *Record, body Body, now Millis) error { panic("not yet") }

// AppendHead appends the encoding of all but the body to dst. In the log the
// bytes of the body follow it.
func (r *Record) AppendHead(dst []byte) []byte { panic("not yet") }

// Decode reads one record and says where its body begins: len(b) for kinds
// without one. Text and Data of r alias b. Only what AppendHead writes is
// accepted, anything else gives an error that wraps ErrRecord.
func Decode(b []byte, r *Record) (bodyAt int, err error) { panic("not yet") }

// Now is the log time of the last record; the next one's is not less.
func (s *State) Now() Millis { panic("not yet") }

// Offset is wall time minus log time, as the last KindClock says.
func (s *State) Offset() Millis { panic("not yet") }

// Wall converts log time to wall time by the present offset.
func (s *State) Wall(log Millis) Millis { panic("not yet") }

// Draining says whether new jobs are to be refused.
func (s *State) Draining() bool { panic("not yet") }

// Hash is the Key of a text under the store's secret.
func (s *State) Hash(text []byte) Key { panic("not yet") }

// NextSlot is the slot the next KindEnqueue must name, and how often it has been
// used before, for the job's ID. It changes with every enqueue and every job
// that goes. Slot 0: no more fit.
func (s *State) NextSlot() (Slot, uint16) { panic("not yet") }

// NextQueue is the ID the next KindQueue must name. 0: no more fit.
func (s *State) NextQueue() QueueID { panic("not yet") }

// QueueByKey finds a queue. It does not allocate.
func (s *State) QueueByKey(key []byte) (QueueID, bool) { panic("not yet") }

// Queue is a copy of one queue; it must exist.
func (s *State) Queue(q QueueID) Queue { panic("not yet") }

// QueueKey is a queue's key; it must exist.
func (s *State) QueueKey(q QueueID) string { panic("not yet") }

// Settings are those of a queue; it must exist.
func (s *State) Settings(q QueueID) Settings { panic("not yet") }

// Queues calls yield for each queue in order of ID until it returns false.
func (s *State) Queues(yield func(QueueID) bool) { panic("not yet") }

// Counts are sizes of the whole state.
func (s *State) Counts() Counts { panic("not yet") }

// Totals are those of all queues that ever were.
func (s *State) Totals() Totals { panic("not yet") }

// Job is a copy of the job at slot; ok is false when there is none.
func (s *State) Job(slot Slot) (j Job, ok bool) { panic("not yet") }

// Lookup finds a job by its ID.
func (s *State) Lookup(id JobID) (Slot, bool) { panic("not yet") }

// LookupLease finds the leased job of a lease that holds: now is before its end
// and before the end of the job's TTL.
func (s *State) LookupLease(id LeaseID, now Millis) (Slot, bool) { panic("not yet") }

// Unique is the job ID that holds key in q, or did within its window, at now.
func (s *State) Unique(q QueueID, key Key, now Millis) (JobID, bool) { panic("not yet") }

// KeyTaken reports whether the job at slot cannot have its unique key in queue
// q at now, because another job has it: KindMove is refused then, and
// KindRedrive, KindRun and KindDelay of a dead job need DropKey. False for a
// job without a key.
func (s *State) KeyTaken(slot Slot, q QueueID, now Millis) bool { panic("not yet") }

// NextReady is the job that q delivers next, 0 when there is none to deliver. It
// may be past its TTL: then KindLapse it and ask again.
func (s *State) NextReady(q QueueID, now Millis) (Slot, Block) { panic("not yet") }

// Earliest is the log time at which Due has something to say; false is never.
func (s *State) Earliest() (Millis, bool) { panic("not yet") }

// Due is the next thing whose time has come at now. The record that does away
// with it must be applied before Due is asked again.
func (s *State) Due(now Millis) Due { panic("not yet") }

// Page appends up to max slots of the jobs of q in place to dst, in the order
// in which they will be delivered, become due, end or were buried, beginning
// behind the job after, 0 for the first. after must be in that place of that
// queue. O(log n + max).
func (s *State) Page(dst []Slot, q QueueID, place Place, after Slot, max int) []Slot {
	panic("not yet")
}

// Cron finds a recurring enqueue. It belongs to the state.
func (s *State) Cron(namespace, name string) (*Cron, bool) { panic("not yet") }

// Crons are all, sorted by namespace and name. They belong to the state.
func (s *State) Crons() []*Cron { panic("not yet") }

// Meta is the value of a key. It belongs to the state.
func (s *State) Meta(key string) ([]byte, bool) { panic("not yet") }

// Metas calls yield for the pairs whose key begins with prefix, sorted, until
// it returns false. The values belong to the state.
func (s *State) Metas(prefix string, yield func(key string, value []byte) bool) { panic("not yet") }

// Live says what is still needed of a generation.
func (s *State) Live(generation uint32) Live { panic("not yet") }

// Lives are all generations that hold a body of a job, ascending.
func (s *State) Lives() []Live { panic("not yet") }

// BodiesIn appends to dst up to max slots above from whose body lies in
// generation, looking at no more than 64 × max slots, and returns where to go
// on, 0 at the end.
func (s *State) BodiesIn(dst []Slot, generation uint32, from Slot, max int) ([]Slot, Slot) {
	panic("not yet")
}

// View is a fixed copy of a State.
type View struct{}

// View fixes a copy, in the time it takes to copy the page tables. It may be
// read by another goroutine while the state goes on. The owner of the state
// must Release it.
func (s *State) View() *View { panic("not yet") }

// Release says that v is not read any more, so that pages need not be copied
// for it. Only the owner of the state calls it; v is of no use afterwards.
func (s *State) Release(v *View) { panic("not yet") }

// WriteTo writes the whole state, the same bytes for the same state, in writes
// of at most 64 KiB. Load reads it. The bytes carry a version, but no checksum:
// that is the file's business.
func (v *View) WriteTo(w io.Writer) (int64, error) { panic("not yet") }

// Load reads what View.WriteTo wrote, up to the end of r, and checks it as Check
// does. It needs no trust in r: whatever it reads, it gives a sound state or an
// error that wraps ErrLoad.
func Load(r io.Reader) (*State, error) { panic("not yet") }

// Check says what is wrong with the state, nil when all indexes and counts
// agree. It looks at everything.
func (s *State) Check() error { panic("not yet") }

// Dump writes the state as text: the same for every state that behaves the same.
func (s *State) Dump(w io.Writer) error { panic("not yet") }
