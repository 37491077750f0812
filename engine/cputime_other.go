//go:build !linux

package engine

import "time"

// threadCPU is not known here.
func threadCPU() time.Duration { return 0 }
