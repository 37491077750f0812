package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Table is the outcome of one invocation: every workload at every load, of one
// server or of two that were measured in turns.
type Table struct {
	Date    time.Time `json:"date"`
	Command string    `json:"command"` // that made it
	Machine string    `json:"machine"` // its class: system, cores, Go
	Sync    string    `json:"sync"`    // of servers that were started for it: always or never
	Cells   []Cell    `json:"cells"`
}

// A Cell is one workload at one load. Theirs and Ratio are empty where one server
// was measured alone.
type Cell struct {
	Workload Workload `json:"workload"`
	Conns    int      `json:"conns"`
	Pipeline int      `json:"pipeline"`
	Pair
}

// TableOptions say which cells there are. Those of the first workload come first,
// there those of the first pipeline.
type TableOptions struct {
	Options   // Workload, Target, Conns and Pipeline are set for each cell
	Workloads []Workload
	Conns     []int
	Pipelines []int
	Runs      int // of each cell: pairs, where there are two servers; 0 is 1
	Ours      Target
	Theirs    Target // nil measures Ours alone
	// Began, when set, is told before each cell.
	Began func(w Workload, conns, pipeline int)
}

// RunTable measures one cell after the other. What was measured before an error
// is returned with it.
func RunTable(ctx context.Context, o TableOptions) (Table, error) {
	t := Table{
		Date:    time.Now().UTC().Truncate(time.Second),
		Machine: machine(),
	}
	for _, workload := range o.Workloads {
		for _, pipeline := range o.Pipelines {
			for _, conns := range o.Conns {
				if o.Began != nil {
					o.Began(workload, conns, pipeline)
				}
				run := o.Options
				run.Workload, run.Conns, run.Pipeline = workload, conns, pipeline
				pair, err := RunPair(ctx, run, o.Ours, o.Theirs, max(o.Runs, 1))
				if err != nil {
					return t, fmt.Errorf("%s at %d × %d: %w", workload, conns, pipeline, err)
				}
				t.Cells = append(t.Cells, Cell{workload, conns, pipeline, pair})
			}
		}
	}
	return t, nil
}

// machine is the class of this machine.
func machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

// ErrTable is in the error about a table that cannot be right.
var ErrTable = errors.New("not a table of pawl bench")

// validate refuses what RunTable cannot have made, for whoever reads a file.
func (t *Table) validate() error {
	for _, c := range t.Cells {
		if !slices.Contains(Workloads, c.Workload) || c.Conns < 1 || c.Pipeline < 1 || len(c.Ours) == 0 ||
			len(c.Theirs) != 0 && len(c.Theirs) != len(c.Ours) {
			return fmt.Errorf("%w: cell %s at %d × %d", ErrTable, c.Workload, c.Conns, c.Pipeline)
		}
	}
	if len(t.Cells) == 0 {
		return fmt.Errorf("%w: no cells", ErrTable)
	}
	return nil
}

// medianLatency is the median over runs of each percentile of one request.
func medianLatency(runs []Result, step string) (l Latency, ok bool) {
	of := func(get func(Latency) float64) float64 {
		var values []float64
		for _, r := range runs {
			if l, ok := r.Steps[step]; ok {
				values = append(values, get(l))
			}
		}
		ok = len(values) > 0
		return NewSpread(values).Median
	}
	l = Latency{
		P50:  of(func(l Latency) float64 { return l.P50 }),
		P99:  of(func(l Latency) float64 { return l.P99 }),
		P999: of(func(l Latency) float64 { return l.P999 }),
		Max:  of(func(l Latency) float64 { return l.Max }),
	}
	return l, ok
}

// percentiles prints p50/p99/p99.9 of each request of runs.
func percentiles(runs []Result) string {
	var parts []string
	for _, step := range stepNames {
		if l, ok := medianLatency(runs, step); ok {
			parts = append(parts, fmt.Sprintf("%s %.2f/%.2f/%.2f", step, l.P50, l.P99, l.P999))
		}
	}
	return strings.Join(parts, ", ")
}

// Print prints the table in Markdown, a line for each cell. All numbers are
// medians over the runs, ratios with the smallest and the largest.
func (t *Table) Print(w io.Writer) error {
	if len(t.Cells) == 0 {
		return nil
	}
	ours := t.Cells[0].Ours[0].Target
	out := tabwriter.NewWriter(w, 0, 8, 1, ' ', 0)
	if len(t.Cells[0].Theirs) == 0 {
		fmt.Fprintf(out, "| workload\t| connections × in flight\t| %s/s (range)\t| p50/p99/p99.9 ms\t|\n|---\t|---\t|---\t|---\t|\n", ours)
		for _, c := range t.Cells {
			rate := Rates(c.Ours)
			fmt.Fprintf(out, "| %s\t| %d × %d\t| %.0f (%.0f to %.0f)\t| %s\t|\n", c.Workload, c.Conns, c.Pipeline, rate.Median, rate.Min, rate.Max, percentiles(c.Ours))
		}
		return out.Flush()
	}
	theirs := t.Cells[0].Theirs[0].Target
	fmt.Fprintf(out, "| workload\t| connections × in flight\t| %s/s\t| %s/s\t| ratio (range)\t| p50/p99/p99.9 ms, %[1]s\t| %s\t|\n|---\t|---\t|---\t|---\t|---\t|---\t|---\t|\n", ours, theirs, theirs)
	for _, c := range t.Cells {
		fmt.Fprintf(out, "| %s\t| %d × %d\t| %.0f\t| %.0f\t| %.2f (%.2f to %.2f)\t| %s\t| %s\t|\n",
			c.Workload, c.Conns, c.Pipeline, Rates(c.Ours).Median, Rates(c.Theirs).Median,
			c.Ratio.Median, c.Ratio.Min, c.Ratio.Max, percentiles(c.Ours), percentiles(c.Theirs))
	}
	return out.Flush()
}
