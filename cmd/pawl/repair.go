package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"pawl/engine"
	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/state"
	"pawl/wal"
)

func repairCommand() subcommand {
	return subcommand{
		name: "repair", args: "DIR", summary: "make a damaged store start again, and list what is lost", group: groupData,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("repair")
			dryRun := fs.Bool("dry-run", false, "only list what would be lost")
			to := fs.String("to", "", "write the repaired store into this new directory and leave DIR as it is")
			lost := fs.String("lost", "", "write the lost jobs that can still be read into this file, for pawl load")
			asJSON := addJSON(fs)
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				var file *os.File
				if *lost != "" {
					// Before anything is done: afterwards there is nothing to repair, and nothing to list.
					var err error
					if file, err = os.OpenFile(*lost, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
						return withExit(exitCreate, err)
					}
				}
				done, err := recovery.Repair(ctx, recovery.RepairOptions{Dir: args[0], To: *to, DryRun: *dryRun})
				if done == nil {
					if file != nil {
						err = errors.Join(err, file.Close(), os.Remove(*lost))
					}
					return storeExit(err)
				}
				var printing error
				if *asJSON {
					printing = printJSON(e.stdout, repairedJSON(done, *to, *dryRun))
				} else {
					printRepaired(e.stdout, done, args[0], *to, *dryRun)
				}
				if file != nil {
					printing = errors.Join(printing, writeLost(file, done.Lost))
				}
				if err != nil {
					return storeExit(errors.Join(err, printing)) // it was done, but not confirmed
				}
				if printing != nil {
					return withExit(exitIO, printing)
				}
				return nil
			}
		},
	}
}

func printRepaired(w io.Writer, done *recovery.Repaired, dir, to string, dryRun bool) {
	for _, left := range done.Interrupted {
		what := "is the store as it was before a repair that was interrupted"
		if left.Repaired {
			what = "is what a repair made that was interrupted before it took its place"
		}
		fmt.Fprintf(w, "%s %s, called %s now\n", left.Path, what, left.Kept)
	}
	if !done.Needed {
		fmt.Fprintln(w, "nothing to repair: a start succeeds without loss")
		return
	}
	for _, lost := range done.Damage {
		fmt.Fprintf(w, "damage: %v\n", lost.Why)
		switch {
		case lost.First != 0 && lost.Last > lost.First:
			fmt.Fprintf(w, "lost: groups %d to %d\n", lost.First, lost.Last)
		case lost.First != 0:
			fmt.Fprintf(w, "lost: group %d and what followed it\n", lost.First)
		}
	}
	for _, job := range done.Lost {
		fmt.Fprintf(w, "lost: job %s queue %s enqueued %s: %s\n", lostID(job), lostQueue(job), timeText(int64(job.Enqueued)), job.Why)
	}
	for _, id := range done.Finished {
		fmt.Fprintf(w, "not brought back: job %s, which the lost part finished\n", id)
	}
	verb := "kept"
	if dryRun {
		verb = "would keep"
	}
	fmt.Fprintf(w, "%s: %d jobs, as of group %d; lost: %d jobs that can be named\n", verb, done.Jobs, done.LSN, len(done.Lost))
	switch {
	case dryRun:
	case to != "":
		fmt.Fprintf(w, "the repaired store is %s, history %d; %s is as it was\n", to, done.Identity.History, dir)
	default:
		fmt.Fprintf(w, "%s is repaired, history %d; as it was, it is kept as %s\n", dir, done.Identity.History, done.Kept)
	}
}

// repairReport is what --json prints. LSNs are 0 where they are not known.
type repairReport struct {
	Needed   bool            `json:"needed"`
	DryRun   bool            `json:"dry_run"`
	Damage   []repairDamage  `json:"damage"`
	Lost     []repairLostJob `json:"lost"`
	Finished []string        `json:"finished"` // by what was lost, so not brought back
	Jobs     uint64          `json:"jobs"`     // kept
	LSN      wal.LSN         `json:"lsn"`      // of the last group kept
	History  uint32          `json:"history"`
	Store    any             `json:"store,omitempty"` // directory, when another than the one read
	Kept     string          `json:"kept,omitempty"`  // what the damaged store is called now
	// Stores that interrupted repairs have left, and their names now.
	Interrupted []repairInterrupted `json:"interrupted,omitempty"`
}

type repairInterrupted struct {
	Path     string `json:"path"`
	Repaired bool   `json:"repaired"` // else it is as it was before the repair
	Kept     string `json:"kept"`
}

type repairDamage struct {
	Why   string  `json:"why"`
	First wal.LSN `json:"first_lsn"`
	Last  wal.LSN `json:"last_lsn"`
}

type repairLostJob struct {
	ID       string `json:"id"`    // empty: not known
	Queue    any    `json:"queue"` // empty: not known
	Guessed  bool   `json:"queue_guessed"`
	Enqueued int64  `json:"enqueued_at"`
	Why      string `json:"why"`
}

func repairedJSON(done *recovery.Repaired, to string, dryRun bool) repairReport {
	r := repairReport{
		Needed: done.Needed, DryRun: dryRun, Jobs: done.Jobs, LSN: done.LSN, History: done.Identity.History, Kept: done.Kept,
		Damage: []repairDamage{}, Lost: []repairLostJob{}, Finished: []string{},
	}
	if to != "" && done.Needed && !dryRun {
		r.Store = textJSON(to)
	}
	for _, left := range done.Interrupted {
		r.Interrupted = append(r.Interrupted, repairInterrupted(left))
	}
	for _, lost := range done.Damage {
		r.Damage = append(r.Damage, repairDamage{lost.Why.Error(), lost.First, lost.Last})
	}
	for _, job := range done.Lost {
		line := repairLostJob{Queue: textJSON(job.Queue), Guessed: job.QueueGuessed, Enqueued: int64(job.Enqueued), Why: job.Why}
		if job.ID != (state.JobID{}) {
			line.ID = job.ID.String()
		}
		r.Lost = append(r.Lost, line)
	}
	for _, id := range done.Finished {
		r.Finished = append(r.Finished, id.String())
	}
	return r
}

func lostID(job recovery.LostJob) string {
	if job.ID == (state.JobID{}) {
		return fmt.Sprintf("(unknown, slot %d)", job.Slot)
	}
	return job.ID.String()
}

func lostQueue(job recovery.LostJob) string {
	switch {
	case job.Queue == "":
		return "(unknown)"
	case job.QueueGuessed:
		return printable(job.Queue, 0) + " (unless it was deleted in the damaged part)"
	}
	return printable(job.Queue, 0)
}

// lostLine is a lost job as pawl load reads it. Further fields are for people.
type lostLine struct {
	Queue    string            `json:"queue,omitempty"`
	Payload  []byte            `json:"payload_base64"`
	Priority int8              `json:"priority,omitempty"`
	Tries    uint16            `json:"tries,omitempty"`
	Unique   string            `json:"unique,omitempty"`
	Group    string            `json:"group,omitempty"`
	Attrs    map[string]string `json:"attrs,omitempty"`
}

// writeLost writes the jobs whose payloads could be read, one a line, and closes the
// file when they and its name would survive a power loss.
func writeLost(f *os.File, jobs []recovery.LostJob) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	for _, job := range jobs {
		content, err := engine.ParseBody(job.Body, job.Overhead)
		if err != nil || job.Body == nil {
			continue
		}
		line := lostLine{Payload: content.Payload, Priority: job.Priority, Tries: job.Tries, Unique: string(content.Unique), Group: string(content.Group)}
		if job.Queue != "" {
			line.Queue = state.DisplayName(job.Queue)
		}
		for _, a := range content.Attrs {
			if line.Attrs == nil {
				line.Attrs = map[string]string{}
			}
			line.Attrs[string(a.Name)] = string(a.Value)
		}
		if err := printJSON(out, line); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return vfs.OS{}.SyncDir(filepath.Dir(f.Name()))
}
