package recovery_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"syscall"
)

// t0 is a context that never ends, for helpers that have no test.
var t0 = context.Background()

var errIO = fmt.Errorf("read: %w", syscall.EIO)

// putPreambleSum makes the first 16 bytes of STORE or a snapshot agree with
// their checksum again.
func putPreambleSum(b []byte) {
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], crc32.MakeTable(crc32.Castagnoli)))
}

// putHeaderSum makes the header of a log entry agree with its checksum again.
func putHeaderSum(header []byte) {
	binary.LittleEndian.PutUint32(header[84:], crc32.Checksum(header[:84], crc32.MakeTable(crc32.Castagnoli)))
}
