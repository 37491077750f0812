package resp

import (
	"bytes"
	"math"

	"pawl/engine"
	"pawl/state"
)

// QUEUE LIST [MATCH glob].
func cmdQueueList(c *conn, args [][]byte) {
	list := engine.QueueList{Pool: c.pool()}
	if len(args) > 2 {
		if len(args) != 4 || !equalFold(args[2], "MATCH") || len(args[3]) > maxGlobBytes {
			c.failNow(errSyntax)
			return
		}
		list.Match = args[3]
	}
	if !c.do(&list) {
		return
	}
	keys := list.Keys
	if !c.user.SeesAll() {
		keys = nil
		for _, key := range list.Keys {
			if c.ownsKey(key) {
				keys = append(keys, key)
			}
		}
	}
	c.b.out.array(len(keys))
	for _, key := range keys {
		c.b.out.bulkString(state.DisplayName(key))
		c.spill()
	}
}

// onQueue runs a command about one queue: key is of the name in args[2].
func onQueue(run func(c *conn, key []byte, args [][]byte)) func(*conn, [][]byte) {
	return func(c *conn, args [][]byte) {
		key, refusal := c.queueKey(args[2])
		if refusal != "" {
			c.failNow(refusal)
			return
		}
		run(c, key, args[3:])
	}
}

// QUEUE INFO queue.
func cmdQueueInfo(c *conn, key []byte, _ [][]byte) {
	info := engine.QueueInfo{Queue: key}
	if !c.do(&info) {
		return
	}
	w := &c.b.out
	if !info.Found {
		w.null()
		return
	}
	v := &info.Info
	w.mapHeader(13)
	w.pairString("queue", state.DisplayName(v.Key))
	w.pair("ready", v.Ready)
	w.pair("delayed", v.Delayed)
	w.pair("leased", v.Leased)
	w.pair("dead", v.Dead)
	w.pair("bytes", v.Bytes)
	w.bulkString("paused")
	w.flag(v.Paused)
	w.millis("paused_until", v.PausedUntil)
	w.pair("oldest_ready_ms", int64(v.OldestReadyMs))
	w.pair("next_due_ms", int64(v.NextDueMs))
	w.pair("waiting", v.Waiting)
	w.bulkString("totals")
	w.totals(&v.Totals)
	w.bulkString("settings")
	w.queueSettings(&v.Settings)
}

func (w *writer) totals(t *state.Totals) {
	list := []struct {
		name string
		n    uint64
	}{
		{"enqueued", t.Enqueued}, {"delivered", t.Delivered}, {"acked", t.Acked}, {"nacked", t.Nacked},
		{"released", t.Released}, {"expired", t.Expired}, {"buried", t.Buried}, {"dead", t.Dead},
		{"deleted", t.Deleted}, {"lapsed", t.Lapsed}, {"redriven", t.Redriven},
	}
	w.mapHeader(len(list))
	for _, e := range list {
		w.pair(e.name, int64(e.n))
	}
}

func (w *writer) queueSettings(s *state.Settings) {
	w.mapHeader(11)
	w.pair("tries", int64(s.Tries))
	w.pair("ttl", int64(s.TTL))
	w.pair("backoff", int64(s.Backoff))
	w.pair("backoff_max", int64(s.BackoffMax))
	w.pair("maxlen", int64(s.MaxLen))
	w.pair("maxbytes", int64(s.MaxBytes))
	w.pair("maxleased", int64(s.MaxLeased))
	w.pair("rate", int64(s.RateCount))
	w.pair("rate_ms", int64(s.RatePer))
	w.pair("deadmax", int64(s.DeadMax))
	w.pair("deadfor", int64(s.DeadFor))
}

// QUEUE PEEK queue [STATE place] [COUNT n] [AFTER cursor|id].
func cmdQueuePeek(c *conn, key []byte, args [][]byte) {
	peek := engine.QueuePeek{Queue: key, Place: state.Ready}
	o := options{rest: args}
	for word, ok := o.next(); ok; word, ok = o.next() {
		switch {
		case equalFold(word, "STATE") && o.once(0):
			peek.Place = o.place()
		case equalFold(word, "COUNT") && o.once(1):
			peek.Count = int(o.number(1, 100))
		case equalFold(word, "AFTER") && o.once(2):
			peek.After = o.value()
		default:
			o.fail(errSyntax)
		}
	}
	if o.refusal != "" {
		c.failNow(o.refusal)
		return
	}
	if !c.do(&peek) {
		return
	}
	w := &c.b.out
	w.array(2)
	if peek.Next == nil {
		w.null()
	} else {
		w.bulk(peek.Next)
	}
	w.array(len(peek.Jobs))
	for i := range peek.Jobs {
		if c.failed {
			c.forget(&peek.Jobs[i])
			continue
		}
		c.renderView(&peek.Jobs[i])
	}
}

// place takes one of the four places.
func (o *options) place() state.Place {
	p, ok := state.ParsePlace(lower(string(o.value())))
	if !ok {
		o.fail("ERR a state is ready, delayed, leased or dead")
	}
	return p
}

// QUEUE PAUSE queue [FOR ms].
func cmdQueuePause(c *conn, key []byte, args [][]byte) {
	pause := engine.QueuePause{Queue: key}
	o := options{rest: args}
	if len(args) > 0 && !o.takes("FOR") {
		o.fail(errSyntax)
	}
	if len(args) > 0 {
		pause.For = o.span(1)
	}
	if len(o.rest) > 0 {
		o.fail(errSyntax)
	}
	if o.refusal != "" {
		c.failNow(o.refusal)
		return
	}
	if c.do(&pause) {
		c.b.out.ok()
	}
}

// QUEUE RESUME queue.
func cmdQueueResume(c *conn, key []byte, _ [][]byte) {
	if c.do(&engine.QueueResume{Queue: key}) {
		c.b.out.ok()
	}
}

// QUEUE PURGE queue [STATE place…].
func cmdQueuePurge(c *conn, key []byte, args [][]byte) {
	purge := engine.QueuePurge{Queue: bytes.Clone(key)}
	if len(args) > 0 {
		o := options{rest: args}
		if !o.takes("STATE") || len(o.rest) == 0 {
			o.fail(errSyntax)
		}
		for len(o.rest) > 0 && o.refusal == "" {
			p := o.place()
			if p == state.Leased {
				o.fail("ERR leased jobs are not purged")
			}
			purge.Places = append(purge.Places, p)
		}
		if o.refusal != "" {
			c.failNow(o.refusal)
			return
		}
	}
	err := c.engine().Purge(c.srv.life, &purge)
	c.answerTurns(err, purge.Err(), purge.Removed)
}

// answerTurns answers what ran in turns: err is of the storage, refusal of the
// command, n what was done.
func (c *conn) answerTurns(err, refusal error, n int64) {
	switch {
	case err != nil && c.srv.life.Err() != nil && err != engine.ErrPartly:
		c.failError(engine.ErrClosed)
	case err != nil:
		c.failError(err)
	case refusal != nil:
		c.failError(refusal)
	default:
		c.b.out.integer(n)
	}
}

// QUEUE REDRIVE queue [COUNT n] [TO queue] [TRIES n] [TTL ms].
func cmdQueueRedrive(c *conn, key []byte, args [][]byte) {
	redrive := engine.QueueRedrive{Queue: bytes.Clone(key)}
	o := options{rest: args}
	for word, ok := o.next(); ok; word, ok = o.next() {
		switch {
		case equalFold(word, "COUNT") && o.once(0):
			redrive.Count = o.number(1, math.MaxInt64)
		case equalFold(word, "TO") && o.once(1):
			to, refusal := c.queueKey(o.value())
			if refusal != "" {
				o.fail(refusal)
			}
			redrive.To = bytes.Clone(to)
		case equalFold(word, "TRIES") && o.once(2):
			redrive.Tries = engine.Some(uint16(o.number(0, 65535)))
		case equalFold(word, "TTL") && o.once(3):
			redrive.TTL = engine.Some(o.span(0))
		default:
			o.fail(errSyntax)
		}
	}
	if o.refusal != "" {
		c.failNow(o.refusal)
		return
	}
	err := c.engine().Redrive(c.srv.life, &redrive)
	c.answerTurns(err, redrive.Err(), redrive.Moved)
}

// QUEUE SET queue setting value….
func cmdQueueSet(c *conn, key []byte, args [][]byte) {
	set := engine.QueueSet{Queue: key}
	s := &set.Settings
	o := options{rest: args}
	for word, ok := o.next(); ok; word, ok = o.next() {
		var which state.SettingSet
		switch {
		case equalFold(word, "TRIES"):
			which, s.Tries = state.SetTries, uint16(o.number(0, 65535))
		case equalFold(word, "TTL"):
			which, s.TTL = state.SetTTL, o.span(0)
		case equalFold(word, "BACKOFF"):
			b := o.backoff()
			which, s.Backoff, s.BackoffMax = state.SetBackoff, b.Base, b.Max
		case equalFold(word, "MAXLEN"):
			which, s.MaxLen = state.SetMaxLen, uint64(o.number(0, math.MaxInt64))
		case equalFold(word, "MAXBYTES"):
			which, s.MaxBytes = state.SetMaxBytes, uint64(o.number(0, math.MaxInt64))
		case equalFold(word, "MAXLEASED"):
			which, s.MaxLeased = state.SetMaxLeased, uint32(o.number(0, math.MaxUint32))
		case equalFold(word, "RATE"):
			which = state.SetRate
			s.RateCount, s.RatePer = o.rate()
		case equalFold(word, "DEADMAX"):
			which, s.DeadMax = state.SetDeadMax, uint64(o.number(0, math.MaxInt64))
		case equalFold(word, "DEADFOR"):
			which, s.DeadFor = state.SetDeadFor, o.span(0)
		default:
			o.fail(errSyntax)
		}
		if set.Which&which != 0 {
			o.fail(errSyntax)
		}
		set.Which |= which
	}
	if o.refusal != "" {
		c.failNow(o.refusal)
		return
	}
	if c.do(&set) {
		c.b.out.ok()
	}
}

// rate takes n, per second, or n/ms.
func (o *options) rate() (count uint32, per state.Millis) {
	text, ms, slash := bytes.Cut(o.value(), []byte{'/'})
	n, ok := parseInt(text)
	span := int64(1000)
	if slash {
		var spanOK bool
		span, spanOK = parseInt(ms)
		ok = ok && spanOK
	}
	if !ok || n < 0 || n > math.MaxUint32 || span < 1 || span > maxSpan {
		o.fail(errNumber)
		return 0, 0
	}
	if slash {
		per = state.Millis(span)
	}
	return uint32(n), per
}

// QUEUE RESET queue.
func cmdQueueReset(c *conn, key []byte, _ [][]byte) {
	if c.do(&engine.QueueReset{Queue: key}) {
		c.b.out.ok()
	}
}

// QUEUE DELETE queue.
func cmdQueueDelete(c *conn, key []byte, _ [][]byte) {
	if c.do(&engine.QueueDelete{Queue: key}) {
		c.b.out.ok()
	}
}

// CRON SET name spec queue payload [TZ zone] [CATCHUP one|none|all] [options of
// ENQUEUE].
func cmdCronSet(c *conn, args [][]byte) {
	cron := state.Cron{Spec: string(args[3]), Payload: bytes.Clone(args[5])}
	var refusal string
	if cron.Namespace, cron.Name, refusal = c.cronName(args[2]); refusal != "" {
		c.failNow(refusal)
		return
	}
	key, refusal := c.queueKey(args[4])
	if refusal != "" {
		c.failNow(refusal)
		return
	}
	cron.Queue = string(key)

	rest := args[6:]
	var options [][]byte // those of ENQUEUE
	seen := map[string]bool{}
	for i := 0; i < len(rest); i++ {
		word := lower(string(rest[i]))
		if word != "tz" && word != "catchup" {
			options = append(options, rest[i])
			continue
		}
		if i+1 == len(rest) || seen[word] {
			c.failNow(errSyntax)
			return
		}
		seen[word] = true
		i++
		if word == "tz" {
			cron.Zone = string(rest[i])
			continue
		}
		switch lower(string(rest[i])) {
		case "one":
			cron.Catchup = state.CatchupOne
		case "none":
			cron.Catchup = state.CatchupNone
		case "all":
			cron.Catchup = state.CatchupAll
		default:
			c.failNow("ERR CATCHUP is one, none or all")
			return
		}
	}
	if _, err := engine.ParseCron(cron.Spec, cron.Zone); err != nil {
		c.failNow("ERR " + err.Error())
		return
	}
	var job engine.Enqueue
	if refusal := parseEnqueue(&job, options); refusal != "" {
		c.failNow(refusal)
		return
	}
	if job.At.Set { // one moment is no recurring one
		c.failNow(errSyntax)
		return
	}
	cron.Options = engine.EncodeOptions(&job)
	if c.do(&engine.CronSet{Cron: cron}) {
		c.b.out.ok()
	}
}

// cronName splits a cron's name as a queue's: namespace, slash, name.
func (c *conn) cronName(text []byte) (namespace, name, refusal string) {
	key, refusal := c.queueKey(text)
	if refusal == errName {
		refusal = "ERR cron name must not be empty"
	}
	if refusal != "" {
		return "", "", refusal
	}
	pool, ns, name := state.SplitQueueKey(string(key))
	return pool + "/" + ns, name, ""
}

// CRON LIST: of each an array of names and values.
func cmdCronList(c *conn, _ [][]byte) {
	list := engine.CronList{Namespace: c.pool() + "/"}
	if !c.do(&list) {
		return
	}
	var mine []state.Cron
	for _, cron := range list.Crons {
		if c.ownsKey(cron.Namespace+"/"+cron.Name) && c.ownsKey(cron.Queue) {
			mine = append(mine, cron)
		}
	}
	w := &c.b.out
	w.array(len(mine))
	for i := range mine {
		cron := &mine[i]
		w.array(16)
		w.pairString("name", state.DisplayName(cron.Namespace+"/"+cron.Name))
		w.pairString("spec", cron.Spec)
		w.pairString("tz", cron.Zone)
		w.pairString("queue", state.DisplayName(cron.Queue))
		w.pairString("catchup", []string{"one", "none", "all"}[cron.Catchup])
		w.millis("next", cron.Next)
		w.millis("last", cron.Last)
		w.bulkString("payload")
		c.bulk(cron.Payload)
		c.spill()
	}
}

// CRON DELETE name.
func cmdCronDelete(c *conn, args [][]byte) {
	namespace, name, refusal := c.cronName(args[2])
	if refusal != "" {
		c.failNow(refusal)
		return
	}
	d := engine.CronDelete{Namespace: namespace, Name: name}
	if c.do(&d) {
		c.b.out.flag(d.Deleted)
	}
}
