package history

import (
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
	"strings"
	"time"
)

// Options say how strictly a history is judged. The zero value is right for a
// run on a machine that may be starved: no verdict depends on how fast
// anything was.
type Options struct {
	// Tolerance is how early a lease or a delay may end; 0 is 5 ms. It
	// covers the rounding of milliseconds, nothing else.
	Tolerance time.Duration
	// Grace is how long after its deadline a lease may keep its job from
	// being ready; 0 is 5 s. Only jobs that are certainly ready are held
	// against an empty answer.
	Grace time.Duration
	// Bounds adds L1 to L8, which are about speed and mean something only on
	// a machine of its own.
	Bounds bool
	// Patience bounds the search of S16, all jobs together; 0 is two minutes.
	// No single job has more than a sixth of it. What is not decided by then is
	// counted in Report.Undecided.
	Patience time.Duration
	// Before, if not nil, are the IDs of earlier parts of a history that is
	// judged in parts; none of them may come again (S7). Check adds those it
	// has seen.
	Before *IDs
}

// IDs are the task and lease IDs that were seen, as 64-bit hashes. The zero
// value is ready to use, by one goroutine.
type IDs struct{ seen map[uint64]struct{} }

// add notes an ID and tells whether it is new.
func (ids *IDs) add(kind, id string) bool {
	if ids.seen == nil {
		ids.seen = map[uint64]struct{}{}
	}
	h := fnv.New64a()
	h.Write([]byte(kind)) // never fails
	h.Write([]byte(id))
	sum := h.Sum64()
	_, old := ids.seen[sum]
	ids.seen[sum] = struct{}{}
	return !old
}

func (o Options) withDefaults() Options {
	if o.Tolerance == 0 {
		o.Tolerance = 5 * time.Millisecond
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 2 * time.Minute
	}
	return o
}

// Violation is one broken promise.
type Violation struct {
	Invariant string // "S1"
	Text      string // what happened, with nonces, leases and times
}

func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// Report is the verdict on a history.
type Report struct {
	Violations []Violation // sorted by invariant; at most 20 each
	Counts     map[string]int
	Ops        int
	Unknown    int // operations whose outcome is open
	Jobs       int // nonces that certainly existed
	Deaths     int // of the daemon
	Undecided  int // jobs on which S16 gave up
}

// OK tells whether nothing was broken and everything was decided.
func (r Report) OK() bool { return len(r.Violations) == 0 && r.Undecided == 0 }

// Has tells whether an invariant was reported.
func (r Report) Has(invariant string) bool { return r.Counts[invariant] > 0 }

// Broken is how many violations were found, those not spelled out included.
func (r Report) Broken() (total int) {
	for _, n := range r.Counts {
		total += n
	}
	return total
}

// Add adds the report on another part of the same history.
func (r *Report) Add(part Report) {
	r.Violations = append(r.Violations, part.Violations...)
	if r.Counts == nil {
		r.Counts = map[string]int{}
	}
	for name, n := range part.Counts {
		r.Counts[name] += n
	}
	r.Ops += part.Ops
	r.Unknown += part.Unknown
	r.Jobs += part.Jobs
	r.Deaths += part.Deaths
	r.Undecided += part.Undecided
}

// String is one line of figures, and one line for each violation.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations (%d unknown) on %d jobs, %d deaths, %d violations, %d undecided",
		r.Ops, r.Unknown, r.Jobs, r.Deaths, r.Broken(), r.Undecided)
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "\n  %s", v)
	}
	for name, n := range r.Counts {
		if n > maxShown {
			fmt.Fprintf(&b, "\n  %s: %d more", name, n-maxShown)
		}
	}
	return b.String()
}

// maxShown is how many violations of one invariant a report spells out.
const maxShown = 20

// Explain says each invariant in one sentence.
var Explain = map[string]string{
	"S1":  "no loss: an acknowledged job is there until it is finished",
	"S2":  "no invention: only what was enqueued, where it was enqueued, is delivered",
	"S3":  "an ack is final: a finished job is never delivered again",
	"S4":  "one ack wins: a job is finished once, a lease used once",
	"S5":  "one live lease: a leased job is not delivered before its lease can have ended",
	"S6":  "a stale lease is refused once the job was delivered again",
	"S7":  "IDs: a lease ID is never seen twice, a task ID belongs to one job for ever",
	"S8":  "no duplicates: one enqueue, or one unique key in its window, makes one job",
	"S9":  "what was shown stays: a job seen or counted once is there until it is finished",
	"S10": "counts: STATS adds up",
	"S11": "order: first in, first out within a queue and priority",
	"S12": "queues are apart: nothing done to one changes another",
	"S13": "payload: the bytes that went in come out",
	"S14": "nothing is acknowledged after a failed sync",
	"S15": "a refusal means that nothing happened",
	"S16": "linearizable: the operations on a job have an order that real time allows",
	"S17": "empty means empty: no job was ready all the while",
	"S18": "not early: a delay holds",
	"S19": "attempts count every delivery, across restarts",
	"S20": "dead letters: a job dies by its limit or by a command, not otherwise",
	"S21": "a transaction happened or did not",
	"S22": "a deletion or an edit is final",
	"S23": "priority: the higher one first",
	"L1":  "ready in time after a start",
	"L2":  "an ended lease is delivered again to whoever polls",
	"L3":  "a waiting fetch is answered within a second",
	"L4":  "a healed fault is over within five seconds",
	"L5":  "disk stays within the formula",
	"L6":  "SIGTERM ends it within ten seconds, with exit 0",
	"L7":  "no operation waits over a second for others",
	"L8":  "a finite backlog drains",
	"R1":  "an exit has a documented code and one line that says why",
}

// checker gathers violations.
type checker struct {
	*index
	counts map[string]int
	found  []Violation
}

func (c *checker) report(invariant, format string, args ...any) {
	c.counts[invariant]++
	if c.counts[invariant] <= maxShown {
		c.found = append(c.found, Violation{invariant, fmt.Sprintf(format, args...)})
	}
}

// Check judges a history. It does not change it.
func Check(h History, opt Options) Report {
	opt = opt.withDefaults()
	c := &checker{index: newIndex(h, opt), counts: map[string]int{}}
	r := Report{Ops: len(h.Ops), Counts: c.counts}
	for _, op := range c.ops {
		if op.Outcome == Unknown {
			r.Unknown++
		}
	}
	for _, e := range c.events {
		if e.Kind == Killed || e.Kind == Exited {
			r.Deaths++
		}
	}
	for _, j := range c.jobs {
		if j.created() != nil || j.seen() {
			r.Jobs++
		}
		c.checkLoss(j)
		c.checkOrigin(j)
		c.checkFinal(j)
		c.checkLeases(j)
		c.checkDelay(j)
		c.checkAttempts(j)
		c.checkDead(j)
		c.checkEdits(j)
	}
	c.checkPayloads()
	c.checkIDs()
	c.checkBefore()
	c.checkUnique()
	c.checkCounts()
	c.checkApart()
	c.checkOrder()
	c.checkReady()
	c.checkBatches()
	c.checkFailedSync()
	c.checkExits()
	r.Undecided = c.checkLinear()
	if opt.Bounds {
		c.checkBounds()
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return compareNames(a.Invariant, b.Invariant) })
	r.Violations = c.found
	return r
}

// compareNames sorts S2 before S10.
func compareNames(a, b string) int {
	if len(a) != len(b) && a[0] == b[0] {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// Invariants returns all names, sorted.
func Invariants() []string {
	var names []string
	for name := range Explain {
		names = append(names, name)
	}
	sort.Slice(names, func(i, k int) bool { return compareNames(names[i], names[k]) < 0 })
	return names
}
