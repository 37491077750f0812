// Package seeds gives every random test its random numbers, so that the same
// code always plays the same cases.
//
// The environment variable PAWL_SEED, any string, decides all of them; .ci/run
// sets it to a checksum of the code under test. Without it a fixed string
// stands in, so a plain `go test` is reproducible too. Each test names itself:
// tests do not influence each other's numbers, and adding one leaves the rest
// as they were.
//
//	rng := seeds.Rand(t.Name())
//
// A test that fails prints seeds.Replay(), the assignment that plays it again.
package seeds

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
)

// Variable is the name of the environment variable that holds the base seed.
const Variable = "PAWL_SEED"

// fallback is the base seed when the variable is empty or not set.
const fallback = "pawl"

// Base returns the string that all seeds of this process derive from. It is
// never empty.
func Base() string {
	if s := os.Getenv(Variable); s != "" {
		return s
	}
	return fallback
}

// Replay returns the shell assignment that makes a process draw the numbers
// this one drew, to be put before the command that failed.
func Replay() string { return fmt.Sprintf("%s=%q", Variable, Base()) }

// For returns the 64-bit seed that belongs to name under the present base seed.
// Different names give independent seeds.
func For(name string) uint64 { return derive(Base(), name, 0) }

// Nth returns the n-th of an endless row of seeds that belongs to name, for
// tests that play many cases and report which one failed.
func Nth(name string, n int) uint64 { return derive(Base(), name, uint64(n)+1) }

// Rand returns a generator seeded by For(name). It must not be shared between
// goroutines: the order of their draws would not be the same twice.
func Rand(name string) *rand.Rand { return New(For(name)) }

// New returns a generator for one seed. It is the same on every machine and in
// every version of Go.
func New(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
}

// derive hashes the parts behind their lengths, so that no two different
// triples are the same input.
func derive(base, name string, n uint64) uint64 {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s%d:%s%d", len(base), base, len(name), name, n)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}
