package strace

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Exchange is one mutation as a client saw it: a mark that stands in what is
// logged of it, and one that stands in its reply and in nothing else.
type Exchange struct {
	Logged  string // a payload's nonce
	Replied string // a task ID
}

// Result is what an order check did and found.
type Result struct {
	Checked int // exchanges found in the trace, write and reply
	Synced  int // directory entries found synced before something relied on them
	Wrong   []string
}

// CheckOrder holds a trace of a daemon on the directory dir against these rules:
//
//   - the write of what a reply is about ends, then a sync of the same file
//     begins and ends, and only then does the reply begin to be sent;
//   - by then, every directory entry on the way to that file, if made or
//     renamed within the trace, has been synced by a sync of its directory;
//   - a file or directory is removed only when no rename in the directory
//     above it, or in dir, waits for its sync: what replaced it must be there.
//
// An exchange whose write or reply the trace does not show is not counted.
func CheckOrder(calls []*Call, dir string, exchanges []Exchange) Result {
	var r Result
	entries := dirEntries(calls, dir)
	var writes, syncs, sends []*Call
	for _, c := range calls {
		switch {
		case c.isSend():
			sends = append(sends, c)
		case c.isWrite() && strings.HasPrefix(c.File(), dir+"/"):
			writes = append(writes, c)
		case c.isSync():
			syncs = append(syncs, c)
		}
	}
	for _, x := range exchanges {
		write := find(writes, x.Logged)
		send := find(sends, x.Replied)
		if write == nil || send == nil {
			continue
		}
		r.Checked++
		file := write.File()
		synced := slices.ContainsFunc(syncs, func(s *Call) bool {
			return s.OK() && s.File() == file && s.Begin > write.End && s.End < send.Begin
		})
		if !synced {
			r.Wrong = append(r.Wrong, fmt.Sprintf("the reply for %s began at line %d, its write to %s ended at line %d, and no sync of that file began and ended between",
				x.Replied, send.Begin, file, write.End))
		}
		for path := file; len(path) > len(dir); path = filepath.Dir(path) {
			e := entries.at(path, send.Begin)
			if e == nil {
				continue // older than the trace
			}
			if e.syncedBy(syncs, send.Begin) {
				r.Synced++
				continue
			}
			r.Wrong = append(r.Wrong, fmt.Sprintf("the reply for %s relies on %s, made by %s at line %d, whose directory was not synced before line %d",
				x.Replied, path, e.call.Name, e.call.Begin, send.Begin))
		}
	}
	r.checkRemovals(calls, dir, entries, syncs)
	return r
}

// find returns the first call that carries the mark.
func find(calls []*Call, mark string) *Call {
	for _, c := range calls {
		if strings.Contains(c.Data(), mark) {
			return c
		}
	}
	return nil
}

// entry is one name that appeared in a directory.
type entry struct {
	path    string
	call    *Call
	renamed bool
}

type entryList []entry

// dirEntries are the names made below dir.
func dirEntries(calls []*Call, dir string) entryList {
	var list entryList
	for _, c := range calls {
		if !c.OK() {
			continue
		}
		paths := c.Paths()
		if len(paths) == 0 {
			continue
		}
		last := paths[len(paths)-1]
		switch c.Name {
		case "openat", "open", "creat":
			if !strings.Contains(c.Args, "O_CREAT") {
				continue
			}
			if !strings.Contains(c.Args, "O_EXCL") && slices.ContainsFunc(list, func(e entry) bool { return e.path == last }) {
				continue // it was there
			}
		case "mkdir", "mkdirat", "link", "linkat":
		case "rename", "renameat", "renameat2":
			if strings.HasPrefix(last, dir+"/") {
				list = append(list, entry{last, c, true})
			}
			continue
		default:
			continue
		}
		if strings.HasPrefix(last, dir+"/") {
			list = append(list, entry{last, c, false})
		}
	}
	return list
}

// at is the newest entry of that name made before a place, or nil.
func (l entryList) at(path string, before int) *entry {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].path == path && l[i].call.End < before {
			return &l[i]
		}
	}
	return nil
}

// syncedBy tells whether the directory of the entry was synced between its
// making and the given place.
func (e *entry) syncedBy(syncs []*Call, before int) bool {
	return slices.ContainsFunc(syncs, func(s *Call) bool {
		return s.OK() && s.File() == filepath.Dir(e.path) && s.Begin > e.call.End && s.End < before
	})
}

// checkRemovals: see CheckOrder.
func (r *Result) checkRemovals(calls []*Call, dir string, entries entryList, syncs []*Call) {
	for _, c := range calls {
		if c.Name != "unlink" && c.Name != "unlinkat" && c.Name != "rmdir" || !c.OK() {
			continue
		}
		paths := c.Paths()
		if len(paths) == 0 || !strings.HasPrefix(paths[0], dir+"/") {
			continue
		}
		for i := range entries {
			e := &entries[i]
			if !e.renamed || e.call.End >= c.Begin || e.path == paths[0] {
				continue
			}
			if e.syncedBy(syncs, c.Begin) {
				r.Synced++
				continue
			}
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s was removed at line %d, while the rename to %s at line %d was not synced",
				paths[0], c.Begin, e.path, e.call.Begin))
		}
	}
}
