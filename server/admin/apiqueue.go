package admin

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"pawl/engine"
	"pawl/state"
)

// queueJSON is a queue in replies. Names that are no UTF-8 are shown quoted; Ref
// always leads to the queue.
type queueJSON struct {
	Ref           string       `json:"ref" doc:"for the parameter queue, percent-encoded"`
	Pool          string       `json:"pool"`
	Namespace     string       `json:"namespace"`
	Name          string       `json:"name"`
	Display       string       `json:"display" doc:"what RESP clients of the pool call it"`
	Ready         int64        `json:"ready"`
	Delayed       int64        `json:"delayed"`
	Leased        int64        `json:"leased"`
	Dead          int64        `json:"dead"`
	Bytes         int64        `json:"bytes" doc:"payload bytes of ready, delayed and leased jobs"`
	Paused        bool         `json:"paused"`
	PausedUntil   int64        `json:"paused_until" doc:"Unix ms; 0 while paused is for ever"`
	OldestReadyMs int64        `json:"oldest_ready_ms" doc:"0 is none"`
	NextDueMs     int64        `json:"next_due_ms" doc:"0 is none"`
	Waiting       int64        `json:"waiting" doc:"fetchers that wait"`
	Totals        totalsJSON   `json:"totals" doc:"since the queue began"`
	Settings      settingsJSON `json:"settings"`
	ReadyHistory  []int64      `json:"ready_history" doc:"ready jobs, oldest first, a value each sample interval"`
	RateHistory   []float64    `json:"rate_history" doc:"deliveries a second, like ready_history"`
}

type totalsJSON struct {
	Enqueued  uint64 `json:"enqueued"`
	Delivered uint64 `json:"delivered"`
	Acked     uint64 `json:"acked"`
	Nacked    uint64 `json:"nacked"`
	Released  uint64 `json:"released"`
	Expired   uint64 `json:"expired"`
	Buried    uint64 `json:"buried"`
	Dead      uint64 `json:"dead"`
	Deleted   uint64 `json:"deleted"`
	Lapsed    uint64 `json:"lapsed"`
	Redriven  uint64 `json:"redriven"`
}

type settingsJSON struct {
	Tries        uint16 `json:"tries" doc:"failures until dead; 0 is no limit"`
	TTLMs        int64  `json:"ttl_ms" doc:"0 is none"`
	BackoffMs    int64  `json:"backoff_ms" doc:"0 is none"`
	BackoffMaxMs int64  `json:"backoff_max_ms" doc:"0 is one hour"`
	MaxLen       uint64 `json:"max_len" doc:"ready, delayed and leased jobs; 0 is no limit"`
	MaxBytes     uint64 `json:"max_bytes" doc:"payload bytes of them; 0 is no limit"`
	MaxLeased    uint32 `json:"max_leased" doc:"0 is no limit"`
	RateCount    uint32 `json:"rate_count" doc:"deliveries per rate_per_ms; 0 is no limit"`
	RatePerMs    int64  `json:"rate_per_ms" doc:"0 is 1,000"`
	DeadMax      uint64 `json:"dead_max" doc:"dead jobs kept; 0 is no limit"`
	DeadForMs    int64  `json:"dead_for_ms" doc:"how long; 0 is for ever"`
}

func settingsOf(s state.Settings) settingsJSON {
	return settingsJSON{
		s.Tries, int64(s.TTL), int64(s.Backoff), int64(s.BackoffMax), s.MaxLen, s.MaxBytes,
		s.MaxLeased, s.RateCount, int64(s.RatePer), s.DeadMax, int64(s.DeadFor),
	}
}

// shown is a name as text that people read.
func shown(name string) string {
	if strings.ToValidUTF8(name, "") == name {
		return name
	}
	return strconv.Quote(name)
}

func queueOf(v *engine.QueueView) queueJSON {
	pool, namespace, name := state.SplitQueueKey(v.Key)
	t := v.Totals
	return queueJSON{
		Ref: url.QueryEscape(v.Key), Pool: shown(pool), Namespace: shown(namespace), Name: shown(name),
		Display: shown(state.DisplayName(v.Key)),
		Ready:   v.Ready, Delayed: v.Delayed, Leased: v.Leased, Dead: v.Dead, Bytes: v.Bytes,
		Paused: v.Paused, PausedUntil: int64(v.PausedUntil),
		OldestReadyMs: int64(v.OldestReadyMs), NextDueMs: int64(v.NextDueMs), Waiting: v.Waiting,
		Totals: totalsJSON{
			t.Enqueued, t.Delivered, t.Acked, t.Nacked, t.Released, t.Expired, t.Buried, t.Dead,
			t.Deleted, t.Lapsed, t.Redriven,
		},
		Settings: settingsOf(v.Settings), ReadyHistory: []int64{}, RateHistory: []float64{},
	}
}

// getQueue reads one queue as it is now.
func (c *apiCall) getQueue() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	v, err := c.queueInfo(key)
	if err != nil {
		return nil, err
	}
	q := queueOf(v)
	q.ReadyHistory, q.RateHistory = c.s.history.queue(v.Key)
	return q, nil
}

func (c *apiCall) queueInfo(key []byte) (*engine.QueueView, error) {
	info := &engine.QueueInfo{Queue: key}
	if err := c.do(info); err != nil {
		return nil, err
	}
	if !info.Found {
		return nil, notFound("there is no queue %.64q", state.DisplayName(string(key)))
	}
	return &info.Info, nil
}

// dryBody is the body of actions without arguments.
type dryBody struct {
	DryRun bool `json:"dry_run"`
}

type pauseBody struct {
	ForMs  int64 `json:"for_ms" doc:"0 is until it is resumed"`
	DryRun bool  `json:"dry_run"`
}

func (c *apiCall) pauseQueue() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	var b pauseBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if b.ForMs < 0 {
		return nil, invalid("for_ms is negative")
	}
	words := []string{"QUEUE", "PAUSE", state.DisplayName(string(key))}
	if b.ForMs > 0 {
		words = append(words, "FOR", strconv.FormatInt(b.ForMs, 10))
	}
	return c.act(b.DryRun, commandLine(words...), 1, func() (int64, error) {
		return 1, c.do(&engine.QueuePause{Queue: key, For: state.Millis(b.ForMs)})
	})
}

// simple runs an action of one queue that takes nothing but its name.
func (c *apiCall) simple(word string, cmd func(key []byte) engine.Command) (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	var b dryBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.act(b.DryRun, commandLine("QUEUE", word, state.DisplayName(string(key))), 1, func() (int64, error) {
		return 1, c.do(cmd(key))
	})
}

func (c *apiCall) resumeQueue() (any, error) {
	return c.simple("RESUME", func(key []byte) engine.Command { return &engine.QueueResume{Queue: key} })
}

func (c *apiCall) resetQueue() (any, error) {
	return c.simple("RESET", func(key []byte) engine.Command { return &engine.QueueReset{Queue: key} })
}

func (c *apiCall) deleteQueue() (any, error) {
	return c.simple("DELETE", func(key []byte) engine.Command { return &engine.QueueDelete{Queue: key} })
}

type purgeBody struct {
	States []string `json:"states" doc:"ready, delayed, leased, dead; none is ready and delayed"`
	DryRun bool     `json:"dry_run"`
}

func (c *apiCall) purgeQueue() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	var b purgeBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	words := []string{"QUEUE", "PURGE", state.DisplayName(string(key))}
	places := []state.Place{}
	if len(b.States) > 0 {
		words = append(words, "STATE")
	}
	for _, name := range b.States {
		place, err := parseState(name)
		if err != nil {
			return nil, err
		}
		places = append(places, place)
		words = append(words, name)
	}
	v, err := c.queueInfo(key)
	if err != nil {
		return nil, err
	}
	var count int64
	for p, n := range map[state.Place]int64{state.Ready: v.Ready, state.Delayed: v.Delayed, state.Leased: v.Leased, state.Dead: v.Dead} {
		if slices.Contains(places, p) || len(places) == 0 && (p == state.Ready || p == state.Delayed) {
			count += n
		}
	}
	return c.act(b.DryRun, commandLine(words...), count, func() (int64, error) {
		purge := &engine.QueuePurge{Queue: key, Places: places}
		err := c.engine.Purge(c.r.Context(), purge)
		if err == nil {
			err = purge.Err()
		}
		return purge.Removed, err
	})
}

type redriveBody struct {
	Count  int64   `json:"count" doc:"0 is all"`
	To     string  `json:"to" doc:"key of another queue; empty is the same"`
	Tries  *uint16 `json:"tries" doc:"new limit of tries; null keeps it"`
	TTLMs  *int64  `json:"ttl_ms" doc:"new time to live; null keeps it"`
	DryRun bool    `json:"dry_run"`
}

func (c *apiCall) redriveQueue() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	var b redriveBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if b.Count < 0 || b.TTLMs != nil && *b.TTLMs < 0 {
		return nil, invalid("count and ttl_ms must not be negative")
	}
	redrive := &engine.QueueRedrive{Queue: key, Count: b.Count}
	words := []string{"QUEUE", "REDRIVE", state.DisplayName(string(key))}
	if b.Count > 0 {
		words = append(words, "COUNT", strconv.FormatInt(b.Count, 10))
	}
	if b.To != "" {
		if redrive.To, err = parseKey(b.To); err != nil {
			return nil, err
		}
		words = append(words, "TO", state.DisplayName(b.To))
	}
	if b.Tries != nil {
		redrive.Tries = engine.Some(*b.Tries)
		words = append(words, "TRIES", strconv.Itoa(int(*b.Tries)))
	}
	if b.TTLMs != nil {
		redrive.TTL = engine.Some(state.Millis(*b.TTLMs))
		words = append(words, "TTL", strconv.FormatInt(*b.TTLMs, 10))
	}
	v, err := c.queueInfo(key)
	if err != nil {
		return nil, err
	}
	count := v.Dead
	if b.Count > 0 {
		count = min(count, b.Count)
	}
	return c.act(b.DryRun, commandLine(words...), count, func() (int64, error) {
		err := c.engine.Redrive(c.r.Context(), redrive)
		if err == nil {
			err = redrive.Err()
		}
		return redrive.Moved, err
	})
}

// settingsBody changes the settings that it has.
type settingsBody struct {
	Tries        *uint16 `json:"tries"`
	TTLMs        *int64  `json:"ttl_ms"`
	BackoffMs    *int64  `json:"backoff_ms"`
	BackoffMaxMs *int64  `json:"backoff_max_ms" doc:"only with backoff_ms"`
	MaxLen       *uint64 `json:"max_len"`
	MaxBytes     *uint64 `json:"max_bytes"`
	MaxLeased    *uint32 `json:"max_leased"`
	RateCount    *uint32 `json:"rate_count"`
	RatePerMs    *int64  `json:"rate_per_ms" doc:"only with rate_count"`
	DeadMax      *uint64 `json:"dead_max"`
	DeadForMs    *int64  `json:"dead_for_ms"`
	DryRun       bool    `json:"dry_run"`
}

func (c *apiCall) setQueue() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	var b settingsBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	for _, ms := range []*int64{b.TTLMs, b.BackoffMs, b.BackoffMaxMs, b.RatePerMs, b.DeadForMs} {
		if ms != nil && *ms < 0 {
			return nil, invalid("a time must not be negative")
		}
	}
	if b.BackoffMaxMs != nil && b.BackoffMs == nil || b.RatePerMs != nil && b.RateCount == nil {
		return nil, invalid("backoff_max_ms needs backoff_ms, rate_per_ms needs rate_count")
	}
	set := &engine.QueueSet{Queue: key}
	words := []string{"QUEUE", "SET", state.DisplayName(string(key))}
	add := func(which state.SettingSet, name, value string) {
		set.Which |= which
		words = append(words, name, value)
	}
	s := &set.Settings
	if b.Tries != nil {
		s.Tries = *b.Tries
		add(state.SetTries, "TRIES", strconv.Itoa(int(*b.Tries)))
	}
	if b.TTLMs != nil {
		s.TTL = state.Millis(*b.TTLMs)
		add(state.SetTTL, "TTL", strconv.FormatInt(*b.TTLMs, 10))
	}
	if b.BackoffMs != nil {
		s.Backoff = state.Millis(*b.BackoffMs)
		add(state.SetBackoff, "BACKOFF", strconv.FormatInt(*b.BackoffMs, 10))
		if b.BackoffMaxMs != nil && *b.BackoffMaxMs > 0 {
			s.BackoffMax = state.Millis(*b.BackoffMaxMs)
			words = append(words, "MAX", strconv.FormatInt(*b.BackoffMaxMs, 10))
		}
	}
	if b.MaxLen != nil {
		s.MaxLen = *b.MaxLen
		add(state.SetMaxLen, "MAXLEN", strconv.FormatUint(*b.MaxLen, 10))
	}
	if b.MaxBytes != nil {
		s.MaxBytes = *b.MaxBytes
		add(state.SetMaxBytes, "MAXBYTES", strconv.FormatUint(*b.MaxBytes, 10))
	}
	if b.MaxLeased != nil {
		s.MaxLeased = *b.MaxLeased
		add(state.SetMaxLeased, "MAXLEASED", strconv.FormatUint(uint64(*b.MaxLeased), 10))
	}
	if b.RateCount != nil {
		s.RateCount = *b.RateCount
		rate := strconv.FormatUint(uint64(*b.RateCount), 10)
		if b.RatePerMs != nil && *b.RatePerMs > 0 {
			s.RatePer = state.Millis(*b.RatePerMs)
			rate += "/" + strconv.FormatInt(*b.RatePerMs, 10)
		}
		add(state.SetRate, "RATE", rate)
	}
	if b.DeadMax != nil {
		s.DeadMax = *b.DeadMax
		add(state.SetDeadMax, "DEADMAX", strconv.FormatUint(*b.DeadMax, 10))
	}
	if b.DeadForMs != nil {
		s.DeadFor = state.Millis(*b.DeadForMs)
		add(state.SetDeadFor, "DEADFOR", strconv.FormatInt(*b.DeadForMs, 10))
	}
	if set.Which == 0 {
		return nil, invalid("no setting is named")
	}
	return c.act(b.DryRun, commandLine(words...), 1, func() (int64, error) { return 1, c.do(set) })
}
