package engine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"pawl/state"
	"pawl/wal"
)

// Submit decides and applies cmds in one step, in order, and fills their
// answers, which nobody may see before Wait(lsn) has returned nil. They stay
// together: nothing else comes between them, but where the log must first make
// room, where a Fetch meets more than 64 jobs past their time to live, where a
// QueueDelete has much to remove, where a QueueList, a CronList or a MetaList looks at very
// many, and where they have taken a millisecond, also within a Fetch, an Ack or a JobDelete.
// A Multi stays together whatever it takes.
func (e *Engine) Submit(cmds ...Command) LSN {
	for _, cmd := range cmds {
		e.prepare(cmd)
	}
	if err := e.backpressure(); err != nil {
		for _, cmd := range cmds {
			cmd.refuse(err)
		}
		return lsnNothing
	}
	if !e.enter() {
		return e.refuseAll(cmds)
	}
	lsn, _ := e.decideAll(cmds)
	return lsn
}

// TrySubmit is Submit for those who have others to look after: where Submit would
// wait, because too much waits for the disk already or the log has to make its next
// generation first, it ends. It answers how many of cmds, the first of them, were
// decided; nothing was done of the others, which Submit takes as they are, but for
// delays and times to live that were over. It takes what a Multi takes, Multi, Fetch
// and Stats. An Ack or a JobDelete of more than 128 is for Submit: it lets others in,
// and they may use up the room for its rest.
func (e *Engine) TrySubmit(cmds ...Command) (lsn LSN, decided int) {
	if e.pressed() {
		return lsnNothing, 0
	}
	for _, cmd := range cmds {
		e.prepare(cmd)
	}
	if !e.enter() {
		return e.refuseAll(cmds), len(cmds)
	}
	e.hasty = true
	return e.decideAll(cmds)
}

// maxTried is how many jobs an Ack or a JobDelete of TrySubmit is about at most: one
// piece of work, see maxTurn.
const maxTried = 128

// errWouldWait is what a command of TrySubmit meets where it would have to wait. It
// has decided nothing.
var errWouldWait = errors.New("the log has no room at this moment")

// decideAll carries out cmds and ends the stay, or more than one if they take long.
// A hasty one ends before the first that would have to wait.
func (e *Engine) decideAll(cmds []Command) (lsn LSN, decided int) {
	e.hung = false
	var work workDone
	for i, cmd := range cmds {
		if e.longEnough(&work, 0) {
			e.pause()
		}
		if e.down.Load() != 0 {
			// While decide had let go of the critical section. What was decided
			// before that stands, and the caller waits for it.
			e.refuseAll(cmds[i:])
			break
		}
		err := ErrHung // whoever comes together waits together
		if !e.hung {
			err = e.decide(cmd)
		}
		if err == errWouldWait {
			cmds = cmds[:i]
			break
		}
		cmd.refuse(err)
		if err != nil {
			e.tally.refused++
		}
		work += workDone(JobsOf(cmd))
	}
	e.hasty = false
	lsn = e.leave()
	for _, cmd := range cmds {
		switch c := cmd.(type) {
		case *QueueList:
			slices.Sort(c.Keys)
		case *CronList:
			slices.SortFunc(c.Crons, byName)
		case *MetaList:
			c.finish()
		}
	}
	return lsn, len(cmds)
}

// refuseAll says to each why nothing is taken any more.
func (e *Engine) refuseAll(cmds []Command) LSN {
	err := e.refusal()
	for _, cmd := range cmds {
		cmd.refuse(err)
	}
	return LSN(e.down.Load())
}

// refusal is why nothing is taken any more.
func (e *Engine) refusal() error {
	if LSN(e.down.Load()) == lsnClosed {
		return ErrClosed
	}
	return ErrFailed
}

// Do is Submit and Wait, and Abandon where Wait fails. It returns what Wait says,
// not the commands' errors.
func (e *Engine) Do(cmds ...Command) error {
	err := e.Wait(e.Submit(cmds...))
	if err != nil {
		e.Abandon(cmds...)
	}
	return err
}

// Abandon lets go of what the answers of cmds hold, which nobody will see because
// Wait has returned an error: the jobs that a Fetch took go back to the heads of
// their queues, for on a disk that only hung they are leased to nobody; and the
// holds of views are dropped. It never waits; a job for whose record there is no
// room stays leased until its time is over.
func (e *Engine) Abandon(cmds ...Command) {
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			continue // it has no answer
		}
		switch c := cmd.(type) {
		case *Fetch:
			if len(c.Jobs) > 0 {
				e.giveBack(c.Jobs, func(n int) error {
					if !e.roomNow(n) {
						return ErrHung
					}
					return nil
				})
			}
		case *JobGet:
			e.dropBody(&c.Job.body)
		case *QueuePeek:
			for i := range c.Jobs {
				e.dropBody(&c.Jobs[i].body)
			}
		}
	}
}

// prepare does what needs no state before the critical section.
func (e *Engine) prepare(cmd Command) {
	switch c := cmd.(type) {
	case *Enqueue:
		c.prefix = appendPrefix(c.prefix[:0], c.Unique, c.Group, c.Attrs)
	case *CronSet:
		c.schedule, c.bad = ParseCron(c.Cron.Spec, c.Cron.Zone)
	case *JobEdit:
		if c.Kind == EditPayload {
			e.prepareEdit(c)
		}
	case *Multi:
		for _, cmd := range c.Commands {
			e.prepare(cmd)
		}
	}
}

// decide carries out one command or says why not.
func (e *Engine) decide(cmd Command) error {
	switch c := cmd.(type) {
	case *Enqueue:
		return e.enqueue(c)
	case *Fetch:
		return e.fetch(c)
	case *Ack:
		return e.ack(c)
	case *Nack:
		return e.nack(c)
	case *Release:
		return e.release(c)
	case *Bury:
		return e.bury(c)
	case *Extend:
		return e.extend(c)
	case *Multi:
		return e.multi(c)
	case *JobGet:
		return e.jobGet(c)
	case *JobDelete:
		return e.jobDelete(c)
	case *JobEdit:
		return e.jobEdit(c)
	case *Stats:
		return e.stats(c)
	case *QueueList:
		return e.queueList(c)
	case *QueueInfo:
		return e.queueInfo(c)
	case *QueuePeek:
		return e.queuePeek(c)
	case *QueuePause:
		return e.queuePause(c)
	case *QueueResume:
		return e.queueResume(c)
	case *QueueSet:
		return e.queueSet(c)
	case *QueueReset:
		return e.queueReset(c)
	case *QueueDelete:
		return e.queueDelete(c)
	case *CronSet:
		return e.cronSet(c)
	case *CronDelete:
		return e.cronDelete(c)
	case *CronList:
		return e.cronList(c)
	case *Drain:
		return e.drain(c)
	case *MetaSet:
		return e.metaSet(c)
	case *MetaGet:
		return e.metaGet(c)
	case *MetaList:
		return e.metaList(c)
	}
	panic(fmt.Sprintf("engine: %T is no command of Submit", cmd))
}

// enter begins a stay in the critical section; leave must end it. False, and no
// stay, when nothing is taken any more.
func (e *Engine) enter() bool {
	e.mu.Lock()
	if e.down.Load() != 0 {
		e.mu.Unlock()
		return false
	}
	e.tick()
	return true
}

// tick reads the clock, once a stay.
func (e *Engine) tick() {
	if offset, stepped := e.look(); stepped && e.down.Load() == 0 {
		e.step(offset) // of a stay that goes on after Close nobody would write it
	}
	if e.waiters.next(e.now) <= e.now {
		e.serve()
	}
}

// stayed is how long the stay has been so far.
func (e *Engine) stayed() time.Duration { return e.clock.since(e.entered) }

// workDone is about how many jobs were handled since the last look at the clock.
type workDone int

// longEnough adds jobs to the work done and says whether others are to be let in
// before there is more.
func (e *Engine) longEnough(work *workDone, jobs int) bool {
	if *work += workDone(jobs); *work < clockEvery {
		return false
	}
	*work = 0
	return e.stayed() > maxStay
}

// inParts does each of n things, in order, and lets others in where the stay has been
// long enough; do says whether it has made its one record. There is room for all that
// is left whenever it begins or goes on: a refusal half way on would say that nothing
// was done, and is an ErrPartly. What others may have changed meanwhile is looked at
// again, by exists for the room and by do.
func (e *Engine) inParts(n int, exists, do func(i int) bool) error {
	if e.hasty && !e.whole && n > maxTried {
		return errWouldWait
	}
	atOnce := e.hasty || e.whole
	done := false
	var work workDone
	for i := 0; i < n; {
		err := e.roomForThose(n-i, func(k int) bool { return exists(i + k) })
		if err != nil {
			return partly(done, err)
		}
		for more := true; more && i < n; i++ {
			done = do(i) || done
			more = atOnce || !e.longEnough(&work, 1)
		}
		if i == n {
			break
		}
		if e.pause(); e.down.Load() != 0 {
			return partly(done, e.refusal())
		}
	}
	return nil
}

// look begins the time of the stay, which timeStay must end.
func (e *Engine) look() (offset state.Millis, stepped bool) {
	if e.opt.MeasureCPU {
		runtime.LockOSThread() // the processor time is a thread's
		e.cpu = threadCPU()
	}
	e.entered, e.now, offset, stepped = e.clock.read()
	return offset, stepped
}

// step follows the wall clock, which somebody has set.
func (e *Engine) step(offset state.Millis) {
	if !e.roomNow(recordRoom) {
		return // the next stay tries again
	}
	if by := offset - e.clock.offset; by > warnMs || by < -warnMs {
		e.opt.Logger.Warn("wall clock was set: AT and CRON follow it, leases and delays do not", "by_ms", int64(by))
	}
	e.clock.offset = offset
	e.record(&state.Record{Kind: state.KindClock, At: offset}, nil)
	e.tally.steps++
}

// leave ends the stay: it hands what came in to those who wait for it, tells the
// reaper if something is due earlier than it knows, and returns the LSN that
// everything decided here waits for.
func (e *Engine) leave() LSN {
	e.serve()
	e.announce()
	if e.open != nil && e.open.Records() == 0 {
		// Room was made for what was not decided, such as a FETCH that found no job. An
		// open group would keep the log from saying that it stands still.
		e.seal()
	}
	if e.now-e.publishedAt >= publishEvery {
		e.publish()
	}
	lsn := e.last
	if lsn > LSN(e.commits.safe.Load()) && !e.flushing.Swap(true) {
		// Somebody will lead for this group, most likely at once; if not, it
		// must not stay in memory.
		e.flush.Reset(flushAfter)
	}
	e.timeStay()
	e.mu.Unlock()
	return lsn
}

// timeStay notes how long the stay was that ends here.
func (e *Engine) timeStay() {
	wall := e.stayed()
	e.turnTime.add(uint64(wall / time.Microsecond))
	if !e.opt.MeasureCPU {
		return
	}
	e.turnCPU.add(uint64((threadCPU() - e.cpu) / time.Microsecond))
	runtime.UnlockOSThread()
}

// pause ends the stay and begins another one, so that others get in. Nothing may
// be taken any more after it: down says so.
func (e *Engine) pause() {
	hasty, hung := e.hasty, e.hung
	e.hasty = false // the others are not
	e.leave()
	e.mu.Lock()
	e.tick()
	e.hasty, e.hung = hasty, hung
}

// flushAfter is how long a group may lie open that nobody waits for.
const flushAfter = 50 * time.Millisecond

func (e *Engine) flushOpen() {
	e.flushing.Store(false)
	e.mu.Lock()
	last := e.last
	e.mu.Unlock()
	_ = e.Wait(last) // a failure is told by Failed
}

// recordRoom is what any record without text takes in a group, at most; timeRoom
// is what the record of the time takes.
var (
	recordRoom = wal.RecordBytes(160, 0)
	timeRoom   = wal.RecordBytes(16, 0)
)

// room sees to it that records of n bytes go into the open group. It must come
// before anything is read from the state for a decision, because while the log
// makes a generation it lets go of the critical section. ErrNoSpace,
// ErrTooLarge, ErrHung, ErrFailed; errWouldWait where the stay is hasty.
func (e *Engine) room(n int) error {
	for {
		if e.open != nil {
			if e.whole && e.open.Fits(n) {
				return nil // what belongs together goes into one group
			}
			if e.open.Fits(n+timeRoom) && !e.open.Full() {
				return nil
			}
			e.seal()
		}
		news := e.log.Prepared()
		err := e.openGroup(n)
		if err == nil {
			return nil
		}
		if err := e.makeRoom(err, news); err != nil {
			return err
		}
	}
}

// roomForThose is room for one record about each of n things, of which some may
// not exist: where room is scarce it asks for no more than the others need. What
// exists is to be looked up again afterwards.
func (e *Engine) roomForThose(n int, exists func(i int) bool) error {
	if e.open != nil && !e.open.Full() && e.open.Fits(n*recordRoom+timeRoom) {
		return nil
	}
	count := func() (there int) {
		for i := range n {
			if exists(i) {
				there++
			}
		}
		return there
	}
	for {
		there := count()
		if there == 0 {
			return nil
		}
		if err := e.room(there * recordRoom); err != nil {
			return err
		}
		// While room let go of the critical section, jobs may have come into the
		// queue that is meant.
		if count() <= there {
			return nil
		}
	}
}

// roomNow is room for those who must not let go of the critical section: false
// where the log has none at this moment.
func (e *Engine) roomNow(n int) bool {
	if e.open != nil {
		if e.open.Fits(n+timeRoom) && !e.open.Full() {
			return true
		}
		e.seal()
	}
	return e.openGroup(n) == nil
}

func (e *Engine) openGroup(n int) error {
	g, err := e.log.Open(n)
	if err != nil {
		return err
	}
	e.open, e.dated = g, e.now
	return nil
}

// seal ends the open group. One without records is none: where nothing was decided,
// nothing is written.
func (e *Engine) seal() {
	g := e.open
	e.open = nil
	if g.Records() == 0 {
		e.log.Withdraw(g)
		return
	}
	e.log.Seal(g, int64(e.dated), int64(e.clock.wall(e.dated)))
	e.sealed = append(e.sealed, g)
}

// makeRoom waits, outside the critical section, for a generation.
func (e *Engine) makeRoom(err error, news <-chan struct{}) error {
	if refusal := spaceError(err); refusal != nil {
		return refusal
	}
	if e.hasty {
		return errWouldWait
	}
	e.serve() // the stay ends here; what came in goes out
	e.announce()
	last := e.last
	e.timeStay()
	e.mu.Unlock()
	// What is sealed must not wait for us, if we are the one to lead.
	werr := e.Wait(last)
	if werr == ErrUnanswered {
		werr = ErrHung // that was others; this command is not decided
	}
	if werr == nil {
		hung := time.NewTimer(HungAfter)
		select {
		case <-news:
		case <-e.commits.failed:
			werr = ErrFailed
		case <-hung.C:
			werr = ErrHung
		}
		hung.Stop()
	}
	e.mu.Lock()
	if werr == nil && e.down.Load() != 0 {
		werr = e.refusal()
	}
	e.hung = werr == ErrHung
	e.tick()
	return werr
}

// record adds r, with its body, to the open group and applies it. There must be
// room. It does not keep r.
func (e *Engine) record(r *state.Record, body []byte) {
	switch {
	case e.open.Records() == 0:
		e.dated = e.now
	case e.st.Now() < e.now:
		e.add(&state.Record{Kind: state.KindTime, At: e.now}, nil, e.st.Now())
	}
	e.add(r, body, e.now)
	e.tally.records++
}

// add adds r to the open group and applies it at now.
func (e *Engine) add(r *state.Record, body []byte, now state.Millis) {
	e.head = r.AppendHead(e.head[:0])
	before := e.open.Bytes()
	pos := e.open.Add(e.head, body)
	e.pending.Add(int64(e.open.Bytes() - before))
	e.last = e.open.LSN()
	if err := e.st.Apply(r, state.Body(pos), now); err != nil {
		// The record stands in a group: half of the truth must not be written.
		panic(fmt.Sprintf("engine: decided what does not fit the state: %v: %+v at %d", err, r, now))
	}
}

// takeGroup gives the leader the oldest group that is not written; nil when
// there is none.
func (e *Engine) takeGroup() *wal.Group {
	if len(e.sealed) == 0 {
		if e.open == nil || e.open.Records() == 0 {
			return nil
		}
		e.seal()
	}
	g := e.sealed[0]
	e.sealed = append(e.sealed[:0], e.sealed[1:]...)
	return g
}

// pressed says that Submit would hold its caller back now, because too much waits
// for the disk.
func (e *Engine) pressed() bool {
	return e.pending.Load() > e.opt.MaxPendingBytes || int(e.commits.count.Load()) >= e.opt.MaxPending
}

// backpressure holds a submitter back while too much waits for the disk, and
// refuses it where the disk does not move.
func (e *Engine) backpressure() error {
	for {
		c := &e.commits
		if !e.pressed() {
			return nil
		}
		if since := c.began.Load(); since != 0 && time.Since(e.clock.start)-time.Duration(since) > time.Second {
			return ErrBusy
		}
		if e.down.Load() != 0 {
			return nil // enter says why
		}
		e.mu.Lock()
		last := e.last
		e.mu.Unlock()
		switch err := e.Wait(last); err {
		case nil:
		case ErrUnanswered:
			return ErrBusy
		default:
			return nil // enter says why
		}
	}
}
