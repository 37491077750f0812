package admin

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"pawl/engine"
	"pawl/state"
)

// maxPage bounds a page.
const maxPage = 100

// page is which part of n things is asked for: how many to leave out, and how many
// to show at most.
func (c *apiCall) page(n int) (from, count int) {
	from = max(0, int(min(c.integer("from", 0), int64(n))))
	return from, max(1, int(min(c.integer("count", maxPage), maxPage)))
}

// pageOf is the part of list that is asked for.
func pageOf[T any](c *apiCall, list []T) []T {
	from, count := c.page(len(list))
	return list[from:min(from+count, len(list))]
}

// match is the parameter that matches takes.
func (c *apiCall) match() (pattern string, err error) {
	pattern = c.query.Get("match")
	if len(pattern) > 1024 {
		err = invalid("match is over 1,024 bytes")
	}
	return pattern, err
}

type queuesReply struct {
	At     int64       `json:"at" doc:"Unix ms of the copy that this page was read from, which all share: a second old at most or, with very many queues, thirty times as long as it takes to make, up to 15 seconds"`
	Total  int         `json:"total" doc:"queues that match"`
	Queues []queueJSON `json:"queues"`
	Pools  []string    `json:"pools" doc:"all pools"`
}

// listQueues pages through the census; it never waits for the engine.
func (c *apiCall) listQueues() (any, error) {
	match, err := c.match()
	if err != nil {
		return nil, err
	}
	by := c.query.Get("sort")
	order, ok := queueOrders[by]
	if !ok {
		return nil, invalid("sort %.32q is none of name, ready, dead, leased, delayed, age", by)
	}
	census := c.engine.Census()
	from, count := c.page(len(census.Queues))
	first, total := firstQueues(census.Queues, c.query.Get("pool"), match, order, from+count)
	reply := queuesReply{At: int64(census.At), Total: total, Queues: []queueJSON{}, Pools: c.s.options.Lmstfy.Tokens().Pools()}
	for _, v := range first[min(from, len(first)):] {
		q := queueOf(v)
		q.ReadyHistory, q.RateHistory = c.s.history.queue(v.Key)
		reply.Queues = append(reply.Queues, q)
	}
	return reply, nil
}

// queueOrders compare two queues; the larger comes first. By name, which is nil, a
// census is in order already.
var queueOrders = map[string]func(a, b *engine.QueueView) int{
	"": nil, "name": nil,
	"ready":   func(a, b *engine.QueueView) int { return cmp.Compare(a.Ready, b.Ready) },
	"dead":    func(a, b *engine.QueueView) int { return cmp.Compare(a.Dead, b.Dead) },
	"leased":  func(a, b *engine.QueueView) int { return cmp.Compare(a.Leased, b.Leased) },
	"delayed": func(a, b *engine.QueueView) int { return cmp.Compare(a.Delayed, b.Delayed) },
	"age":     func(a, b *engine.QueueView) int { return cmp.Compare(a.OldestReadyMs, b.OldestReadyMs) },
}

// firstQueues are the first n, in order, of the queues that match, and how many
// match. It sorts not many more than n: of the others it is enough to know that n
// come before them. Equal ones stay in the order of the census.
func firstQueues(queues []engine.QueueView, pool, match string, order func(a, b *engine.QueueView) int, n int) (first []*engine.QueueView, total int) {
	var last *engine.QueueView // what is not before it is not among the first
	keep := func() {
		if order != nil {
			slices.SortStableFunc(first, func(a, b *engine.QueueView) int { return order(b, a) })
		}
		if len(first) >= n {
			first = first[:n]
			last = first[n-1]
		}
	}
	for i := range queues {
		v := &queues[i]
		if pool != "" {
			if p, _, _ := state.SplitQueueKey(v.Key); p != pool {
				continue
			}
		}
		if match != "" && !matches(match, state.DisplayName(v.Key)) {
			continue
		}
		total++
		if last != nil && (order == nil || order(v, last) <= 0) {
			continue
		}
		if first = append(first, v); len(first) == 2*n {
			keep()
		}
	}
	keep()
	return first, total
}

// matches: part of the name, or a glob if it has a star or a question mark.
func matches(pattern, name string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return strings.Contains(strings.ToLower(name), strings.ToLower(pattern))
	}
	// The slash is no border here: a star runs over it.
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}
