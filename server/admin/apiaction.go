package admin

import (
	"strconv"
	"strings"

	"pawl/engine"
	"pawl/state"
)

// maxIDs bounds the jobs that one request names.
const maxIDs = 1000

// idsBody names jobs.
type idsBody struct {
	IDs    []string `json:"ids" doc:"at most 1,000"`
	DryRun bool     `json:"dry_run"`
}

func parseIDs(texts []string) ([]state.JobID, error) {
	if len(texts) == 0 || len(texts) > maxIDs {
		return nil, invalid("ids has %d jobs, want 1 to %d", len(texts), maxIDs)
	}
	ids := make([]state.JobID, len(texts))
	for i, text := range texts {
		var err error
		if ids[i], err = parseID(text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// existing counts the jobs that there are, for a dry run.
func (c *apiCall) existing(ids []state.JobID) (int64, error) {
	gets := make([]engine.Command, len(ids))
	for i := range ids {
		gets[i] = &engine.JobGet{ID: ids[i]}
	}
	if err := c.do(gets...); err != nil {
		return 0, err
	}
	var n int64
	for _, g := range gets {
		if get := g.(*engine.JobGet); get.Found {
			n++
			c.engine.ForgetView(&get.Job)
		}
	}
	return n, nil
}

// actedJobs is the reply of actions on jobs.
type actedJobs struct {
	acted
	Refused []refusedJob `json:"refused" doc:"jobs that could not be changed, and why"`
}

type refusedJob struct {
	ID      string `json:"id"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// count counts a job that was changed, or names one that was refused.
func (r *actedJobs) count(id string, err error) {
	if err == nil {
		r.Affected++
		return
	}
	_, code, message := describe(err)
	r.Refused = append(r.Refused, refusedJob{id, code, message})
}

func (c *apiCall) deleteJobs() (any, error) {
	var b idsBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	ids, err := parseIDs(b.IDs)
	if err != nil {
		return nil, err
	}
	words := append([]string{"JOB", "DELETE"}, b.IDs...)
	reply := actedJobs{acted{commandLine(words...), b.DryRun, 0}, []refusedJob{}}
	if b.DryRun {
		reply.Affected, err = c.existing(ids)
		return reply, err
	}
	del := &engine.JobDelete{IDs: ids}
	if err := c.do(del); err != nil {
		return nil, err
	}
	reply.Affected = int64(del.Deleted)
	c.logged(reply.Command, reply.Affected)
	return reply, nil
}

// jobAction is a change of jobs as they are: one JobEdit for each.
type jobAction struct {
	words []string // of the command JOB that does the same, without the ID
	edit  engine.JobEdit
}

func runAction() jobAction {
	return jobAction{[]string{"RUN"}, engine.JobEdit{Kind: engine.EditRun}}
}

func delayAction(ms int64) (jobAction, error) {
	if ms < 0 {
		return jobAction{}, invalid("delay_ms is negative")
	}
	return jobAction{[]string{"DELAY", strconv.FormatInt(ms, 10)}, engine.JobEdit{Kind: engine.EditDelay, Delay: state.Millis(ms)}}, nil
}

func priorityAction(p int8) jobAction {
	return jobAction{[]string{"PRIORITY", strconv.Itoa(int(p))}, engine.JobEdit{Kind: engine.EditPriority, Priority: p}}
}

func moveAction(key string) (jobAction, error) {
	to, err := parseKey(key)
	if err != nil {
		return jobAction{}, err
	}
	return jobAction{[]string{"MOVE", state.DisplayName(key)}, engine.JobEdit{Kind: engine.EditMove, Queue: to}}, nil
}

func payloadAction(payload []byte) jobAction {
	return jobAction{[]string{"PAYLOAD", word(payload)}, engine.JobEdit{Kind: engine.EditPayload, Payload: payload}}
}

// command is what does the same to one job.
func (a *jobAction) command(id string) string {
	return commandLine(append([]string{"JOB", a.words[0], id}, a.words[1:]...)...)
}

// apply does a to each of ids by itself: one that is refused does not stop the
// others.
func (c *apiCall) apply(a *jobAction, ids []state.JobID) (done []engine.Command, err error) {
	done = make([]engine.Command, len(ids))
	for i, id := range ids {
		e := a.edit
		e.ID = id
		done[i] = &e
	}
	return done, c.engine.Wait(c.engine.Submit(done...))
}

// edit does a to the jobs that a request names.
func (c *apiCall) edit(texts []string, dryRun bool, a jobAction) (any, error) {
	ids, err := parseIDs(texts)
	if err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(texts))
	for _, text := range texts {
		lines = append(lines, a.command(text))
	}
	reply := actedJobs{acted{strings.Join(lines, "\n"), dryRun, 0}, []refusedJob{}}
	if dryRun {
		reply.Affected, err = c.existing(ids)
		return reply, err
	}
	done, err := c.apply(&a, ids)
	if err != nil {
		return nil, err
	}
	for i, e := range done {
		reply.count(texts[i], e.Err())
	}
	c.logged(lines[0], reply.Affected)
	return reply, nil
}

func (c *apiCall) runJobs() (any, error) {
	var b idsBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.edit(b.IDs, b.DryRun, runAction())
}

type delayBody struct {
	IDs     []string `json:"ids"`
	DelayMs int64    `json:"delay_ms" doc:"due so long from now"`
	DryRun  bool     `json:"dry_run"`
}

func (c *apiCall) delayJobs() (any, error) {
	var b delayBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	a, err := delayAction(b.DelayMs)
	if err != nil {
		return nil, err
	}
	return c.edit(b.IDs, b.DryRun, a)
}

type priorityBody struct {
	IDs      []string `json:"ids"`
	Priority int8     `json:"priority" doc:"-128 to 127, larger first"`
	DryRun   bool     `json:"dry_run"`
}

func (c *apiCall) prioritizeJobs() (any, error) {
	var b priorityBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.edit(b.IDs, b.DryRun, priorityAction(b.Priority))
}

type moveBody struct {
	IDs    []string `json:"ids"`
	To     string   `json:"to" doc:"key of the queue, pool/namespace/name"`
	DryRun bool     `json:"dry_run"`
}

func (c *apiCall) moveJobs() (any, error) {
	var b moveBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	a, err := moveAction(b.To)
	if err != nil {
		return nil, err
	}
	return c.edit(b.IDs, b.DryRun, a)
}

type payloadBody struct {
	ID      string  `json:"id"`
	Text    *string `json:"text" doc:"the new payload as text; or"`
	Payload []byte  `json:"payload" doc:"as base 64"`
	DryRun  bool    `json:"dry_run"`
}

func (c *apiCall) editJob() (any, error) {
	var b payloadBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	payload := b.Payload
	if b.Text != nil {
		payload = []byte(*b.Text)
	}
	return c.edit([]string{b.ID}, b.DryRun, payloadAction(payload))
}
