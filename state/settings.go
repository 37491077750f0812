package state

// Place is where a job can be.
type Place uint8

// The four places. The zero value is none of them.
const (
	Ready Place = iota + 1
	Delayed
	Leased
	Dead
)

func (p Place) String() string {
	switch p {
	case Ready:
		return "ready"
	case Delayed:
		return "delayed"
	case Leased:
		return "leased"
	case Dead:
		return "dead"
	}
	return "none"
}

// ParsePlace reads what String says; ok is false for anything else.
func ParsePlace(s string) (p Place, ok bool) {
	for p = Ready; p <= Dead; p++ {
		if p.String() == s {
			return p, true
		}
	}
	return 0, false
}

// Totals count what happened in a queue since it began.
type Totals struct {
	Enqueued, Delivered, Acked, Nacked, Released, Expired, Buried, Dead, Deleted, Lapsed, Redriven uint64
}

func (t *Totals) add(o Totals) {
	t.Enqueued += o.Enqueued
	t.Delivered += o.Delivered
	t.Acked += o.Acked
	t.Nacked += o.Nacked
	t.Released += o.Released
	t.Expired += o.Expired
	t.Buried += o.Buried
	t.Dead += o.Dead
	t.Deleted += o.Deleted
	t.Lapsed += o.Lapsed
	t.Redriven += o.Redriven
}

// Settings of a queue. The zero value is the default: no limits.
type Settings struct {
	Tries      uint16 // failures until dead; 0 is no limit
	TTL        Millis // 0 is none
	Backoff    Millis // 0 is none
	BackoffMax Millis // 0 is one hour
	MaxLen     uint64 // ready + delayed + leased jobs; 0 is no limit
	MaxBytes   uint64 // payload bytes of them; 0 is no limit
	MaxLeased  uint32 // 0 is no limit
	RateCount  uint32 // deliveries per RatePer; 0 is no limit
	RatePer    Millis // 0 is 1,000
	DeadMax    uint64 // dead jobs kept, the oldest go first; 0 is no limit
	DeadFor    Millis // how long dead jobs are kept; 0 is for ever
}

// SettingSet names some of the settings.
type SettingSet uint16

// The settings by name. Backoff covers BackoffMax, Rate covers RatePer.
const (
	SetTries SettingSet = 1 << iota
	SetTTL
	SetBackoff
	SetMaxLen
	SetMaxBytes
	SetMaxLeased
	SetRate
	SetDeadMax
	SetDeadFor
)

// Catchup says what happens with slots of a cron that were missed.
type Catchup uint8

// One fires once for all missed slots, None not at all, All for each, at most
// 1,000.
const (
	CatchupOne Catchup = iota
	CatchupNone
	CatchupAll
)

// Cron is a recurring enqueue.
type Cron struct {
	Namespace string // "pool/namespace"
	Name      string
	Spec      string
	Zone      string // IANA name; empty is UTC
	Queue     string // queue key
	Payload   []byte
	Catchup   Catchup
	Options   []byte // the options of ENQUEUE, encoded by the engine
	Next      Millis // wall time of the next slot; 0 is never
	Last      Millis // wall time of the slot that fired last; 0 is none
}
