package hugepage

import "golang.org/x/sys/unix"

// populate makes memory resident, in large pages if there are any. What is in it
// stays. An error is a system that has none of that, and changes nothing.
//
// The wish is taken back: whoever frees a part of a large page later, as the
// collector does, is to get that memory back, and the kernel would put the page
// together again.
func populate(from, size uintptr) {
	for _, advice := range [...]uintptr{unix.MADV_HUGEPAGE, unix.MADV_POPULATE_WRITE, unix.MADV_NOHUGEPAGE} {
		unix.Syscall(unix.SYS_MADVISE, from, size, advice)
	}
}
