package admin

import (
	"pawl/engine"
	"pawl/state"
)

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

// action is what b asks for. That of delete has its words only.
func (b *bulkBody) action() (jobAction, error) {
	switch b.Action {
	case "run":
		return runAction(), nil
	case "delay":
		return delayAction(b.DelayMs)
	case "priority":
		return priorityAction(b.Priority), nil
	case "move":
		return moveAction(b.To)
	case "delete":
		return jobAction{words: []string{"DELETE"}}, nil
	}
	return jobAction{}, invalid("action %.32q is none of run, delete, move, delay, priority", b.Action)
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
	place, err := parseState(b.State)
	if err != nil {
		return nil, err
	}
	a, err := b.action()
	if err != nil {
		return nil, err
	}
	var ids []state.JobID
	if _, err := c.scan(c.r.Context(), key, place, func(v *engine.JobView) {
		if b.Reason == nil || *b.Reason == shown(v.Reason) {
			ids = append(ids, v.ID)
		}
	}); err != nil {
		return nil, err
	}
	reply := actedJobs{acted{a.command("<each ID>"), b.DryRun, int64(len(ids))}, []refusedJob{}}
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
		done, err := c.apply(&a, some)
		if err != nil {
			return nil, err
		}
		for i, e := range done {
			reply.count(some[i].String(), e.Err())
		}
		reply.Refused = reply.Refused[:min(len(reply.Refused), maxPage)]
	}
	c.logged(reply.Command, reply.Affected)
	return reply, nil
}
