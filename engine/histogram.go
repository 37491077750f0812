package engine

import (
	"math/bits"
	"sync/atomic"
)

// histogram counts values in buckets that double: bucket i holds what is at
// most unit << i, the last one the rest. Adding is two atomic additions, so it
// may stand in the critical section; reading never stops an adder.
type histogram struct {
	unit   uint64
	counts [histogramBuckets]atomic.Uint64
	sum    atomic.Uint64
}

const histogramBuckets = 28

func (h *histogram) add(v uint64) { h.addMany(v, 1) }

// addMany adds the same value n times.
func (h *histogram) addMany(v, n uint64) {
	i := 0
	if v > h.unit {
		i = bits.Len64((v - 1) / h.unit)
	}
	if i >= histogramBuckets {
		i = histogramBuckets - 1
	}
	h.counts[i].Add(n)
	h.sum.Add(v * n)
}

// view copies the histogram; scale turns its unit into the one that is shown.
func (h *histogram) view(scale float64) Histogram {
	var v Histogram
	for i := range h.counts {
		v.Count += h.counts[i].Load()
		if i < histogramBuckets-1 {
			v.Upper = append(v.Upper, float64(h.unit<<i)*scale)
			v.Below = append(v.Below, v.Count)
		}
	}
	v.Sum = float64(h.sum.Load()) * scale
	return v
}

// Histogram is a copy of one distribution.
type Histogram struct {
	Upper []float64 // bucket bounds, ascending, inclusive; beyond the last is unbounded
	Below []uint64  // how many values were at most Upper[i]
	Count uint64    // of all values
	Sum   float64   // of all values
}

// Since is what came to h after then, an earlier copy of the same distribution.
// The zero Histogram is before everything.
func (h Histogram) Since(then Histogram) Histogram {
	if len(then.Below) != len(h.Below) {
		return h
	}
	d := Histogram{Upper: h.Upper, Below: make([]uint64, len(h.Below)), Count: h.Count - then.Count, Sum: h.Sum - then.Sum}
	for i := range d.Below {
		d.Below[i] = h.Below[i] - then.Below[i]
	}
	return d
}

// Quantile is an estimate of the value that the fraction q of all is at most,
// by the straight line through the bucket it falls in; what is beyond the last
// bound counts as that bound. It is 0 without values.
func (h Histogram) Quantile(q float64) float64 {
	if h.Count == 0 || len(h.Upper) == 0 {
		return 0
	}
	rank := q * float64(h.Count)
	low, before := 0.0, 0.0
	for i, below := range h.Below {
		if n := float64(below); n >= rank && n > before {
			return low + (h.Upper[i]-low)*(rank-before)/(n-before)
		} else {
			low, before = h.Upper[i], n
		}
	}
	return h.Upper[len(h.Upper)-1]
}

// Histograms are the distributions that the engine keeps since it opened.
type Histograms struct {
	SyncSeconds  Histogram // one write and sync of a group
	GroupRecords Histogram // records in a group
	GroupBytes   Histogram // bytes of a group
	WaitSeconds  Histogram // a job's first delivery minus the moment it became ready
	RunSeconds   Histogram // an ACK minus the delivery it belongs to
	TurnSeconds  Histogram // one stay in the critical section
	// TurnCPUSeconds is the processor time of the thread in it, so without the
	// time for which the system had taken the core away; empty unless
	// Options.MeasureCPU.
	TurnCPUSeconds Histogram
	// LateSeconds is how long after its time each delay, time to live and lease
	// was ended, so how long after a delayed job was due it could be fetched. Of
	// those that one record ends all count as late as the earliest.
	LateSeconds Histogram
	// From when an enqueue was read until its reply was handed over: LessOwnSync
	// without the write and sync of its own group, LessAllSyncs without all writes
	// and syncs under way meanwhile, in seconds. Answered notes them, for the
	// commands and requests that enqueue and nothing else.
	LessOwnSync, LessAllSyncs Histogram
}
