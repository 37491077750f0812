package recovery

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"pawl/snapshot"
	"pawl/state"
)

// The bytes of the file STORE, 64 in all, little endian. They are frozen: a
// change is a new format number, and the reader of every older one stays.
//
//	 0  8  magic "PAWLSTOR"
//	 8  4  format of the directory
//	12  4  CRC-32C of bytes 0 to 11, the same in every format
//	16 16  store ID
//	32  4  history number
//	36  4  zero
//	40  8  wall time of its making, Unix milliseconds
//	48 12  zero
//	60  4  CRC-32C of bytes 0 to 59
const (
	identityMagic = "PAWLSTOR"
	identityLen   = 64

	// Format is the format of the directory that this package writes, and the
	// newest it reads.
	Format = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Identity tells a store from every other one.
type Identity struct {
	ID snapshot.StoreID
	// History begins with 1 and rises when a store is restored or repaired: then
	// what stood behind some LSN is no history of this directory any more, and a
	// snapshot of the old history must not be taken for one of the new.
	History uint32
	Created state.Millis // wall time, Unix milliseconds
}

func (id Identity) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, identityLen)
	b = append(b, identityMagic...)
	b = le.AppendUint32(b, Format)
	b = le.AppendUint32(b, crc32.Checksum(b, castagnoli))
	b = append(b, id.ID[:]...)
	b = le.AppendUint32(b, id.History)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, uint64(id.Created))
	b = append(b, make([]byte, identityLen-4-len(b))...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeIdentity reads what encode wrote; file is for the errors, which are
// *DamageError and *FormatError.
func decodeIdentity(b []byte, file string) (id Identity, err error) {
	le := binary.LittleEndian
	if len(b) < 16 {
		return id, &DamageError{File: file, Offset: int64(len(b)), Want: "64 bytes", Got: fmt.Sprint(len(b))}
	}
	if string(b[:8]) != identityMagic {
		return id, &DamageError{File: file, Want: fmt.Sprintf("%q", identityMagic), Got: fmt.Sprintf("%q", b[:8])}
	}
	if want, got := crc32.Checksum(b[:12], castagnoli), le.Uint32(b[12:]); want != got {
		return id, &DamageError{File: file, Offset: 12, Want: fmt.Sprintf("checksum %08x", want), Got: fmt.Sprintf("%08x", got)}
	}
	if f := le.Uint32(b[8:]); f != Format {
		return id, &FormatError{File: file, Why: formats(f, Format)}
	}
	if len(b) != identityLen {
		return id, &DamageError{File: file, Offset: int64(min(len(b), identityLen)), Want: "64 bytes", Got: fmt.Sprint(len(b))}
	}
	if want, got := crc32.Checksum(b[:identityLen-4], castagnoli), le.Uint32(b[identityLen-4:]); want != got {
		return id, &DamageError{File: file, Offset: identityLen - 4, Want: fmt.Sprintf("checksum %08x", want), Got: fmt.Sprintf("%08x", got)}
	}
	id.ID = snapshot.StoreID(b[16:32])
	id.History = le.Uint32(b[32:])
	id.Created = state.Millis(le.Uint64(b[40:]))
	return id, nil
}
