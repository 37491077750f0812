//go:build !linux

// Command torture proves what the daemon promises. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "torture: the proofs on the real binary need Linux")
	os.Exit(3)
}
