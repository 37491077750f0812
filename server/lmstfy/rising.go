package lmstfy

// Rising makes counters of sums over queues that live and that have ended. A queue
// may be in neither for a moment: then the sum falls, which a scraper would take for a
// new start from 0 and for a leap of all that is left, so the counter stands still
// until the sum is what it was. The zero value is ready.
type Rising struct {
	highest []float64
	aside   []float64 // what is in the sums, but not in the counters
}

// Take is told of the sums of now.
func (r *Rising) Take(sums []float64) {
	if r.highest == nil {
		r.highest, r.aside = make([]float64, len(sums)), make([]float64, len(sums))
	}
	for k, sum := range sums {
		r.highest[k] = max(r.highest[k], sum)
	}
}

// Include is told of what the next sums have in them, though it was not done now.
func (r *Rising) Include(sums []float64) {
	for k := range r.highest {
		r.highest[k] += sums[k]
		r.aside[k] += sums[k]
	}
}

// Exclude is told of what the next sums no longer have in them, though it was done.
func (r *Rising) Exclude(sums []float64) {
	for k := range r.highest {
		r.highest[k] -= sums[k]
		r.aside[k] -= sums[k]
	}
}

// Value is the counter k of those taken.
func (r *Rising) Value(k int) float64 { return r.highest[k] - r.aside[k] }
