package lmstfy

import (
	"sync"
	"time"
)

// side says which of a limiter's two counts a request belongs to.
type side uint8

const (
	neither side = iota
	consume
	produce
)

func (s side) String() string {
	switch s {
	case consume:
		return "consume"
	case produce:
		return "produce"
	}
	return ""
}

// Limit is what one token may do in one window. A Read or Write of 0 or less is
// no limit.
type Limit struct {
	Read     int64 `json:"read"`
	Write    int64 `json:"write"`
	Interval int64 `json:"interval"` // seconds, at least 1
}

// window is the running count of one token's limiter. The window starts at the
// first request that it counts, lasts Interval, and then counts from zero. A nil
// window limits nothing.
type window struct {
	limit Limit

	mu   sync.Mutex
	ends time.Time // guarded by mu
	used [3]int64  // guarded by mu; by side
	turn ticket    // guarded by mu; number of this window, from 1
}

// ticket is the window in which a request was counted; 0 is none.
type ticket uint64

// allowed is the limit of a side, 0 or less for none.
func (w *window) allowed(s side) int64 {
	if s == consume {
		return w.limit.Read
	}
	return w.limit.Write
}

// take counts one request, or refuses it.
func (w *window) take(s side, now time.Time) (t ticket, ok bool) {
	if w == nil || w.allowed(s) <= 0 {
		return 0, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now.Before(w.ends) {
		w.ends = now.Add(time.Duration(w.limit.Interval) * time.Second)
		w.used = [3]int64{}
		w.turn++
	}
	if w.used[s] >= w.allowed(s) {
		return 0, false
	}
	w.used[s]++
	return w.turn, true
}

// giveBack takes back the count of a request that came to nothing. One that
// outlived its window, as a waiting consume may, has nothing to give back.
func (w *window) giveBack(s side, t ticket) {
	if w == nil || t == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn == t {
		w.used[s]--
	}
}
