package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Pair is two servers measured in turns, so that what the machine does
// meanwhile hits both. Ratios are ours by theirs of runs that stood beside each
// other.
type Pair struct {
	Ours   []Result `json:"ours"`
	Theirs []Result `json:"theirs,omitempty"`
	Ratio  Spread   `json:"ratio,omitzero"` // of PerSecond
}

// Spread is a median with the smallest and the largest value.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// NewSpread is that of values; the zero Spread of none.
func NewSpread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// Rates is the spread of the throughput of runs.
func Rates(runs []Result) Spread {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = r.PerSecond
	}
	return NewSpread(values)
}

// RunPair does runs of both, in turns, each pair beginning with the other one
// than the pair before. o.Target is set by it. A nil theirs leaves ours alone.
func RunPair(ctx context.Context, o Options, ours, theirs Target, runs int) (Pair, error) {
	var p Pair
	var ratios []float64
	for i := range runs {
		order := []Target{ours}
		if theirs != nil {
			order = append(order, theirs)
		}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, target := range order {
			o.Target = target
			o.Seed++
			r, err := Run(ctx, o)
			if err != nil {
				return p, fmt.Errorf("%s: %w", target.Name(), err)
			}
			if target == ours {
				p.Ours = append(p.Ours, r)
			} else {
				p.Theirs = append(p.Theirs, r)
			}
		}
		if theirs != nil {
			ratios = append(ratios, p.Ours[i].PerSecond/p.Theirs[i].PerSecond)
		}
	}
	p.Ratio = NewSpread(ratios)
	return p, nil
}

// Print prints runs of one target for people.
func Print(w io.Writer, runs []Result) {
	if len(runs) == 0 {
		return
	}
	r := runs[0]
	unit := "requests"
	switch r.Workload {
	case Enqueue:
		unit = "jobs enqueued"
	case Cycle, Worker, Backlog:
		unit = "jobs finished"
	}
	fmt.Fprintf(w, "%s %s, %d connections × %d in flight, %d-byte payloads\n", r.Target, r.Workload, r.Conns, r.Pipeline, r.Payload)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "run\t%s/s\t\tp50 ms\tp90\tp99\tp99.9\tmax\t\n", unit)
	for i, r := range runs {
		rate := fmt.Sprintf("%.0f", r.PerSecond)
		for _, step := range stepNames {
			l, ok := r.Steps[step]
			if !ok {
				continue
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t\n", i+1, rate, step, l.P50, l.P90, l.P99, l.P999, l.Max)
			rate = ""
		}
	}
	table.Flush()
	if len(runs) > 1 {
		s := Rates(runs)
		fmt.Fprintf(w, "median %.0f/s (%.0f to %.0f)\n", s.Median, s.Min, s.Max)
	}
}
