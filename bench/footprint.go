package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// FootprintOptions say what Footprint fills a daemon with.
type FootprintOptions struct {
	Binary  string        // the pawl program; empty is this process's
	Dir     string        // below which the data goes, as StartOptions.Dir
	Flags   []string      // further ones for pawl serve
	Jobs    int           // that wait; 0 is 1,000,000
	Payload int           // bytes; 0 is 100
	Delay   time.Duration // of each job; 0 makes them ready
	Queues  int           // that the jobs are spread over; 0 is 1
	Groups  int           // of each queue that the jobs are spread over; 0 is none
	Replies int           // queues that come and go with one job each, beforehand
	Rest    time.Duration // after these, and after the last job's snapshot, until memory is looked at once more; 0 is 30 s, longer than many idle queues, and free memory, are kept
	Starts  int           // how often it is killed and started again; 0 is 3
	Conns   int           // that fill it, with 256 jobs in flight each; 0 is 4
	Cycles  time.Duration // of each run of cycles, before and after; 0 is 2 s
	Soak    time.Duration // how long the critical section is watched under load when it is full; 0 is not
	// SoakRate is how many cycles a second are the load then; 0 is as many as it
	// takes.
	SoakRate int
	Step     func(what string)
}

// Footprint is what waiting jobs cost. Memory is resident bytes of the daemon's
// process, collector and all; a Job's is what is beyond the empty daemon.
type Footprint struct {
	Date    time.Time `json:"date"`
	Machine string    `json:"machine"`
	Jobs    int       `json:"jobs"`
	Payload int       `json:"payload_bytes"`
	Delay   float64   `json:"delay_seconds"`
	Queues  int       `json:"queues"`
	Groups  int       `json:"groups,omitzero"`
	Replies Replies   `json:"replies,omitzero"`

	Empty      int64   `json:"rss_empty"`
	Filled     int64   `json:"rss_filled"` // right after the last job was enqueued, most likely while a snapshot was written
	Rested     int64   `json:"rss_rested"` // when none was written any more, and after a rest
	Rest       float64 `json:"rest_seconds"`
	Snapshot   int64   `json:"rss_snapshot"`  // the most while one snapshot was written behind the other, beside cycles
	Restarted  int64   `json:"rss_restarted"` // after the last restart, the first job fetched
	DiskBytes  int64   `json:"disk_bytes"`    // of the directory when it was full
	Written    int64   `json:"written_bytes"` // to disk by the time it was full, as the daemon counts
	Enqueued   int     `json:"enqueued"`      // by the time of the kill, with those beside the snapshot and for the log's tail
	FillSecond Spread  `json:"filled_per_second"`
	// Cycles are those a second at 64 connections, in each of three runs, before it
	// was filled, when it was full and no snapshot was written, and when one was, in
	// at least three runs.
	CyclesEmpty  Spread `json:"cycles_empty"`
	CyclesFilled Spread `json:"cycles_filled"`
	CyclesBeside Spread `json:"cycles_beside_snapshots"`
	Soak         Soak   `json:"soak,omitzero"`
	// Restart is from kill -9 until the first FETCH was answered, in seconds; the
	// log behind the snapshot held almost as much as the daemon lets it.
	Restart Spread `json:"restart_seconds"`
}

// PerJob is how many bytes of rss each job has beyond the empty daemon.
func (f *Footprint) PerJob(rss int64) float64 { return float64(rss-f.Empty) / float64(f.Jobs) }

// Print prints it for people.
func (f *Footprint) Print(w io.Writer) {
	kind := "ready"
	if f.Delay > 0 {
		kind = "delayed"
	}
	const mib = 1 << 20
	fmt.Fprintf(w, "%s, %s: %d %s jobs of %d bytes", f.Date.Format(time.DateOnly), f.Machine, f.Jobs, kind, f.Payload)
	if f.Queues > 1 {
		fmt.Fprintf(w, " in %d queues", f.Queues)
	}
	if f.Groups > 0 {
		fmt.Fprintf(w, " and %d groups", f.Groups)
	}
	fmt.Fprintf(w, "\nempty daemon              %6d MiB\n", f.Empty/mib)
	if r := f.Replies; r.Queues > 0 {
		fmt.Fprintf(w, "%d reply queues  %6d MiB; %.0f s later %d MiB and %d queues\n", r.Queues, r.Right/mib, r.Rest, r.Later/mib, r.Left)
	}
	fmt.Fprintf(w, "right after enqueuing     %6d MiB, %5.1f bytes a job\n", f.Filled/mib, f.PerJob(f.Filled))
	fmt.Fprintf(w, "at rest, %3.0f s later     %6d MiB, %5.1f bytes a job\n", f.Rest, f.Rested/mib, f.PerJob(f.Rested))
	fmt.Fprintf(w, "beside snapshots, cycles  %6d MiB, %5.1f bytes a job, %.2f times that\n", f.Snapshot/mib, f.PerJob(f.Snapshot), f.PerJob(f.Snapshot)/f.PerJob(f.Rested))
	fmt.Fprintf(w, "after a restart           %6d MiB, %5.1f bytes a job\n", f.Restarted/mib, float64(f.Restarted-f.Empty)/float64(f.Enqueued))
	fmt.Fprintf(w, "kill -9 to first FETCH    %6.2f s (%.2f to %.2f)\n", f.Restart.Median, f.Restart.Min, f.Restart.Max)
	fmt.Fprintf(w, "disk                      %6d MiB, %.2f times the payloads; written %.2f times\n",
		f.DiskBytes/mib, float64(f.DiskBytes)/float64(f.Jobs*f.Payload), float64(f.Written)/float64(f.Jobs*f.Payload))
	fmt.Fprintf(w, "enqueued a second         %6.0f (%.0f to %.0f)\n", f.FillSecond.Median, f.FillSecond.Min, f.FillSecond.Max)
	fmt.Fprintf(w, "cycles a second, 64 conns %6.0f (%.0f to %.0f) when empty, %.0f (%.0f to %.0f) when full, %.0f (%.0f to %.0f) beside snapshots\n",
		f.CyclesEmpty.Median, f.CyclesEmpty.Min, f.CyclesEmpty.Max, f.CyclesFilled.Median, f.CyclesFilled.Min, f.CyclesFilled.Max,
		f.CyclesBeside.Median, f.CyclesBeside.Min, f.CyclesBeside.Max)
	if t := f.Soak; t.Turns.Count > 0 {
		fmt.Fprintf(w, "critical section          %d stays in %.0f s: p50 up to %.3f ms, p99 %.3f, p99.99 %.3f, longest %.3f; in processor time p99.99 %.3f, longest %.3f\n",
			t.Count, t.Seconds, t.P50, t.P99, t.P9999, t.Max, t.CPUP9999, t.CPUMax)
		for _, e := range []struct {
			less string
			Times
		}{{"its own sync", t.LessOwnSync}, {"all syncs", t.LessAllSyncs}} {
			fmt.Fprintf(w, "enqueue less %-12s %d: p50 up to %.3f ms, p99 %.3f, p99.99 %.3f, longest %.3f\n", e.less, e.Count, e.P50, e.P99, e.P9999, e.Max)
		}
		fmt.Fprintf(w, "beside                    %.0f cycles a second, %d snapshots, %d MiB cleaned, %d leases ended\n", t.Cycles, t.Snapshots, t.Cleaned/mib, t.Leases)
	}
}

// The daemon begins a snapshot when this much log is behind the last.
const snapshotBytes = 64 << 20

// MeasureFootprint starts a daemon, fills it, writes a snapshot under load, and
// kills and starts it, and measures all the way. It needs /proc.
func MeasureFootprint(ctx context.Context, o FootprintOptions) (f Footprint, err error) {
	o.Jobs, o.Payload = orElse(o.Jobs, 1_000_000), orElse(o.Payload, 100)
	o.Starts, o.Conns, o.Queues = orElse(o.Starts, 3), orElse(o.Conns, 4), orElse(o.Queues, 1)
	if o.Rest == 0 {
		o.Rest = 30 * time.Second
	}
	if o.Cycles == 0 {
		o.Cycles = 2 * time.Second
	}
	f = Footprint{Date: time.Now().UTC().Truncate(time.Second), Machine: machine(), Jobs: o.Jobs, Payload: o.Payload, Delay: o.Delay.Seconds(), Queues: o.Queues, Groups: o.Groups, Rest: o.Rest.Seconds()}
	if o.Soak > 0 {
		o.Flags = append(slices.Clone(o.Flags), "--pprof") // it measures more
	}
	o.say("starting")
	s, err := Start(ctx, StartOptions{Kind: "pawl", Dir: o.Dir, Sync: "always", Binary: o.Binary, Flags: append([]string{"--verify-bodies", "0"}, o.Flags...)})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if f.Empty, err = s.rss(); err != nil {
		return f, err
	}
	if o.Replies > 0 {
		o.say("reply queues")
		if f.Replies, err = o.replies(ctx, s); err != nil {
			return f, err
		}
	}
	o.say("cycles on an empty daemon")
	if f.CyclesEmpty, err = o.cycles(ctx, s); err != nil {
		return f, err
	}
	written, err := s.written(ctx)
	if err != nil {
		return f, err
	}
	o.say("filling")
	if f.FillSecond, err = o.fill(ctx, s, "footprint", o.Jobs, o.Delay); err != nil {
		return f, err
	}
	if f.Filled, err = s.rss(); err != nil {
		return f, err
	}
	if f.Written, err = s.written(ctx); err != nil {
		return f, err
	}
	f.Written -= written
	if f.DiskBytes, err = s.disk(); err != nil {
		return f, err
	}
	o.say("resting")
	if err = o.rest(ctx, s); err != nil {
		return f, err
	}
	if f.Rested, err = s.rss(); err != nil {
		return f, err
	}
	o.say("cycles on a full daemon")
	if f.CyclesFilled, err = o.cycles(ctx, s); err != nil {
		return f, err
	}
	o.say("cycles beside snapshots")
	if f.CyclesBeside, f.Snapshot, err = o.besideSnapshots(ctx, s); err != nil {
		return f, err
	}
	if o.Soak > 0 {
		o.say("watching the critical section")
		if f.Soak, err = o.soak(ctx, s); err != nil {
			return f, err
		}
	}
	tail := snapshotBytes * 9 / 10 / (o.Payload + 40)
	o.say("filling the log's tail")
	if _, err = o.fill(ctx, s, "tail", tail, o.Delay); err != nil {
		return f, err
	}
	f.Enqueued = o.Jobs + tail
	var took []float64
	for range o.Starts {
		o.say("killing and starting")
		began := time.Now()
		if err := s.restart(ctx); err != nil {
			return f, err
		}
		if err := o.firstFetch(ctx, s); err != nil {
			return f, err
		}
		took = append(took, time.Since(began).Seconds())
	}
	f.Restart = NewSpread(took)
	f.Restarted, err = s.rss()
	return f, err
}

// footprintRuns is how many runs of cycles there are at a time.
const footprintRuns = 3

// cycle is one run of them, beside what waits.
func (o *FootprintOptions) cycle(s *Server) Options {
	return Options{Workload: Cycle, Target: s.Target, Conns: 64, Payload: o.Payload, Duration: o.Cycles, Warmup: o.Cycles / 10}
}

// cycles are how many a second there are.
func (o *FootprintOptions) cycles(ctx context.Context, s *Server) (Spread, error) {
	var runs []Result
	for range footprintRuns {
		r, err := Run(ctx, o.cycle(s))
		if err != nil {
			return Spread{}, err
		}
		runs = append(runs, r)
	}
	return Rates(runs), nil
}

func orElse(n, usual int) int {
	if n == 0 {
		return usual
	}
	return n
}

func (o *FootprintOptions) say(what string) {
	if o.Step != nil {
		o.Step(what)
	}
}

// fill enqueues jobs and returns how many there were in each second.
func (o *FootprintOptions) fill(ctx context.Context, s *Server, queue string, jobs int, delay time.Duration) (rates Spread, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	done := make(chan int, o.Conns)
	for i := range o.Conns {
		share := jobs / o.Conns
		if i < jobs%o.Conns {
			share++
		}
		wg.Go(func() {
			if err := o.fillShare(ctx, s.Target.(Pawl), queue, share, delay, done); err != nil {
				cancel(err)
			}
		})
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	var perSecond []float64
	began, last, n, total := time.Now(), time.Now(), 0, 0
	for k := range done {
		n, total = n+k, total+k
		if took := time.Since(last); took >= time.Second {
			perSecond = append(perSecond, float64(n)/took.Seconds())
			n, last = 0, time.Now()
		}
	}
	if len(perSecond) == 0 {
		perSecond = append(perSecond, float64(total)/time.Since(began).Seconds())
	}
	return NewSpread(perSecond), context.Cause(ctx)
}

// fillShare enqueues jobs over one connection, 256 in a write, and tells done.
func (o *FootprintOptions) fillShare(ctx context.Context, target Pawl, queue string, jobs int, delay time.Duration, done chan<- int) error {
	w, err := dial(ctx, target.Addr)
	if err != nil {
		return err
	}
	defer w.Close()
	args := [][]byte{[]byte("ENQUEUE"), []byte(queue), bytes.Repeat([]byte("x"), o.Payload)}
	if o.Groups > 0 {
		args = append(args, []byte("GROUP"), nil)
	}
	if delay > 0 {
		args = append(args, []byte("DELAY"), nil)
	}
	for i := 0; i < jobs && ctx.Err() == nil; {
		n := min(jobs-i, 256)
		for k := range n {
			if delay > 0 {
				// Spread over the last tenth, in no order, as delays are.
				ms := delay.Milliseconds()
				ms -= int64(uint32(i+k)*2654435761) % max(ms/10, 1)
				args[len(args)-1] = strconv.AppendInt(nil, ms, 10)
			}
			if o.Queues > 1 {
				args[1] = numbered(queue, (i+k)%o.Queues)
			}
			if o.Groups > 0 {
				args[4] = numbered("group", (i+k)%o.Groups)
			}
			w.command(args...)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for range n {
			if err := w.skip(); err != nil {
				return err
			}
		}
		i += n
		done <- n
	}
	return ctx.Err()
}

// numbered is one of several names.
func numbered(name string, n int) []byte {
	return strconv.AppendInt(append([]byte(name), '-'), int64(n), 10)
}

// firstFetch takes a job; of delayed ones there may be none.
func (o *FootprintOptions) firstFetch(ctx context.Context, s *Server) error {
	queue := "footprint"
	if o.Queues > 1 {
		queue = string(numbered(queue, 0))
	}
	c, err := s.Target.Dial(ctx, queue)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Fetch()
	if err := c.Flush(); err != nil {
		return err
	}
	_, found, err := c.ReadFetch()
	if err == nil && !found && o.Delay == 0 {
		err = errors.New("no job after the restart")
	}
	return err
}

// restart kills the server's last program and starts it again on its data. It
// returns when it answers.
func (s *Server) restart(ctx context.Context) error {
	last := s.procs[len(s.procs)-1]
	if err := last.cmd.Process.Kill(); err != nil {
		return err
	}
	<-last.done
	s.procs = s.procs[:len(s.procs)-1]
	return s.launchWithin(ctx, restartWithin, last.cmd.Path, last.cmd.Args[1:], last.ready)
}

// restartWithin is how long a start may take: a minute for fifty million jobs,
// and more on a busy machine.
const restartWithin = 10 * time.Minute

// pid is the process whose memory is measured.
func (s *Server) pid() int { return s.procs[len(s.procs)-1].cmd.Process.Pid }

// rss is the resident memory of the server's process in bytes.
func (s *Server) rss() (int64, error) {
	return procNumber(fmt.Sprintf("/proc/%d/status", s.pid()), "VmRSS:", 1<<10)
}

// written is how many bytes the daemon has written to disk: the log, the zeros
// before it, and snapshots. The kernel's count for the process is of no use: it
// takes a write for all of the large page of memory that it falls into.
func (s *Server) written(ctx context.Context) (int64, error) {
	return scrapeSum(ctx, s.adminAddr, "pawl_log_written_bytes_total", "pawl_log_zeroed_bytes_total", "pawl_snapshot_written_bytes_total")
}

// procNumber is the number behind a name in a file of /proc, in its unit.
func procNumber(file, name string, unit int64) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == name {
			n, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return n * unit, err
		}
	}
	return 0, fmt.Errorf("no %s in %s", name, file)
}

// disk is how many bytes the server's files have.
func (s *Server) disk() (total int64, err error) {
	err = filepath.WalkDir(s.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return ignoreGone(err)
	})
	return total, err
}

// ignoreGone is err but for files that were removed meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
