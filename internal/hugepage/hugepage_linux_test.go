package hugepage

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// resident is how many bytes of this process are.
func resident(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// canPopulate says whether the kernel knows how.
func canPopulate(t *testing.T) bool {
	t.Helper()
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	return unix.Madvise(m, unix.MADV_POPULATE_WRITE) == nil
}

const bytes = 64 << 20

// A slice is resident before it is written to, and still empty.
func TestSlice(t *testing.T) {
	before := resident(t)
	s := make([]uint64, bytes/8)
	s[0], s[len(s)-1] = 1, 2
	Slice(s)
	if more := resident(t) - before; more < bytes-2*size && canPopulate(t) {
		t.Errorf("%d bytes more are resident, want %d", more, bytes)
	}
	for i, n := range s {
		if n != 0 && n != uint64(1+i/(len(s)-1)) {
			t.Fatalf("entry %d is %d", i, n)
		}
	}
	Slice(s[:10]) // no large page is all its
	Slice([]uint64(nil))
}

// What was written to an object stays when the page around it is made ready, and
// so does what stands beside it.
func TestFiller(t *testing.T) {
	var f Filler
	var all []*[512]uint64
	before := resident(t)
	for i := range bytes / 4096 {
		p := new([512]uint64)
		p[7] = uint64(i)
		f.Next(p)
		all = append(all, p)
		for k := max(0, i-600); k <= i; k++ {
			if all[k][7] != uint64(k) {
				t.Fatalf("after %d: object %d is %d", i, k, all[k][7])
			}
		}
	}
	if more := resident(t) - before; more > bytes+8*size {
		t.Errorf("%d bytes more are resident, want %d", more, bytes)
	}
}
