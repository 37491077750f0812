package resp_test

import (
	"context"
	"encoding/binary"
	"sync"

	"pawl/engine"
	"pawl/state"
)

// fakeEngine is a memory that forgets nothing to time and refuses nothing: for
// tests of the wire that need another engine for each of thousands of inputs,
// and the same answers each time. IDs count up.
type fakeEngine struct {
	mu       sync.Mutex
	next     uint32
	ready    map[string][]*fakeJob
	leased   map[state.LeaseID]*fakeJob
	failed   chan struct{}
	returned []engine.Delivery // by Undeliver
	waitErr  error
	loadErr  map[string]error       // by payload, once
	loaded   map[state.LeaseID]bool // by TryLoad
	waiters  []*engine.Waiter
	submits  int // commands so far
	noted    int // enqueues that Answered was told of
}

type fakeJob struct {
	id      state.JobID
	queue   string
	payload []byte
}

func newFakeEngine() *fakeEngine {
	return &fakeEngine{
		ready: make(map[string][]*fakeJob), leased: make(map[state.LeaseID]*fakeJob),
		failed: make(chan struct{}), loadErr: make(map[string]error), loaded: make(map[state.LeaseID]bool),
	}
}

// forget makes it what it was when it was new.
func (f *fakeEngine) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next, f.returned, f.waiters, f.waitErr = 0, nil, nil, nil
	clear(f.ready)
	clear(f.leased)
	clear(f.loadErr)
	clear(f.loaded)
}

func (f *fakeEngine) Submit(cmds ...engine.Command) engine.LSN {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submits += len(cmds)
	for _, cmd := range cmds {
		f.decide(cmd)
	}
	return 1
}

func (f *fakeEngine) decide(cmd engine.Command) {
	switch c := cmd.(type) {
	case *engine.Enqueue:
		f.next++
		c.ID = state.NewJobID(1_700_000_000_000, state.Slot(f.next), 0, 0)
		j := &fakeJob{id: c.ID, queue: string(c.Queue), payload: append([]byte(nil), c.Payload...)}
		f.ready[j.queue] = append(f.ready[j.queue], j)
		f.serve()
	case *engine.Fetch:
		f.fetch(c)
	case *engine.Ack:
		for _, id := range c.Leases {
			_, ok := f.leased[id]
			delete(f.leased, id)
			c.Done = append(c.Done, ok)
		}
	case *engine.Stats:
		c.Ready = int64(len(f.ready[string(c.Queue)]))
		for _, j := range f.leased {
			if j.queue == string(c.Queue) {
				c.Leased++
			}
		}
	case *engine.Multi:
		for _, cmd := range c.Commands {
			f.decide(cmd)
		}
	}
}

func (f *fakeEngine) fetch(c *engine.Fetch) {
	for _, q := range c.Queues {
		for len(f.ready[string(q)]) > 0 && len(c.Jobs) < max(c.Count, 1) {
			j := f.ready[string(q)][0]
			f.ready[string(q)] = f.ready[string(q)][1:]
			f.next++
			lease := state.LeaseID{Slot: j.id.Slot()}
			binary.BigEndian.PutUint32(lease.Nonce[:], f.next)
			f.leased[lease] = j
			c.Jobs = append(c.Jobs, engine.Delivery{Lease: lease, ID: j.id, Queue: j.queue, Attempt: 1})
		}
	}
}

func (f *fakeEngine) serve() {
	for i := 0; i < len(f.waiters); {
		w := f.waiters[i]
		f.fetch(w.Fetch)
		if len(w.Fetch.Jobs) == 0 {
			i++
			continue
		}
		f.waiters = append(f.waiters[:i], f.waiters[i+1:]...)
		w.LSN = 1
		w.C <- struct{}{}
	}
}

func (f *fakeEngine) Wait(engine.LSN) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waitErr
}

func (f *fakeEngine) TrySubmit(cmds ...engine.Command) (lsn engine.LSN, decided int) {
	return f.Submit(cmds...), len(cmds)
}

func (f *fakeEngine) Abandon(cmds ...engine.Command) {
	for _, cmd := range cmds {
		if c, ok := cmd.(*engine.Fetch); ok && len(c.Jobs) > 0 {
			f.Undeliver(c.Jobs)
		}
	}
}

func (f *fakeEngine) Await(c *engine.Fetch) (*engine.Waiter, engine.LSN) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fetch(c); len(c.Jobs) > 0 {
		return nil, 1
	}
	w := &engine.Waiter{C: make(chan struct{}, 1), Fetch: c}
	f.waiters = append(f.waiters, w)
	return w, 1
}

func (f *fakeEngine) Cancel(w *engine.Waiter) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.waiters {
		if f.waiters[i] == w {
			f.waiters = append(f.waiters[:i], f.waiters[i+1:]...)
			return true
		}
	}
	return false
}

func (f *fakeEngine) Load(d *engine.Delivery) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loaded[d.Lease] {
		return nil
	}
	payload := f.leased[d.Lease].payload
	if err := f.loadErr[string(payload)]; err != nil {
		delete(f.loadErr, string(payload))
		return err
	}
	d.Payload = append(d.Payload, payload...)
	return nil
}

func (f *fakeEngine) TryLoad(d *engine.Delivery) bool {
	f.mu.Lock()
	wrong := f.loadErr[string(f.leased[d.Lease].payload)] != nil
	f.mu.Unlock()
	if wrong || f.Load(d) != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded[d.Lease] = true
	return true
}

func (f *fakeEngine) Undeliver(jobs []engine.Delivery) engine.LSN {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.returned = append(f.returned, jobs...)
	for i := len(jobs) - 1; i >= 0; i-- {
		if j := f.leased[jobs[i].Lease]; j != nil {
			delete(f.leased, jobs[i].Lease)
			f.ready[j.queue] = append([]*fakeJob{j}, f.ready[j.queue]...)
		}
	}
	return 1
}

func (f *fakeEngine) LoadView(*engine.JobView) error { return nil }
func (f *fakeEngine) ForgetView(*engine.JobView)     {}
func (f *fakeEngine) Purge(context.Context, *engine.QueuePurge) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waitErr
}
func (f *fakeEngine) Redrive(context.Context, *engine.QueueRedrive) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waitErr
}
func (f *fakeEngine) Snapshot(context.Context) error       { return nil }
func (f *fakeEngine) Backup(context.Context, string) error { return nil }
func (f *fakeEngine) JobHistory(context.Context, state.JobID, engine.LSN) (engine.JobHistory, error) {
	return engine.JobHistory{}, nil
}
func (f *fakeEngine) Numbers() engine.Numbers { return engine.Numbers{} }
func (f *fakeEngine) Failed() <-chan struct{} { return f.failed }

func (f *fakeEngine) Arrived() engine.Arrival { return (&engine.Engine{}).Arrived() }

func (f *fakeEngine) Answered(a engine.Arrival, lsn engine.LSN, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a != (engine.Arrival{}) && lsn == 1 {
		f.noted += n
	}
}

// lost are the deliveries given back so far, by task ID.
func (f *fakeEngine) lost() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.returned)
}

// held counts leased jobs.
func (f *fakeEngine) held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.leased)
}

func (f *fakeEngine) readyIn(queue string) (payloads []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.ready["default/default/"+queue] {
		payloads = append(payloads, string(j.payload))
	}
	return payloads
}
