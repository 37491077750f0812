// Package ledger judges what clients of lmstfy's HTTP API saw while the daemon
// was killed. Where package history follows leases, this one keeps sums: every
// job has a body of its own, and at the end, when all queues have been drained,
// each body must be where the answers say.
//
//   - A job whose publish was answered, and that nobody deleted, is there at the
//     end, once. One whose publish was refused never is.
//   - A job that was deleted or republished with an answer is handed to nobody who
//     asks after that answer.
//   - Of a request without an answer all happened or nothing: all jobs of a bulk,
//     or none; of a republish the old job or the new one, never both, never neither.
//   - An ID names one job for ever.
//
// Handing one job out twice is no fault: delivery is at least once.
package ledger

import (
	"fmt"
	"slices"
	"sync"
)

// Outcome is what the client knows of a request.
type Outcome uint8

const (
	Unknown Outcome = iota // no answer, or one that leaves it open (500)
	OK                     // it happened
	Refused                // it did not: never sent, or answered with a refusal
)

// Stamp is a moment. Stamps only order what clients did.
type Stamp int64

// never is before all moments.
const never Stamp = 0

// Ledger collects what clients saw. Its methods may be called by any goroutine.
type Ledger struct {
	mu    sync.Mutex
	now   Stamp           // guarded by mu, as all below
	jobs  map[string]*job // by body
	ids   map[string]string
	bulks [][]string // bodies of bulks without an answer
	moves []move     // republishes without an answer
	count int        // requests that were not refused
	wrong []string
}

// job is what is known of one body.
type job struct {
	noted     bool    // its publish was; a job may be handed out before its publisher knows
	published Outcome // once noted
	ended     Stamp   // of the first answer to a delete or republish of it; never without one
	mayEnd    int     // deletes and republishes without an answer
	seen      Stamp   // start of the latest request that was handed it
	first     Stamp   // end of the first one
	final     int     // how often the drain found it
}

type move struct{ old, new string }

// New makes an empty ledger.
func New() *Ledger { return &Ledger{jobs: map[string]*job{}, ids: map[string]string{}} }

// Begin is the stamp of a request that is about to be sent.
func (l *Ledger) Begin() Stamp {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tick()
}

func (l *Ledger) tick() Stamp {
	l.now++
	return l.now
}

func (l *Ledger) job(body string) *job {
	j := l.jobs[body]
	if j == nil {
		j = &job{}
		l.jobs[body] = j
	}
	return j
}

func (l *Ledger) fault(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// Published notes the end of a publish, or of a bulk of several bodies, which
// nobody has used before. ids are those of the answer, in order; none without one.
func (l *Ledger) Published(o Outcome, ids []string, bodies ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted(o)
	l.tick()
	l.publish(o, ids, bodies)
	if o == Unknown && len(bodies) > 1 {
		l.bulks = append(l.bulks, bodies)
	}
}

func (l *Ledger) publish(o Outcome, ids, bodies []string) {
	for i, body := range bodies {
		j := l.job(body)
		j.noted, j.published = true, o
		if o == OK {
			l.known(ids[i], body)
		}
	}
}

// known checks that an ID names one body, and a body has one ID.
func (l *Ledger) known(id, body string) {
	for key, value := range map[string]string{"id " + id: body, "body " + body: id} {
		if before, ok := l.ids[key]; ok && before != value {
			l.fault("%s is %q now, was %q", key, value, before)
		}
		l.ids[key] = value
	}
}

// Deleted notes the end of a delete of a job.
func (l *Ledger) Deleted(o Outcome, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted(o)
	l.end(o, body)
}

func (l *Ledger) end(o Outcome, body string) {
	j := l.job(body)
	at := l.tick()
	switch {
	case o == Unknown:
		j.mayEnd++
	case o == OK && j.ended == never:
		j.ended = at
	}
}

// Republished notes the end of a republish: old goes, new comes. id is the new
// job's, if there was an answer.
func (l *Ledger) Republished(o Outcome, old, new, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted(o)
	l.end(o, old)
	l.publish(o, []string{id}, []string{new})
	if o == Unknown {
		l.moves = append(l.moves, move{old, new})
	}
}

// Saw notes that a request that began at start was handed a job.
func (l *Ledger) Saw(start Stamp, id, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.see(start, id, body)
}

func (l *Ledger) see(start Stamp, id, body string) *job {
	j := l.job(body)
	l.known(id, body)
	at := l.tick()
	if j.first == never {
		j.first = at
	}
	j.seen = max(j.seen, start)
	return j
}

// Drained notes a job of the drain, which begins when no other request is under
// way and deletes what it finds.
func (l *Ledger) Drained(id, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.see(l.tick(), id, body).final++
}

// noted counts a request that may have had an effect.
func (l *Ledger) noted(o Outcome) {
	if o != Refused {
		l.count++
	}
}

// Count is how many requests were noted, without those that were refused.
func (l *Ledger) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Check judges all of it, after the drain. It returns what is wrong.
func (l *Ledger) Check() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for body, j := range l.jobs {
		switch {
		case !j.noted:
			l.fault("a job has the body %.40q, which nobody published", body)
		case j.published == Refused && j.seen != never:
			l.fault("%q was refused, but there", body)
		case j.published == OK && j.ended == never && j.mayEnd == 0 && j.final == 0:
			l.fault("%q was published and nobody ended it, but it is gone", body)
		case j.published == Unknown && j.seen != never && j.ended == never && j.mayEnd == 0 && j.final == 0:
			l.fault("%q was there and nobody ended it, but it is gone", body)
		}
		if j.ended != never && j.seen > j.ended {
			l.fault("%q was ended, but handed out afterwards", body)
		}
		if j.final > 1 {
			l.fault("%q was there %d times at the end", body, j.final)
		}
	}
	for _, bodies := range l.bulks {
		there := 0
		for _, body := range bodies {
			if l.jobs[body].seen != never {
				there++
			}
		}
		if there != 0 && there != len(bodies) {
			l.fault("%d of the %d jobs of one bulk happened: %q", there, len(bodies), bodies)
		}
	}
	for _, m := range l.moves {
		old, new := l.jobs[m.old], l.jobs[m.new]
		switch {
		case new.seen == never && old.ended == never && old.mayEnd == 1 && old.final == 0:
			l.fault("a republish lost both %q and %q", m.old, m.new)
		case new.seen != never && (old.final > 0 || old.seen > new.first):
			l.fault("a republish left both %q and %q", m.old, m.new)
		}
	}
	slices.Sort(l.wrong)
	return slices.Compact(l.wrong)
}
