//go:build !linux

package blockdisk

// Mounted is a file system on a Disk.
type Mounted struct{ Dir string }

// Options of Mount.
type Options struct{ Make, Data string }

// Mount gives ErrUnsupported.
func Mount(*Disk, string, Options) (*Mounted, error) { return nil, ErrUnsupported }

// Close does nothing.
func (m *Mounted) Close() error { return nil }
