package workload

import (
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
)

// A payload carries its own identity and its own proof:
//
//	nonce (16 hex digits) | client | sequence | length of filler | filler | crc32 (8 hex digits)
//
// with a bar between the parts; the checksum covers all before it. The filler
// is bytes of every kind, line ends and pieces of RESP among them.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fillers are bytes that a careless parser would trip over.
var fillers = []string{"\r\n", "\x00", "$-1\r\n", "*3\r\n", "+OK\r\n", "|", "\xff\xfe", "ä", "-ERR x\r\n", "'\"\\"}

func makePayload(rng *rand.Rand, nonce uint64, client, seq, filler int) string {
	b := fmt.Appendf(nil, "%016x|%d|%d|%d|", nonce, client, seq, filler)
	end := len(b) + filler
	for len(b) < end {
		if rng.IntN(4) == 0 {
			b = append(b, fillers[rng.IntN(len(fillers))]...)
		} else {
			for range 8 {
				b = append(b, byte(rng.Uint32()))
			}
		}
	}
	b = append(b[:end], '|')
	return string(fmt.Appendf(b, "%08x", crc32.Checksum(b, castagnoli)))
}

// readPayload returns the nonce of a payload and whether its checksum holds.
func readPayload(p string) (nonce uint64, intact bool) {
	if len(p) < 16+8 {
		return 0, false
	}
	body, sum := p[:len(p)-8], p[len(p)-8:]
	if fmt.Sprintf("%08x", crc32.Checksum([]byte(body), castagnoli)) != sum {
		return 0, false
	}
	nonce, err := strconv.ParseUint(p[:16], 16, 64)
	return nonce, err == nil
}

// digest stands for a payload's bytes in the history.
func digest(p string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(p)) // never fails
	return h.Sum64()
}
