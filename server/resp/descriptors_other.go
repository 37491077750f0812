//go:build !unix

package resp

import "math"

// descriptorLimit is how many files the process may open; unknown here.
func descriptorLimit() int { return math.MaxInt32 }
