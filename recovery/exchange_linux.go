package recovery

import "golang.org/x/sys/unix"

// exchangeNative swaps two directories in one step.
func exchangeNative(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
