package admin

import (
	"context"
	"errors"
	"slices"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/state"
)

// An import takes over the jobs of another system in batches. Every job has a
// key of the importer's choice, which is a unique key here for importWindow:
// a batch that is sent again adds nothing.
const (
	importWindow   = state.Millis(90 * 24 * 3600 * 1000)
	maxImportBatch = 1000
	// stagingPrefix begins the name of the queue where dead jobs are made before
	// they move to the dead letters of their own queue.
	stagingPrefix = "~import/"
	stagingLease  = state.Millis(60_000)
)

type importBody struct {
	Jobs   []importJob   `json:"jobs" doc:"at most 1,000, in their order"`
	Tokens []importToken `json:"tokens"`
	DryRun bool          `json:"dry_run" doc:"checks only; duplicates are not known then"`
}

type importJob struct {
	Queue   []byte     `json:"queue" doc:"key of the queue, pool/namespace/name, base 64"`
	Key     string     `json:"key" doc:"the job's name in the other system; a second one of the same queue is left out"`
	Payload []byte     `json:"payload" doc:"base 64"`
	Dead    bool       `json:"dead"`
	Reason  string     `json:"reason" doc:"of a dead job"`
	DelayMs int64      `json:"delay_ms"`
	TTLMs   int64      `json:"ttl_ms" doc:"0 is none"`
	Tries   uint16     `json:"tries" doc:"failures until dead; 0 is no limit"`
	Attrs   []attrJSON `json:"attrs"`
}

type importToken struct {
	Namespace   string        `json:"namespace"`
	Token       string        `json:"token" doc:"as clients send it"`
	Description string        `json:"description" doc:"empty: only the limit is set"`
	Limit       *lmstfy.Limit `json:"limit" doc:"null is none"`
}

type importReply struct {
	Added      int            `json:"added"`
	Duplicates int            `json:"duplicates" doc:"jobs and tokens that were there"`
	Tokens     int            `json:"tokens" doc:"made"`
	Limits     int            `json:"limits" doc:"set"`
	Refused    []refusedEntry `json:"refused"`
}

type refusedEntry struct {
	Key     string `json:"key"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *importReply) refuse(key string, err error) {
	_, code, message := describe(err)
	r.Refused = append(r.Refused, refusedEntry{key, code, message})
}

// importBatch adds one batch. A job that is refused does not stop the others; an
// error of the storage does.
func (c *apiCall) importBatch() (any, error) {
	var b importBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if len(b.Jobs) > maxImportBatch || len(b.Tokens) > maxImportBatch {
		return nil, invalid("a batch has at most %d jobs and %d tokens", maxImportBatch, maxImportBatch)
	}
	reply := importReply{Refused: []refusedEntry{}}
	var adds []*engine.Enqueue
	var keys []string
	dead := map[string][]importJob{} // by queue key
	var deadQueues []string
	for _, j := range b.Jobs {
		if _, err := parseKey(string(j.Queue)); err != nil {
			reply.refuse(j.Key, err)
			continue
		}
		if j.Key == "" || len(j.Key) > 255 {
			reply.refuse(j.Key, invalid("key has %d bytes, want 1 to 255", len(j.Key)))
			continue
		}
		if j.DelayMs < 0 || j.TTLMs < 0 {
			reply.refuse(j.Key, invalid("a time is negative"))
			continue
		}
		switch {
		case b.DryRun:
			reply.Added++
		case j.Dead:
			if dead[string(j.Queue)] == nil {
				deadQueues = append(deadQueues, string(j.Queue))
			}
			dead[string(j.Queue)] = append(dead[string(j.Queue)], j)
		default:
			adds = append(adds, j.enqueue(j.Queue))
			keys = append(keys, j.Key)
		}
	}
	if err := c.importLive(adds, keys, &reply); err != nil {
		return nil, err
	}
	for _, queue := range deadQueues {
		if err := c.importDead(c.r.Context(), queue, dead[queue], &reply); err != nil {
			return nil, err
		}
	}
	for _, t := range b.Tokens {
		if err := c.importToken(t, b.DryRun, &reply); err != nil {
			return nil, err
		}
	}
	if !b.DryRun {
		c.logged("import", int64(reply.Added+reply.Tokens+reply.Limits))
	}
	return reply, nil
}

// enqueue is the command that adds the job to a queue.
func (j *importJob) enqueue(queue []byte) *engine.Enqueue {
	ttl := state.Millis(j.TTLMs)
	if ttl > 0 {
		ttl = max(ttl, state.Millis(j.DelayMs)+1)
	}
	cmd := &engine.Enqueue{
		Queue: queue, Payload: j.Payload, Delay: state.Millis(j.DelayMs),
		TTL: engine.Some(ttl), Tries: engine.Some(j.Tries),
		Unique: []byte(j.Key), For: importWindow,
	}
	for _, a := range j.Attrs {
		cmd.Attrs = append(cmd.Attrs, engine.Attr{Name: []byte(a.Name), Value: []byte(a.Value)})
	}
	return cmd
}

func (c *apiCall) importLive(adds []*engine.Enqueue, keys []string, reply *importReply) error {
	if len(adds) == 0 {
		return nil
	}
	cmds := make([]engine.Command, len(adds))
	for i, add := range adds {
		cmds[i] = add
	}
	if err := c.engine.Wait(c.engine.Submit(cmds...)); err != nil {
		return err
	}
	for i, add := range adds {
		switch err := add.Err(); {
		case err != nil:
			reply.refuse(keys[i], err)
		case add.Duplicate:
			reply.Duplicates++
		default:
			reply.Added++
		}
	}
	return nil
}

// importDead makes dead jobs of one queue. There is no command that enqueues a
// dead job, so each goes through a queue of its own: enqueued, leased, buried,
// and moved. Whatever an import that broke off has left there goes the same
// way with the next one.
func (c *apiCall) importDead(ctx context.Context, queue string, jobs []importJob, reply *importReply) error {
	pool, namespace, name := state.SplitQueueKey(queue)
	staging := []byte(pool + "/" + namespace + "/" + stagingPrefix + name)
	if len(stagingPrefix)+len(name) > state.MaxNameBytes {
		for _, j := range jobs {
			reply.refuse(j.Key, engine.ErrNameTooLong)
		}
		return nil
	}
	reasons := map[state.JobID]string{}
	adds := make([]engine.Command, len(jobs))
	for i := range jobs {
		jobs[i].DelayMs, jobs[i].TTLMs = 0, 0
		adds[i] = jobs[i].enqueue(staging)
	}
	if err := c.engine.Wait(c.engine.Submit(adds...)); err != nil {
		return err
	}
	for i, cmd := range adds {
		add := cmd.(*engine.Enqueue)
		if err := add.Err(); err != nil {
			reply.refuse(jobs[i].Key, err)
			continue
		}
		reasons[add.ID] = jobs[i].Reason
	}
	if err := c.buryAll(ctx, staging, reasons); err != nil {
		return err
	}
	if err := c.moveDead(ctx, staging, []byte(queue), reply); err != nil {
		return err
	}
	// An empty queue without settings goes by itself, if not now.
	if err := c.do(&engine.QueueDelete{Queue: staging}); err != nil && !errors.Is(err, engine.ErrQueueLeased) {
		return err
	}
	return nil
}

// buryAll sends what is ready in a queue to its dead letters.
func (c *apiCall) buryAll(ctx context.Context, queue []byte, reasons map[state.JobID]string) error {
	for ctx.Err() == nil {
		fetch := &engine.Fetch{Queues: [][]byte{queue}, LeaseMs: stagingLease, Count: maxPage}
		if err := c.do(fetch); err != nil || len(fetch.Jobs) == 0 {
			return err
		}
		buries := make([]engine.Command, len(fetch.Jobs))
		for i := range fetch.Jobs {
			d := &fetch.Jobs[i]
			buries[i] = &engine.Bury{Lease: d.Lease, Reason: []byte(reasons[d.ID])}
			c.engine.Forget(d)
		}
		if err := c.do(buries...); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// moveDead moves the dead jobs of one queue to another. One whose key is taken
// there was imported before: it is removed.
func (c *apiCall) moveDead(ctx context.Context, from, to []byte, reply *importReply) error {
	for ctx.Err() == nil {
		peek := &engine.QueuePeek{Queue: from, Place: state.Dead, Count: maxPage}
		if err := c.do(peek); err != nil || len(peek.Jobs) == 0 {
			return err
		}
		moves := make([]engine.Command, len(peek.Jobs))
		for i := range peek.Jobs {
			moves[i] = &engine.JobEdit{ID: peek.Jobs[i].ID, Kind: engine.EditMove, Queue: to}
			c.engine.ForgetView(&peek.Jobs[i])
		}
		if err := c.engine.Wait(c.engine.Submit(moves...)); err != nil {
			return err
		}
		var twice []state.JobID
		for i, m := range moves {
			switch err := m.Err(); {
			case err == nil:
				reply.Added++
			case errors.Is(err, engine.ErrUniqueTaken):
				reply.Duplicates++
				twice = append(twice, peek.Jobs[i].ID)
			default:
				return err
			}
		}
		if len(twice) > 0 {
			if err := c.do(&engine.JobDelete{IDs: twice, Queue: from}); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (c *apiCall) importToken(t importToken, dryRun bool, reply *importReply) error {
	tokens := c.s.options.Lmstfy.Tokens()
	pool, _ := lmstfy.SplitToken(t.Token)
	if !slices.Contains(tokens.Pools(), pool) {
		reply.refuse(t.Namespace+"/"+t.Token, lmstfy.ErrNoPool)
		return nil
	}
	if dryRun {
		reply.Tokens++
		return nil
	}
	if t.Description != "" {
		switch _, err := tokens.Create(pool, t.Namespace, t.Token, t.Description); {
		case err == nil:
			reply.Tokens++
		case errors.Is(err, lmstfy.ErrTokenExists):
			reply.Duplicates++
		default:
			if status, _, _ := describe(err); status >= 500 {
				return err
			}
			reply.refuse(t.Namespace+"/"+t.Token, err)
			return nil
		}
	}
	if t.Limit == nil {
		return nil
	}
	if err := tokens.SetLimit(t.Namespace, t.Token, *t.Limit, true); err == nil {
		reply.Limits++
	} else if errors.Is(err, lmstfy.ErrLimiterExists) {
		reply.Duplicates++
	} else {
		reply.refuse(t.Namespace+"/"+t.Token, err)
	}
	return nil
}
