package state

import (
	"crypto/sha256"
)

// State is everything that Pawl knows but the bodies of jobs. See the package
// comment for who may use it.
//
// The tables are slabs and hold all there is; a View is a copy of them. The maps
// and indexes beside only find entries of the tables, and are made anew by Load.
type State struct {
	root
	tables

	deadlines index // jobs, by job.deadline
	walls     index // delayed jobs with AT, by due wall time
	windows   index // unique keys without a live job, by the end of their window
	pauses    index // queues, by the end of their pause
	graves    index // queues, by when their oldest dead job is to go
	fires     index // crons, by next wall time

	queueOf  *names                 // by queue key
	groupOf  *keys                  // group in a queue
	claimOf  *keys                  // unique key in a queue
	reasonOf *texts                 // reason in a queue
	policyOf map[policyValue]uint32 // tries and backoff
	cronOf   map[cronName]uint32
	metaOf   map[string]uint32

	lives  map[uint32]Live   // by generation
	ended  map[string]Totals // by pool: of queues that were forgotten, since New
	jobsIn [5]uint64         // by Place
	bytes  uint64            // payload bytes of jobs that are not dead

	marks []mark // scratch of the ranges

	replaying bool
	late      []uint32 // while replaying: jobs that are in no order of time, and some that were
	views     int      // that are not released
}

// root is what the state holds beside its tables.
type root struct {
	now       Millis
	offset    Millis
	draining  bool
	hasSecret bool
	secret    Key
	serial    uint64 // of the queue made last
	totals    Totals
	// Queues without jobs, settings, pause and claims, by last use.
	idleFirst, idleLast uint32
}

// tables are all tables of the state.
type tables struct {
	jobs     slab[job, *job]
	extras   slab[extra, *extra]
	policies slab[policy, *policy]
	queues   queueTable
	levels   slab[level, *level]
	groups   slab[group, *group]
	claims   slab[claim, *claim]
	reasons  slab[reason, *reason]
	settings slab[settings, *settings]
	crons    slab[cron, *cron]
	metas    slab[meta, *meta]
}

// queueText is a key of a queue. The queue's serial is never used again, as its
// ID is, so what a forgotten queue left is not taken for its successor's.
type queueText struct {
	serial uint64
	key    Key
}

// New is the state of an empty log.
func New() *State {
	return &State{
		deadlines: newIndex(),
		walls:     newIndex(),
		windows:   newIndex(),
		pauses:    newIndex(),
		graves:    newIndex(),
		fires:     newIndex(),
		queueOf:   newNames(),
		groupOf:   newKeys(),
		claimOf:   newKeys(),
		reasonOf:  newTexts(),
		policyOf:  map[policyValue]uint32{},
		cronOf:    map[cronName]uint32{},
		metaOf:    map[string]uint32{},
		lives:     map[uint32]Live{},
	}
}

// Now is the log time of the last record; the next one's is not less.
func (s *State) Now() Millis { return s.now }

// Offset is wall time minus log time, as the last KindClock says.
func (s *State) Offset() Millis { return s.offset }

// Wall converts log time to wall time by the present offset.
func (s *State) Wall(log Millis) Millis { return AddMillis(log, s.offset) }

// Log converts wall time to log time by the present offset.
func (s *State) Log(wall Millis) Millis { return AddMillis(wall, -s.offset) }

// Draining says whether new jobs are to be refused.
func (s *State) Draining() bool { return s.draining }

// Totals are those of all queues that ever were.
func (s *State) Totals() Totals { return s.totals }

// Hash is the Key of a text under the store's secret: SHA-256 of both, cut to
// 128 bits. Nobody without the secret can find two texts with one Key.
func (s *State) Hash(text []byte) Key {
	h := sha256.New()
	h.Write(s.secret[:])
	h.Write(text)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return Key(sum[:16])
}
