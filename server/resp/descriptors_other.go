//go:build !unix

package resp

import "math"

// DescriptorLimit is how many files the process may open; unknown here.
func DescriptorLimit() int { return math.MaxInt32 }
