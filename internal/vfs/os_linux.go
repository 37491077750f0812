package vfs

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	return ignoringEINTR(func() error { return unix.Fdatasync(int(f.Fd())) })
}

func dropCache(f *os.File) error {
	return ignoringEINTR(func() error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) })
}

// lockHolder looks the lock up in the kernel's table. 0 if it is not there, as
// when the holder lives in another PID namespace or has just gone.
func lockHolder(d *os.File) int {
	var st unix.Stat_t
	if unix.Fstat(int(d.Fd()), &st) != nil {
		return 0
	}
	table, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer table.Close()
	// 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
	want := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(table); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) >= 6 && f[1] == "FLOCK" && f[5] == want {
			pid, _ := strconv.Atoi(f[4])
			return max(pid, 0)
		}
	}
	return 0
}
