package state

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// cron is one entry of the table of crons; free entries have no name.
type cron struct {
	Cron
	next uint32
}

func (c *cron) link() *uint32 { return &c.next }

type cronName struct{ namespace, name string }

func (c *cron) key() cronName { return cronName{c.Namespace, c.Name} }

func (s *State) applyCron(r *Record) string {
	c := r.Cron
	switch {
	case c == nil || c.Namespace == "" || c.Name == "":
		return "cron without a name"
	case !inTime(c.Next, c.Last):
		return badTime
	case c.Catchup > CatchupAll:
		return "bad catchup"
	}
	s.dropCron(cronName{c.Namespace, c.Name})
	i, entry := s.crons.alloc()
	entry.Cron = *c
	entry.Payload, entry.Options = bytes.Clone(c.Payload), bytes.Clone(c.Options)
	s.cronOf[entry.key()] = i
	s.schedule(i, entry, c.Next)
	return ""
}

func (s *State) applyCronFired(r *Record) string {
	c := r.Cron
	switch {
	case c == nil || s.cronOf[cronName{c.Namespace, c.Name}] == 0:
		return "no such cron"
	case !inTime(c.Next, c.Last):
		return badTime
	}
	i := s.cronOf[cronName{c.Namespace, c.Name}]
	entry := s.crons.edit(i)
	s.unschedule(i, entry)
	entry.Last = c.Last
	s.schedule(i, entry, c.Next)
	return ""
}

func (s *State) applyCronDelete(r *Record) string {
	c := r.Cron
	if c == nil || !s.dropCron(cronName{c.Namespace, c.Name}) {
		return "no such cron"
	}
	return ""
}

func (s *State) dropCron(name cronName) bool {
	i, ok := s.cronOf[name]
	if ok {
		s.unschedule(i, s.crons.at(i))
		delete(s.cronOf, name)
		s.crons.release(i)
	}
	return ok
}

func (s *State) schedule(i uint32, c *cron, next Millis) {
	if c.Next = next; next != 0 {
		s.fires.add(next, i)
	}
}

func (s *State) unschedule(i uint32, c *cron) {
	if c.Next != 0 {
		s.fires.remove(c.Next, i)
	}
}

// Cron finds a recurring enqueue. It belongs to the state, and holds until the
// next Apply.
func (s *State) Cron(namespace, name string) (*Cron, bool) {
	i, ok := s.cronOf[cronName{namespace, name}]
	if !ok {
		return nil, false
	}
	return &s.crons.at(i).Cron, true
}

// CronsFrom calls visit for the crons among the n numbers from first on, free ones
// included, and gives the number to go on with, 0 at the end. They belong to the
// state, and hold until the next Apply; what their slices hold is never changed.
func (s *State) CronsFrom(first uint32, n int, visit func(c *Cron)) (next uint32) {
	i, end, next := piece(first, n, s.crons.last)
	for ; i < end; i++ {
		if c := s.crons.at(i); c.Name != "" {
			visit(&c.Cron)
		}
	}
	return next
}

// Crons are all, sorted by namespace and name. They belong to the state, and
// hold until the next Apply.
func (s *State) Crons() []*Cron {
	all := make([]*Cron, 0, len(s.cronOf))
	for _, i := range s.cronOf {
		all = append(all, &s.crons.at(i).Cron)
	}
	slices.SortFunc(all, func(a, b *Cron) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}
