package admin

import (
	"pawl/engine"
	"pawl/state"
)

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
