//go:build unix && !linux

package vfs

import "os"

// os.File.Sync asks for a full flush on darwin, which fsync alone does not do.
func datasync(f *os.File) error { return f.Sync() }

func dropCache(*os.File) error { return nil }

func lockHolder(*os.File) int { return 0 }
