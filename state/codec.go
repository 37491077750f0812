package state

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A coder walks over the fields of a record, or of an entry of the state's
// tables, in one of three ways. Writing and reading are one walk, so they
// cannot drift apart, and RECORDS.md is made by the third.
//
// Numbers are unsigned varints, texts a length and their bytes. There is one
// encoding for each value: reading refuses a varint with a superfluous byte and
// an optional field that is zero.
type coder struct {
	mode  mode
	buf   []byte // writing: what is written; reading: what is left
	bits  uint16 // options: the fields that stand
	asked uint16 // options: the fields that may stand
	at    int    // writing: where bits go
	bad   string // reading: the first field that was not right
	names []string
}

type mode uint8

const (
	writing mode = iota
	reading
	naming
)

const (
	maxUint16 = math.MaxUint16
	maxUint32 = math.MaxUint32
	maxMillis = uint64(MaxMillis)
)

// AppendHead appends the encoding of all but the body to dst. In the log the
// bytes of the body follow it.
func (r *Record) AppendHead(dst []byte) []byte {
	c := coder{mode: writing, buf: append(dst, byte(r.Kind))}
	r.walk(&c)
	return c.buf
}

// Decode reads one record and says where its body begins: len(b) for kinds
// without one. Text and Data of r alias b. Only what AppendHead writes is
// accepted, anything else gives an error that wraps ErrRecord.
func Decode(b []byte, r *Record) (bodyAt int, err error) {
	*r = Record{}
	if len(b) == 0 {
		return 0, fmt.Errorf("%w: empty", ErrRecord)
	}
	r.Kind = Kind(b[0])
	if r.Kind == 0 || r.Kind >= kindEnd {
		return 0, fmt.Errorf("%w: unknown kind %d", ErrRecord, r.Kind)
	}
	switch r.Kind {
	case KindSettings:
		r.Settings = new(Settings)
	case KindCron, KindCronFired, KindCronDelete:
		r.Cron = new(Cron)
	}
	c := coder{mode: reading, buf: b[1:]}
	r.walk(&c)
	switch {
	case c.bad != "":
		return 0, fmt.Errorf("%w: kind %d has a bad %s", ErrRecord, r.Kind, c.bad)
	case len(c.buf) > 0 && !r.Kind.HasBody():
		return 0, fmt.Errorf("%w: kind %d has %d bytes too many", ErrRecord, r.Kind, len(c.buf))
	}
	return len(b) - len(c.buf), nil
}

// walk is the layout of each kind, which is frozen.
func (r *Record) walk(c *coder) {
	slot := func() { num(c, "slot", &r.Slot, 1, maxUint32) }
	queue := func() { num(c, "queue", &r.Queue, 1, maxUint32) }
	at := func() { num(c, "at", &r.At, 0, maxMillis) }
	switch r.Kind {
	case KindEnqueue:
		slot()
		queue()
		num(c, "born", &r.Born, 0, maxMillis)
		num(c, "overhead", &r.Overhead, 0, maxUint16)
		c.begin()
		option(c, 0, "at", &r.At, maxMillis)
		flag(c, 1, "wall", &r.Wall)
		option(c, 2, "expires", &r.Expires, maxMillis)
		priorityOption(c, 3, "priority", &r.Priority)
		option(c, 4, "delay", &r.Delay, maxUint32)
		option(c, 5, "tries", &r.Tries, maxUint16)
		option(c, 6, "backoff", &r.Backoff, maxMillis)
		option(c, 7, "backoffmax", &r.BackoffMax, maxMillis)
		keyOption(c, 8, "unique", &r.Unique)
		option(c, 9, "window", &r.Window, maxMillis)
		keyOption(c, 10, "group", &r.Group)
		c.end()
	case KindLease:
		slot()
		at()
		raw(c, "nonce", r.Nonce[:])
	case KindAck, KindRelease, KindLapse, KindCarry:
		slot()
	case KindFail:
		slot()
		num(c, "place", &r.Place, uint64(Ready), uint64(Dead))
		num(c, "cause", &r.Cause, uint64(CauseNack), uint64(CauseExpire))
		c.begin()
		option(c, 0, "at", &r.At, maxMillis)
		textOption(c, 1, "text", &r.Text, MaxReasonBytes)
		c.end()
	case KindExtend:
		slot()
		at()
	case KindRange, KindWallRange, KindKeyRange:
		at()
		slot()
		num(c, "count", &r.Count, 1, MaxRange)
	case KindDelete:
		slot()
		num(c, "cause", &r.Cause, uint64(CauseDelete), uint64(CauseDeadFor))
	case KindBury:
		slot()
		num(c, "cause", &r.Cause, uint64(CauseBury), uint64(CauseDamage))
		text(c, "text", &r.Text, 0, MaxReasonBytes)
	case KindRedrive:
		slot()
		queue()
		c.begin()
		option(c, 0, "expires", &r.Expires, maxMillis)
		option(c, 1, "tries", &r.Tries, maxUint16)
		flag(c, 2, "dropkey", &r.DropKey)
		c.end()
	case KindRun:
		slot()
		c.begin()
		flag(c, 0, "dropkey", &r.DropKey)
		c.end()
	case KindDelay:
		slot()
		at()
		c.begin()
		flag(c, 0, "dropkey", &r.DropKey)
		flag(c, 1, "wall", &r.Wall)
		c.end()
	case KindPriority:
		slot()
		c.begin()
		priorityOption(c, 0, "priority", &r.Priority)
		c.end()
	case KindPayload:
		slot()
		num(c, "overhead", &r.Overhead, 0, maxUint16)
	case KindMove:
		slot()
		queue()
	case KindQueue:
		queue()
		text(c, "text", &r.Text, 5, MaxQueueKeyBytes)
	case KindTouch, KindForget, KindResume:
		queue()
	case KindSettings:
		queue()
		r.Settings.walk(c)
	case KindPause:
		queue()
		at()
	case KindCron:
		r.Cron.walk(c)
	case KindCronFired:
		str(c, "cron.namespace", &r.Cron.Namespace, MaxTextBytes)
		str(c, "cron.name", &r.Cron.Name, MaxTextBytes)
		num(c, "cron.next", &r.Cron.Next, 0, maxMillis)
		num(c, "cron.last", &r.Cron.Last, 0, maxMillis)
	case KindCronDelete:
		str(c, "cron.namespace", &r.Cron.Namespace, MaxTextBytes)
		str(c, "cron.name", &r.Cron.Name, MaxTextBytes)
	case KindMeta:
		text(c, "text", &r.Text, 1, MaxTextBytes)
		text(c, "data", &r.Data, 0, MaxDataBytes)
	case KindMetaDelete:
		text(c, "text", &r.Text, 1, MaxTextBytes)
	case KindDrain:
		c.begin()
		flag(c, 0, "on", &r.On)
		c.end()
	case KindTime:
		at()
	case KindClock:
		signed(c, "at", &r.At)
	case KindSecret:
		text(c, "text", &r.Text, len(Key{}), len(Key{}))
	default:
		panic(fmt.Sprintf("record of unknown kind %d", r.Kind))
	}
}

func (t *Settings) walk(c *coder) {
	num(c, "settings.tries", &t.Tries, 0, maxUint16)
	num(c, "settings.ttl", &t.TTL, 0, maxMillis)
	num(c, "settings.backoff", &t.Backoff, 0, maxMillis)
	num(c, "settings.backoffmax", &t.BackoffMax, 0, maxMillis)
	num(c, "settings.maxlen", &t.MaxLen, 0, math.MaxUint64)
	num(c, "settings.maxbytes", &t.MaxBytes, 0, math.MaxUint64)
	num(c, "settings.maxleased", &t.MaxLeased, 0, maxUint32)
	num(c, "settings.ratecount", &t.RateCount, 0, maxUint32)
	num(c, "settings.rateper", &t.RatePer, 0, maxMillis)
	num(c, "settings.deadmax", &t.DeadMax, 0, math.MaxUint64)
	num(c, "settings.deadfor", &t.DeadFor, 0, maxMillis)
}

func (t *Cron) walk(c *coder) {
	str(c, "cron.namespace", &t.Namespace, MaxTextBytes)
	str(c, "cron.name", &t.Name, MaxTextBytes)
	str(c, "cron.spec", &t.Spec, MaxTextBytes)
	str(c, "cron.zone", &t.Zone, MaxTextBytes)
	str(c, "cron.queue", &t.Queue, MaxQueueKeyBytes)
	num(c, "cron.catchup", &t.Catchup, 0, uint64(CatchupAll))
	num(c, "cron.next", &t.Next, 0, maxMillis)
	num(c, "cron.last", &t.Last, 0, maxMillis)
	copied(c, "cron.payload", &t.Payload, MaxDataBytes)
	copied(c, "cron.options", &t.Options, MaxTextBytes)
}

func (c *coder) fail(name string) {
	if c.bad == "" {
		c.bad = name
	}
	c.buf = nil
}

// uvarint reads the shortest encoding of a number, and no other.
func (c *coder) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(c.buf)
	if n <= 0 || n > 1 && c.buf[n-1] == 0 {
		return 0, false
	}
	c.buf = c.buf[n:]
	return v, true
}

// num is a number between least and most.
func num[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64](c *coder, name string, v *T, least, most uint64) {
	switch c.mode {
	case writing:
		c.buf = binary.AppendUvarint(c.buf, uint64(*v))
	case reading:
		n, ok := c.uvarint()
		if !ok || n < least || n > most {
			c.fail(name)
			return
		}
		*v = T(n)
	case naming:
		c.names = append(c.names, name)
	}
}

// signed is a span of at most MaxMillis either way.
func signed(c *coder, name string, v *Millis) {
	n := uint64(*v)<<1 ^ uint64(*v>>63)
	num(c, name, &n, 0, 2*maxMillis)
	*v = Millis(n>>1) ^ -Millis(n&1)
}

// raw is bytes of a fixed number.
func raw(c *coder, name string, b []byte) {
	switch c.mode {
	case writing:
		c.buf = append(c.buf, b...)
	case reading:
		if len(c.buf) < len(b) {
			c.fail(name)
			return
		}
		copy(b, c.buf)
		c.buf = c.buf[len(b):]
	case naming:
		c.names = append(c.names, name)
	}
}

// text is bytes with their number, least to most. Reading aliases.
func text(c *coder, name string, b *[]byte, least, most int) {
	n := uint64(len(*b))
	num(c, name, &n, uint64(least), uint64(most))
	switch c.mode {
	case writing:
		c.buf = append(c.buf, *b...)
	case reading:
		if n > uint64(len(c.buf)) {
			c.fail(name)
			return
		}
		*b = c.buf[:n:n]
		c.buf = c.buf[n:]
	}
}

// copied is a text that outlives the bytes it is read from; empty is nil.
func copied(c *coder, name string, b *[]byte, most int) {
	text(c, name, b, 0, most)
	if c.mode == reading {
		*b = append([]byte(nil), *b...)
	}
}

func str(c *coder, name string, s *string, most int) {
	b := []byte(*s)
	text(c, name, &b, 0, most)
	if c.mode == reading {
		*s = string(b)
	}
}

// begin opens the optional fields: two bytes, little endian, with a bit for each
// that stands, and then those that stand.
func (c *coder) begin() {
	c.bits, c.asked = 0, 0
	switch c.mode {
	case writing:
		c.at = len(c.buf)
		c.buf = append(c.buf, 0, 0)
	case reading:
		var b [2]byte
		raw(c, "options", b[:])
		c.bits = binary.LittleEndian.Uint16(b[:])
	}
}

// stands says whether the field of bit is to be walked over.
func (c *coder) stands(bit int, set bool) bool {
	c.asked |= 1 << bit
	switch c.mode {
	case writing:
		if set {
			c.bits |= 1 << bit
		}
		return set
	case reading:
		return c.bits&(1<<bit) != 0
	}
	return true
}

// end closes them.
func (c *coder) end() {
	switch c.mode {
	case writing:
		binary.LittleEndian.PutUint16(c.buf[c.at:], c.bits)
	case reading:
		if c.bits&^c.asked != 0 {
			c.fail("options")
		}
	}
}

func option[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64](c *coder, bit int, name string, v *T, most uint64) {
	if c.stands(bit, *v != 0) {
		num(c, name, v, 1, most)
	}
}

// flag is all in its bit.
func flag(c *coder, bit int, name string, v *bool) {
	if c.stands(bit, *v) {
		if c.mode == naming {
			c.names = append(c.names, name)
			return
		}
		*v = true
	}
}

// priorityOption is a priority other than 0.
func priorityOption(c *coder, bit int, name string, v *int8) {
	n := uint8(*v)
	option(c, bit, name, &n, math.MaxUint8)
	*v = int8(n)
}

func keyOption(c *coder, bit int, name string, k *Key) {
	if c.stands(bit, *k != Key{}) {
		raw(c, name, k[:])
		if c.mode == reading && *k == (Key{}) {
			c.fail(name)
		}
	}
}

func textOption(c *coder, bit int, name string, b *[]byte, most int) {
	if c.stands(bit, len(*b) > 0) {
		text(c, name, b, 1, most)
	}
}
