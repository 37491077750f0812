package recovery_test

import (
	"runtime"
	"testing"

	"pawl/recovery"
	"pawl/state"
)

// A copy of a state takes the memory of one: its bytes are not held besides.
func TestCopyOfAState(t *testing.T) {
	st := state.New()
	must(t, st.Apply(&state.Record{Kind: state.KindQueue, Queue: 1, Text: []byte("p/n/q")}, state.Body{}, 1))
	for range 100_000 {
		slot, _ := st.NextSlot()
		must(t, st.Apply(&state.Record{Kind: state.KindEnqueue, Slot: slot, Queue: 1}, state.Body{Generation: 1, Length: 9}, 1))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	made, err := recovery.CopyOf(st)
	runtime.ReadMemStats(&after)
	must(t, err)
	if dump(made) != dump(st) {
		t.Error("it is another state")
	}
	if took, size := after.TotalAlloc-before.TotalAlloc, st.Counts().Memory; took > size*3/2 {
		t.Errorf("%d bytes were taken to copy a state of %d", took, size)
	}
}
