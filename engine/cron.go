package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"pawl/state"
	"pawl/wal"
)

type cronKey struct{ namespace, name string }

// cronOptions are the options of a recurring enqueue as Cron.Options holds them:
// JSON, so that tools and people can read them.
type cronOptions struct {
	DelayMs      state.Millis  `json:"delay_ms,omitempty"`
	TTLMs        *state.Millis `json:"ttl_ms,omitempty"`
	Priority     int8          `json:"priority,omitempty"`
	Tries        *uint16       `json:"tries,omitempty"`
	BackoffMs    *state.Millis `json:"backoff_ms,omitempty"`
	BackoffMaxMs state.Millis  `json:"backoff_max_ms,omitempty"`
	Unique       []byte        `json:"unique,omitempty"`
	ForMs        state.Millis  `json:"for_ms,omitempty"`
	Group        []byte        `json:"group,omitempty"`
	Attrs        []cronAttr    `json:"attrs,omitempty"`
}

type cronAttr struct {
	Name  []byte `json:"name"`
	Value []byte `json:"value"`
}

// EncodeOptions is what stands in Cron.Options for the options of c. Queue,
// payload and At are no options of a recurring enqueue.
func EncodeOptions(c *Enqueue) []byte {
	o := cronOptions{DelayMs: c.Delay, Priority: c.Priority, Unique: c.Unique, ForMs: c.For, Group: c.Group}
	if c.TTL.Set {
		o.TTLMs = &c.TTL.Value
	}
	if c.Tries.Set {
		o.Tries = &c.Tries.Value
	}
	if c.Backoff.Set {
		o.BackoffMs, o.BackoffMaxMs = &c.Backoff.Value.Base, c.Backoff.Value.Max
	}
	for _, a := range c.Attrs {
		o.Attrs = append(o.Attrs, cronAttr(a))
	}
	b, err := json.Marshal(&o)
	if err != nil {
		panic(fmt.Sprintf("engine: options cannot be written: %v", err)) // they are numbers and bytes
	}
	return b
}

// DecodeOptions sets the options of c to those that b holds.
func DecodeOptions(b []byte, c *Enqueue) error {
	if len(b) == 0 {
		return nil
	}
	var o cronOptions
	if err := json.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("options of a cron: %w", err)
	}
	c.Delay, c.Priority, c.Unique, c.For, c.Group = o.DelayMs, o.Priority, o.Unique, o.ForMs, o.Group
	if o.TTLMs != nil {
		c.TTL = Some(*o.TTLMs)
	}
	if o.Tries != nil {
		c.Tries = Some(*o.Tries)
	}
	if o.BackoffMs != nil {
		c.Backoff = Some(Backoff{*o.BackoffMs, o.BackoffMaxMs})
	}
	for _, a := range o.Attrs {
		c.Attrs = append(c.Attrs, Attr(a))
	}
	return nil
}

func (e *Engine) cronSet(c *CronSet) error {
	cron := c.Cron
	switch {
	case c.bad != nil:
		return c.bad
	case cron.Namespace == "" || cron.Name == "":
		return ErrEmptyName
	case len(cron.Name) > state.MaxNameBytes || len(cron.Namespace) > 2*state.MaxNameBytes+1:
		return ErrNameTooLong
	case len(cron.Payload) > e.opt.MaxPayload:
		return ErrTooLarge
	case len(cron.Options) > state.MaxTextBytes || DecodeOptions(cron.Options, &Enqueue{}) != nil:
		return ErrAttrs
	}
	if err := checkQueueKey([]byte(cron.Queue)); err != nil {
		return err
	}
	if err := e.room(wal.RecordBytes(1024+len(cron.Spec)+len(cron.Payload)+len(cron.Options)+len(cron.Queue)+len(cron.Namespace), 0)); err != nil {
		return err
	}
	old, exists := e.st.Cron(cron.Namespace, cron.Name)
	if !exists && e.st.Counts().Crons >= uint64(e.opt.MaxCrons) {
		return ErrTooMany
	}
	if e.full.Load() {
		return ErrNoSpace
	}
	cron.Next, cron.Last = nextSlot(c.schedule, e.clock.wall(e.now)), 0
	if exists {
		cron.Last = old.Last
		if old.Spec == cron.Spec && old.Zone == cron.Zone {
			cron.Next = old.Next // set again by a deployment: no slot is skipped
		}
	}
	e.schedules[cronKey{cron.Namespace, cron.Name}] = c.schedule
	e.record(&state.Record{Kind: state.KindCron, Cron: &cron}, nil)
	return nil
}

// nextSlot is the first slot after a wall time, 0 when there is none.
func nextSlot(s Schedule, after state.Millis) state.Millis {
	t := s.Next(time.UnixMilli(int64(after)))
	if t.IsZero() {
		return 0
	}
	return min(state.Millis(t.UnixMilli()), state.MaxMillis)
}

func (e *Engine) cronDelete(c *CronDelete) error {
	if err := e.room(recordRoom + len(c.Namespace) + len(c.Name)); err != nil {
		return err
	}
	_, c.Deleted = e.st.Cron(c.Namespace, c.Name)
	if c.Deleted {
		delete(e.schedules, cronKey{c.Namespace, c.Name})
		delete(e.caught, cronKey{c.Namespace, c.Name})
		e.record(&state.Record{Kind: state.KindCronDelete, Cron: &state.Cron{Namespace: c.Namespace, Name: c.Name}}, nil)
	}
	return nil
}

func (e *Engine) cronList(c *CronList) error {
	c.Crons = nil
	whole := !strings.HasSuffix(c.Namespace, "/")
	next := uint32(1)
	return e.inStays(func() (more bool) {
		next = e.st.CronsFrom(next, listChunk, func(cron *state.Cron) {
			if whole && cron.Namespace == c.Namespace || !whole && strings.HasPrefix(cron.Namespace, c.Namespace) {
				c.Crons = append(c.Crons, *cron)
			}
		})
		return next != 0
	})
}

// byName orders crons.
func byName(a, b state.Cron) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

const (
	// onTimeMs is how late a slot may be and still be its own enqueue; older ones
	// were missed, and CATCHUP says what becomes of them.
	onTimeMs state.Millis = 60_000
	// maxCatchup bounds the missed slots that CATCHUP all makes up for.
	maxCatchup = 1000
)

// fireCron enqueues for the slot that is due, or skips slots that were missed,
// and notes the next one in the same group: whatever crash comes, a slot
// enqueues once. Looking for slots takes up to milliseconds, so that is done
// outside the critical section, and what was found is checked again.
func (e *Engine) fireCron(due *state.Cron) error {
	cron := *due
	wall := e.clock.wall(e.now)
	key := cronKey{cron.Namespace, cron.Name}
	schedule, known := e.schedules[key]
	caught := e.caught[key]
	e.leave()
	var err error
	if !known {
		if schedule, err = ParseCron(cron.Spec, cron.Zone); err != nil {
			e.opt.Logger.Error("cron cannot be read, it stops", "cron", cron.Name, "err", err)
		}
	}
	var fires bool
	var slot, next state.Millis
	if err == nil {
		slot, next, fires = plan(schedule, &cron, wall, caught)
	}
	e.mu.Lock()
	e.tick()
	if e.down.Load() != 0 {
		return e.refusal()
	}
	job := Enqueue{Queue: []byte(cron.Queue), Payload: cron.Payload, bySchedule: true}
	if err := DecodeOptions(cron.Options, &job); err != nil {
		return err // it was checked when it was set
	}
	job.prefix = appendPrefix(nil, job.Unique, job.Group, job.Attrs)
	fired := recordRoom + wal.RecordBytes(1024+len(cron.Namespace)+len(cron.Name), 0)
	if err := e.room(fired + enqueueRoom(&job)); err != nil {
		return err
	}
	now, ok := e.st.Cron(cron.Namespace, cron.Name)
	if !ok || now.Next != cron.Next || now.Spec != cron.Spec || now.Zone != cron.Zone || now.Next > e.clock.wall(e.now) {
		return nil // it was changed meanwhile
	}
	if err == nil {
		e.schedules[key] = schedule
	}
	if fires {
		if p, err := e.planEnqueue(&job, nil); err == nil {
			e.doEnqueue(&job, &p)
		} else {
			e.tally.refused++
			e.opt.Logger.Warn("cron's job was refused, the slot is lost", "cron", cron.Name, "queue", cron.Queue, "slot", int64(slot), "err", err)
		}
	}
	if cron.Next <= wall-onTimeMs {
		e.caught[key]++
	} else {
		delete(e.caught, key)
	}
	e.record(&state.Record{Kind: state.KindCronFired, Cron: &state.Cron{
		Namespace: cron.Namespace, Name: cron.Name, Next: next, Last: slot,
	}}, nil)
	return nil
}

// plan says what becomes of a cron whose next slot has come at wall: whether to
// enqueue, for which slot, and which slot is next. caught is how many missed
// slots it has made up for just now.
func plan(s Schedule, c *state.Cron, wall state.Millis, caught int) (slot, next state.Millis, fires bool) {
	slot = c.Next
	if slot > wall-onTimeMs {
		return slot, nextSlot(s, slot), true
	}
	onTime := nextSlot(s, wall-onTimeMs)
	switch c.Catchup {
	case state.CatchupNone:
		return c.Last, onTime, false
	case state.CatchupAll:
		if caught >= maxCatchup {
			return c.Last, onTime, false
		}
		return slot, nextSlot(s, slot), true
	default:
		return slot, onTime, true
	}
}
