package lmstfy

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// room keeps what requests and replies of all connections hold together under one
// limit. Bytes are counted before they are allocated. Who finds no room waits a
// little for others to finish, first come first served. Then those that wait for
// their clients have to let go, first of all who has held most for longest, unless
// that is the one who asks: it is refused. So slow clients make room for quick ones.
// The last part of the limit is for those who hold little: whoever fills the rest
// keeps nobody from a short request.
type room struct {
	limit   atomic.Int64
	used    atomic.Int64
	waiting atomic.Int64  // claims that wait
	refused atomic.Uint64 // requests that found no room, or had to let go

	mu      sync.Mutex
	large   map[*share]struct{} // guarded by mu; shares that are more than little
	leaving int64               // guarded by mu; what those hold who have to let go
	little  []*claim            // guarded by mu; of shares that are little
	much    []*claim            // guarded by mu; of others
}

// claim is of a share that waits for room.
type claim struct {
	share *share
	n     int64
	over  chan struct{} // closed when it is granted or has ended

	// Guarded by room.mu.
	granted bool
	ended   bool // nobody waits for it any more
}

const (
	defaultBuffers = 256 << 20
	roomPatience   = 100 * time.Millisecond // before somebody has to let go
	roomGiveUp     = 5 * time.Second
	littleBytes    = 16 << 10 // what counts as little, of one share
	littleShare    = 8        // one part in so many of the limit is kept for those
	evictShare     = 16       // one part in so many of the limit is made free at a time
)

// errNoRoom is of a request that found no room, or had to let go.
var errNoRoom = errors.New("buffers are full")

func newRoom(limit int64) *room {
	r := &room{large: make(map[*share]struct{})}
	r.limit.Store(limit)
	return r
}

// setLimit makes limit hold for what comes; what is there already stays.
func (r *room) setLimit(limit int64) {
	r.limit.Store(limit)
	r.grant()
}

// scarce says that more than half of the room is taken: nobody is to keep what it
// does not need, so the half is all that idle connections ever hold.
func (r *room) scarce() bool { return r.used.Load() > r.limit.Load()/2 }

// limitFor is the part of the limit that a share of n bytes may fill.
func (r *room) limitFor(n int64) int64 {
	limit := r.limit.Load()
	if n > littleBytes {
		limit -= limit / littleShare
	}
	return limit
}

// admit counts n bytes for a share that holds held already, when they fit.
func (r *room) admit(held, n int64) bool {
	limit := r.limitFor(held + n)
	for {
		used := r.used.Load()
		if used+n > limit {
			return false
		}
		if r.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// grant admits those who wait, as far as there is room.
func (r *room) grant() {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, queue := range []*[]*claim{&r.little, &r.much} {
		for len(*queue) > 0 {
			w := (*queue)[0]
			if !w.ended {
				if !r.admit(w.share.held.Load(), w.n) {
					break
				}
				w.granted = true
				r.endClaim(w)
			}
			(*queue)[0] = nil
			*queue = (*queue)[1:]
		}
	}
}

// endClaim is for a claim of which it has not been called. The caller holds mu.
func (r *room) endClaim(w *claim) {
	w.ended = true
	r.waiting.Add(-1)
	close(w.over)
}

// share is what one request holds of the room, or one connection of ours with its
// buffers. Only its owner calls its methods.
type share struct {
	room *room
	// owner waits for its client while the share says so.
	owner interface{ interrupt(what waitingFor) }

	held   atomic.Int64
	state  atomic.Int32 // a waitingFor
	listed bool         // in room.large

	// Guarded by room.mu.
	since time.Time // when it was listed
	let   int64     // what it held when it had to let go
	claim *claim    // what it waits for; nil is nothing
}

// waitingFor is what the owner of a share waits for. Only one that waits can be made
// to let go; the others end by themselves.
type waitingFor int32

const (
	nothing   waitingFor = iota
	theClient            // to send
	theReader            // to take a reply
	someRoom
	theEnd // none: it has to let go
)

// begin says that the owner waits from now on, and may be interrupted. Limits of
// time are set before.
func (s *share) begin(what waitingFor) { s.state.CompareAndSwap(int32(nothing), int32(what)) }

// over says that the owner waits no more. It is false if the share has to go; no
// interruption comes after that.
func (s *share) over() bool {
	if now := s.state.Load(); now != int32(theEnd) && s.state.CompareAndSwap(now, int32(nothing)) {
		return true
	}
	s.room.mu.Lock() // held while a share is interrupted
	defer s.room.mu.Unlock()
	return false
}

// must says that the share has to go.
func (s *share) must() bool { return s.state.Load() == int32(theEnd) }

// grow counts n more bytes, before they are allocated. It may wait. False means that
// the request is to be refused with errNoRoom, and that its share ends.
func (s *share) grow(n int64) bool {
	if s.try(n) {
		return true
	}
	if !s.wait(n) {
		if !s.must() { // else it has been counted
			s.room.refused.Add(1)
		}
		return false
	}
	s.add(n)
	return true
}

// try is grow without waiting. Nobody passes those who wait but who holds little.
func (s *share) try(n int64) bool {
	held := s.held.Load()
	if held+n > littleBytes && s.room.waiting.Load() > 0 || !s.room.admit(held, n) {
		return false
	}
	s.add(n)
	return true
}

func (s *share) add(n int64) {
	if s.held.Add(n) > littleBytes && !s.listed {
		s.listed = true
		s.room.mu.Lock()
		defer s.room.mu.Unlock()
		s.room.large[s] = struct{}{}
		s.since = time.Now()
	}
}

// set makes n what the share holds, without asking: for what is there already.
func (s *share) set(n int64) {
	if more := n - s.held.Load(); more != 0 {
		s.room.used.Add(more)
		s.add(more)
		if more < 0 {
			s.room.grant()
		}
	}
}

// end gives everything back. The share may be used again.
func (s *share) end() {
	n := s.held.Swap(0)
	if s.listed {
		s.listed = false
		s.room.mu.Lock()
		delete(s.room.large, s)
		s.room.leaving -= s.let
		s.let, s.since = 0, time.Time{}
		s.room.mu.Unlock()
	}
	s.state.Store(int32(nothing))
	if n != 0 {
		s.room.used.Add(-n)
		s.room.grant()
	}
}

// wait admits n bytes as soon as it is the turn of s and there is room.
func (s *share) wait(n int64) bool {
	r := s.room
	w := &claim{share: s, n: n, over: make(chan struct{})}
	r.mu.Lock()
	s.begin(someRoom)
	s.claim = w
	r.waiting.Add(1)
	if s.held.Load()+n > littleBytes {
		r.much = append(r.much, w)
	} else {
		r.little = append(r.little, w)
	}
	r.mu.Unlock()
	r.grant() // what was given back meanwhile
	patience, giveUp := time.NewTimer(roomPatience), time.NewTimer(roomGiveUp)
	defer patience.Stop()
	defer giveUp.Stop()
	for waits := true; waits; {
		select {
		case <-w.over:
			waits = false
		case <-patience.C:
			waits = r.makeRoom(s, n)
			patience.Reset(roomPatience)
		case <-giveUp.C:
			waits = false
		}
	}
	r.mu.Lock()
	s.claim = nil
	if !w.ended {
		r.endClaim(w)
	}
	granted := w.granted
	// Under mu nobody has it let go meanwhile.
	kept := s.state.CompareAndSwap(int32(someRoom), int32(nothing))
	r.mu.Unlock()
	if granted && !kept {
		r.used.Add(-n)
		r.grant()
	}
	return granted && kept
}

// makeRoom has shares let go, until n bytes fit once they have: first the one with the
// highest price, and none whose price is not above that of s. False means that it is
// too few.
func (r *room) makeRoom(s *share, n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	own := s.price(now)
	limit := r.limitFor(s.held.Load() + n)
	fits := func(n int64) bool { return r.used.Load()-r.leaving+n <= limit }
	if fits(n) {
		return true
	}
	var holders []holder
	for h := range r.large {
		if price := h.price(now); price > own {
			holders = append(holders, holder{h, price})
		}
	}
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(b.price, a.price) })
	for _, h := range holders {
		if fits(n + limit/evictShare) { // some more, so that this is not done for each who waits
			break
		}
		r.letGo(h.share)
	}
	return fits(n)
}

// holder is a share and its price at one moment.
type holder struct {
	share *share
	price float64
}

// price is what a share takes from others: bytes times seconds; 0 for one that is
// little. The caller holds mu.
func (s *share) price(now time.Time) float64 {
	if s.since.IsZero() {
		return 0
	}
	return float64(s.held.Load()) * now.Sub(s.since).Seconds()
}

// letGo interrupts the owner of a share, if it waits. The caller holds mu.
func (r *room) letGo(s *share) {
	what := waitingFor(s.state.Load())
	if what == nothing || what == theEnd || !s.state.CompareAndSwap(int32(what), int32(theEnd)) {
		return
	}
	r.refused.Add(1)
	s.let = s.held.Load()
	r.leaving += s.let
	if what != someRoom {
		s.owner.interrupt(what)
	} else if !s.claim.ended {
		r.endClaim(s.claim)
	}
}
