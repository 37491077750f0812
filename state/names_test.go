package state_test

import (
	"slices"
	"testing"

	"pawl/state"
)

// A shard is made anew when a quarter is left of what it held, and a small one
// never: so a drop costs little, and what very many names took goes back.
func TestNamesGiveBackWhatTheyTook(t *testing.T) {
	for held, want := range map[int][]int{15: nil, 16: {4}, 64: {16, 4}, 1000: {250, 62, 15}} {
		if got := state.Shrinks(held); !slices.Equal(got, want) {
			t.Errorf("one that held %d is made anew at %v, want %v", held, got, want)
		}
	}
}
