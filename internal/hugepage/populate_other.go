//go:build !linux

package hugepage

func populate(from, size uintptr) {}
