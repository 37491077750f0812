package admin

import (
	"strconv"
	"unicode/utf8"

	"pawl/engine"
	"pawl/state"
)

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
