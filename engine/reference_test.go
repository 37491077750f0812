package engine_test

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// A reference does what an engine should do, slowly and obviously: maps, sorting
// and a scan for every question. It imports nothing of Pawl. All times are
// milliseconds since 1970. Methods answer with the refusal they meet, "" for
// none; a refused command has changed nothing, but that of a transaction, which
// works on a copy.
type reference struct {
	now      int64
	seq      int64 // gives out places in all orders
	jobs     map[string]*refJob
	queues   map[string]*refQueue
	keys     map[[2]string]refKey // by queue and unique key: who holds it, or did
	waiting  map[[2]string]int64  // by queue and group: since when jobs wait behind its head
	crons    map[string]*refCron
	totals   map[[2]string]uint64 // by queue and what happened
	draining bool
}

type refJob struct {
	id             string
	slot           uint32 // breaks ties of deadlines
	queue, payload string
	group, unique  string
	place          string // ready, delayed, leased or dead
	priority       int8
	pos            int64 // order among the ready, the leased and the dead
	member         int64 // order in its group; 0 is no part of it
	due            int64 // delayed: becomes ready; leased: the lease ends
	wall           bool  // delayed: due is by the wall clock
	loose          int64 // delayed by a backoff: due may be as early as this
	since          int64 // dead
	expires        int64 // 0 is never
	keyUntil       int64
	tries          int64
	backoff, most  int64
	failures       int64
	attempt        int64
	lease, reason  string
}

type refQueue struct {
	refSettings
	paused   int64 // until; math.MaxInt64 is without end, 0 is not
	rateFrom int64
	rateUsed int64
	idle     int64 // since when it is empty and without settings; 0 is in use
}

type refSettings struct {
	tries, ttl, backoff, most, maxLen, maxBytes, maxLeased, rate, ratePer, deadMax, deadFor int64
}

type refKey struct {
	id    string
	until int64
}

type refCron struct {
	every, next int64
	catchup     string // one, none or all
	fired       uint64
}

func newReference() *reference {
	return &reference{
		jobs: map[string]*refJob{}, queues: map[string]*refQueue{}, keys: map[[2]string]refKey{},
		waiting: map[[2]string]int64{}, crons: map[string]*refCron{}, totals: map[[2]string]uint64{},
	}
}

// copy is what a transaction is tried on.
func (r *reference) copy() *reference {
	c := *r
	c.keys, c.waiting, c.totals = maps.Clone(r.keys), maps.Clone(r.waiting), maps.Clone(r.totals)
	c.jobs, c.queues = cloned(r.jobs), cloned(r.queues)
	return &c
}

func cloned[T any](of map[string]*T) map[string]*T {
	copied := make(map[string]*T, len(of))
	for k, v := range of {
		one := *v
		copied[k] = &one
	}
	return copied
}

func (r *reference) next() int64 { r.seq++; return r.seq }

func (r *reference) queue(name string) *refQueue {
	if r.queues[name] == nil {
		r.queues[name] = &refQueue{}
	}
	r.queues[name].idle = 0 // a use; settle looks again
	return r.queues[name]
}

func (r *reference) count(j *refJob, what string) { r.totals[[2]string{j.queue, what}]++ }

// in are the jobs of a queue in a place, in order: of delivery, of their due
// times, of leasing, of dying. Those that wait in a group are behind all others.
func (r *reference) in(queue, place string) (all []*refJob) {
	rank := map[*refJob][3]int64{}
	for _, j := range r.jobs {
		if j.queue != queue || j.place != place {
			continue
		}
		all = append(all, j)
		switch {
		case place == "delayed":
			rank[j] = [3]int64{j.due, int64(j.slot)}
		case place != "ready":
			rank[j] = [3]int64{j.pos}
		case r.blocked(j):
			rank[j] = [3]int64{1, r.waiting[j.inGroup()], j.member}
		default:
			rank[j] = [3]int64{0, -int64(j.priority), j.pos}
		}
	}
	slices.SortFunc(all, func(a, b *refJob) int {
		x, y := rank[a], rank[b]
		return slices.Compare(x[:], y[:])
	})
	return all
}

func (j *refJob) inGroup() [2]string { return [2]string{j.queue, j.group} }

// head is the first of a job's group, nil for none.
func (r *reference) head(j *refJob) (first *refJob) {
	for _, o := range r.jobs {
		if o.member != 0 && o.inGroup() == j.inGroup() && (first == nil || o.member < first.member) {
			first = o
		}
	}
	return first
}

// blocked jobs are ready, but wait behind the head of their group.
func (r *reference) blocked(j *refJob) bool {
	return j.place == "ready" && j.member != 0 && r.head(j) != j
}

// put brings a job to a place, at its end; at is when it is due, or its lease ends.
func (r *reference) put(j *refJob, place string, at int64) {
	if r.blocked(j) {
		r.leave(j)
	}
	j.place, j.due, j.since, j.pos, j.lease, j.wall, j.loose = place, at, r.now, r.next(), "", false, 0
	if place == "ready" && j.group != "" && j.member == 0 {
		j.member = r.next()
	}
	if r.blocked(j) && r.waiting[j.inGroup()] == 0 {
		r.waiting[j.inGroup()] = r.next()
	}
}

// leave takes a job out of its group. If it was the head, the next one follows,
// at the tail of the queue.
func (r *reference) leave(j *refJob) {
	wasHead := j.member != 0 && r.head(j) == j
	j.member = 0
	next, more := r.head(j), false
	if wasHead && next != nil {
		next.pos = r.next()
	}
	for _, o := range r.jobs {
		more = more || o != j && o.inGroup() == j.inGroup() && r.blocked(o)
	}
	if !more {
		delete(r.waiting, j.inGroup())
	}
}

// holder is the job that keeps a unique key from being used.
func (r *reference) holder(queue, key string) (string, bool) {
	k := r.keys[[2]string{queue, key}]
	j := r.jobs[k.id]
	return k.id, k.id != "" && (r.now < k.until || j != nil && j.place != "dead")
}

// taken says that another job holds j's unique key in a queue.
func (r *reference) taken(j *refJob, queue string) bool {
	id, held := r.holder(queue, j.unique)
	return j.unique != "" && held && id != j.id
}

// moveKey takes the key along that j holds; a dead job takes one that is free.
func (r *reference) moveKey(j *refJob, queue string, take bool) {
	if old := [2]string{j.queue, j.unique}; j.unique != "" && r.keys[old].id == j.id {
		take = take || j.place != "dead" || r.now < r.keys[old].until
		delete(r.keys, old)
	}
	if j.unique != "" && take {
		r.keys[[2]string{queue, j.unique}] = refKey{j.id, j.keyUntil}
	}
}

// full says that a queue does not take so many jobs and bytes more.
func (r *reference) full(queue string, jobs, bytes int64) bool {
	q := r.queues[queue]
	if q == nil {
		return false
	}
	n, size := r.size(queue)
	return q.maxLen != 0 && jobs > 0 && n+jobs > q.maxLen || q.maxBytes != 0 && size+bytes > q.maxBytes
}

func (r *reference) size(queue string) (jobs, bytes int64) {
	for _, j := range r.jobs {
		if j.queue == queue && j.place != "dead" {
			jobs, bytes = jobs+1, bytes+int64(len(j.payload))
		}
	}
	return jobs, bytes
}

// enqueue adds j, whose id and slot only matter if it is taken. Options that the
// request does not have are -1: then the queue's settings count. A duplicate
// answers the first job's ID.
func (r *reference) enqueue(j *refJob, delay, at, ttl, window int64) (duplicate, refusal string) {
	var s refSettings
	if q := r.queues[j.queue]; q != nil {
		s = q.refSettings
	}
	if j.tries < 0 {
		j.tries = s.tries
	}
	if j.backoff < 0 {
		j.backoff, j.most = s.backoff, s.most
	}
	if ttl < 0 {
		ttl = s.ttl
	}
	if at > 0 {
		delay = max(0, at-r.now)
	}
	if ttl > 0 && delay > 0 && ttl <= delay {
		return "", "ttl"
	}
	if id, held := r.holder(j.queue, j.unique); j.unique != "" && held {
		return id, ""
	}
	if r.draining {
		return "", "draining"
	}
	if r.full(j.queue, 1, int64(len(j.payload))) {
		return "", "full"
	}
	r.queue(j.queue)
	r.jobs[j.id] = j
	if ttl > 0 {
		j.expires = r.now + ttl
	}
	if j.unique != "" {
		j.keyUntil = r.now + window
		r.keys[[2]string{j.queue, j.unique}] = refKey{j.id, j.keyUntil}
	}
	if delay > 0 {
		r.put(j, "delayed", r.now+delay)
		j.wall = at > 0
	} else {
		r.put(j, "ready", 0)
	}
	r.count(j, "Enqueued")
	return "", ""
}

// fetch leases up to n jobs of the queues, in their order.
func (r *reference) fetch(queues []string, span int64, n int) (got []*refJob) {
	for _, name := range queues {
		for q := r.queues[name]; len(got) < n && q != nil; {
			ready, leased := r.in(name, "ready"), int64(len(r.in(name, "leased")))
			if len(ready) == 0 || r.blocked(ready[0]) || r.now < q.paused || q.maxLeased > 0 && leased >= q.maxLeased ||
				q.rate > 0 && r.now < q.rateFrom+min(q.rateUsed, q.rate)*q.ratePer/q.rate {
				break
			}
			if q.rateUsed == 0 || r.now >= q.rateFrom+q.ratePer {
				q.rateFrom, q.rateUsed = r.now, 0
			}
			if q.rate > 0 {
				q.rateUsed++
			}
			r.put(ready[0], "leased", r.now+span)
			ready[0].attempt++
			r.count(ready[0], "Delivered")
			got = append(got, ready[0])
		}
	}
	return got
}

// held is the job of a lease that has not ended.
func (r *reference) held(lease string) *refJob {
	for _, j := range r.jobs {
		if j.place == "leased" && j.lease == lease && r.now < j.due && (j.expires == 0 || r.now < j.expires) {
			return j
		}
	}
	return nil
}

// fail is for a leased job; delay -1 stands for its backoff.
func (r *reference) fail(j *refJob, what string, delay int64, reason string) {
	r.count(j, what)
	earliest := int64(0)
	if delay < 0 {
		delay = min(int64(float64(j.backoff)*math.Pow(2, float64(j.failures))), cmp.Or(j.most, 3_600_000))
		earliest = r.now + (delay+1)/2
	}
	j.failures, j.reason = j.failures+1, reason
	switch {
	case j.tries > 0 && j.failures >= j.tries:
		r.bury(j, reason)
	case delay > 0:
		r.put(j, "delayed", r.now+delay)
		j.loose = earliest
	default:
		r.put(j, "ready", 0)
	}
}

func (r *reference) bury(j *refJob, reason string) {
	r.count(j, "Dead")
	r.put(j, "dead", 0)
	r.leave(j)
	j.expires, j.reason = 0, reason
}

// release puts a leased job at the head of its queue.
func (r *reference) release(j *refJob) {
	r.count(j, "Released")
	r.put(j, "ready", 0)
	j.pos = -j.pos
}

func (r *reference) remove(j *refJob, what string) {
	r.count(j, what)
	r.leave(j)
	delete(r.jobs, j.id)
}

// revive is for a dead job that is to live again, in any queue.
func (r *reference) revive(j *refJob, queue string) {
	r.queue(queue)
	if r.taken(j, queue) {
		j.unique = ""
	}
	r.moveKey(j, queue, true)
	j.queue, j.failures, j.reason = queue, 0, ""
}

// delay is JOB DELAY, and JOB RUN with 0.
func (r *reference) delay(j *refJob, delay int64) string {
	switch {
	case delay > 0 && j.expires != 0 && r.now+delay >= j.expires:
		return "ttl"
	case j.place == "dead" && r.full(j.queue, 1, int64(len(j.payload))):
		return "full"
	case delay == 0 && j.place == "ready":
		return ""
	case j.place == "dead":
		r.revive(j, j.queue)
	case j.place == "ready":
		r.leave(j)
	}
	if delay > 0 {
		r.put(j, "delayed", r.now+delay)
	} else {
		r.put(j, "ready", 0)
	}
	return ""
}

func (r *reference) setPriority(j *refJob, priority int8) {
	if j.place == "ready" && !r.blocked(j) && j.priority != priority {
		j.pos = r.next()
	}
	j.priority = priority
}

func (r *reference) move(j *refJob, to string) string {
	switch {
	case to == j.queue:
		return ""
	case r.taken(j, to):
		return "taken"
	case j.place != "dead" && r.full(to, 1, int64(len(j.payload))):
		return "full"
	}
	r.leave(j)
	r.queue(to)
	r.moveKey(j, to, false)
	j.queue = to
	place, due, wall, loose := j.place, j.due, j.wall, j.loose
	r.put(j, place, due)
	j.wall, j.loose = wall, loose
	return ""
}

// redrive brings up to n dead jobs, 0 is all, to life in a queue.
func (r *reference) redrive(from, to string, n int, tries, ttl int64) (moved int, refusal string) {
	for _, j := range r.in(from, "dead") {
		if n > 0 && moved == n {
			break
		} else if r.full(to, 1, int64(len(j.payload))) {
			refusal = "full"
			break
		} else if from != to && r.taken(j, to) {
			refusal = "taken"
			continue
		}
		r.count(j, "Redriven")
		r.revive(j, to)
		if tries >= 0 {
			j.tries = tries
		}
		if ttl > 0 {
			j.expires = r.now + ttl
		}
		r.put(j, "ready", 0)
		moved++
	}
	if moved > 0 {
		refusal = ""
	}
	return moved, refusal
}

// delete is QUEUE DELETE of a queue that has nothing leased, or its end an hour
// after its last use.
func (r *reference) delete(name string) {
	delete(r.queues, name)
	maps.DeleteFunc(r.jobs, func(_ string, j *refJob) bool { return j.queue == name })
	maps.DeleteFunc(r.keys, func(k [2]string, _ refKey) bool { return k[0] == name })
	maps.DeleteFunc(r.waiting, func(k [2]string, _ int64) bool { return k[0] == name })
	maps.DeleteFunc(r.totals, func(k [2]string, _ uint64) bool { return k[0] == name })
}

// deadline is when something happens to a job by itself, but for wall times.
func (j *refJob) deadline() int64 {
	at := cmp.Or(j.expires, math.MaxInt64)
	if j.place == "leased" || j.place == "delayed" && !j.wall {
		at = min(at, j.due)
	}
	return at
}

// due are the jobs whose time has come, in order.
func (r *reference) due(when func(*refJob) int64) (due []*refJob) {
	for _, j := range r.jobs {
		if when(j) <= r.now {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(a, b *refJob) int {
		return cmp.Or(cmp.Compare(when(a), when(b)), cmp.Compare(a.slot, b.slot))
	})
	return due
}

// pass lets time go by, in one step, and does what has become due: all delays
// and times to live up to the next lease that ran out, then that one; wall times
// when they are the earliest.
func (r *reference) pass(now int64) {
	r.now = now
	for {
		log := r.due((*refJob).deadline)
		wall := r.due(func(j *refJob) int64 {
			if j.wall {
				return j.due
			}
			return math.MaxInt64
		})
		if len(log)+len(wall) == 0 {
			break
		}
		if len(log) == 0 || len(wall) > 0 && wall[0].due < log[0].deadline() {
			for _, j := range wall {
				r.put(j, "ready", 0)
			}
			continue
		}
		for i, j := range log {
			if j.deadline() == j.expires {
				r.remove(j, "Lapsed")
			} else if j.place == "delayed" {
				r.put(j, "ready", 0)
			} else if i == 0 {
				r.fail(j, "Expired", -1, "")
				break
			} else {
				break
			}
		}
	}
	r.settle()
}

// settle does what nobody waits for: dead jobs, keys, pauses and queues go.
func (r *reference) settle() {
	used := map[string]bool{}
	for name, q := range r.queues {
		dead := r.in(name, "dead")
		for ; q.deadMax > 0 && int64(len(dead)) > q.deadMax || q.deadFor > 0 && len(dead) > 0 && dead[0].since+q.deadFor <= r.now; dead = dead[1:] {
			r.remove(dead[0], "Deleted")
		}
		if q.paused <= r.now {
			q.paused = 0
		}
		used[name] = q.refSettings != refSettings{} || q.paused != 0
	}
	for k := range r.keys {
		if _, held := r.holder(k[0], k[1]); !held {
			delete(r.keys, k)
		} else {
			used[k[0]] = true
		}
	}
	for _, j := range r.jobs {
		used[j.queue] = true
	}
	for name, q := range r.queues {
		if used[name] {
			q.idle = 0
		} else if q.idle = cmp.Or(q.idle, r.now); q.idle+3_600_000 <= r.now {
			r.delete(name)
		}
	}
	for _, c := range r.crons {
		r.fire(c)
	}
}

// fire enqueues for the slots that have come. Those that are more than a minute
// old were missed.
func (r *reference) fire(c *refCron) {
	for c.next <= r.now {
		if missed := r.now - 60_000; c.next <= missed && c.catchup != "all" {
			if c.catchup == "one" {
				c.fired++
			}
			c.next = (missed/c.every + 1) * c.every
			continue
		}
		c.fired, c.next = c.fired+1, c.next+c.every
	}
}

// set takes those of the settings v that which names, by the bits of SettingSet.
func (r *reference) set(name string, which uint16, v [11]int64) {
	q := r.queue(name)
	for bit, to := range [][]*int64{{&q.tries}, {&q.ttl}, {&q.backoff, &q.most}, {&q.maxLen}, {&q.maxBytes}, {&q.maxLeased}, {&q.rate, &q.ratePer}, {&q.deadMax}, {&q.deadFor}} {
		for _, setting := range to {
			if which&(1<<bit) != 0 {
				*setting = v[0]
			}
			v = [11]int64(append(v[1:], 0))
		}
	}
	if q.rate == 0 {
		q.ratePer = 0
	} else if q.ratePer == 0 {
		q.ratePer = 1000
	}
	q.rateFrom, q.rateUsed = 0, 0
}
