package blockdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Mounted is a file system on a Disk. Close it from the goroutine that made it.
type Mounted struct {
	// Dir is where the file system's root is.
	Dir    string
	fuse   string
	server *fuse.Server
	loop   string // device, empty when detached
	up     bool
}

// Options of Mount. The zero value mounts what is on the disk already.
type Options struct {
	Make string // "ext4" or "xfs": make this file system first
	Data string // mount options, as after mount -o
}

// Mount serves the disk and mounts its file system below work, a directory of
// the caller's that should be empty. Without the rights or the programs it
// gives ErrUnsupported.
func Mount(d *Disk, work string, opt Options) (*Mounted, error) {
	m := &Mounted{Dir: filepath.Join(work, "mnt"), fuse: filepath.Join(work, "fuse")}
	if err := m.mount(d, opt); err != nil {
		_ = m.Close() // why it could not be mounted says more
		return nil, err
	}
	return m, nil
}

func (m *Mounted) mount(d *Disk, opt Options) (err error) {
	for _, dir := range []string{m.Dir, m.fuse} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	root := &fs.Inode{}
	m.server, err = fs.Mount(m.fuse, root, &fs.Options{
		OnAdd: func(ctx context.Context) {
			root.AddChild("disk", root.NewPersistentInode(ctx, &file{disk: d}, fs.StableAttr{Mode: fuse.S_IFREG}), true)
		},
		MountOptions: fuse.MountOptions{DirectMount: true, AllowOther: true, MaxWrite: 1 << 20},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	name := filepath.Join(m.fuse, "disk")
	out, err := run("losetup", "--find", "--show", name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	m.loop = strings.TrimSpace(out)
	switch opt.Make {
	case "ext4":
		_, err = run("mkfs.ext4", "-q", "-F", m.loop)
	case "xfs":
		_, err = run("mkfs.xfs", "-q", "-f", m.loop)
	}
	if err != nil {
		return err
	}
	args := []string{m.loop, m.Dir}
	if opt.Data != "" {
		args = append([]string{"-o", opt.Data}, args...)
	}
	if _, err := run("mount", args...); err != nil {
		return err
	}
	m.up = true
	return nil
}

// Close takes the file system, the loop device and the FUSE server away. What
// the file system still writes reaches the disk.
func (m *Mounted) Close() error {
	var errs []error
	if m.up {
		if _, err := run("umount", m.Dir); err != nil {
			// A shut down or failing file system may not go in peace.
			_, err = run("umount", "-l", m.Dir)
			errs = append(errs, err)
		}
		m.up = false
	}
	if m.loop != "" {
		_, err := run("losetup", "-d", m.loop)
		errs = append(errs, err)
		m.loop = ""
	}
	if m.server != nil {
		errs = append(errs, m.server.Unmount())
		m.server = nil
	}
	return errors.Join(errs...)
}

func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// file is the one file of the FUSE file system.
type file struct {
	fs.Inode
	disk *Disk
}

var (
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeSetattrer = (*file)(nil)
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
	_ fs.NodeFsyncer   = (*file)(nil)
)

func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size, out.Blksize = 0o600, uint64(f.disk.Size()), 4096
	return 0
}

func (f *file) Setattr(ctx context.Context, h fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.Getattr(ctx, h, out)
}

// Open asks for direct IO: nothing may be cached between the loop device and
// the disk, or flushes would not be where the writes are.
func (f *file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *file) Read(_ context.Context, _ fs.FileHandle, p []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	return fuse.ReadResultData(p[:f.disk.read(p, at)]), 0
}

func (f *file) Write(_ context.Context, _ fs.FileHandle, p []byte, at int64) (uint32, syscall.Errno) {
	if f.disk.write(p, at) != nil {
		return 0, syscall.EIO
	}
	return uint32(len(p)), 0
}

func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	if f.disk.flush() != nil {
		return syscall.EIO
	}
	return 0
}
