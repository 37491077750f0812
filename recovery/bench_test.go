package recovery_test

import (
	"testing"

	"pawl/recovery"
)

// BenchmarkOpenSmall is the start of a store of some dozen jobs in memory: what
// the tests that try thousands of damages pay for each.
func BenchmarkOpenSmall(b *testing.B) {
	disk, _ := cleanStore(b, 20, 2, 8)
	b.ReportAllocs()
	for b.Loop() {
		d := disk.Kill()
		store, err := recovery.Open(t0, options(d, "/store"))
		must(b, err)
		must(b, store.Close())
	}
}
