package admin

import (
	"net/url"
	"strings"

	"pawl/engine"
	"pawl/state"
)

// cronJSON is a recurring enqueue in replies.
type cronJSON struct {
	Pool      string `json:"pool"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Spec      string `json:"spec"`
	Zone      string `json:"zone" doc:"IANA name; empty is UTC"`
	QueueRef  string `json:"queue_ref"`
	Queue     string `json:"queue"`
	Payload   []byte `json:"payload" doc:"base 64"`
	Catchup   string `json:"catchup" doc:"one, none or all: what happens with slots missed while down"`
	NextAt    int64  `json:"next_at" doc:"Unix ms; 0 is never"`
	LastAt    int64  `json:"last_at" doc:"Unix ms; 0 is none"`

	Options jobOptions `json:"options" doc:"of the jobs that it makes"`
}

var catchups = [...]string{state.CatchupOne: "one", state.CatchupNone: "none", state.CatchupAll: "all"}

type cronsReply struct {
	Total int        `json:"total" doc:"crons that match"`
	Crons []cronJSON `json:"crons"`
	Pools []string   `json:"pools" doc:"all pools"`
}

// listCrons pages through the census; it never waits for the engine.
func (c *apiCall) listCrons() (any, error) {
	match, err := c.match()
	if err != nil {
		return nil, err
	}
	reply := cronsReply{Crons: []cronJSON{}, Pools: c.s.options.Lmstfy.Tokens().Pools()}
	pool, crons := c.query.Get("pool"), c.engine.Census().Crons
	from, count := c.page(len(crons))
	for _, cron := range crons {
		p, namespace, _ := strings.Cut(cron.Namespace, "/")
		if pool != "" && p != pool || match != "" && !matches(match, cron.Name) && !matches(match, state.DisplayName(cron.Queue)) {
			continue
		}
		if reply.Total++; reply.Total <= from || len(reply.Crons) == count {
			continue
		}
		payload := cron.Payload
		if payload == nil {
			payload = []byte{}
		}
		var job engine.Enqueue
		if err := engine.DecodeOptions(cron.Options, &job); err != nil {
			return nil, err
		}
		reply.Crons = append(reply.Crons, cronJSON{
			Pool: shown(p), Namespace: shown(namespace), Name: shown(cron.Name), Spec: cron.Spec, Zone: cron.Zone,
			QueueRef: url.QueryEscape(cron.Queue), Queue: shown(state.DisplayName(cron.Queue)),
			Payload: payload, Catchup: catchups[cron.Catchup], NextAt: int64(cron.Next), LastAt: int64(cron.Last),
			Options: optionsOf(&job),
		})
	}
	return reply, nil
}

type cronBody struct {
	Name    string  `json:"name"`
	Spec    string  `json:"spec" doc:"five fields, or six with seconds"`
	Zone    string  `json:"zone"`
	Text    *string `json:"text" doc:"the payload as text; or"`
	Payload []byte  `json:"payload" doc:"as base 64"`
	Catchup string  `json:"catchup" doc:"one (the default), none or all"`
	jobOptions
	DryRun bool `json:"dry_run" doc:"only checks the spec"`
}

// setCron makes or replaces one. It stands in the namespace of its queue.
func (c *apiCall) setCron() (any, error) {
	key, err := c.queueParam()
	if err != nil {
		return nil, err
	}
	var b cronBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if b.Name == "" || len(b.Name) > state.MaxNameBytes {
		return nil, invalid("name has %d bytes, want 1 to %d", len(b.Name), state.MaxNameBytes)
	}
	if _, err := engine.ParseCron(b.Spec, b.Zone); err != nil {
		return nil, invalid("%s", err.Error())
	}
	pool, namespace, _ := state.SplitQueueKey(string(key))
	cron := state.Cron{
		Namespace: pool + "/" + namespace, Name: b.Name, Spec: b.Spec, Zone: b.Zone, Queue: string(key), Payload: b.Payload,
	}
	if b.Text != nil {
		cron.Payload = []byte(*b.Text)
	}
	name := b.Name
	if namespace != state.DefaultNamespace {
		name = namespace + "/" + name
	}
	words := []string{"CRON", "SET", name, b.Spec, state.DisplayName(string(key)), word(cron.Payload)}
	if b.Zone != "" {
		words = append(words, "TZ", b.Zone)
	}
	switch b.Catchup {
	case "", "one":
	case "none":
		cron.Catchup = state.CatchupNone
		words = append(words, "CATCHUP", "none")
	case "all":
		cron.Catchup = state.CatchupAll
		words = append(words, "CATCHUP", "all")
	default:
		return nil, invalid("catchup %.32q is none of one, none, all", b.Catchup)
	}
	var job engine.Enqueue
	if err := b.set(&job); err != nil {
		return nil, err
	}
	cron.Options = engine.EncodeOptions(&job)
	return c.act(b.DryRun, commandLine(b.words(words)...), 1, func() (int64, error) {
		return 1, c.do(&engine.CronSet{Cron: cron})
	})
}

type cronDeleteBody struct {
	Pool      string `json:"pool"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	DryRun    bool   `json:"dry_run"`
}

func (c *apiCall) deleteCron() (any, error) {
	var b cronDeleteBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	name := b.Name
	if b.Namespace != state.DefaultNamespace {
		name = b.Namespace + "/" + name
	}
	return c.act(b.DryRun, commandLine("CRON", "DELETE", name), 1, func() (int64, error) {
		del := &engine.CronDelete{Namespace: b.Pool + "/" + b.Namespace, Name: b.Name}
		if err := c.do(del); err != nil {
			return 0, err
		}
		if !del.Deleted {
			return 0, notFound("there is no cron %.64q", name)
		}
		return 1, nil
	})
}
