package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Target is a server of one kind at one address.
type Target interface {
	// Name is that of the kind, one of Kinds.
	Name() string
	// Dial makes one connection for one queue.
	Dial(ctx context.Context, queue string) (Conn, error)
	// Prepare makes the queue where it has to be made.
	Prepare(ctx context.Context, queue string) error
}

// A Conn sends requests and reads their replies, in order. Add, Fetch and Ack
// collect; Flush writes all of them at once; then there is one Read for each.
// Handles are good until the next Flush.
type Conn interface {
	Add(payload []byte)
	Fetch()
	Ack(handle []byte)
	Flush() error
	ReadAdd() error
	ReadFetch() (handle []byte, found bool, err error)
	ReadAck() error
	Close() error
}

// The requests whose latencies are told apart.
const (
	stepAdd = iota
	stepFetch
	stepAck
)

var stepNames = [...]string{"enqueue", "fetch", "ack"}

// loader is the load of one connection. All but done is owned by its goroutine.
type loader struct {
	*run
	conn    Conn
	payload []byte
	random  *rand.Rand
	handles [][]byte // copies of the leases held, at most Pipeline
	steps   [len(stepNames)]*hdrhistogram.Histogram
	empty   int64
	jobs    int // of Backlog: to add beforehand

	done atomic.Int64
	_    [64]byte // a cache line for each done
}

func newLoader(r *run, i int, c Conn) *loader {
	l := &loader{run: r, conn: c, random: rand.New(rand.NewPCG(r.Seed, uint64(i)))}
	l.payload = make([]byte, r.Payload)
	for k := range l.payload {
		l.payload[k] = byte('a' + l.random.IntN(26))
	}
	for s := range l.steps {
		l.steps[s] = newHistogram()
	}
	l.jobs = r.Jobs / r.Conns
	if i < r.Jobs%r.Conns {
		l.jobs++
	}
	return l
}

// record notes a reply to a request written at sent.
func (l *loader) record(step int, sent time.Time) {
	if l.phase.Load() == measuring {
		l.steps[step].RecordValue(max(time.Since(sent).Microseconds(), 1))
	}
}

func (l *loader) count(n int) {
	if l.phase.Load() == measuring {
		l.done.Add(int64(n))
	}
}

// fill adds this connection's share of a backlog.
func (l *loader) fill() error {
	for left := l.jobs; left > 0; {
		n := min(left, 256)
		if err := l.add(n); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// work does rounds until the run stops.
func (l *loader) work() error {
	for l.phase.Load() != stopping {
		var err error
		var more bool
		began := time.Now()
		switch l.Workload {
		case Enqueue:
			if err = l.add(l.Pipeline); err == nil {
				l.count(l.Pipeline)
			}
			more = true
		case Cycle:
			err, more = l.cycle(), true
		case Worker:
			err, more = l.worker(), true
		case Mixed:
			err, more = l.mixed(), true
		case Backlog:
			more, err = l.drain()
		default:
			err = fmt.Errorf("unknown workload %q", l.Workload)
		}
		if err != nil || !more {
			return err
		}
		if l.Every > 0 {
			time.Sleep(time.Until(began.Add(l.Every)))
		}
	}
	return nil
}

// add is n enqueues in one write.
func (l *loader) add(n int) error {
	for range n {
		l.conn.Add(l.payload)
	}
	sent := time.Now()
	if err := l.conn.Flush(); err != nil {
		return err
	}
	for range n {
		if err := l.conn.ReadAdd(); err != nil {
			return err
		}
		l.record(stepAdd, sent)
	}
	return nil
}

// fetch is n fetches in one write, behind the acks of what is held when
// withAcks. What comes is held.
func (l *loader) fetch(n int, withAcks bool) error {
	acks := 0
	if withAcks {
		acks = len(l.handles)
		for _, h := range l.handles {
			l.conn.Ack(h)
		}
	}
	for range n {
		l.conn.Fetch()
	}
	sent := time.Now()
	if err := l.conn.Flush(); err != nil {
		return err
	}
	if err := l.readAcks(acks, sent); err != nil {
		return err
	}
	for range n {
		handle, found, err := l.conn.ReadFetch()
		if err != nil {
			return err
		}
		l.record(stepFetch, sent)
		if !found {
			l.empty++
			continue
		}
		// Reuse the slices behind the end.
		if len(l.handles) < cap(l.handles) {
			l.handles = l.handles[:len(l.handles)+1]
		} else {
			l.handles = append(l.handles, nil)
		}
		last := len(l.handles) - 1
		l.handles[last] = append(l.handles[last][:0], handle...)
	}
	return nil
}

// ack finishes all that is held, in one write.
func (l *loader) ack() error {
	if len(l.handles) == 0 {
		return nil
	}
	for _, h := range l.handles {
		l.conn.Ack(h)
	}
	sent := time.Now()
	if err := l.conn.Flush(); err != nil {
		return err
	}
	return l.readAcks(len(l.handles), sent)
}

func (l *loader) readAcks(n int, sent time.Time) error {
	for range n {
		if err := l.conn.ReadAck(); err != nil {
			return err
		}
		l.record(stepAck, sent)
	}
	l.handles = l.handles[:len(l.handles)-n]
	return nil
}

func (l *loader) cycle() error {
	if err := l.add(l.Pipeline); err != nil {
		return err
	}
	if err := l.fetch(l.Pipeline, false); err != nil {
		return err
	}
	n := len(l.handles)
	if err := l.ack(); err != nil {
		return err
	}
	l.count(n)
	return nil
}

func (l *loader) worker() error {
	if err := l.add(l.Pipeline); err != nil {
		return err
	}
	n := len(l.handles)
	if err := l.fetch(l.Pipeline, true); err != nil {
		return err
	}
	l.count(n)
	return nil
}

func (l *loader) mixed() error {
	if l.random.IntN(2) == 0 {
		if err := l.add(l.Pipeline); err != nil {
			return err
		}
		l.count(l.Pipeline)
		return nil
	}
	if err := l.fetch(l.Pipeline, false); err != nil {
		return err
	}
	n := len(l.handles)
	if err := l.ack(); err != nil {
		return err
	}
	l.count(l.Pipeline + n)
	return nil
}

// drain reports false when the queue was empty.
func (l *loader) drain() (bool, error) {
	before := l.empty
	if err := l.fetch(l.Pipeline, true); err != nil {
		return false, err
	}
	n := len(l.handles)
	if l.empty > before { // the end: finish what is held
		err := l.ack()
		l.count(n)
		return false, err
	}
	l.count(n)
	return true, nil
}
