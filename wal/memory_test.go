package wal_test

import (
	"runtime"
	"testing"

	"pawl/wal"
	"pawl/wal/waltest"
)

// A generation that stays in memory for Read is there once: what the log library
// had of it has gone.
func TestCacheHoldsGenerationsOnce(t *testing.T) {
	const generation, cached = 256 << 10, 4 << 20
	held := func(cacheBytes int) int64 {
		var m runtime.MemStats
		l := mustBegin(t, wal.Options{Dir: t.TempDir(), GenerationBytes: generation, CacheBytes: cacheBytes, Sync: wal.SyncNever, Foreground: true})
		body := make([]byte, 10_000)
		for len(l.Generations()) < cached/generation+8 {
			mustAppend(t, l, waltest.Record{Head: []byte("h"), Body: body})
		}
		l.Idle()
		runtime.GC()
		runtime.ReadMemStats(&m)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return int64(m.HeapAlloc)
	}
	without := held(-1)
	if more := held(cached) - without; more < cached/2 || more > cached*5/4 {
		t.Errorf("a cache of %d bytes takes %d", cached, more)
	}
}
