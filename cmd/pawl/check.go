package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"pawl/recovery"
	"pawl/state"
)

func checkCommand() subcommand {
	return subcommand{
		name: "check", args: "DIR", summary: "read a store, change nothing, say what a start would make of it", group: groupData,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("check")
			live := fs.Bool("live", false, "a daemon runs on it: check a copy of one moment")
			asJSON := addJSON(fs)
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				health, err := recovery.Check(ctx, recovery.CheckOptions{Dir: args[0], Live: *live})
				if err != nil {
					return storeExit(err)
				}
				found := newCheckResult(health)
				if *asJSON {
					err = printJSON(e.stdout, found)
				} else {
					found.print(e.stdout, args[0])
				}
				if err == nil && len(health.Problems) > 0 {
					err = &exitError{code: exitDamaged} // all has been said
				}
				return err
			}
		},
	}
}

// checkResult is what pawl check says.
type checkResult struct {
	OK          bool         `json:"ok"`
	Store       string       `json:"store"`
	History     uint32       `json:"history"`
	LSN         uint64       `json:"lsn"`
	SnapshotLSN uint64       `json:"snapshot_lsn"`
	Clean       bool         `json:"clean"`
	CutBytes    int64        `json:"cut_bytes"`
	Generations int          `json:"generations"`
	Snapshots   int          `json:"snapshots"`
	Bytes       int64        `json:"bytes"`
	Queues      []checkQueue `json:"queues"`
	Problems    []string     `json:"problems"`
	Notes       []string     `json:"notes"`
}

// checkQueue has the counts that MOXY.STATS would give.
type checkQueue struct {
	Queue   string `json:"queue"` // pool/namespace/name
	Ready   uint32 `json:"ready"`
	Delayed uint32 `json:"delayed"`
	Leased  uint32 `json:"leased"`
	Dead    uint32 `json:"dead"`
}

func newCheckResult(h *recovery.Health) checkResult {
	r := checkResult{
		OK: len(h.Problems) == 0, Store: h.Identity.ID.String(), History: h.Identity.History,
		LSN: uint64(h.End.LSN), SnapshotLSN: h.Report.SnapshotLSN, Clean: h.Report.Clean, CutBytes: h.Report.CutBytes,
		Generations: h.Generations, Snapshots: h.Snapshots, Bytes: h.Bytes,
		Queues: []checkQueue{}, Problems: texts(h.Problems), Notes: texts(h.Notes),
	}
	if h.State != nil {
		h.State.Queues(func(id state.QueueID) bool {
			q := h.State.Queue(id)
			r.Queues = append(r.Queues, checkQueue{q.Key, q.Ready, q.Delayed, q.Leased, q.Dead})
			return true
		})
		slices.SortFunc(r.Queues, func(a, b checkQueue) int { return strings.Compare(a.Queue, b.Queue) })
	}
	return r
}

func texts(errs []error) []string {
	list := make([]string, len(errs))
	for i, err := range errs {
		list[i] = err.Error()
	}
	return list
}

func (r *checkResult) print(w io.Writer, dir string) {
	fmt.Fprintf(w, "store %s, history %d\n", r.Store, r.History)
	fmt.Fprintf(w, "generations of the log: %d, snapshots: %d, together %s\n", r.Generations, r.Snapshots, byteText(r.Bytes))
	if r.OK {
		how := "which ended without a clean stop"
		if r.Clean {
			how = "which ended with a clean stop"
		}
		fmt.Fprintf(w, "newest sound snapshot: %s, log: up to group %d, %s\n", snapshotText(r.SnapshotLSN), r.LSN, how)
	}
	if r.CutBytes > 0 {
		fmt.Fprintf(w, "%d bytes of an unfinished write behind it, which nobody was told of\n", r.CutBytes)
	}
	if len(r.Queues) > 0 {
		fmt.Fprintln(w)
		table := newTable(w, "QUEUE", "READY", "DELAYED", "LEASED", "DEAD")
		count := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
		for _, q := range r.Queues {
			row(table, printable(q.Queue, 60), count(q.Ready), count(q.Delayed), count(q.Leased), count(q.Dead))
		}
		table.Flush()
	}
	fmt.Fprintln(w)
	for _, note := range r.Notes {
		fmt.Fprintln(w, "note:", note)
	}
	for _, problem := range r.Problems {
		fmt.Fprintln(w, "damage:", problem)
	}
	if r.OK {
		fmt.Fprintln(w, "ok: a start succeeds without loss")
		return
	}
	fmt.Fprintf(w, "a start is refused or would not have all payloads. Restore a backup, or see what would be left:\n  pawl repair --dry-run %s\n", dir)
}

func snapshotText(lsn uint64) string {
	if lsn == 0 {
		return "none"
	}
	return fmt.Sprintf("of group %d", lsn)
}

// byteText is a count of bytes for people.
func byteText(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}
