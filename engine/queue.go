package engine

import (
	"strings"

	"pawl/state"
)

func (e *Engine) stats(c *Stats) error {
	c.Ready, c.Leased, c.Dead, c.Delayed = 0, 0, 0, 0
	if err := checkQueueKey(c.Queue); err != nil {
		return err
	}
	if q, ok := e.st.QueueByKey(c.Queue); ok {
		v := e.st.Queue(q)
		c.Ready, c.Leased, c.Dead, c.Delayed = int64(v.Ready), int64(v.Leased), int64(v.Dead), int64(v.Delayed)
	}
	return nil
}

// queueView is a queue as operators see it.
func (e *Engine) queueView(q state.QueueID) QueueView {
	s := e.st.Queue(q)
	v := QueueView{
		Key: s.Key, Serial: s.Serial, Ready: int64(s.Ready), Delayed: int64(s.Delayed), Leased: int64(s.Leased), Dead: int64(s.Dead),
		Bytes: int64(s.Bytes), Totals: s.Totals, Settings: s.Settings, Waiting: e.waiters.length(s.Key),
	}
	if s.PausedUntil > e.now {
		v.Paused = true
		if s.PausedUntil != state.Forever {
			v.PausedUntil = e.clock.wall(s.PausedUntil)
		}
	}
	if s.OldestReady != 0 {
		v.OldestReadyMs = max(0, e.now-s.OldestReady)
	}
	if s.NextDue != 0 {
		v.NextDueMs = max(0, s.NextDue-e.now)
	}
	return v
}

func (e *Engine) queueInfo(c *QueueInfo) error {
	c.Found, c.Info = false, QueueView{}
	if err := checkQueueKey(c.Queue); err != nil {
		return err
	}
	if q, ok := e.st.QueueByKey(c.Queue); ok {
		c.Found, c.Info = true, e.queueView(q)
	}
	return nil
}

// MaxGlobBytes bounds the pattern of a QueueList.
const MaxGlobBytes = 1024

func (e *Engine) queueList(c *QueueList) error {
	c.Keys = nil
	if len(c.Match) > MaxGlobBytes {
		return ErrTooLarge
	}
	prefix := c.Pool + "/"
	next := state.QueueID(1)
	return e.inStays(func() (more bool) {
		next = e.st.QueuesFrom(next, listChunk, func(q state.QueueID) {
			key := e.st.QueueKey(q)
			if strings.HasPrefix(key, prefix) && (c.Match == nil || Glob(string(c.Match), state.DisplayName(key))) {
				c.Keys = append(c.Keys, key)
			}
		})
		return next != 0
	})
}

// listChunk is how many entries of a table a list looks at before it lets others in.
const listChunk = 1024

// inStays has list look at pieces of a table while there are more, and lets others
// in after each. It is for lists that Submit sorts, when others can go on.
func (e *Engine) inStays(list func() (more bool)) error {
	for list() {
		if e.pause(); e.down.Load() != 0 {
			return e.refusal()
		}
	}
	return nil
}

// maxPeek bounds a page of QueuePeek.
const (
	defaultPeek = 10
	maxPeek     = 100
)

func (e *Engine) queuePeek(c *QueuePeek) error {
	c.Jobs, c.Next = nil, nil
	if err := checkQueueKey(c.Queue); err != nil {
		return err
	}
	var after state.Slot
	q, ok := e.st.QueueByKey(c.Queue)
	if c.After != nil {
		id, err := state.ParseJobID(c.After)
		if err != nil || !ok {
			return ErrCursor
		}
		slot, found := e.st.Lookup(id)
		if !found {
			return ErrCursor
		}
		if j, _ := e.st.Job(slot); j.Queue != q || j.Place != c.Place {
			return ErrCursor
		}
		after = slot
	}
	if !ok {
		return nil
	}
	count := c.Count
	if count <= 0 {
		count = defaultPeek
	}
	count = min(count, maxPeek)
	// One more than the page says whether there is another one.
	e.slots = e.st.Page(e.slots[:0], q, c.Place, after, count+1)
	for i, slot := range e.slots {
		if i == count {
			c.Next = c.Jobs[count-1].ID.AppendText(nil)
			break
		}
		j, _ := e.st.Job(slot)
		c.Jobs = append(c.Jobs, e.view(&j))
	}
	return nil
}

func (e *Engine) queuePause(c *QueuePause) error {
	if err := e.room(queueRoom(c.Queue)); err != nil {
		return err
	}
	q, err := e.needQueue(c.Queue)
	if err != nil {
		return err
	}
	until := state.Forever
	if c.For > 0 {
		until = state.AddMillis(e.now, clampSpan(c.For))
	}
	e.record(&state.Record{Kind: state.KindPause, Queue: q, At: until}, nil)
	return nil
}

func (e *Engine) queueResume(c *QueueResume) error {
	if err := e.room(recordRoom); err != nil {
		return err
	}
	if err := checkQueueKey(c.Queue); err != nil {
		return err
	}
	q, ok := e.st.QueueByKey(c.Queue)
	if !ok || e.st.Queue(q).PausedUntil == 0 {
		return nil
	}
	e.record(&state.Record{Kind: state.KindResume, Queue: q}, nil)
	e.touched(q)
	return nil
}

func (e *Engine) queueSet(c *QueueSet) error {
	if err := e.room(queueRoom(c.Queue)); err != nil {
		return err
	}
	q, err := e.needQueue(c.Queue)
	if err != nil {
		return err
	}
	s := e.st.Settings(q)
	for which, take := range settingTakers {
		if c.Which&which != 0 {
			take(&s, &c.Settings)
		}
	}
	e.record(&state.Record{Kind: state.KindSettings, Queue: q, Settings: &s}, nil)
	e.touched(q)
	return nil
}

// settingTakers copy one setting each, with its times cut to what can be written.
var settingTakers = map[state.SettingSet]func(to, from *state.Settings){
	state.SetTries: func(to, from *state.Settings) { to.Tries = from.Tries },
	state.SetTTL:   func(to, from *state.Settings) { to.TTL = clampSpan(from.TTL) },
	state.SetBackoff: func(to, from *state.Settings) {
		to.Backoff, to.BackoffMax = clampSpan(from.Backoff), clampSpan(from.BackoffMax)
	},
	state.SetMaxLen:    func(to, from *state.Settings) { to.MaxLen = from.MaxLen },
	state.SetMaxBytes:  func(to, from *state.Settings) { to.MaxBytes = from.MaxBytes },
	state.SetMaxLeased: func(to, from *state.Settings) { to.MaxLeased = from.MaxLeased },
	state.SetRate: func(to, from *state.Settings) {
		to.RateCount, to.RatePer = from.RateCount, clampSpan(from.RatePer)
		if to.RateCount != 0 && to.RatePer == 0 {
			to.RatePer = 1000
		}
		if to.RateCount == 0 {
			to.RatePer = 0
		}
	},
	state.SetDeadMax: func(to, from *state.Settings) { to.DeadMax = from.DeadMax },
	state.SetDeadFor: func(to, from *state.Settings) { to.DeadFor = clampSpan(from.DeadFor) },
}

func (e *Engine) queueReset(c *QueueReset) error {
	if err := e.room(recordRoom); err != nil {
		return err
	}
	if err := checkQueueKey(c.Queue); err != nil {
		return err
	}
	q, ok := e.st.QueueByKey(c.Queue)
	if !ok || e.st.Settings(q) == (state.Settings{}) {
		return nil
	}
	e.record(&state.Record{Kind: state.KindSettings, Queue: q, Settings: &state.Settings{}}, nil)
	e.touched(q)
	return nil
}

// queueDelete removes the jobs in turns, then the queue. What came in meanwhile
// goes too, and so does what was leased meanwhile: a refusal after the first turn
// would say that nothing had been removed.
func (e *Engine) queueDelete(c *QueueDelete) error {
	c.Found = false
	if err := checkQueueKey(c.Queue); err != nil {
		return err
	}
	for begun := false; ; begun = true {
		if err := e.room((maxLapses + 1) * recordRoom); err != nil {
			return partly(begun, err)
		}
		q, ok := e.st.QueueByKey(c.Queue)
		if !ok {
			return nil
		}
		c.Found = true
		s := e.st.Queue(q)
		if s.Leased > 0 && !begun {
			return ErrQueueLeased
		}
		jobs := s.Ready + s.Delayed + s.Leased + s.Dead
		for _, place := range []state.Place{state.Ready, state.Delayed, state.Leased, state.Dead} {
			e.slots = e.st.Page(e.slots[:0], q, place, 0, maxLapses)
			for _, slot := range e.slots[:min(len(e.slots), maxLapses)] {
				if !e.roomNow(recordRoom) {
					break
				}
				e.record(&state.Record{Kind: state.KindDelete, Slot: slot, Cause: state.CausePurge}, nil)
				jobs--
			}
		}
		if jobs == 0 && e.roomNow(recordRoom) {
			e.record(&state.Record{Kind: state.KindForget, Queue: q}, nil)
			return nil
		}
		if e.pause(); e.down.Load() != 0 {
			return partly(true, e.refusal())
		}
	}
}
