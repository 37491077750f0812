package record

import (
	"os"
	"testing"
	"time"

	"pawl/internal/seeds"
)

// Layer is a test that is a layer of the proofs. Its counters are set by the
// test, which is the only one to use it, until it ends.
type Layer struct {
	Cases  int // inputs, states or operations judged
	Faults int // of them with a fault in it
}

// Note makes a test a layer on record: when it ends, and [Variable] names a
// file, a line with the counters is appended to that. A test that fails counts
// as one violation, one that is skipped writes nothing. Subtests must have
// ended before their counts are read, which is so in cleanups.
func Note(t testing.TB, layer string) *Layer {
	t.Helper()
	l := &Layer{}
	name := os.Getenv(Variable)
	if name == "" {
		return l
	}
	began := time.Now()
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		r := Run{
			Date: time.Now(), Commit: Commit(), Layer: layer, Seed: seeds.Base(), Parameters: t.Name(),
			Cases: l.Cases, Faults: l.Faults, Seconds: time.Since(began).Seconds(),
		}
		if t.Failed() {
			r.Violations = 1
		}
		if err := Append(name, r); err != nil {
			t.Error(err)
		}
	})
	return l
}
