package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"pawl/client"
)

// printHistory prints what happened to a job, an event a line.
func printHistory(ctx context.Context, e *env, r *remote, c *client.Client, id string) error {
	table := newTable(e.stdout, "TIME", "WHAT", "STATE", "ATTEMPT", "DETAILS")
	told := false
	for from := int64(0); ; {
		v, err := c.Do(ctx, "JOB", "HISTORY", id, "FROM", strconv.FormatInt(from, 10))
		if err != nil {
			return err
		}
		if v.Kind == client.Null && !told {
			fmt.Fprintln(e.stderr, "pawl: the log says nothing of such a job")
			return negative()
		}
		if from == 0 && v.Field("complete").Number() == 0 {
			fmt.Fprintln(e.stderr, "pawl: its beginning is no longer in the log")
		}
		for _, event := range v.Field("events").Elems {
			told = true
			if r.asJSON {
				if err := printJSON(e.stdout, object(event.Elems)); err != nil {
					return err
				}
				continue
			}
			row(table, timeText(event.Field("at").Number()), event.Field("what").Text, inline(event.Field("state")), inline(event.Field("attempt")), eventDetails(event))
		}
		if from = v.Field("next").Number(); from == 0 {
			break
		}
	}
	if r.asJSON {
		return nil
	}
	return table.Flush()
}

func eventDetails(event client.Value) string {
	var parts []string
	add := func(name, text string) {
		if text != "" && text != "-" {
			parts = append(parts, name+" "+text)
		}
	}
	if queue := event.Field("queue"); queue.Kind != client.Null {
		add("queue", printable(queue.Text, 60))
	}
	if what := event.Field("what").Text; what == "priority" || what == "enqueue" && event.Field("priority").Number() != 0 {
		add("priority", inline(event.Field("priority")))
	}
	add("until", timeText(event.Field("until").Number()))
	if lease := event.Field("lease_id"); lease.Kind != client.Null {
		add("lease", lease.Text)
	}
	add("reason", printable(event.Field("reason").Text, 120))
	return strings.Join(parts, ", ")
}
