package engine_test

import (
	"cmp"
	"maps"
	"slices"
)

// A reference does what an engine should do, slowly and obviously: maps, sorting
// and a scan for every question. It imports nothing of Pawl. All times are Unix
// milliseconds. Methods answer with the refusal they meet, "" for none; a refused
// command has changed nothing, but in a transaction, which works on a copy.
type reference struct {
	now, seq int64              // seq gives out positions in all orders
	jobs     map[string]*refJob // by ID
	queues   map[string]*refQueue
	crons    map[string]*refCron
	totals   map[[2]string]int64 // by queue and what happened
	draining bool
}

type refJob struct {
	id, queue, payload, attrs, group, unique, lease, reason string

	place                                   string // ready, delayed, leased, dead, or gone while its key is held
	slot, priority                          int64  // the slot breaks ties of times
	pos                                     int64  // order among the ready, the leased and the dead
	member, behind                          int64  // order in its group, 0 is no part of it; order of groups where jobs wait
	due, wall                               int64  // delayed: becomes ready, by either clock; leased: the lease ends
	loose                                   int64  // delayed by a backoff: due may be as early as this
	died, expires, keyUntil                 int64
	tries, failures, attempt, backoff, most int64
}

type refQueue struct {
	settings           map[string]int64 // those that are not 0
	paused             int64            // until
	rateFrom, rateUsed int64
	idle               int64 // since when it is empty and without settings; 0 is in use
}

// refCron has slots at the multiples of every; so many of those missed are made up for.
type refCron struct{ every, last, makesUp, fired int64 }

const never = 1 << 62

func (r *reference) next() int64                  { r.seq++; return r.seq }
func (r *reference) count(j *refJob, what string) { r.totals[[2]string{j.queue, what}]++ }

// use makes a queue where there is none.
func (r *reference) use(name string) *refQueue {
	q := cmp.Or(r.queues[name], &refQueue{settings: map[string]int64{}})
	r.queues[name], q.idle = q, 0 // settle looks again
	return q
}

func (r *reference) settings(queue string) map[string]int64 {
	return cmp.Or(r.queues[queue], &refQueue{}).settings
}

// sorted are those of the jobs, in the order of their ranks.
func (r *reference) sorted(those func(*refJob) bool, rank func(*refJob) []int64) []*refJob {
	all := slices.DeleteFunc(slices.Collect(maps.Values(r.jobs)), func(j *refJob) bool { return !those(j) })
	slices.SortFunc(all, func(a, b *refJob) int { return slices.Compare(rank(a), rank(b)) })
	return all
}

// in are the jobs of a queue in a place, in order: of delivery, of their due
// times, of leasing, of dying. Those that wait in a group are behind all others.
func (r *reference) in(queue, place string) []*refJob {
	return r.sorted(func(j *refJob) bool { return j.queue == queue && j.place == place }, func(j *refJob) []int64 {
		switch {
		case place == "delayed":
			return []int64{min(j.due, j.wall), j.slot}
		case place == "ready" && r.blocked(j):
			return []int64{1, j.behind, j.member}
		case place == "ready":
			return []int64{0, -j.priority, j.pos}
		}
		return []int64{j.pos}
	})
}

// group are the jobs of j's group, in order, the head first.
func (r *reference) group(j *refJob) []*refJob {
	return r.sorted(func(o *refJob) bool { return o.member != 0 && o.queue == j.queue && o.group == j.group },
		func(o *refJob) []int64 { return []int64{o.member} })
}

// blocked jobs are ready, but wait behind the head of their group.
func (r *reference) blocked(j *refJob) bool {
	return j.place == "ready" && j.member != 0 && r.group(j)[0] != j
}

// put brings a job to a place, at its end; due is of the delayed, where a delay
// that is over is none, and of the leased.
func (r *reference) put(j *refJob, place string, due int64) {
	if r.blocked(j) {
		r.leave(j)
	}
	if place == "delayed" && due <= r.now {
		place, due = "ready", never
	}
	j.place, j.pos, j.due, j.wall, j.loose, j.lease = place, r.next(), due, never, 0, ""
	if place == "ready" && j.group != "" && j.member == 0 {
		j.member, j.behind = r.next(), r.next()
		if g := r.group(j); len(g) > 2 {
			j.behind = g[1].behind
		}
	}
}

// leave takes a job out of its group. If it was the head, the next one follows,
// at the tail of the queue.
func (r *reference) leave(j *refJob) {
	g := r.group(j)
	if j.member = 0; len(g) > 1 && g[0] == j {
		g[1].pos = r.next()
	}
}

// lives is for the three places from which a job is delivered or comes back.
func (j *refJob) lives() bool { return j.place != "dead" && j.place != "gone" }

// holder is the ID of the job that keeps a unique key from being used: one that
// lives, or one within the key's window.
func (r *reference) holder(queue, key string) string {
	for _, j := range r.jobs {
		if key != "" && j.queue == queue && j.unique == key && (j.lives() || r.now < j.keyUntil) {
			return j.id
		}
	}
	return ""
}

// full says that a queue does not take so many jobs and bytes more.
func (r *reference) full(queue string, jobs int, bytes int) bool {
	most, bound := r.settings(queue)["MaxLen"], r.settings(queue)["MaxBytes"]
	grows := jobs > 0
	for _, j := range r.jobs {
		if j.queue == queue && j.lives() {
			jobs, bytes = jobs+1, bytes+len(j.payload)
		}
	}
	return grows && most != 0 && int64(jobs) > most || bound != 0 && int64(bytes) > bound
}

// enqueue adds j. The options of the request win over the settings of the queue.
// A duplicate answers the first job's ID.
func (r *reference) enqueue(j *refJob, options map[string]int64) (duplicate, refusal string) {
	all := map[string]int64{}
	maps.Copy(all, r.settings(j.queue))
	maps.Copy(all, options)
	due, held := max(r.now+all["Delay"], all["At"]), r.holder(j.queue, j.unique)
	j.expires, j.keyUntil = r.now+cmp.Or(all["TTL"], never), r.now+all["For"]
	switch {
	case due > r.now && j.expires <= due:
		return "", "ttl"
	case held != "":
		return held, ""
	case r.draining:
		return "", "draining"
	case r.full(j.queue, 1, len(j.payload)):
		return "", "full"
	}
	r.use(j.queue)
	r.jobs[j.id] = j
	j.tries, j.backoff, j.most = all["Tries"], all["Backoff"], all["BackoffMax"]
	if r.put(j, "delayed", due); due == all["At"] && due > r.now {
		j.due, j.wall = never, due
	}
	r.count(j, "Enqueued")
	return "", ""
}

// fetch leases up to n jobs of the queues, in their order.
func (r *reference) fetch(queues []string, span int64, n int) (got []*refJob) {
	for _, name := range queues {
		for q := r.queues[name]; len(got) < n && q != nil; {
			ready, leased := r.in(name, "ready"), int64(len(r.in(name, "leased")))
			most, rate, per := q.settings["MaxLeased"], q.settings["RateCount"], cmp.Or(q.settings["RatePer"], 1000)
			if len(ready) == 0 || r.blocked(ready[0]) || r.now < q.paused || most > 0 && leased >= most ||
				rate > 0 && r.now < q.rateFrom+min(q.rateUsed, rate)*per/rate {
				break
			}
			if q.rateUsed == 0 || r.now >= q.rateFrom+per {
				q.rateFrom, q.rateUsed = r.now, 0
			}
			q.rateUsed++
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
		if j.place == "leased" && j.lease == lease && r.now < j.deadline() {
			return j
		}
	}
	return nil
}

// fail is for a leased job; delay -1 stands for its backoff.
func (r *reference) fail(j *refJob, what string, delay int64, reason string) {
	r.count(j, what)
	backoff := min(j.backoff<<min(j.failures, 30), cmp.Or(j.most, 3_600_000))
	if j.failures, j.reason = j.failures+1, reason; j.tries > 0 && j.failures >= j.tries {
		r.end(j, "dead", "Dead")
	} else if delay >= 0 {
		r.put(j, "delayed", r.now+delay)
	} else {
		r.put(j, "delayed", r.now+backoff)
		j.loose = r.now + (backoff+1)/2
	}
}

// end brings a job to the dead, or to those that are gone.
func (r *reference) end(j *refJob, place, what string) {
	r.count(j, what)
	r.leave(j)
	r.put(j, place, never)
	j.died, j.expires = r.now, never
}

// release puts a leased job at the head of its queue.
func (r *reference) release(j *refJob) {
	r.count(j, "Released")
	r.put(j, "ready", never)
	j.pos = -j.pos
}

// revive is for a dead job that is to live again, in any queue.
func (r *reference) revive(j *refJob, queue string) {
	r.use(queue)
	if id := r.holder(queue, j.unique); id != "" && id != j.id {
		j.unique, j.keyUntil = "", 0
	}
	j.queue, j.failures, j.reason = queue, 0, ""
}

// delay is JOB DELAY, and JOB RUN with 0.
func (r *reference) delay(j *refJob, delay int64) string {
	switch {
	case delay > 0 && r.now+delay >= j.expires:
		return "ttl"
	case j.place == "dead" && r.full(j.queue, 1, len(j.payload)):
		return "full"
	case delay == 0 && j.place == "ready":
		return ""
	case j.place == "dead":
		r.revive(j, j.queue)
	case j.place == "ready":
		r.leave(j)
	}
	r.put(j, "delayed", r.now+delay)
	return ""
}

func (r *reference) setPriority(j *refJob, priority int64) {
	if j.place == "ready" && !r.blocked(j) && j.priority != priority {
		j.pos = r.next()
	}
	j.priority = priority
}

func (r *reference) move(j *refJob, to string) string {
	switch {
	case to == j.queue:
		return ""
	case r.holder(to, j.unique) != "":
		return "taken"
	case j.lives() && r.full(to, 1, len(j.payload)):
		return "full"
	}
	r.use(to)
	r.leave(j)
	wall, loose := j.wall, j.loose
	j.queue, j.died = to, r.now
	r.put(j, j.place, j.due)
	j.wall, j.loose = wall, loose
	return ""
}

// redrive brings up to n dead jobs, 0 is all, to life in a queue.
func (r *reference) redrive(from, to string, n int, options map[string]int64) (moved int, refusal string) {
	for _, j := range r.in(from, "dead") {
		if full := r.full(to, 1, len(j.payload)); full && moved == 0 {
			return 0, "full"
		} else if full || n > 0 && moved == n {
			break
		} else if from != to && r.holder(to, j.unique) != "" {
			refusal = "taken"
			continue
		}
		r.count(j, "Redriven")
		r.revive(j, to)
		if tries, given := options["Tries"]; given {
			j.tries = tries
		}
		j.expires = r.now + cmp.Or(options["TTL"], never)
		r.put(j, "ready", never)
		moved++
	}
	if moved > 0 {
		return moved, ""
	}
	return 0, refusal
}

// delete is QUEUE DELETE of a queue that has nothing leased, or its end an hour
// after its last use.
func (r *reference) delete(name string) {
	delete(r.queues, name)
	maps.DeleteFunc(r.jobs, func(_ string, j *refJob) bool { return j.queue == name })
	maps.DeleteFunc(r.totals, func(k [2]string, _ int64) bool { return k[0] == name })
}

// deadline is when something happens to a job by itself, but for wall times.
func (j *refJob) deadline() int64 { return min(j.expires, j.due) }

// pass lets time go by, in one step, and does what has become due: all delays
// and times to live up to the next lease that ran out, then that one; wall times
// when they are the earliest.
func (r *reference) pass(now int64) {
	r.now = now
	over := func(when func(*refJob) int64) []*refJob {
		return r.sorted(func(j *refJob) bool { return when(j) <= now }, func(j *refJob) []int64 { return []int64{when(j), j.slot} })
	}
	for {
		log, wall := over((*refJob).deadline), over(func(j *refJob) int64 { return j.wall })
		if len(log)+len(wall) == 0 {
			break
		}
		if len(log) == 0 || len(wall) > 0 && wall[0].wall < log[0].deadline() {
			for _, j := range wall {
				r.put(j, "ready", never)
			}
			continue
		}
		for i, j := range log {
			if j.deadline() == j.expires {
				r.end(j, "gone", "Lapsed")
			} else if j.place == "delayed" {
				r.put(j, "ready", never)
			} else if i > 0 {
				break
			} else {
				r.fail(j, "Expired", -1, "")
				break
			}
		}
	}
	r.settle()
}

// settle does what nobody waits for: dead jobs, keys, pauses and queues go.
func (r *reference) settle() {
	for name, q := range r.queues {
		dead := r.in(name, "dead")
		most, span := cmp.Or(q.settings["DeadMax"], never), cmp.Or(q.settings["DeadFor"], never)
		for i, j := range dead {
			if int64(len(dead)-i) > most || j.died+span <= r.now {
				r.end(j, "gone", "Deleted")
			}
		}
		used := len(q.settings) > 0 || r.now < q.paused
		maps.DeleteFunc(r.jobs, func(_ string, j *refJob) bool { return j.place == "gone" && j.keyUntil <= r.now })
		for _, j := range r.jobs {
			used = used || j.queue == name
		}
		if q.idle = cmp.Or(q.idle, r.now); used {
			q.idle = 0
		} else if q.idle+3_600_000 <= r.now {
			r.delete(name)
		}
	}
	for _, c := range r.crons {
		slots, missed := r.now/c.every-c.last, max(0, (r.now-60_000)/c.every-c.last)
		c.fired += slots - missed + min(missed, c.makesUp)
		c.last += slots
	}
}

// set replaces the settings that are given.
func (r *reference) set(name string, given map[string]int64) {
	q := r.use(name)
	q.rateFrom, q.rateUsed = 0, 0
	maps.Copy(q.settings, given)
	maps.DeleteFunc(q.settings, func(_ string, v int64) bool { return v == 0 })
}
