package statetest_test

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"pawl/internal/record"
	"pawl/internal/seeds"
	"pawl/state/statetest"
)

var steps = flag.Uint64("steps", 200_000, "random steps that TestRandom makes")

// The seeds follow from the commit's: a run that fails once fails always.
func TestRandom(t *testing.T) {
	const parts, perRun = 4, 2000
	// Each run is replayed from its beginning and from two snapshots, to the
	// same bytes.
	model, determinism := record.Note(t, "1 model"), record.Note(t, "10 determinism")
	var played atomic.Int64
	t.Cleanup(func() {
		model.Cases, determinism.Cases = int(played.Load())*perRun, int(played.Load())*3
	})
	runs := *steps / parts / perRun
	if testing.Short() {
		runs = 3
	}
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for run := range runs {
				played.Add(1)
				if statetest.Random(t, seeds.Nth(t.Name(), int(run)), perRun); t.Failed() {
					t.Log(seeds.Replay())
					return
				}
			}
		})
	}
}
