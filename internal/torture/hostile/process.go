//go:build linux

package hostile

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Resident is the memory of a process in bytes, as the system counts it.
func Resident(pid int) (int64, error) { return Memory(pid, "VmRSS") }

// Memory is what /proc/PID/status has under a name, in bytes.
func Memory(pid int, name string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\n"+name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("process %d has no %s", pid, name)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10, err
}

// CPU is the processor time that a process has used.
func CPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything; user and system time are the
	// 12th and 13th field behind it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d: no times in %q", pid, stat)
	}
	ticks := int64(0)
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	const perSecond = 100 // USER_HZ, the same on every Linux
	return time.Duration(ticks) * time.Second / perSecond, nil
}

// Watch measures the memory of a process every 20 ms until ctx ends, and gives
// the most.
func Watch(ctx context.Context, pid int) <-chan int64 {
	most := make(chan int64, 1)
	go func() {
		highest := int64(0)
		for {
			if n, err := Resident(pid); err == nil {
				highest = max(highest, n)
			}
			if sleep(ctx, 20*time.Millisecond) != nil {
				most <- highest
				return
			}
		}
	}()
	return most
}
