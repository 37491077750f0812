package state

import "encoding/binary"

// SlotOf is the slot of the job that a stored record is about, from its first
// bytes alone, for who looks for one job among many: 0 where it is not about one
// job, or cannot be told. It is not judged: Decode does that.
func SlotOf(head []byte) Slot {
	if len(head) == 0 {
		return 0
	}
	switch k := Kind(head[0]); {
	case k == KindRange, k == KindWallRange, k < KindEnqueue, k > KindCarry:
		return 0 // see walk: in all others the slot comes first
	}
	slot, _ := binary.Uvarint(head[1:]) // 0 where it is cut, or too long
	if slot > maxUint32 {
		return 0
	}
	return Slot(slot)
}
