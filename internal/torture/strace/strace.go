// Package strace reads what `strace -f -y -ttt -xx` prints and checks the order
// in which a daemon wrote, synced and replied.
//
// Lines of several threads interleave: a call that another thread's line
// interrupts is printed in two halves, "unfinished" and "resumed". What strace
// saw first stands first, so the begin and the end of each call are places in
// the file, and "before" means a smaller place.
package strace

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Call is one system call.
type Call struct {
	Thread     int
	Name       string
	Args       string // as printed, both halves together
	Result     string // what stands behind the equals sign; empty if it never ended
	Begin, End int    // places in the trace; End is after everything for one that never ended

	file, data       string // of File and Data, once asked for
	hasFile, hasData bool
}

// OK tells whether the call returned no error.
func (c *Call) OK() bool {
	return c.Result != "" && !strings.HasPrefix(c.Result, "-") && c.Result != "?"
}

var (
	headPattern    = regexp.MustCompile(`^(\d+) +[\d.]+ (\w+)\((.*)$`)
	resumedPattern = regexp.MustCompile(`^(\d+) +[\d.]+ <\.\.\. (\w+) resumed>(.*)$`)
	resultPattern  = regexp.MustCompile(`^(.*)\) += (.*)$`)
)

const unfinished = " <unfinished ...>"

// Parse reads a trace. Lines that are no calls (signals, exits) are skipped.
func Parse(r io.Reader) ([]*Call, error) {
	var calls []*Call
	open := map[int]*Call{}
	lines := bufio.NewReaderSize(r, 1<<20)
	place := 0
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the trace: %w", err)
		}
		place++
		line = strings.TrimSuffix(line, "\n")
		var c *Call
		rest := ""
		if m := headPattern.FindStringSubmatch(line); m != nil {
			thread, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", place, err)
			}
			c = &Call{Thread: thread, Name: m[2], Begin: place, End: int(^uint(0) >> 1)}
			calls = append(calls, c)
			rest = m[3]
			if half, cut := strings.CutSuffix(rest, unfinished); cut {
				c.Args = half
				open[thread] = c
				continue
			}
		} else if m := resumedPattern.FindStringSubmatch(line); m != nil {
			thread, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", place, err)
			}
			if c = open[thread]; c == nil {
				continue // it began before the trace did
			}
			delete(open, thread)
			rest = m[3]
		} else {
			continue
		}
		m := resultPattern.FindStringSubmatch(rest)
		if m == nil {
			c.Args += rest
			continue // it never returned
		}
		c.Args, c.Result, c.End = c.Args+m[1], m[2], place
	}
	return calls, nil
}

var (
	fdPattern     = regexp.MustCompile(`^(?:\d+|AT_FDCWD)<([^>]*)>`)
	stringPattern = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"`)
)

// File is what the first argument of a call refers to: a path, or
// "TCP:[…]" or "socket:[…]".
func (c *Call) File() string {
	if !c.hasFile {
		c.hasFile = true
		if m := fdPattern.FindStringSubmatch(c.Args); m != nil {
			c.file = strings.TrimSuffix(unhex(m[1]), "(deleted)")
		}
	}
	return c.file
}

// Strings are the call's string arguments, decoded.
func (c *Call) Strings() []string {
	var all []string
	for _, m := range stringPattern.FindAllStringSubmatch(c.Args, -1) {
		all = append(all, unhex(m[1]))
	}
	return all
}

// Data is all bytes that a write carries.
func (c *Call) Data() string {
	if !c.hasData {
		c.data, c.hasData = strings.Join(c.Strings(), ""), true
	}
	return c.data
}

func unhex(s string) string {
	if !strings.HasPrefix(s, `\x`) {
		return s
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	if err != nil {
		return s
	}
	return string(b)
}

// Paths are the absolute paths that a call names, relative ones resolved by
// the directory descriptors before them.
func (c *Call) Paths() []string {
	var paths []string
	rest := c.Args
	dir := ""
	for _, part := range splitArgs(rest) {
		if m := fdPattern.FindStringSubmatch(part); m != nil {
			dir = unhex(m[1])
			continue
		}
		if m := stringPattern.FindStringSubmatch(part); m != nil {
			p := unhex(m[1])
			if !filepath.IsAbs(p) {
				p = filepath.Join(dir, p)
			}
			paths = append(paths, filepath.Clean(p))
		}
	}
	return paths
}

// splitArgs cuts at commas; with -xx no comma stands inside a string.
func splitArgs(args string) []string {
	parts := strings.Split(args, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func (c *Call) isWrite() bool {
	switch c.Name {
	case "write", "pwrite64", "writev", "pwritev", "pwritev2":
		return true
	}
	return false
}

func (c *Call) isSend() bool {
	switch c.Name {
	case "write", "writev", "sendto", "sendmsg":
		f := c.File()
		return strings.HasPrefix(f, "TCP") || strings.HasPrefix(f, "socket:") || strings.HasPrefix(f, "UNIX")
	}
	return false
}

func (c *Call) isSync() bool { return c.Name == "fsync" || c.Name == "fdatasync" }
