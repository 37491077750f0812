package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

func topCommand() subcommand {
	return subcommand{
		name: "top", summary: "a live screen of what the daemon does; Ctrl-C ends it", group: groupQueues,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("top")
			every := fs.Duration("every", time.Second, "time between two looks")
			times := fs.Int("times", 0, "end after this many, 0 is never")
			limit := fs.Int("queues", 0, "show the busiest this many; 0 is what the terminal has room for, else 20")
			glob := fs.String("match", "", "only queues that match this")
			r := addRemote(e, fs)
			r.addJSON()
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 0, 0); err != nil {
					return err
				}
				if *every < 100*time.Millisecond {
					return usagef("--every: at least 100ms")
				}
				c, err := r.client()
				if err != nil {
					return err
				}
				defer c.Close()
				screen := &topScreen{e: e, client: c, limit: *limit, glob: *glob, addr: r.addr, asJSON: r.asJSON}
				err = screen.run(ctx, *every, *times)
				if ctx.Err() != nil {
					return nil
				}
				return remoteExit(err)
			}
		},
	}
}

// topScreen is pawl top.
type topScreen struct {
	e      *env
	client *client.Client
	limit  int
	glob   string
	addr   string
	asJSON bool // one object a look
	before map[string]queueNumbers
	last   time.Time
}

// queueNumbers are a queue's counts and totals at one look.
type queueNumbers struct {
	name                         string
	ready, delayed, leased, dead int64
	enqueued, acked, failed      int64 // totals
	oldest                       int64
	paused                       bool
}

func (s *topScreen) run(ctx context.Context, every time.Duration, times int) error {
	terminal := isTerminal(s.e.stdout) && !s.asJSON
	if terminal {
		fmt.Fprint(s.e.stdout, "\x1b[?1049h\x1b[?25l") // a screen of its own, no cursor
		defer fmt.Fprint(s.e.stdout, "\x1b[?25h\x1b[?1049l")
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 1; ; n++ {
		var page bytes.Buffer
		if err := s.look(ctx, &page); err != nil {
			return err
		}
		if terminal {
			fmt.Fprint(s.e.stdout, "\x1b[H", strings.ReplaceAll(page.String(), "\n", "\x1b[K\n"), "\x1b[J")
		} else {
			s.e.stdout.Write(page.Bytes())
		}
		if n == times {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look asks for all numbers once and writes the page.
func (s *topScreen) look(ctx context.Context, w io.Writer) error {
	info, err := s.client.Do(ctx, "INFO")
	if err != nil {
		return err
	}
	names, err := s.client.Queues(ctx, s.glob)
	if err != nil {
		return err
	}
	const most = 5000 // a screen is no place for more, and INFO has the sums
	total := len(names)
	names = names[:min(total, most)]
	infos, err := s.client.QueueInfos(ctx, names)
	if err != nil {
		return err
	}
	now := time.Now()
	span := now.Sub(s.last).Seconds()
	queues := make(map[string]queueNumbers, len(names))
	rows := make([]queueNumbers, 0, len(names))
	for i, v := range infos {
		if v.Kind == client.Failure || v.Kind == client.Null {
			continue
		}
		totals := v.Field("totals")
		q := queueNumbers{
			name: names[i], ready: v.Field("ready").Number(), delayed: v.Field("delayed").Number(),
			leased: v.Field("leased").Number(), dead: v.Field("dead").Number(), oldest: v.Field("oldest_ready_ms").Number(),
			enqueued: totals.Field("enqueued").Number(), acked: totals.Field("acked").Number(),
			failed: totals.Field("nacked").Number() + totals.Field("expired").Number(),
			paused: v.Field("paused").Number() != 0,
		}
		queues[q.name] = q
		rows = append(rows, q)
	}
	before := s.before
	rate := func(q queueNumbers, get func(queueNumbers) int64) float64 {
		b, known := before[q.name]
		return q.rate(b, known, span, get)
	}
	in := func(q queueNumbers) int64 { return q.enqueued }
	out := func(q queueNumbers) int64 { return q.acked }
	bad := func(q queueNumbers) int64 { return q.failed }
	var sum queueNumbers
	var sumIn, sumOut, sumBad float64
	for _, q := range rows {
		sum.ready += q.ready
		sum.delayed += q.delayed
		sum.leased += q.leased
		sum.dead += q.dead
		sumIn += rate(q, in)
		sumOut += rate(q, out)
		sumBad += rate(q, bad)
	}
	slices.SortStableFunc(rows, func(a, b queueNumbers) int {
		return cmp.Or(cmp.Compare(rate(b, in)+rate(b, out), rate(a, in)+rate(a, out)), cmp.Compare(b.ready+b.leased+b.dead, a.ready+a.leased+a.dead), cmp.Compare(a.name, b.name))
	})
	queueCount := s.limit
	columns, lines := terminalSize(s.e.stdout)
	if queueCount <= 0 {
		queueCount = 20
		if lines > 0 {
			queueCount = max(1, lines-topFrame)
		}
	}
	shown := rows[:min(len(rows), queueCount)]
	s.before, s.last = queues, now
	if s.asJSON {
		page := topJSON{At: now.UnixMilli(), Queues: total, All: sum.json("", sumIn, sumOut, sumBad), Busiest: []topQueueJSON{}}
		for _, q := range shown {
			b, known := before[q.name]
			page.Busiest = append(page.Busiest, q.json(q.name, q.rate(b, known, span, in), q.rate(b, known, span, out), q.rate(b, known, span, bad)))
		}
		return printJSON(w, page)
	}
	fmt.Fprintf(w, "pawl %s  %s  up %s  %s clients\n", s.addr, now.Format("15:04:05"), age(1000*infoNumber(info.Text, "uptime_in_seconds")), infoField(info.Text, "connected_clients"))
	fmt.Fprintf(w, "enqueued %.0f/s  finished %.0f/s  failed %.0f/s\n\n", sumIn, sumOut, sumBad)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "ready\tdelayed\tleased\tdead\toldest\tin/s\tout/s\tfail/s\t  queue")
	line := func(q queueNumbers, in, out, bad float64, name string) {
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%s\t%.0f\t%.0f\t%.0f\t  %s\n", q.ready, q.delayed, q.leased, q.dead, age(q.oldest), in, out, bad, name)
	}
	nameRoom := 40
	if columns > 0 {
		nameRoom = max(12, columns-topColumns)
	}
	for _, q := range shown {
		name := printable(q.name, nameRoom)
		if q.paused {
			name = printable(q.name, max(8, nameRoom-len(pausedMark))) + pausedMark
		}
		line(q, rate(q, in), rate(q, out), rate(q, bad), name)
	}
	line(sum, sumIn, sumOut, sumBad, fmt.Sprintf("all %d queues", total))
	return table.Flush()
}

// What the screen needs beside the queues: lines of head and foot, and columns of
// numbers before a queue's name.
const (
	topFrame   = 6
	topColumns = 62
	pausedMark = " (paused)"
)

// rate is a total's rise a second since b, 0 without one.
func (q queueNumbers) rate(b queueNumbers, known bool, seconds float64, get func(queueNumbers) int64) float64 {
	if !known || seconds <= 0 {
		return 0
	}
	return float64(get(q)-get(b)) / seconds
}

// topJSON is one look of --json.
type topJSON struct {
	At      int64          `json:"at"` // Unix ms
	Queues  int            `json:"queues"`
	All     topQueueJSON   `json:"all"`
	Busiest []topQueueJSON `json:"busiest"`
}

// topQueueJSON has rates a second.
type topQueueJSON struct {
	Queue         string  `json:"queue,omitempty"`
	Ready         int64   `json:"ready"`
	Delayed       int64   `json:"delayed"`
	Leased        int64   `json:"leased"`
	Dead          int64   `json:"dead"`
	OldestReadyMs int64   `json:"oldest_ready_ms"`
	Enqueued      float64 `json:"enqueued"`
	Finished      float64 `json:"finished"`
	Failed        float64 `json:"failed"`
	Paused        bool    `json:"paused"`
}

func (q queueNumbers) json(name string, in, out, bad float64) topQueueJSON {
	return topQueueJSON{name, q.ready, q.delayed, q.leased, q.dead, q.oldest, in, out, bad, q.paused}
}

// infoField is a line of INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}

func infoNumber(info, name string) int64 {
	n, _ := strconv.ParseInt(infoField(info, name), 10, 64)
	return n
}
