package engine

import "testing"

// A value on a bound belongs to the bucket it bounds, one above to the next.
func TestHistogramBounds(t *testing.T) {
	tests := []struct {
		value  uint64
		bucket int
	}{
		{0, 0}, {1, 0}, {100, 0}, {101, 1}, {200, 1}, {201, 2}, {400, 2}, {401, 3},
		{1 << 62, histogramBuckets - 1},
	}
	for _, test := range tests {
		h := histogram{unit: 100}
		h.add(test.value)
		for i := range h.counts {
			want := uint64(0)
			if i == test.bucket {
				want = 1
			}
			if got := h.counts[i].Load(); got != want {
				t.Errorf("value %d: bucket %d got %d, want %d", test.value, i, got, want)
			}
		}
	}
}

func TestHistogramView(t *testing.T) {
	h := histogram{unit: 1}
	for _, v := range []uint64{1, 2, 2, 8} {
		h.add(v)
	}
	view := h.view(0.5)
	if view.Count != 4 || view.Sum != 6.5 {
		t.Errorf("got count %d sum %v, want 4 and 6.5", view.Count, view.Sum)
	}
	if view.Upper[1] != 1 || view.Below[0] != 1 || view.Below[1] != 3 || view.Below[2] != 3 || view.Below[3] != 4 {
		t.Errorf("got bounds %v below %v", view.Upper[:4], view.Below[:4])
	}
}

func TestHistogramQuantiles(t *testing.T) {
	var h histogram
	h.unit = 1
	for v := uint64(1); v <= 1000; v++ {
		h.add(v)
	}
	then := h.view(1)
	for range 100 {
		h.add(3)
	}
	now := h.view(1)
	for _, c := range []struct {
		of        Histogram
		q         float64
		low, high float64
	}{
		{then, 0.5, 490, 510}, {then, 0.95, 930, 1000}, {then, 1, 1000, 1024},
		{now.Since(then), 0.5, 2, 4}, {now.Since(then), 0.99, 2, 4}, {now.Since(Histogram{}), 0.5, 400, 500},
		{Histogram{}, 0.5, 0, 0}, {now.Since(now), 0.99, 0, 0},
	} {
		if got := c.of.Quantile(c.q); got < c.low || got > c.high {
			t.Errorf("quantile %v of %d values: got %v, want %v to %v", c.q, c.of.Count, got, c.low, c.high)
		}
	}
	if d := now.Since(then); d.Count != 100 || d.Sum != 300 {
		t.Errorf("got %d values of %v, want 100 of 300", d.Count, d.Sum)
	}
}
