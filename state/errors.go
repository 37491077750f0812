package state

import (
	"errors"
	"fmt"
)

// ErrRecord is wrapped by every error of Decode: the bytes are no record that
// this version writes.
var ErrRecord = errors.New("not a record")

// ErrLoad is wrapped by every error of Load that is not the reader's.
var ErrLoad = errors.New("not a state")

// MisfitError is why Apply refused a record: it tells something that cannot
// have happened in this state.
type MisfitError struct {
	Kind  Kind
	Slot  Slot
	Queue QueueID
	Why   string
}

func (e *MisfitError) Error() string {
	return fmt.Sprintf("record %v of slot %d, queue %d does not fit: %s", e.Kind, e.Slot, e.Queue, e.Why)
}
