package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/redis/go-redis/v9"

	"pawl/state"
)

// How Moxy keeps its tasks in Redis, as JSON, new ones at the left:
//
//	moxy:{QUEUE}:ready       list  {"id","payload" (base 64),"attempts"}
//	moxy:{QUEUE}:processing  list, or a hash from ID in newer ones
//	moxy:{QUEUE}:dead        list  {"task":{…},"reason","dead_at"}
//
// Tasks in work go to ready, before those that were: their leases end here.
type moxyTask struct {
	ID      string `json:"id"`
	Payload []byte `json:"payload"`
}

type moxyDead struct {
	Task   moxyTask `json:"task"`
	Reason string   `json:"reason"`
}

const moxyPrefix = "moxy:{"

func readMoxy(ctx context.Context, c *redis.Client, im *importer) error {
	queues := map[string]bool{}
	for _, kind := range []string{"list", "hash"} {
		err := scan(ctx, c, moxyPrefix+"*", kind, func(key string) error {
			for _, suffix := range []string{"}:ready", "}:processing", "}:dead"} {
				if name, ok := strings.CutSuffix(strings.TrimPrefix(key, moxyPrefix), suffix); ok {
					queues[name] = true
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	names := make([]string, 0, len(queues))
	for name := range queues {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if err := readMoxyQueue(ctx, c, im, name); err != nil {
			return fmt.Errorf("queue %.100q: %w", name, err)
		}
	}
	return nil
}

func readMoxyQueue(ctx context.Context, c *redis.Client, im *importer, name string) error {
	key := moxyPrefix + name + "}:"
	queue := state.AppendQueueKey(nil, im.options.Pool, []byte(name))
	task := func(text string) error {
		var t moxyTask
		if json.Unmarshal([]byte(text), &t) != nil || t.ID == "" {
			im.report.Unreadable++
			return nil
		}
		return im.add(ctx, job{Queue: queue, Key: "moxy/" + t.ID, Payload: t.Payload})
	}
	each := func(visit func(string) error) func([]string) error {
		return func(page []string) error {
			for _, text := range page {
				if err := visit(text); err != nil {
					return err
				}
			}
			return nil
		}
	}
	err := im.fromRight(ctx, c, key+"dead", each(func(text string) error {
		var d moxyDead
		if json.Unmarshal([]byte(text), &d) != nil || d.Task.ID == "" {
			im.report.Unreadable++
			return nil
		}
		return im.add(ctx, job{Queue: queue, Key: "moxy/" + d.Task.ID, Payload: d.Task.Payload, Dead: true, Reason: d.Reason})
	}))
	if err != nil {
		return err
	}
	kind, err := c.Type(ctx, key+"processing").Result()
	if err != nil {
		return err
	}
	if kind == "hash" {
		tasks, err := c.HGetAll(ctx, key+"processing").Result()
		if err != nil {
			return err
		}
		ids := make([]string, 0, len(tasks))
		for id := range tasks {
			ids = append(ids, id)
		}
		sort.Strings(ids)
		for _, id := range ids {
			if err := task(tasks[id]); err != nil {
				return err
			}
		}
	} else if err := im.fromRight(ctx, c, key+"processing", each(task)); err != nil {
		return err
	}
	return im.fromRight(ctx, c, key+"ready", each(task))
}
