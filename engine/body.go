package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"pawl/state"
	"pawl/wal"
)

// A body is what stays in the log of a job: what workers read and the state
// need not know. Without unique key, group and attributes it is the payload
// and nothing else. Otherwise a prefix stands before the payload, whose length
// the record says as Overhead:
//
//	uvarint length and bytes of the unique key
//	uvarint length and bytes of the group
//	then for each attribute uvarint length and bytes of name and of value
//
// The prefix ends where Overhead says, so it carries no counts. The lengths of
// unique key and group are one more than they are, so that 0 is none.

// Limits of what a prefix holds.
const (
	MaxAttrs       = 16
	MaxAttrBytes   = 255 // of a name, and of a value
	MaxUniqueBytes = 255
	MaxGroupBytes  = 255
)

// appendPrefix appends the prefix; nothing where there is nothing to say.
func appendPrefix(dst, unique, group []byte, attrs []Attr) []byte {
	if unique == nil && group == nil && len(attrs) == 0 {
		return dst
	}
	for _, b := range [][]byte{unique, group} {
		if b == nil {
			dst = append(dst, 0)
			continue
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(b))+1), b...)
	}
	for _, a := range attrs {
		dst = append(binary.AppendUvarint(dst, uint64(len(a.Name))), a.Name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(a.Value))), a.Value...)
	}
	return dst
}

// Content is what a body says. Its slices alias the body.
type Content struct {
	Unique, Group []byte // nil is none
	Attrs         []Attr
	Payload       []byte
}

// ParseBody reads a body of which the first overhead bytes are not payload.
func ParseBody(b []byte, overhead int) (c Content, err error) {
	if overhead < 0 || overhead > len(b) {
		return c, errBody
	}
	c.Payload = b[overhead:len(b):len(b)]
	rest := b[:overhead]
	if overhead == 0 {
		return c, nil
	}
	take := func(less uint64) (part []byte, ok bool) {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, false
		}
		rest = rest[size:]
		if n < less {
			return nil, true
		}
		if n -= less; n > uint64(len(rest)) {
			return nil, false
		}
		part, rest = rest[:n:n], rest[n:]
		return part, true
	}
	var ok bool
	if c.Unique, ok = take(1); !ok {
		return c, errBody
	}
	if c.Group, ok = take(1); !ok {
		return c, errBody
	}
	for len(rest) > 0 {
		var a Attr
		if a.Name, ok = take(0); !ok {
			return c, errBody
		}
		if a.Value, ok = take(0); !ok || len(c.Attrs) == MaxAttrs {
			return c, errBody
		}
		c.Attrs = append(c.Attrs, a)
	}
	return c, nil
}

var errBody = errors.New("the body's prefix does not fit its length")

// body is where a delivery's bytes are, and the hold on their generation. The
// zero body holds nothing.
type body struct {
	slot     state.Slot
	pos      wal.Pos
	overhead int
	held     bool
	read     bool // it is in the delivery
}

// holdBody takes a hold on the body of a job. In the critical section.
func (e *Engine) holdBody(j *state.Job) body {
	pos := wal.Pos(j.Body)
	b := body{slot: j.Slot, pos: pos, overhead: int(pos.Length - j.Size)}
	if !pos.IsZero() && pos.Length > 0 {
		e.log.Hold(pos.Generation)
		b.held = true
	}
	return b
}

// dropBody gives the hold back; twice is once.
func (e *Engine) dropBody(b *body) {
	if b.held {
		b.held = false
		e.log.Unhold(b.pos.Generation)
	}
}

// readBody reads a held body into dst, with read, which is the log's. Its group must
// be committed. The error wraps ErrDamaged where the bytes are rotten.
func (e *Engine) readBody(b *body, dst []byte, read func(wal.Pos, []byte) ([]byte, error)) (Content, error) {
	if b.pos.Length == 0 {
		return Content{Payload: dst}, nil
	}
	raw, err := read(b.pos, dst)
	if err != nil {
		if _, rotten := errors.AsType[*wal.CorruptError](err); rotten {
			return Content{}, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return Content{}, fmt.Errorf("read body at %v: %w", b.pos, err)
	}
	c, err := ParseBody(raw, b.overhead)
	if err != nil {
		return Content{}, fmt.Errorf("%w: %v: %w", ErrDamaged, b.pos, err)
	}
	return c, nil
}

// Bytes is how much Load will read, attributes and keys with it.
func (d *Delivery) Bytes() int { return int(d.body.pos.Length) }

// Load reads payload and attributes of a delivery whose LSN is durable and
// drops its hold. The payload goes into the spare capacity of d.Payload, if it
// has enough. A delivery that is loaded already stays as it is.
//
// ErrDamaged: the bytes are rotten, the job has been buried as DAMAGED, fetch
// another one. Any other error (too many open files, for one) says nothing
// about the bytes; the job has been given back to the head of its queue.
func (e *Engine) Load(d *Delivery) error {
	if d.body.read {
		return nil
	}
	c, err := e.readBody(&d.body, d.Payload[:0], e.log.Read)
	e.dropBody(&d.body)
	switch {
	case err == nil:
		d.loaded(c)
		return nil
	case errors.Is(err, ErrDamaged):
		e.buryDamaged(d.body, err)
	default:
		e.Undeliver([]Delivery{*d})
	}
	return err
}

// TryLoad is Load for those who have others to look after: false, and nothing has
// changed, where it would wait until others have read from the disk, or would make a
// record of what it found, for which the log may have no room at this moment. The
// delivery is for Load then.
func (e *Engine) TryLoad(d *Delivery) bool {
	c, err := e.readBody(&d.body, d.Payload[:0], e.log.TryRead)
	if err != nil {
		return false
	}
	e.dropBody(&d.body)
	d.loaded(c)
	return true
}

// loaded fills in what was read.
func (d *Delivery) loaded(c Content) { d.Payload, d.Attrs, d.body.read = c.Payload, c.Attrs, true }

// Forget drops the hold of a delivery whose body nobody wants. The job stays
// leased.
func (e *Engine) Forget(d *Delivery) { e.dropBody(&d.body) }

// LoadView does for a JobView what Load does for a Delivery; it also fills
// Unique and Group. A job that is leased when its body is found rotten is buried
// all the same.
func (e *Engine) LoadView(v *JobView) error {
	c, err := e.readBody(&v.body, nil, e.log.Read)
	e.dropBody(&v.body)
	if err != nil {
		if errors.Is(err, ErrDamaged) {
			e.buryDamaged(v.body, err)
		}
		return err
	}
	v.Payload, v.Attrs, v.Unique, v.Group = c.Payload, c.Attrs, c.Unique, c.Group
	if v.keyless {
		v.Unique = nil // it came back from the dead without it; the body still has the text
	}
	return nil
}

// ForgetView drops a view without reading it.
func (e *Engine) ForgetView(v *JobView) { e.dropBody(&v.body) }

// buryDamaged buries the job if it still has the body that was found rotten.
func (e *Engine) buryDamaged(b body, cause error) {
	e.damaged.Add(1)
	e.opt.Logger.Error("job body is damaged, job is buried", "slot", b.slot, "place", b.pos.String(), "err", cause)
	if !e.enter() {
		return
	}
	defer e.leave()
	if e.room(recordRoom+len(damagedReason)) != nil {
		return // it is found again at the next delivery
	}
	j, ok := e.st.Job(b.slot)
	if !ok || wal.Pos(j.Body) != b.pos || j.Place == state.Dead {
		return
	}
	e.record(&state.Record{Kind: state.KindBury, Slot: b.slot, Cause: state.CauseDamage, Text: []byte(damagedReason)}, nil)
	e.touched(j.Queue)
}

const damagedReason = "DAMAGED"
