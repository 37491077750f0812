//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// medium is a file system whose power can be cut.
type medium interface {
	// dir is where it is mounted.
	dir() string
	// cut takes the power away between freeze and kill, and mounts what
	// survived. Freeze stops the daemon first: a sync that races with the
	// end of the disk may return success without being one, and no daemon
	// could do anything about that.
	cut(freeze, kill func() error) error
	close() error
}

// image is a file system on a loop device over a file in memory. Its power is
// cut by the file system's own shutdown: from then on nothing reaches the
// device any more, not even the journal.
type image struct {
	file, mount, options string
}

// newImage makes one of size bytes.
func newImage(dir, kind, options string, size int64) (m *image, err error) {
	m = &image{filepath.Join(dir, "ram", "image"), filepath.Join(dir, "mnt"), options}
	for _, d := range []string{filepath.Dir(m.file), m.mount} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := unix.Mount("tmpfs", filepath.Dir(m.file), "tmpfs", 0, "mode=0700"); err != nil {
		return nil, fmt.Errorf("%w: tmpfs: %w", errImpossible, err)
	}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	f, err := os.Create(m.file)
	if err != nil {
		return nil, err
	}
	err = errors.Join(f.Truncate(size), f.Close())
	if err != nil {
		return nil, err
	}
	format := []string{"mkfs.ext4", "-q", "-F", m.file}
	if kind == "xfs" {
		format = []string{"mkfs.xfs", "-q", "-f", m.file}
	}
	if err := command(format...); err != nil {
		return nil, fmt.Errorf("%w: %w", errImpossible, err)
	}
	if err := m.up(); err != nil {
		return nil, fmt.Errorf("%w: %w", errImpossible, err)
	}
	return m, nil
}

func (m *image) dir() string { return m.mount }

func (m *image) up() error {
	options := "loop"
	if m.options != "" {
		options += "," + m.options
	}
	return command("mount", "-o", options, m.file, m.mount)
}

// The shutdown request is the same for ext4 and XFS: _IOR('X', 125, __u32),
// with 2 for "without flushing the log".
const (
	shutdownRequest = 0x8004587d
	withoutLogFlush = 2
)

func (m *image) cut(freeze, kill func() error) error {
	if err := freeze(); err != nil {
		return err
	}
	f, err := os.Open(m.mount)
	if err != nil {
		return err
	}
	err = unix.IoctlSetPointerInt(int(f.Fd()), shutdownRequest, withoutLogFlush)
	f.Close()
	if err != nil {
		return fmt.Errorf("%w: shut the file system down: %w", errImpossible, err)
	}
	if err := kill(); err != nil {
		return err
	}
	if err := unmount(m.mount); err != nil {
		return err
	}
	return m.up()
}

func (m *image) close() error {
	return errors.Join(unmount(m.mount), unmount(filepath.Dir(m.file)))
}

// unmount tries for a while: the kernel may still be closing a dead process's
// files.
func unmount(dir string) error {
	var err error
	for range 200 {
		if err = unix.Unmount(dir, 0); err == nil || errors.Is(err, unix.EINVAL) {
			return nil // EINVAL: nothing is mounted there
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("unmount %s: %w", dir, err)
}

func command(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
