package resp

import (
	"math/bits"
	"time"
)

// coldness decides whether bodies seem to lie on the disk only, where whoever reads
// them waits for it. One read that takes long says nothing: its goroutine may have
// lost the processor meanwhile. Of a backlog that is not in memory any more, many do.
type coldness struct {
	slow  uint16    // of the last sixteen replies with bodies, those that took long
	until time.Time // they are cold until then
}

const (
	coldRead  = 2 * time.Millisecond
	coldReads = 2 // of sixteen
	coldTime  = time.Second
)

// note counts the bodies of a reply, which took so long to read until now.
func (k *coldness) note(now time.Time, took time.Duration) {
	k.slow <<= 1
	if took > coldRead {
		k.slow |= 1
	}
	if bits.OnesCount16(k.slow) >= coldReads {
		k.slow, k.until = 0, now.Add(coldTime)
	}
}

// is says whether they seem to.
func (k *coldness) is(now time.Time) bool { return now.Before(k.until) }
