package wal

import "sync/atomic"

// counts are the counters of Stats.
type counts struct {
	groups, records, syncs, bytes, marks, failures, zeros atomic.Uint64
}

// Stats are counters since Begin and gauges. Reading them never waits for IO.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{
		Groups:              l.counts.groups.Load(),
		Records:             l.counts.records.Load(),
		Syncs:               l.counts.syncs.Load(),
		Bytes:               l.counts.bytes.Load(),
		Markers:             l.counts.marks.Load(),
		ZeroBytes:           l.counts.zeros.Load(),
		Prepared:            len(l.prepared),
		PreparationFailures: l.counts.failures.Load(),
		CacheHits:           l.images.hits.Load(),
		FileReads:           l.files.reads.Load(),
	}
	for _, m := range l.members {
		s.DiskBytes += m.Size
	}
	for _, gen := range l.prepared {
		s.DiskBytes += int64(gen.size)
	}
	return s
}

// Stats is what metrics read.
type Stats struct {
	Groups, Records, Syncs, Bytes uint64 // written; Bytes with headers and filler
	Markers                       uint64 // idle and closed marks
	ZeroBytes                     uint64 // written to make generations ahead
	Prepared                      int    // generations ready
	PreparationFailures           uint64
	DiskBytes                     int64 // all segment files, prepared ones too
	CacheHits, FileReads          uint64
}
