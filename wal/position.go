package wal

import "fmt"

// LSN numbers groups, from 1 without gaps. 0 is before the first.
type LSN uint64

// StoreID names one data directory for life. It stands in every header, so that
// files of two stores cannot be mixed.
type StoreID [16]byte

func (id StoreID) String() string { return fmt.Sprintf("%x", id[:]) }

// Pos is where the body of a record lies: Length bytes at Offset of the
// generation's segment file, with CRC-32C Checksum. Of a record without a body
// it is the zero Pos.
type Pos struct {
	Generation uint32 // from 1
	Offset     uint32
	Length     uint32
	Checksum   uint32
}

// IsZero says that there is no body.
func (p Pos) IsZero() bool { return p.Generation == 0 }

func (p Pos) String() string {
	return fmt.Sprintf("generation %d offset %d length %d", p.Generation, p.Offset, p.Length)
}
