package wal_test

import (
	"bytes"
	"fmt"
	"testing"

	"pawl/wal"
	"pawl/wal/waltest"
)

// TestEntryTakenOut: an entry is gone and the later ones have closed the gap,
// each of them whole. Checksums are content; only the order is wrong.
func TestEntryTakenOut(t *testing.T) {
	r, want := smallStore(t)
	h, err := wal.Find(r.disk, logDir, wal.FindOptions{Store: waltest.Store})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := h.Reader(wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var starts []int64
	for reader.Next() {
		starts = append(starts, reader.Group().Offset)
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	name := segmentFile(h.Linked[0].Generation)
	data := r.disk.Contents(name)
	for i := range len(starts) - 1 {
		gap := starts[i+1] - starts[i]
		closed := append(bytes.Clone(data[:starts[i]]), data[starts[i+1]:]...)
		closed = append(closed, make([]byte, gap)...)
		r.disk.SetContents(name, closed)
		if !damaged(t, r.disk, want, fmt.Sprintf("without group %d", i+1)) {
			t.Errorf("without group %d the log reads as whole", i+1)
		}
	}
}
