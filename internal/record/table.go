package record

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Sum is all runs of one layer.
type Sum struct {
	Layer                                 string
	Runs, Cases, Faults                   int
	Violations, Undecided, Seeds, Commits int // Seeds, Commits: how many different ones
	Seconds                               float64
}

// Sums adds runs up by layer. Layers that begin with a number come first, by
// that; the others follow by name.
func Sums(runs []Run) []Sum {
	byLayer := map[string]*Sum{}
	seeds, commits := map[[2]string]bool{}, map[[2]string]bool{}
	for _, r := range runs {
		s := byLayer[r.Layer]
		if s == nil {
			s = &Sum{Layer: r.Layer}
			byLayer[r.Layer] = s
		}
		s.Runs++
		s.Cases += r.Cases
		s.Faults += r.Faults
		s.Violations += r.Violations
		s.Undecided += r.Undecided
		s.Seconds += r.Seconds
		if key := [2]string{r.Layer, r.Seed}; !seeds[key] {
			seeds[key] = true
			s.Seeds++
		}
		if key := [2]string{r.Layer, r.Commit}; !commits[key] {
			commits[key] = true
			s.Commits++
		}
	}
	sums := make([]Sum, 0, len(byLayer))
	for _, s := range byLayer {
		sums = append(sums, *s)
	}
	slices.SortFunc(sums, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(rank(a.Layer), rank(b.Layer)), strings.Compare(a.Layer, b.Layer))
	})
	return sums
}

// rank is the number that a layer begins with; without one it is behind all.
func rank(layer string) int {
	n, digits := 0, 0
	for digits < len(layer) && digits < 3 && '0' <= layer[digits] && layer[digits] <= '9' {
		n = n*10 + int(layer[digits]-'0')
		digits++
	}
	if digits == 0 {
		return 1000
	}
	return n
}

// Table writes the sums for people: one line a layer and one for all.
func Table(w io.Writer, sums []Sum) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var all Sum
	fmt.Fprint(out, "layer\truns\tcases\tfaults\tviolations\tundecided\tseconds\t\n")
	for _, s := range sums {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%.0f\t\n", s.Layer, s.Runs, s.Cases, s.Faults, s.Violations, s.Undecided, s.Seconds)
		all.Runs += s.Runs
		all.Cases += s.Cases
		all.Faults += s.Faults
		all.Violations += s.Violations
		all.Undecided += s.Undecided
		all.Seconds += s.Seconds
	}
	fmt.Fprintf(out, "all\t%d\t%d\t%d\t%d\t%d\t%.0f\t\n", all.Runs, all.Cases, all.Faults, all.Violations, all.Undecided, all.Seconds)
	return out.Flush()
}
