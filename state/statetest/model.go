package statetest

import (
	"cmp"
	"slices"

	"pawl/state"
)

// A Model does what State does, slowly and obviously: maps, sorting, and a scan
// for every question. It shares nothing with State but the types of records and
// answers. Where the two differ, one of them is wrong.
type Model struct {
	Now, Offset state.Millis
	Draining    bool
	Totals      state.Totals
	Jobs        []*modelJob // by slot
	Queues      map[state.QueueID]*modelQueue
	Claims      map[uint32]*modelClaim
	Crons       map[[2]string]*state.Cron
	Metas       map[string]string

	slots, queueIDs, claimIDs pool
	reuse                     map[state.Slot]uint16
	order, front              int64 // positions at the back and at the front
	serial                    int64
	secret                    bool
}

type modelJob struct {
	state.Job
	pos    int64 // in the order of its place
	joined bool  // part of its group: head, or behind it
	member int64 // order in the group
	head   bool
	claim  uint32
}

type modelQueue struct {
	key      string
	totals   state.Totals
	settings state.Settings
	paused   state.Millis
	rateFrom state.Millis
	rateUsed uint32
	usedAt   state.Millis // of an idle queue
	usedPos  int64        // 0 when not idle
	serial   int64
	backlog  map[state.Key]int64 // since when jobs wait in a group
}

type modelClaim struct {
	queue  state.QueueID
	serial int64
	key    state.Key
	id     state.JobID
	until  state.Millis
	slot   state.Slot
	held   bool
}

// A pool hands out numbers from 1, those given back first, the last one first.
type pool struct {
	last uint32
	free []uint32
}

func (p *pool) next() uint32 {
	if n := len(p.free); n > 0 {
		return p.free[n-1]
	}
	return p.last + 1
}

func (p *pool) take() uint32 {
	i := p.next()
	if n := len(p.free); n > 0 {
		p.free = p.free[:n-1]
	} else {
		p.last = i
	}
	return i
}

func (p *pool) give(i uint32) { p.free = append(p.free, i) }

// NewModel is the model of an empty log.
func NewModel() *Model {
	return &Model{
		Jobs: make([]*modelJob, 1), Queues: map[state.QueueID]*modelQueue{}, Claims: map[uint32]*modelClaim{},
		Crons: map[[2]string]*state.Cron{}, Metas: map[string]string{}, reuse: map[state.Slot]uint16{},
	}
}

// Job is the job at a slot, nil for none.
func (m *Model) Job(slot state.Slot) *modelJob {
	if int(slot) >= len(m.Jobs) {
		return nil
	}
	return m.Jobs[slot]
}

func (m *Model) back() int64 { m.order++; return m.order }

// Apply does what r tells, or says false and does nothing.
func (m *Model) Apply(r *state.Record, b state.Body, now state.Millis) bool {
	if now < m.Now {
		return false
	}
	before := m.Now
	m.Now = now
	if !m.apply(r, b) {
		m.Now = before
		return false
	}
	for id, q := range m.Queues {
		idle := m.idle(id)
		if q.usedPos != 0 && !idle {
			q.usedPos, q.usedAt = 0, 0
		} else if q.usedPos == 0 && idle {
			q.usedPos, q.usedAt = m.back(), m.Now
		}
	}
	return true
}

func (m *Model) idle(id state.QueueID) bool {
	q := m.Queues[id]
	for _, c := range m.Claims {
		if c.held && c.serial == q.serial {
			return false
		}
	}
	return q.settings == state.Settings{} && q.paused == 0 && len(m.in(id)) == 0
}

// use makes an idle queue the last used.
func (m *Model) use(id state.QueueID) bool {
	if q := m.Queues[id]; q.usedPos != 0 && q.usedAt != m.Now {
		q.usedPos, q.usedAt = m.back(), m.Now
	} else if q.usedPos != 0 {
		q.usedPos = m.back()
	}
	return true
}

func (m *Model) apply(r *state.Record, b state.Body) bool {
	j, q := m.Job(r.Slot), m.Queues[r.Queue]
	waiting := j != nil && j.Place != state.Leased
	leased := j != nil && j.Place == state.Leased
	dead := j != nil && j.Place == state.Dead
	taken := j != nil && m.KeyTaken(j, j.Queue)
	switch r.Kind {
	case state.KindEnqueue:
		return q != nil && m.enqueue(r, b)
	case state.KindLease:
		if j == nil || j.Place != state.Ready || j.joined && !j.head {
			return false
		}
		m.lease(j, r)
	case state.KindAck:
		return leased && m.remove(j, func(t *state.Totals) { t.Acked++ })
	case state.KindFail:
		if !leased || r.Cause == state.CauseExpire && j.Deadline > m.Now || (r.Place == state.Delayed) != (r.At != 0) {
			return false
		}
		m.count(j, func(t *state.Totals) {
			if r.Cause == state.CauseNack {
				t.Nacked++
			} else {
				t.Expired++
			}
			if r.Place == state.Dead {
				t.Dead++
			}
		})
		j.Failures = min(j.Failures+1, 65535)
		j.Reason = string(r.Text)
		if r.Place == state.Dead {
			m.kill(j)
		} else {
			m.put(j, r.Place, r.At, false)
		}
	case state.KindRelease:
		if !leased {
			return false
		}
		m.count(j, func(t *state.Totals) { t.Released++ })
		m.put(j, state.Ready, 0, true)
	case state.KindExtend:
		if !leased {
			return false
		}
		j.Deadline = r.At
	case state.KindRange:
		return m.deadlineRange(r)
	case state.KindWallRange:
		due := m.wallDue(m.Now)
		if r.At > m.Now+m.Offset || !covers(due, r) {
			return false
		}
		for _, d := range due[:r.Count] {
			m.put(m.Jobs[state.Slot(d.id)], state.Ready, 0, false)
		}
	case state.KindKeyRange:
		over := m.windowsOver(r.At)
		if r.At > m.Now || !covers(over, r) {
			return false
		}
		for _, d := range over[:r.Count] {
			m.letGo(d.id)
		}
	case state.KindLapse:
		return j != nil && j.Expires != 0 && j.Expires <= m.Now && m.remove(j, func(t *state.Totals) { t.Lapsed++ })
	case state.KindDelete:
		return j != nil && (r.Cause <= state.CausePurge || dead) && m.remove(j, func(t *state.Totals) { t.Deleted++ })
	case state.KindBury:
		if j == nil || dead {
			return false
		}
		m.count(j, func(t *state.Totals) { t.Buried++; t.Dead++ })
		j.Reason = string(r.Text)
		m.kill(j)
	case state.KindRedrive:
		if !dead || q == nil || m.KeyTaken(j, r.Queue) != r.DropKey {
			return false
		}
		m.count(j, func(t *state.Totals) { t.Redriven++ })
		m.revive(j, r.Queue, r.DropKey)
		j.Tries, j.Expires = r.Tries, r.Expires
		m.put(j, state.Ready, 0, false)
	case state.KindRun:
		if !waiting || j.Place == state.Ready || r.DropKey != (dead && taken) {
			return false
		}
		if dead {
			m.revive(j, j.Queue, r.DropKey)
		}
		m.put(j, state.Ready, 0, false)
	case state.KindDelay:
		if !waiting || r.At == 0 || r.DropKey != (dead && taken) {
			return false
		}
		if dead {
			m.revive(j, j.Queue, r.DropKey)
		}
		if j.Place == state.Ready {
			m.quit(j)
		}
		m.put(j, state.Delayed, r.At, false)
		j.DueWall = r.Wall
	case state.KindPriority:
		if !waiting {
			return false
		}
		if j.Place == state.Ready && !(j.joined && !j.head) && j.Priority != r.Priority {
			j.pos = m.back()
		}
		j.Priority = r.Priority
	case state.KindPayload:
		if !waiting || b.Length < uint32(r.Overhead) {
			return false
		}
		j.Body, j.Size = b, b.Length-uint32(r.Overhead)
	case state.KindMove:
		if !waiting || q == nil || r.Queue == j.Queue || m.KeyTaken(j, r.Queue) {
			return false
		}
		m.move(j, r.Queue)
	case state.KindCarry:
		if j == nil || b.Length != j.Body.Length || b.Checksum != j.Body.Checksum {
			return false
		}
		j.Body = b
	default:
		return m.applyOther(r, q)
	}
	return true
}

// applyOther does what is about no job.
func (m *Model) applyOther(r *state.Record, q *modelQueue) bool {
	switch r.Kind {
	case state.KindQueue:
		for _, other := range m.Queues {
			if other.key == string(r.Text) {
				return false
			}
		}
		if uint32(r.Queue) != m.queueIDs.next() {
			return false
		}
		m.serial++
		m.Queues[state.QueueID(m.queueIDs.take())] = &modelQueue{key: string(r.Text), serial: m.serial, backlog: map[state.Key]int64{}}
	case state.KindTouch:
		return q != nil && m.use(r.Queue)
	case state.KindForget:
		if q == nil || len(m.in(r.Queue)) > 0 {
			return false
		}
		delete(m.Queues, r.Queue)
		m.queueIDs.give(uint32(r.Queue))
	case state.KindSettings:
		if q == nil {
			return false
		}
		q.settings = *r.Settings
		if q.settings.RateCount == 0 {
			q.settings.RatePer = 0
		} else if q.settings.RatePer == 0 {
			q.settings.RatePer = 1000
		}
		q.rateFrom, q.rateUsed = 0, 0
		return m.use(r.Queue)
	case state.KindPause:
		if q == nil || r.At == 0 {
			return false
		}
		q.paused = r.At
	case state.KindResume:
		if q == nil || q.paused == 0 {
			return false
		}
		q.paused = 0
	case state.KindCron:
		c := *r.Cron
		m.Crons[[2]string{c.Namespace, c.Name}] = &c
	case state.KindCronFired:
		c := m.Crons[[2]string{r.Cron.Namespace, r.Cron.Name}]
		if c == nil {
			return false
		}
		c.Next, c.Last = r.Cron.Next, r.Cron.Last
	case state.KindCronDelete:
		name := [2]string{r.Cron.Namespace, r.Cron.Name}
		if m.Crons[name] == nil {
			return false
		}
		delete(m.Crons, name)
	case state.KindMeta:
		m.Metas[string(r.Text)] = string(r.Data)
	case state.KindMetaDelete:
		if _, ok := m.Metas[string(r.Text)]; !ok {
			return false
		}
		delete(m.Metas, string(r.Text))
	case state.KindDrain:
		m.Draining = r.On
	case state.KindClock:
		m.Offset = r.At
	case state.KindTime:
		if r.At < m.Now {
			return false
		}
		m.Now = r.At
	case state.KindSecret:
		if m.secret || m.slots.last > 0 {
			return false
		}
		m.secret = true
	}
	return true
}

func (m *Model) enqueue(r *state.Record, b state.Body) bool {
	if uint32(r.Slot) != m.slots.next() || b.Length < uint32(r.Overhead) ||
		r.Unique != (state.Key{}) && m.holder(r.Queue, r.Unique) != 0 {
		return false
	}
	m.slots.take()
	j := &modelJob{Job: state.Job{
		ID: state.NewJobID(r.Born, r.Slot, m.reuse[r.Slot], r.Delay), Slot: r.Slot, Queue: r.Queue, Priority: r.Priority,
		Tries: r.Tries, Backoff: r.Backoff, BackoffMax: r.BackoffMax, Expires: r.Expires,
		Unique: r.Unique, Group: r.Group, Size: b.Length - uint32(r.Overhead), Body: b,
	}}
	if int(r.Slot) == len(m.Jobs) {
		m.Jobs = append(m.Jobs, nil)
	}
	m.Jobs[r.Slot] = j
	if r.Unique != (state.Key{}) {
		j.claim = m.claimIDs.take()
		m.Claims[j.claim] = &modelClaim{key: r.Unique, id: j.ID, until: r.Window, slot: r.Slot}
		m.hold(j.claim, r.Queue)
	}
	if r.At == 0 {
		m.put(j, state.Ready, 0, false)
	} else {
		m.put(j, state.Delayed, r.At, false)
		j.DueWall = r.Wall
	}
	m.count(j, func(t *state.Totals) { t.Enqueued++ })
	return true
}

func (m *Model) lease(j *modelJob, r *state.Record) {
	m.put(j, state.Leased, r.At, false)
	j.Lease = state.LeaseID{Slot: j.Slot, Nonce: r.Nonce}
	j.Attempt++
	q := m.Queues[j.Queue]
	if q.settings.RateCount > 0 {
		if q.rateUsed == 0 || m.Now >= q.rateFrom+q.settings.RatePer {
			q.rateFrom, q.rateUsed = m.Now, 0
		}
		q.rateUsed++
	}
	m.count(j, func(t *state.Totals) { t.Delivered++ })
}

// put brings a job to a place; at is due time or deadline.
func (m *Model) put(j *modelJob, p state.Place, at state.Millis, front bool) {
	if j.Place == state.Ready && j.joined && !j.head {
		m.leave(j)
	}
	j.Place, j.pos = p, m.back()
	j.Since, j.Due, j.Deadline, j.Lease, j.DueWall = 0, 0, 0, state.LeaseID{}, false
	switch p {
	case state.Ready:
		j.Since = m.Now
		if j.Group != (state.Key{}) && !j.joined {
			j.joined, j.member = true, m.back()
			j.head = m.headOf(j.Queue, j.Group) == nil
			if !j.head && m.Queues[j.Queue].backlog[j.Group] == 0 {
				m.Queues[j.Queue].backlog[j.Group] = m.back()
			}
		}
		if front {
			for _, o := range m.ready(j.Queue) {
				if o != j && !m.blocked(o) && o.Priority == j.Priority {
					j.Since = min(j.Since, o.Since)
					break
				}
			}
			m.front--
			j.pos = m.front
		}
	case state.Delayed:
		j.Due = at
	case state.Leased:
		j.Deadline = at
	case state.Dead:
		j.Since = m.Now
	}
}

func (m *Model) headOf(q state.QueueID, g state.Key) *modelJob {
	for _, j := range m.Jobs {
		if j != nil && j.Queue == q && j.Group == g && j.head {
			return j
		}
	}
	return nil
}

func (m *Model) blocked(j *modelJob) bool { return j.joined && !j.head }

// behind are the jobs that wait in a group, in order.
func (m *Model) behind(q state.QueueID, g state.Key) (all []*modelJob) {
	for _, j := range m.in(q) {
		if j.Group == g && m.blocked(j) {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *modelJob) int { return cmp.Compare(a.member, b.member) })
	return all
}

// leave takes a job out of its group.
func (m *Model) leave(j *modelJob) {
	j.joined, j.head = false, false
	if len(m.behind(j.Queue, j.Group)) == 0 {
		delete(m.Queues[j.Queue].backlog, j.Group)
	}
}

// quit lets the next of the group become head, at the tail.
func (m *Model) quit(j *modelJob) {
	wasHead := j.head
	m.leave(j)
	if next := m.behind(j.Queue, j.Group); wasHead && len(next) > 0 {
		next[0].head, next[0].pos = true, m.back()
		if len(next) == 1 {
			delete(m.Queues[j.Queue].backlog, j.Group)
		}
	}
}

func (m *Model) kill(j *modelJob) {
	m.quit(j)
	j.Expires = 0
	m.put(j, state.Dead, 0, false)
	if c := m.Claims[j.claim]; c != nil && c.held && c.until <= m.Now {
		m.letGo(j.claim)
	}
}

func (m *Model) remove(j *modelJob, add func(*state.Totals)) bool {
	m.count(j, add)
	m.quit(j)
	m.Jobs[j.Slot] = nil
	m.slots.give(uint32(j.Slot))
	m.reuse[j.Slot]++
	if c := m.Claims[j.claim]; c != nil {
		c.slot = 0
		if !c.held {
			m.dropClaim(j.claim)
		} else if c.until <= m.Now {
			m.letGo(j.claim)
		}
	}
	return true
}

// revive is for a dead job that is to live again in a queue.
func (m *Model) revive(j *modelJob, to state.QueueID, drop bool) {
	j.Failures, j.Reason = 0, ""
	if c := m.Claims[j.claim]; c != nil && drop {
		c.slot = 0
		if c.held {
			m.letGo(j.claim)
		} else {
			m.dropClaim(j.claim)
		}
		j.claim, j.Unique = 0, state.Key{}
	} else if c != nil {
		c.held = false
		m.hold(j.claim, to)
	}
	j.Queue = to
}

func (m *Model) move(j *modelJob, to state.QueueID) {
	place, due, wall := j.Place, j.Due, j.DueWall
	m.quit(j)
	j.Queue = to
	if c := m.Claims[j.claim]; c != nil && c.held {
		c.held = false
		m.hold(j.claim, to)
	} else if c != nil {
		c.queue, c.serial = to, m.Queues[to].serial
	}
	m.put(j, place, due, false)
	j.DueWall = wall
}

// hold makes a claim held; a stale one of the same key goes.
func (m *Model) hold(i uint32, q state.QueueID) {
	c := m.Claims[i]
	c.queue, c.serial = q, m.Queues[q].serial
	for o, other := range m.Claims {
		if o != i && other.held && other.serial == c.serial && other.key == c.key {
			m.letGo(o)
		}
	}
	c.held = true
}

func (m *Model) letGo(i uint32) {
	m.Claims[i].held = false
	if m.Claims[i].slot == 0 {
		m.dropClaim(i)
	}
}

func (m *Model) dropClaim(i uint32) {
	delete(m.Claims, i)
	m.claimIDs.give(i)
}

func (m *Model) alive(c *modelClaim) bool {
	return c.slot != 0 && m.Jobs[c.slot].Place != state.Dead
}

// holder is the claim that keeps a key from use, 0 for none.
func (m *Model) holder(q state.QueueID, key state.Key) uint32 {
	for i, c := range m.Claims {
		if c.held && c.serial == m.Queues[q].serial && c.key == key && (m.alive(c) || c.until > m.Now) {
			return i
		}
	}
	return 0
}

// KeyTaken says that another job has the key of j in q.
func (m *Model) KeyTaken(j *modelJob, q state.QueueID) bool {
	holder := m.holder(q, j.Unique)
	return j.claim != 0 && holder != 0 && holder != j.claim
}

func (m *Model) count(j *modelJob, add func(*state.Totals)) {
	add(&m.Totals)
	add(&m.Queues[j.Queue].totals)
}

// in are the jobs of a queue, by slot.
func (m *Model) in(q state.QueueID) (all []*modelJob) {
	for _, j := range m.Jobs {
		if j != nil && j.Queue == q {
			all = append(all, j)
		}
	}
	return all
}

// ready are those that can be delivered and then those that wait.
func (m *Model) ready(id state.QueueID) []*modelJob { return m.Page(id, state.Ready) }

// Page is all jobs of a queue in a place, in order.
func (m *Model) Page(id state.QueueID, p state.Place) (page []*modelJob) {
	for _, j := range m.Jobs {
		if j != nil && j.Queue == id && j.Place == p {
			page = append(page, j)
		}
	}
	slices.SortFunc(page, func(a, b *modelJob) int {
		switch {
		case p == state.Delayed:
			return cmp.Or(cmp.Compare(m.due(a), m.due(b)), cmp.Compare(a.Slot, b.Slot))
		case p != state.Ready:
			return cmp.Compare(a.pos, b.pos)
		case m.blocked(a) && m.blocked(b):
			backlog := m.Queues[id].backlog
			return cmp.Or(cmp.Compare(backlog[a.Group], backlog[b.Group]), cmp.Compare(a.member, b.member))
		case m.blocked(a):
			return 1
		case m.blocked(b):
			return -1
		}
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.pos, b.pos))
	})
	return page
}

func (m *Model) due(j *modelJob) state.Millis {
	if j.DueWall {
		return j.Due - m.Offset
	}
	return j.Due
}

// at is a time at which something is to happen to id.
type at struct {
	at state.Millis
	id uint32
}

func sorted(all []at) []at {
	slices.SortFunc(all, func(a, b at) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	return all
}

// covers says that r names a beginning of what is due.
func covers(due []at, r *state.Record) bool {
	n := int(r.Count)
	return n > 0 && n <= len(due) && due[n-1] == at{r.At, uint32(r.Slot)}
}

func (m *Model) deadline(j *modelJob) (at state.Millis, lease bool) {
	at = j.Expires
	switch {
	case j.Place == state.Leased && (at == 0 || j.Deadline < at):
		return j.Deadline, true
	case j.Place == state.Delayed && !j.DueWall && (at == 0 || j.Due < at):
		return j.Due, false
	}
	return at, false
}

// deadlines are all up to now.
func (m *Model) deadlines(now state.Millis) (due []at) {
	for slot, j := range m.Jobs {
		if j == nil {
			continue
		}
		if t, lease := m.deadline(j); (t != 0 || lease) && t <= now {
			due = append(due, at{t, uint32(slot)})
		}
	}
	return sorted(due)
}

func (m *Model) wallDue(now state.Millis) (due []at) {
	for slot, j := range m.Jobs {
		if j != nil && j.DueWall && j.Due <= now+m.Offset {
			due = append(due, at{j.Due, uint32(slot)})
		}
	}
	return sorted(due)
}

func (m *Model) windowsOver(now state.Millis) (over []at) {
	for i, c := range m.Claims {
		if c.held && !m.alive(c) && c.until <= now {
			over = append(over, at{c.until, i})
		}
	}
	return sorted(over)
}

func (m *Model) deadlineRange(r *state.Record) bool {
	due := m.deadlines(r.At)
	if r.At > m.Now || !covers(due, r) {
		return false
	}
	for _, d := range due[:r.Count] {
		if _, lease := m.deadline(m.Jobs[state.Slot(d.id)]); lease {
			return false
		}
	}
	for _, d := range due[:r.Count] {
		if j := m.Jobs[state.Slot(d.id)]; d.at == j.Expires {
			m.remove(j, func(t *state.Totals) { t.Lapsed++ })
		} else {
			m.put(j, state.Ready, 0, false)
		}
	}
	return true
}

// Next is what a queue delivers next, 0 for nothing.
func (m *Model) Next(id state.QueueID, now state.Millis) state.Slot {
	q := m.Queues[id]
	leased := len(m.Page(id, state.Leased))
	ready := m.ready(id)
	switch {
	case len(ready) == 0 || m.blocked(ready[0]) || now < q.paused,
		q.settings.MaxLeased > 0 && leased >= int(q.settings.MaxLeased),
		q.settings.RateCount > 0 && now < q.rateFrom+state.Millis(min(q.rateUsed, q.settings.RateCount))*q.settings.RatePer/state.Millis(max(1, q.settings.RateCount)):
		return 0
	}
	return ready[0].Slot
}
