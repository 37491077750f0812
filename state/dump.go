package state

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Dump writes the state as text, a line for each thing: the same for every state
// that behaves the same. Times are log time unless the name says wall.
func (s *State) Dump(w io.Writer) error {
	d := dumper{State: s, w: bufio.NewWriter(w)}
	d.line("now=%d offset=%d draining=%v", s.now, s.offset, s.draining)
	d.totals("", s.totals)
	ids := slices.Collect(s.Queues)
	slices.SortFunc(ids, func(a, b QueueID) int { return cmp.Compare(s.QueueKey(a), s.QueueKey(b)) })
	for _, id := range ids {
		d.queue(id)
	}
	for _, c := range s.Crons() {
		d.line("cron %q %q spec=%q zone=%q queue=%q payload=%q catchup=%d options=%q next-wall=%d last-wall=%d",
			c.Namespace, c.Name, c.Spec, c.Zone, c.Queue, c.Payload, c.Catchup, c.Options, c.Next, c.Last)
	}
	s.Metas("", func(key string, value []byte) bool {
		d.line("value %q = %q", key, value)
		return true
	})
	for _, l := range s.Lives() {
		d.line("generation %d jobs=%d bytes=%d", l.Generation, l.Jobs, l.Bytes)
	}
	return d.w.Flush()
}

type dumper struct {
	*State
	w *bufio.Writer // keeps its first error
}

func (d *dumper) line(format string, args ...any) { fmt.Fprintf(d.w, format+"\n", args...) }

func (d *dumper) totals(indent string, t Totals) {
	d.line("%stotals enqueued=%d delivered=%d acked=%d nacked=%d released=%d expired=%d buried=%d dead=%d deleted=%d lapsed=%d redriven=%d",
		indent, t.Enqueued, t.Delivered, t.Acked, t.Nacked, t.Released, t.Expired, t.Buried, t.Dead, t.Deleted, t.Lapsed, t.Redriven)
}

func (d *dumper) queue(id QueueID) {
	v := d.Queue(id)
	q := d.queues.at(uint32(id))
	fmt.Fprintf(d.w, "queue %q ready=%d delayed=%d leased=%d dead=%d bytes=%d", v.Key, v.Ready, v.Delayed, v.Leased, v.Dead, v.Bytes)
	if v.PausedUntil != 0 {
		fmt.Fprintf(d.w, " paused=%d", v.PausedUntil)
	}
	if q.idle {
		fmt.Fprintf(d.w, " idle-since=%d", q.usedAt)
	}
	if q.rateUsed != 0 {
		fmt.Fprintf(d.w, " rate=%d since=%d", q.rateUsed, q.rateFrom)
	}
	d.line("")
	d.totals("  ", v.Totals)
	if v.Settings != (Settings{}) {
		t := v.Settings
		d.line("  settings tries=%d ttl=%d backoff=%d/%d maxlen=%d maxbytes=%d maxleased=%d rate=%d/%d deadmax=%d deadfor=%d",
			t.Tries, t.TTL, t.Backoff, t.BackoffMax, t.MaxLen, t.MaxBytes, t.MaxLeased, t.RateCount, t.RatePer, t.DeadMax, t.DeadFor)
	}
	for place := Ready; place <= Dead; place++ {
		var page []Slot
		for after := Slot(0); ; after = page[len(page)-1] {
			if page = d.Page(page[:0], id, place, after, 100); len(page) == 0 {
				break
			}
			for _, slot := range page {
				d.job(slot)
			}
		}
	}
	d.claims(q)
}

func (d *dumper) job(slot Slot) {
	j, _ := d.Job(slot)
	fmt.Fprintf(d.w, "  %v %v", j.Place, j.ID)
	option := func(name string, v int64) {
		if v != 0 {
			fmt.Fprintf(d.w, " %s=%d", name, v)
		}
	}
	option("priority", int64(j.Priority))
	option("attempt", int64(j.Attempt))
	option("failures", int64(j.Failures))
	option("tries", int64(j.Tries))
	option("backoff", int64(j.Backoff))
	option("backoffmax", int64(j.BackoffMax))
	option("since", int64(j.Since))
	if j.DueWall {
		option("due-wall", int64(j.Due))
	} else {
		option("due", int64(j.Due))
	}
	if j.Place == Leased {
		fmt.Fprintf(d.w, " until=%d lease=%x", j.Deadline, j.Lease.Nonce)
	}
	option("expires", int64(j.Expires))
	if j.Reason != "" {
		fmt.Fprintf(d.w, " reason=%q", j.Reason)
	}
	if j.Unique != (Key{}) {
		fmt.Fprintf(d.w, " unique=%x", j.Unique)
	}
	if j.Group != (Key{}) {
		fmt.Fprintf(d.w, " group=%x blocked=%v", j.Group, j.Blocked)
	}
	d.line(" size=%d body=%d/%d+%d/%08x", j.Size, j.Body.Generation, j.Body.Offset, j.Body.Length, j.Body.Checksum)
}

// claims are the held keys of a queue, by key.
func (d *dumper) claims(q *queue) {
	if q.claims == 0 {
		return
	}
	var held []*claim
	each(&d.State.claims, func(_ uint32, c *claim) {
		if c.held && c.serial == q.serial {
			held = append(held, c)
		}
	})
	slices.SortFunc(held, func(a, b *claim) int { return bytes.Compare(a.key[:], b.key[:]) })
	for _, c := range held {
		d.line("  key %x held by %v until=%d alive=%v", c.key, c.id, c.until, d.alive(c))
	}
}
