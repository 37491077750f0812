package waltest

import (
	"errors"
	"slices"

	"pawl/internal/vfs"
	"pawl/wal"
)

// Store is a store ID for tests.
var Store = wal.StoreID{'w', 'a', 'l', 't', 'e', 's', 't'}

// Record is what Append writes and Read returns.
type Record struct {
	Head, Body []byte
	Pos        wal.Pos
}

// Group is a group with copies of its records.
type Group struct {
	LSN               wal.LSN
	LogTime, WallTime int64
	Records           []Record
}

// Append writes records as one group, waits for a generation if need be, and
// fills in their positions. An error leaves it open whether they are in the log.
func Append(l *wal.Log, records ...Record) (wal.LSN, error) {
	n := 0
	for _, r := range records {
		n += wal.RecordBytes(len(r.Head), len(r.Body))
	}
	g, err := Open(l, n)
	if err != nil {
		return 0, err
	}
	for i := range records {
		records[i].Pos = g.Add(records[i].Head, records[i].Body)
	}
	l.Seal(g, int64(g.LSN())*10, int64(g.LSN())*10+1)
	return g.LSN(), l.Commit(g)
}

// Open is wal.Log.Open, but waits where that says ErrPreparing.
func Open(l *wal.Log, n int) (*wal.Group, error) {
	for {
		news := l.Prepared()
		g, err := l.Open(n)
		if !errors.Is(err, wal.ErrPreparing) {
			return g, err
		}
		<-news
	}
}

// Read finds a log as recovery does and returns its groups and its end.
func Read(fsys vfs.FS, dir string, opt wal.ReaderOptions) ([]Group, wal.End, error) {
	h, err := wal.Find(fsys, dir, wal.FindOptions{Store: Store, Settle: true})
	if err != nil {
		return nil, wal.End{}, err
	}
	r, err := h.Reader(opt)
	if err != nil {
		return nil, wal.End{}, err
	}
	var groups []Group
	for r.Next() {
		groups = append(groups, Copy(r.Group()))
	}
	return groups, r.End(), r.Err()
}

// Copy copies what a Reader will overwrite.
func Copy(g *wal.Stored) Group {
	c := Group{LSN: g.LSN, LogTime: g.LogTime, WallTime: g.WallTime}
	for _, r := range g.Records {
		c.Records = append(c.Records, Record{slices.Clone(r.Head), slices.Clone(r.Body), r.Pos})
	}
	return c
}
