package admin

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"pawl/engine"
	"pawl/state"
)

// jobJSON is a job in replies. Times are Unix milliseconds, 0 is none.
type jobJSON struct {
	ID           string     `json:"id"`
	QueueRef     string     `json:"queue_ref" doc:"for the parameter queue, percent-encoded"`
	Queue        string     `json:"queue" doc:"what RESP clients of the pool call it"`
	Pool         string     `json:"pool"`
	State        string     `json:"state"`
	Priority     int8       `json:"priority"`
	Attempt      uint32     `json:"attempt" doc:"deliveries so far"`
	Failures     uint32     `json:"failures"`
	Tries        uint16     `json:"tries" doc:"failures until dead; 0 is no limit"`
	BackoffMs    int64      `json:"backoff_ms"`
	BackoffMaxMs int64      `json:"backoff_max_ms"`
	EnqueuedAt   int64      `json:"enqueued_at"`
	DueAt        int64      `json:"due_at"`
	Deadline     int64      `json:"deadline" doc:"leased: when the lease ends"`
	ExpiresAt    int64      `json:"expires_at"`
	DiedAt       int64      `json:"died_at"`
	Lease        string     `json:"lease" doc:"leased: for ACK, NACK and the others"`
	Reason       string     `json:"reason" doc:"of the last failure"`
	Unique       string     `json:"unique"`
	Group        string     `json:"group"`
	Bytes        int        `json:"bytes" doc:"of the payload"`
	Attrs        []attrJSON `json:"attrs"`
	Payload      []byte     `json:"payload" doc:"base 64; null in lists"`
	Damaged      bool       `json:"damaged" doc:"the payload is rotten on disk"`
}

type attrJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func jobOf(v *engine.JobView) jobJSON {
	pool, _, _ := state.SplitQueueKey(v.Queue)
	j := jobJSON{
		ID: v.ID.String(), QueueRef: url.QueryEscape(v.Queue), Queue: shown(state.DisplayName(v.Queue)), Pool: shown(pool),
		State: v.Place.String(), Priority: v.Priority, Attempt: v.Attempt, Failures: v.Failures, Tries: v.Tries,
		BackoffMs: int64(v.Backoff.Base), BackoffMaxMs: int64(v.Backoff.Max),
		EnqueuedAt: int64(v.EnqueuedAt), DueAt: int64(v.DueAt), Deadline: int64(v.Deadline),
		ExpiresAt: int64(v.ExpiresAt), DiedAt: int64(v.DiedAt),
		Reason: shown(v.Reason), Unique: shown(string(v.Unique)), Group: shown(string(v.Group)),
		Bytes: v.Bytes, Attrs: []attrJSON{},
	}
	if v.Place == state.Leased {
		j.Lease = v.Lease.String()
	}
	return j
}

type jobsReply struct {
	Jobs []jobJSON `json:"jobs" doc:"in delivery order, without payloads"`
	Next string    `json:"next" doc:"for the parameter after; empty is the end"`

	Scanned int `json:"scanned" doc:"jobs that were looked at"`
}

// maxSearch bounds how many jobs one search looks at: each is read from the log.
const maxSearch = 2000

// listJobs gives one page of a queue's jobs in one state.
func (c *apiCall) listJobs() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	place, err := c.stateParam()
	if err != nil {
		return nil, err
	}
	count := max(1, int(min(c.integer("count", 25), maxPage)))
	match := []byte(c.query.Get("match"))
	if len(match) > state.MaxNameBytes {
		return nil, invalid("match is over %d bytes", state.MaxNameBytes)
	}
	peek := &engine.QueuePeek{Queue: key, Place: place, Count: count}
	if after := c.query.Get("after"); after != "" {
		if peek.After, err = base64.RawURLEncoding.DecodeString(after); err != nil {
			return nil, invalid("after is not what a page before gave")
		}
	}
	if err := c.do(peek); err != nil {
		return nil, err
	}
	reply := jobsReply{Jobs: []jobJSON{}}
	for {
		for i := range peek.Jobs {
			v := &peek.Jobs[i]
			reply.Scanned++
			switch {
			case len(match) == 0:
				reply.Jobs = append(reply.Jobs, jobOf(v))
				c.engine.ForgetView(v)
			case c.matchesJob(v, match):
				reply.Jobs = append(reply.Jobs, jobOf(v))
			}
		}
		reply.Next = base64.RawURLEncoding.EncodeToString(peek.Next)
		if len(match) == 0 || peek.Next == nil || len(reply.Jobs) >= count || reply.Scanned >= maxSearch {
			return reply, c.r.Context().Err()
		}
		peek = &engine.QueuePeek{Queue: key, Place: place, Count: count, After: peek.Next}
		if err := c.do(peek); err != nil {
			if errors.Is(err, engine.ErrCursor) { // the job at the cursor has gone meanwhile
				reply.Next = ""
				return reply, nil
			}
			return nil, err
		}
	}
}

// matchesJob says whether text is part of what a job is known by, or of its
// payload. The view is done with.
func (c *apiCall) matchesJob(v *engine.JobView, text []byte) bool {
	for _, field := range [...]string{v.ID.String(), v.Reason, string(v.Unique), string(v.Group)} {
		if strings.Contains(field, string(text)) {
			c.engine.ForgetView(v)
			return true
		}
	}
	if c.engine.LoadView(v) != nil {
		return false // a payload that is rotten has nothing to be found by
	}
	for _, a := range v.Attrs {
		if bytes.Contains(a.Value, text) {
			return true
		}
	}
	return bytes.Contains(v.Payload, text)
}

func (c *apiCall) stateParam() (state.Place, error) {
	name := c.query.Get("state")
	if name == "" {
		return state.Ready, nil
	}
	place, ok := state.ParsePlace(name)
	if !ok {
		return 0, invalid("state %.32q is none of ready, delayed, leased, dead", name)
	}
	return place, nil
}

// getJob gives one job with its payload.
func (c *apiCall) getJob() (any, error) {
	id, err := parseID(c.query.Get("id"))
	if err != nil {
		return nil, err
	}
	get := &engine.JobGet{ID: id}
	if err := c.do(get); err != nil {
		return nil, err
	}
	if !get.Found {
		return nil, notFound("there is no job %s", id)
	}
	v := get.Job
	err = c.engine.LoadView(&v)
	j := jobOf(&v)
	switch {
	case errors.Is(err, engine.ErrDamaged):
		j.Damaged = true
	case err != nil:
		return nil, err
	default:
		j.Payload = v.Payload
		if j.Payload == nil {
			j.Payload = []byte{}
		}
		for _, a := range v.Attrs {
			j.Attrs = append(j.Attrs, attrJSON{shown(string(a.Name)), shown(string(a.Value))})
		}
	}
	return j, nil
}

func parseID(text string) (state.JobID, error) {
	if len(text) == state.JobIDLen+1 { // lmstfy's form, with a version in front
		text = text[1:]
	}
	id, err := state.ParseJobID([]byte(text))
	if err != nil {
		return id, invalid("%.40q is no job ID", text)
	}
	return id, nil
}

// maxIDs bounds the jobs that one request names.
const maxIDs = 1000

// idsBody names jobs.
type idsBody struct {
	IDs    []string `json:"ids" doc:"at most 1,000"`
	DryRun bool     `json:"dry_run"`
}

func parseIDs(texts []string) ([]state.JobID, error) {
	if len(texts) == 0 || len(texts) > maxIDs {
		return nil, invalid("ids has %d jobs, want 1 to %d", len(texts), maxIDs)
	}
	ids := make([]state.JobID, len(texts))
	for i, text := range texts {
		var err error
		if ids[i], err = parseID(text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// existing counts the jobs that there are, for a dry run.
func (c *apiCall) existing(ids []state.JobID) (int64, error) {
	gets := make([]engine.Command, len(ids))
	for i := range ids {
		gets[i] = &engine.JobGet{ID: ids[i]}
	}
	if err := c.do(gets...); err != nil {
		return 0, err
	}
	var n int64
	for _, g := range gets {
		if get := g.(*engine.JobGet); get.Found {
			n++
			c.engine.ForgetView(&get.Job)
		}
	}
	return n, nil
}

// actedJobs is the reply of actions on jobs.
type actedJobs struct {
	acted
	Refused []refusedJob `json:"refused" doc:"jobs that could not be changed, and why"`
}

type refusedJob struct {
	ID      string `json:"id"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (c *apiCall) deleteJobs() (any, error) {
	var b idsBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	ids, err := parseIDs(b.IDs)
	if err != nil {
		return nil, err
	}
	words := append([]string{"JOB", "DELETE"}, b.IDs...)
	reply := actedJobs{acted{commandLine(words...), b.DryRun, 0}, []refusedJob{}}
	if b.DryRun {
		reply.Affected, err = c.existing(ids)
		return reply, err
	}
	del := &engine.JobDelete{IDs: ids}
	if err := c.do(del); err != nil {
		return nil, err
	}
	reply.Affected = int64(del.Deleted)
	c.logged(reply.Command, reply.Affected)
	return reply, nil
}

// edit changes each of ids by itself: one that is refused does not stop the
// others.
func (c *apiCall) edit(texts []string, dryRun bool, words []string, cmd func(state.JobID) *engine.JobEdit) (any, error) {
	ids, err := parseIDs(texts)
	if err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(texts))
	for _, text := range texts {
		line := append([]string{"JOB", words[0], text}, words[1:]...)
		lines = append(lines, commandLine(line...))
	}
	reply := actedJobs{acted{strings.Join(lines, "\n"), dryRun, 0}, []refusedJob{}}
	if dryRun {
		reply.Affected, err = c.existing(ids)
		return reply, err
	}
	edits := make([]engine.Command, len(ids))
	for i, id := range ids {
		edits[i] = cmd(id)
	}
	if err := c.engine.Wait(c.engine.Submit(edits...)); err != nil {
		return nil, err
	}
	for i, e := range edits {
		if err := e.Err(); err != nil {
			_, code, message := describe(err)
			reply.Refused = append(reply.Refused, refusedJob{texts[i], code, message})
			continue
		}
		reply.Affected++
	}
	c.logged(lines[0], reply.Affected)
	return reply, nil
}

func (c *apiCall) runJobs() (any, error) {
	var b idsBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.edit(b.IDs, b.DryRun, []string{"RUN"}, func(id state.JobID) *engine.JobEdit {
		return &engine.JobEdit{ID: id, Kind: engine.EditRun}
	})
}

type delayBody struct {
	IDs     []string `json:"ids"`
	DelayMs int64    `json:"delay_ms" doc:"due so long from now"`
	DryRun  bool     `json:"dry_run"`
}

func (c *apiCall) delayJobs() (any, error) {
	var b delayBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if b.DelayMs < 0 {
		return nil, invalid("delay_ms is negative")
	}
	return c.edit(b.IDs, b.DryRun, []string{"DELAY", strconv.FormatInt(b.DelayMs, 10)}, func(id state.JobID) *engine.JobEdit {
		return &engine.JobEdit{ID: id, Kind: engine.EditDelay, Delay: state.Millis(b.DelayMs)}
	})
}

type priorityBody struct {
	IDs      []string `json:"ids"`
	Priority int8     `json:"priority" doc:"-128 to 127, larger first"`
	DryRun   bool     `json:"dry_run"`
}

func (c *apiCall) prioritizeJobs() (any, error) {
	var b priorityBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.edit(b.IDs, b.DryRun, []string{"PRIORITY", strconv.Itoa(int(b.Priority))}, func(id state.JobID) *engine.JobEdit {
		return &engine.JobEdit{ID: id, Kind: engine.EditPriority, Priority: b.Priority}
	})
}

type moveBody struct {
	IDs    []string `json:"ids"`
	To     string   `json:"to" doc:"key of the queue, pool/namespace/name"`
	DryRun bool     `json:"dry_run"`
}

func (c *apiCall) moveJobs() (any, error) {
	var b moveBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	to, err := parseKey(b.To)
	if err != nil {
		return nil, err
	}
	return c.edit(b.IDs, b.DryRun, []string{"MOVE", state.DisplayName(b.To)}, func(id state.JobID) *engine.JobEdit {
		return &engine.JobEdit{ID: id, Kind: engine.EditMove, Queue: to}
	})
}

type payloadBody struct {
	ID      string  `json:"id"`
	Text    *string `json:"text" doc:"the new payload as text; or"`
	Payload []byte  `json:"payload" doc:"as base 64"`
	DryRun  bool    `json:"dry_run"`
}

func (c *apiCall) editJob() (any, error) {
	var b payloadBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	payload := b.Payload
	if b.Text != nil {
		payload = []byte(*b.Text)
	}
	return c.edit([]string{b.ID}, b.DryRun, []string{"PAYLOAD", word(payload)}, func(id state.JobID) *engine.JobEdit {
		return &engine.JobEdit{ID: id, Kind: engine.EditPayload, Payload: payload}
	})
}

// jobOptions are those of ENQUEUE, for jobs and for recurring ones.
type jobOptions struct {
	DelayMs      int64      `json:"delay_ms"`
	TTLMs        *int64     `json:"ttl_ms" doc:"null is the queue's, 0 is none"`
	Priority     int8       `json:"priority"`
	Tries        *uint16    `json:"tries" doc:"failures until dead; null is the queue's, 0 is no limit"`
	BackoffMs    *int64     `json:"backoff_ms" doc:"before the first retry, then doubling; null is the queue's"`
	BackoffMaxMs int64      `json:"backoff_max_ms" doc:"only with backoff_ms; 0 is one hour"`
	Unique       string     `json:"unique"`
	ForMs        int64      `json:"for_ms" doc:"window of unique; 0 is 60,000"`
	Group        string     `json:"group"`
	Attrs        []attrJSON `json:"attrs"`
}

// set gives cmd the options.
func (o *jobOptions) set(cmd *engine.Enqueue) error {
	if o.DelayMs < 0 || o.ForMs < 0 || o.BackoffMaxMs < 0 || o.TTLMs != nil && *o.TTLMs < 0 || o.BackoffMs != nil && *o.BackoffMs < 0 {
		return invalid("a time must not be negative")
	}
	if o.BackoffMaxMs > 0 && o.BackoffMs == nil {
		return invalid("backoff_max_ms needs backoff_ms")
	}
	cmd.Delay, cmd.Priority, cmd.For = state.Millis(o.DelayMs), o.Priority, state.Millis(o.ForMs)
	if o.TTLMs != nil {
		cmd.TTL = engine.Some(state.Millis(*o.TTLMs))
	}
	if o.Tries != nil {
		cmd.Tries = engine.Some(*o.Tries)
	}
	if o.BackoffMs != nil {
		cmd.Backoff = engine.Some(engine.Backoff{Base: state.Millis(*o.BackoffMs), Max: state.Millis(o.BackoffMaxMs)})
	}
	if o.Unique != "" {
		cmd.Unique = []byte(o.Unique)
	}
	if o.Group != "" {
		cmd.Group = []byte(o.Group)
	}
	for _, a := range o.Attrs {
		cmd.Attrs = append(cmd.Attrs, engine.Attr{Name: []byte(a.Name), Value: []byte(a.Value)})
	}
	return nil
}

// optionsOf reads them back.
func optionsOf(cmd *engine.Enqueue) jobOptions {
	o := jobOptions{
		DelayMs: int64(cmd.Delay), Priority: cmd.Priority, ForMs: int64(cmd.For),
		Unique: shown(string(cmd.Unique)), Group: shown(string(cmd.Group)), Attrs: []attrJSON{},
	}
	if cmd.TTL.Set {
		ttl := int64(cmd.TTL.Value)
		o.TTLMs = &ttl
	}
	if cmd.Tries.Set {
		o.Tries = &cmd.Tries.Value
	}
	if cmd.Backoff.Set {
		base := int64(cmd.Backoff.Value.Base)
		o.BackoffMs, o.BackoffMaxMs = &base, int64(cmd.Backoff.Value.Max)
	}
	for _, a := range cmd.Attrs {
		o.Attrs = append(o.Attrs, attrJSON{shown(string(a.Name)), shown(string(a.Value))})
	}
	return o
}

// words adds the options to a command.
func (o *jobOptions) words(words []string) []string {
	option := func(name string, value int64) { words = append(words, name, strconv.FormatInt(value, 10)) }
	if o.DelayMs > 0 {
		option("DELAY", o.DelayMs)
	}
	if o.TTLMs != nil {
		option("TTL", *o.TTLMs)
	}
	if o.Priority != 0 {
		option("PRIORITY", int64(o.Priority))
	}
	if o.Tries != nil {
		option("TRIES", int64(*o.Tries))
	}
	if o.BackoffMs != nil {
		option("BACKOFF", *o.BackoffMs)
		if o.BackoffMaxMs > 0 {
			option("MAX", o.BackoffMaxMs)
		}
	}
	if o.Unique != "" {
		words = append(words, "UNIQUE", o.Unique)
		if o.ForMs > 0 {
			option("FOR", o.ForMs)
		}
	}
	if o.Group != "" {
		words = append(words, "GROUP", o.Group)
	}
	for _, a := range o.Attrs {
		words = append(words, "ATTR", a.Name, a.Value)
	}
	return words
}

// enqueueBody is a new job.
type enqueueBody struct {
	Text    *string `json:"text" doc:"the payload as text; or"`
	Payload []byte  `json:"payload" doc:"as base 64"`
	At      *int64  `json:"at" doc:"Unix ms; instead of delay_ms"`
	jobOptions
	DryRun bool `json:"dry_run"`
}

type enqueueReply struct {
	acted
	ID        string `json:"id" doc:"empty in a dry run"`
	Duplicate bool   `json:"duplicate" doc:"a live job with the same unique key exists; id is that job's"`
}

func (c *apiCall) enqueue() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	var b enqueueBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if b.At != nil && b.DelayMs != 0 {
		return nil, invalid("at and delay_ms exclude each other")
	}
	cmd := &engine.Enqueue{Queue: key, Payload: b.Payload}
	if err := b.set(cmd); err != nil {
		return nil, err
	}
	if b.Text != nil {
		cmd.Payload = []byte(*b.Text)
	}
	words := []string{"ENQUEUE", state.DisplayName(string(key)), word(cmd.Payload)}
	if b.At != nil {
		cmd.At = engine.Some(state.Millis(*b.At))
		words = append(words, "AT", strconv.FormatInt(*b.At, 10))
	}
	reply := enqueueReply{acted: acted{commandLine(b.words(words)...), b.DryRun, 1}}
	if b.DryRun {
		return reply, nil
	}
	if err := c.do(cmd); err != nil {
		return nil, err
	}
	reply.ID, reply.Duplicate = cmd.ID.String(), cmd.Duplicate
	c.logged(commandLine("ENQUEUE", state.DisplayName(string(key)), byteCount(cmd.Payload)), 1)
	return reply, nil
}

// word is a payload in a command that is shown: itself when short and text.
func word(payload []byte) string {
	if len(payload) <= 1024 && utf8.Valid(payload) {
		return string(payload)
	}
	return byteCount(payload)
}

func byteCount(payload []byte) string { return "<" + strconv.Itoa(len(payload)) + " bytes>" }

// maxScan bounds how many jobs one request looks at.
const maxScan = 10_000

// scan pages through a queue's jobs in one state, at most maxScan of them, and
// says whether that was all.
func (c *apiCall) scan(ctx context.Context, key []byte, place state.Place, visit func(*engine.JobView)) (complete bool, err error) {
	var after []byte
	for seen := 0; seen < maxScan; {
		peek := &engine.QueuePeek{Queue: key, Place: place, Count: maxPage, After: after}
		if err := c.do(peek); err != nil {
			if errors.Is(err, engine.ErrCursor) { // the job at the cursor has gone
				return false, nil
			}
			return false, err
		}
		for i := range peek.Jobs {
			visit(&peek.Jobs[i])
			c.engine.ForgetView(&peek.Jobs[i])
		}
		seen += len(peek.Jobs)
		if after = peek.Next; after == nil {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// reasonJSON is a group of dead jobs that died of the same.
type reasonJSON struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
	Oldest int64  `json:"oldest" doc:"Unix ms"`
	Newest int64  `json:"newest" doc:"Unix ms"`
	Sample string `json:"sample" doc:"ID of one of them"`
}

type reasonsReply struct {
	Reasons  []reasonJSON `json:"reasons"`
	Scanned  int64        `json:"scanned"`
	Complete bool         `json:"complete" doc:"false: there are more dead jobs than one request looks at"`
}

// deadReasons groups a queue's dead jobs by the reason of their last failure.
func (c *apiCall) deadReasons() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	reply := reasonsReply{Reasons: []reasonJSON{}}
	index := map[string]int{}
	reply.Complete, err = c.scan(c.r.Context(), key, state.Dead, func(v *engine.JobView) {
		reply.Scanned++
		reason := shown(v.Reason)
		i, ok := index[reason]
		if !ok {
			i = len(reply.Reasons)
			index[reason] = i
			reply.Reasons = append(reply.Reasons, reasonJSON{Reason: reason, Oldest: int64(v.DiedAt), Sample: v.ID.String()})
		}
		r := &reply.Reasons[i]
		r.Count++
		r.Oldest, r.Newest = min(r.Oldest, int64(v.DiedAt)), max(r.Newest, int64(v.DiedAt))
	})
	return reply, err
}

// bulkBody acts on all jobs of a queue in one state, or on those of one reason.
type bulkBody struct {
	State  string  `json:"state"`
	Reason *string `json:"reason" doc:"only jobs whose last failure has this reason; null is all"`
	Action string  `json:"action" doc:"run, delete, move, delay or priority"`
	To     string  `json:"to" doc:"of move: key of the queue"`

	DelayMs  int64 `json:"delay_ms" doc:"of delay"`
	Priority int8  `json:"priority" doc:"of priority"`
	DryRun   bool  `json:"dry_run"`
}

// bulk acts on at most maxScan jobs. They are listed first, so that one which the
// action moves to the end of the same list is not met again.
func (c *apiCall) bulk() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	var b bulkBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	place, ok := state.ParsePlace(b.State)
	if !ok {
		return nil, invalid("state %.32q is none of ready, delayed, leased, dead", b.State)
	}
	var words []string
	edit := engine.JobEdit{}
	switch b.Action {
	case "run":
		words, edit.Kind = []string{"RUN"}, engine.EditRun
	case "delay":
		if b.DelayMs < 0 {
			return nil, invalid("delay_ms is negative")
		}
		words = []string{"DELAY", strconv.FormatInt(b.DelayMs, 10)}
		edit.Kind, edit.Delay = engine.EditDelay, state.Millis(b.DelayMs)
	case "priority":
		words = []string{"PRIORITY", strconv.Itoa(int(b.Priority))}
		edit.Kind, edit.Priority = engine.EditPriority, b.Priority
	case "move":
		if edit.Queue, err = parseKey(b.To); err != nil {
			return nil, err
		}
		words, edit.Kind = []string{"MOVE", state.DisplayName(b.To)}, engine.EditMove
	case "delete":
		words = []string{"DELETE"}
	default:
		return nil, invalid("action %.32q is none of run, delete, move, delay, priority", b.Action)
	}
	var ids []state.JobID
	if _, err := c.scan(c.r.Context(), key, place, func(v *engine.JobView) {
		if b.Reason == nil || *b.Reason == shown(v.Reason) {
			ids = append(ids, v.ID)
		}
	}); err != nil {
		return nil, err
	}
	line := append([]string{"JOB", words[0], "<each ID>"}, words[1:]...)
	reply := actedJobs{acted{commandLine(line...), b.DryRun, int64(len(ids))}, []refusedJob{}}
	if b.DryRun {
		return reply, nil
	}
	reply.Affected = 0
	for len(ids) > 0 {
		some := ids[:min(len(ids), maxPage)]
		ids = ids[len(some):]
		if b.Action == "delete" {
			del := &engine.JobDelete{IDs: some, Queue: key}
			if err := c.do(del); err != nil {
				return nil, err
			}
			reply.Affected += int64(del.Deleted)
			continue
		}
		cmds := make([]engine.Command, len(some))
		for i, id := range some {
			e := edit
			e.ID = id
			cmds[i] = &e
		}
		if err := c.engine.Wait(c.engine.Submit(cmds...)); err != nil {
			return nil, err
		}
		for i, cmd := range cmds {
			if err := cmd.Err(); err == nil {
				reply.Affected++
			} else if _, code, message := describe(err); len(reply.Refused) < maxPage {
				reply.Refused = append(reply.Refused, refusedJob{some[i].String(), code, message})
			}
		}
	}
	c.logged(reply.Command, reply.Affected)
	return reply, nil
}
