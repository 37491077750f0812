// Package wal is the log: groups of records, each all there or not at all.
//
// A group is the unit of commit: one header, one checksum, one write, one
// fdatasync. LSNs number groups from 1 without gaps. The bytes of a record mean
// nothing here; a record is a head, which recovery replays, and perhaps a body,
// which stays in the log until somebody reads it by its position.
//
// A generation is one directory with one segment file, made ahead of time and
// filled with zeros, written by one process and by nobody after it: every
// start begins a new one, linked to what recovery found. FORMAT.md draws the
// bytes.
//
// Two halves share the format and nothing else. Log writes:
//
//	l, err := wal.Begin(wal.Options{FS: vfs.OS{}, Dir: dir}, end)
//	g, err := l.Open(wal.RecordBytes(len(head), len(body)))
//	pos := g.Add(head, body)
//	l.Seal(g, logTime, wallTime)
//	err = l.Commit(g)
//	body, err = l.Read(pos, nil)
//
// Find and Reader read, at start and in tools, and decide where the log ends:
//
//	h, err := wal.Find(fsys, dir, wal.FindOptions{Settle: true})
//	r, err := h.Reader(wal.ReaderOptions{After: snapshotLSN})
//	for r.Next() {
//		apply(r.Group())
//	}
//	err = r.Err()
//	end := r.End()
//
// What is assumed of the disk: a flush that returned has happened, a write does
// not damage bytes outside its range, and nothing else about order, atomicity
// or size of what was not flushed.
package wal
