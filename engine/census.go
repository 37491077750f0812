package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"pawl/state"
)

// Census is what metrics and dashboards read.
type Census struct {
	At     state.Millis // wall
	Queues []QueueView  // sorted by key
	Crons  []state.Cron // sorted
	// Ended are the totals of queues that were forgotten, by pool, since the state was
	// read at the start. A queue is in here or in Queues, or, where it was forgotten
	// meanwhile, perhaps in neither until the next census; never in both.
	Ended map[string]state.Totals
}

// censusCache shares one census between all who ask while it is young, and lets go
// of it then: that of very many queues is large, and perhaps nobody asks again.
type censusCache struct {
	mu   sync.Mutex // held while one is made, so that all wait for the same
	last *Census    // nil when there is none that is young
}

const (
	censusEvery = time.Second
	censusMost  = 15 * time.Second
	// censusShare is how many times as long as it took to make a census is kept.
	censusShare = 30
	censusChunk = 512 // entries of a table in one stay
)

// censusKept is how long a census is kept that took so long to make: those of a
// hundred thousand queues shall not take more than a thirtieth of a processor,
// however many look.
func censusKept(took time.Duration) time.Duration {
	return min(max(censusEvery, took*censusShare), censusMost)
}

// Census is a copy of the table of queues, which nobody may change. It is at most
// a second old or, where that is more, thirty times as long as it took to make, up
// to 15 seconds. It never waits for a commit. Each queue's line is consistent in
// itself; the lines of very many queues are not of the same instant.
func (e *Engine) Census() *Census {
	c := &e.census
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		began := time.Now()
		c.last = e.takeCensus()
		time.AfterFunc(censusKept(time.Since(began)), c.forget)
	}
	return c.last
}

func (c *censusCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

func (e *Engine) takeCensus() *Census {
	c := &Census{}
	e.glimpse(func() {
		c.At = e.clock.wall(e.now)
		c.Ended = maps.Clone(e.st.Ended()) // before the queues
		c.Queues = make([]QueueView, 0, e.st.QueueCount())
	})
	for cron := uint32(1); cron != 0; {
		e.glimpse(func() {
			cron = e.st.CronsFrom(cron, censusChunk, func(cron *state.Cron) { c.Crons = append(c.Crons, *cron) })
		})
	}
	for queue := state.QueueID(1); queue != 0; {
		e.glimpse(func() {
			queue = e.st.QueuesFrom(queue, censusChunk, func(q state.QueueID) { c.Queues = append(c.Queues, e.queueView(q)) })
		})
	}
	sortByKey(c.Queues)
	slices.SortFunc(c.Crons, byName)
	return c
}

// SomeQueues is a copy of at most n queues, those with the lowest numbers, which
// are mostly the ones that are there for longest. They are in no order. Unlike a
// census it costs no more where there are very many.
func (e *Engine) SomeQueues(n int) []QueueView {
	var views []QueueView
	e.glimpse(func() { views = make([]QueueView, 0, min(n, e.st.QueueCount())) })
	for queue := state.QueueID(1); queue != 0 && len(views) < n; {
		e.glimpse(func() {
			queue = e.st.QueuesFrom(queue, censusChunk, func(q state.QueueID) {
				if len(views) < n {
					views = append(views, e.queueView(q))
				}
			})
		})
	}
	return views
}

// glimpse has look look at the state in one stay, which decides nothing.
func (e *Engine) glimpse(look func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.look()
	look()
	e.timeStay()
}

// sortByKey sorts their keys first, and then moves each view once: they are large.
func sortByKey(views []QueueView) {
	type place struct {
		key string
		was int // index
	}
	order := make([]place, len(views))
	for i := range views {
		order[i] = place{views[i].Key, i}
	}
	slices.SortFunc(order, func(a, b place) int { return strings.Compare(a.key, b.key) })
	for i := range order {
		// Those that change places do so in rings: behind the first, each moves to
		// where the one before it was.
		first := views[i]
		for to := i; ; {
			from := order[to].was
			order[to].was = to
			if from == i {
				views[to] = first
				break
			}
			views[to] = views[from]
			to = from
		}
	}
}
