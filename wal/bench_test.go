package wal_test

import (
	"bytes"
	"fmt"
	"testing"

	"pawl/internal/vfs"
	"pawl/wal"
	"pawl/wal/waltest"
)

// BenchmarkCommit is one group of one record on the file system of the
// temporary directory: what an OK costs when nobody shares it.
func BenchmarkCommit(b *testing.B) {
	for _, policy := range []struct {
		name string
		sync wal.SyncPolicy
	}{{"always", wal.SyncAlways}, {"never", wal.SyncNever}} {
		for _, size := range []int{200, 4 << 10, 64 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("sync=%s/bytes=%d", policy.name, size), func(b *testing.B) {
				l := beginBench(b, policy.sync)
				head, body := make([]byte, 40), bytes.Repeat([]byte{'b'}, size-40)
				n := wal.RecordBytes(len(head), len(body))
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					g, err := waltest.Open(l, n)
					if err != nil {
						b.Fatal(err)
					}
					g.Add(head, body)
					l.Seal(g, 1, 1)
					if err := l.Commit(g); err != nil {
						b.Fatal(err)
					}
				}
				closeBench(b, l)
			})
		}
	}
}

// BenchmarkGroupCommit is many records in one group.
func BenchmarkGroupCommit(b *testing.B) {
	for _, records := range []int{16, 256} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			l := beginBench(b, wal.SyncAlways)
			head, body := make([]byte, 40), make([]byte, 160)
			n := records * wal.RecordBytes(len(head), len(body))
			b.ReportAllocs()
			for b.Loop() {
				g, err := waltest.Open(l, n)
				if err != nil {
					b.Fatal(err)
				}
				for range records {
					g.Add(head, body)
				}
				l.Seal(g, 1, 1)
				if err := l.Commit(g); err != nil {
					b.Fatal(err)
				}
			}
			s := l.Stats()
			b.ReportMetric(float64(s.Records)/float64(s.Syncs), "records/fdatasync")
			closeBench(b, l)
		})
	}
}

// BenchmarkAdd is what a record costs inside the critical section.
func BenchmarkAdd(b *testing.B) {
	for _, size := range []int{0, 160, 4 << 10} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			l := beginBench(b, wal.SyncNever)
			head, body := make([]byte, 40), make([]byte, size)
			n := wal.RecordBytes(len(head), len(body))
			g, err := waltest.Open(l, n)
			b.ReportAllocs()
			for b.Loop() {
				if !g.Fits(n) || g.Full() {
					l.Seal(g, 1, 1)
					if err = l.Commit(g); err == nil {
						g, err = waltest.Open(l, n)
					}
				}
				if err != nil {
					b.Fatal(err)
				}
				g.Add(head, body)
			}
			l.Seal(g, 1, 1)
			if err := l.Commit(g); err != nil {
				b.Fatal(err)
			}
			closeBench(b, l)
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for name, cache := range map[string]int{"image": 0, "file": -1} {
		b.Run(name, func(b *testing.B) {
			l, err := wal.Begin(wal.Options{Dir: b.TempDir(), CacheBytes: cache, Sync: wal.SyncNever}, wal.End{Store: waltest.Store})
			if err != nil {
				b.Fatal(err)
			}
			record := []waltest.Record{{Head: []byte("h"), Body: make([]byte, 200)}}
			if _, err := waltest.Append(l, record...); err != nil {
				b.Fatal(err)
			}
			for len(l.Generations()) == 1 { // until that one is full
				if _, err := waltest.Append(l, waltest.Record{Head: []byte("h"), Body: make([]byte, 200<<10)}); err != nil {
					b.Fatal(err)
				}
			}
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = l.Read(record[0].Pos, dst[:0]); err != nil {
					b.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkReader(b *testing.B) {
	dir := b.TempDir()
	l, err := wal.Begin(wal.Options{Dir: dir, Sync: wal.SyncNever}, wal.End{Store: waltest.Store})
	if err != nil {
		b.Fatal(err)
	}
	records := make([]waltest.Record, 64)
	for i := range records {
		records[i] = waltest.Record{Head: make([]byte, 40), Body: make([]byte, 110)}
	}
	for range 1000 {
		if _, err := waltest.Append(l, records...); err != nil {
			b.Fatal(err)
		}
	}
	bytes := l.Stats().Bytes
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		h, err := wal.Find(vfs.OS{}, dir, wal.FindOptions{})
		if err != nil {
			b.Fatal(err)
		}
		r, err := h.Reader(wal.ReaderOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for r.Next() {
		}
		if r.Err() != nil {
			b.Fatal(r.Err())
		}
	}
}

func beginBench(b *testing.B, policy wal.SyncPolicy) *wal.Log {
	b.Helper()
	l, err := wal.Begin(wal.Options{Dir: b.TempDir(), Sync: policy}, wal.End{Store: waltest.Store})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func closeBench(b *testing.B, l *wal.Log) {
	b.Helper()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
