package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadCPU is the processor time that the calling thread has used so far. Two
// readings are to be compared only where the goroutine keeps its thread between
// them.
func threadCPU() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
