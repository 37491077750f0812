package lmstfy

// Rising makes counters of sums over things that come and go: what goes takes its
// count with it, and the sum falls, which a scraper takes for a new start from 0 and
// for a leap of all that is left. The zero value is ready.
type Rising struct {
	last []float64
	lost []float64 // what fell off the sums, to be added to them
}

// Take is told of the sums of now. What was done since the last time by what has
// gone is lost, and with it as much of what the others did: that is less wrong than
// a counter that falls.
func (r *Rising) Take(sums []float64) {
	if r.last == nil {
		r.last, r.lost = make([]float64, len(sums)), make([]float64, len(sums))
	}
	for k, sum := range sums {
		r.lost[k] += max(0, r.last[k]-sum)
		r.last[k] = sum
	}
}

// Include is told of sums that the next ones have in them, though nothing was done.
func (r *Rising) Include(sums []float64) {
	for k := range r.last {
		r.last[k] += sums[k]
		r.lost[k] -= sums[k]
	}
}

// Value is the counter k of those taken.
func (r *Rising) Value(k int) float64 { return r.last[k] + r.lost[k] }
