package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Recorder collects a history from many goroutines on one monotonic clock.
type Recorder struct {
	began time.Time

	mu     sync.Mutex
	ops    []*Op // guarded by mu; each Op belongs to its client until it returns
	events []Event
}

// NewRecorder starts the clock.
func NewRecorder() *Recorder { return &Recorder{began: time.Now()} }

// Now is the present moment on the recorder's clock.
func (r *Recorder) Now() Time { return time.Since(r.began) }

// Call notes that op is about to be sent. The caller fills the answer into what
// it gets back and hands it to Return; an op that never returns is Unknown.
func (r *Recorder) Call(op Op) *Op {
	p := &op
	p.Outcome = Unknown
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, p)
	p.Call = r.Now()
	return p
}

// Return notes that the answer to op is read. The op must not be changed after.
func (r *Recorder) Return(op *Op, outcome Outcome) {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Return, op.Outcome = now, outcome
}

// Event notes that something happened now.
func (r *Recorder) Event(e Event) { r.EventAt(r.Now(), e) }

// EventAt notes now that something happened at an earlier moment.
func (r *Recorder) EventAt(at Time, e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	e.At = at
	e.WallOffset = time.Duration(now.UnixNano()) - now.Sub(r.began)
	r.events = append(r.events, e)
}

// Count returns how many operations were called and how many starts noted so
// far. It may be called at any time.
func (r *Recorder) Count() (ops, starts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.events {
		if r.events[i].Kind == Start {
			starts++
		}
	}
	return len(r.ops), starts
}

// History returns a copy of all that was recorded. Clients must have stopped.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := History{Ops: make([]Op, len(r.ops)), Events: slices.Clone(r.events)}
	for i, op := range r.ops {
		h.Ops[i] = *op
	}
	return h
}

// Forget drops all that was recorded. The clock goes on, so what follows can be
// judged as the next part of the same history. Clients must have stopped and no
// daemon run.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops, r.events = nil, nil
}

// line is one line of a saved history.
type line struct {
	Op    *Op    `json:",omitempty"`
	Event *Event `json:",omitempty"`
}

// Save writes h as one JSON object a line, for [Load] and for people.
func Save(w io.Writer, h History) error {
	buffered := bufio.NewWriter(w)
	enc := json.NewEncoder(buffered)
	for i := range h.Events {
		if err := enc.Encode(line{Event: &h.Events[i]}); err != nil {
			return fmt.Errorf("save event %d: %w", i, err)
		}
	}
	for i := range h.Ops {
		if err := enc.Encode(line{Op: &h.Ops[i]}); err != nil {
			return fmt.Errorf("save operation %d: %w", i, err)
		}
	}
	return buffered.Flush()
}

// Load reads what Save wrote.
func Load(r io.Reader) (History, error) {
	var h History
	dec := json.NewDecoder(bufio.NewReader(r))
	for n := 1; ; n++ {
		var l line
		if err := dec.Decode(&l); err == io.EOF {
			return h, nil
		} else if err != nil {
			return h, fmt.Errorf("load history, line %d: %w", n, err)
		}
		switch {
		case l.Op != nil:
			h.Ops = append(h.Ops, *l.Op)
		case l.Event != nil:
			h.Events = append(h.Events, *l.Event)
		}
	}
}
