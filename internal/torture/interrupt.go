//go:build linux

package main

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long a layer has after an interrupt to stop what it started and
// remove what it made. Judging and waiting for clients may take longer.
const grace = 3 * time.Second

// leftovers is what must not outlive the process: scratch directories, with
// whatever is mounted in them. Daemons need no care, the kernel kills them.
type leftovers struct {
	mu      sync.Mutex
	dirs    []string // guarded by mu
	stopped bool     // guarded by mu
}

// scratch is that of this process.
var scratch leftovers

func (l *leftovers) add(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = append(l.dirs, dir)
}

// interrupt notes that the process was told to end, so that nobody takes what
// follows for a fault of the daemon.
func (l *leftovers) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
}

func (l *leftovers) interrupted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// remove removes all directories as far as that goes: nobody is left to tell.
func (l *leftovers) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, dir := range l.dirs {
		for _, mount := range mountsBelow(dir) {
			_ = unix.Unmount(mount, unix.MNT_DETACH)
		}
		_ = os.RemoveAll(dir)
	}
}

// mountsBelow lists what is mounted below dir, the innermost first.
func mountsBelow(dir string) (mounts []string) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// The fifth field is the mount point (proc(5)).
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			mounts = append(mounts, fields[4])
		}
	}
	slices.Reverse(mounts)
	return mounts
}
