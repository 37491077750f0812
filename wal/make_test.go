package wal_test

import (
	"errors"
	"testing"

	"pawl/wal"
	"pawl/wal/waltest"
)

// Generations that were made ahead are counted with their bytes, and attempts that
// failed; one is made as soon as there is just the space for it.
func TestStatsCountWhatWasMade(t *testing.T) {
	r := newRun(t)
	l := mustBegin(t, r.opt)
	record := waltest.Record{Head: []byte("h"), Body: make([]byte, 3000)}
	for len(l.Generations()) < 4 {
		mustAppend(t, l, record)
	}
	ahead := uint64(len(r.disk.Files()) - 1) // Begin made the first
	if s := l.Stats(); s.ZeroBytes != ahead*wal.MinGenerationBytes || s.PreparationFailures != 0 {
		t.Errorf("got %d bytes, %d failures; want those of %d generations, and none", s.ZeroBytes, s.PreparationFailures, ahead)
	}
	r.disk.Limit(0)
	refused := false
	for !refused {
		_, err := waltest.Append(l, record)
		refused = errors.Is(err, wal.ErrNoSpace)
		if err != nil && !refused {
			t.Fatal(err)
		}
	}
	before := l.Stats()
	if before.PreparationFailures == 0 {
		t.Error("no failure is counted")
	}
	r.disk.Limit(wal.MinGenerationBytes)
	mustAppend(t, l, record)
	if s := l.Stats(); s.ZeroBytes != before.ZeroBytes+wal.MinGenerationBytes {
		t.Errorf("got %d bytes more, want those of one generation", s.ZeroBytes-before.ZeroBytes)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
