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
