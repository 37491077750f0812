// Package vfs is the file system as Pawl uses it: few calls, each of which a
// test can make fail, count, or undo in a simulated power loss.
//
// Nothing here promises more than POSIX does. Data is durable after Sync or
// Datasync of the file; a name (made, renamed or removed) is durable after
// SyncDir of the directory that holds it; nothing has an order before that.
//
// OS is the real one. wal/waltest has one in memory that can lose its power.
package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrLocked is what Lock returns when another process holds the directory.
// A *LockedError that matches it may say which.
var ErrLocked = errors.New("directory is locked by another process")

// FS is a file system. All methods may be called from any goroutine. Names are
// paths as package path/filepath makes them. Errors match fs.ErrNotExist,
// fs.ErrExist and the syscall errors.
type FS interface {
	// OpenFile opens a file with the flags of package os. It never follows a
	// symbolic link in the last element of name when it creates the file.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Mkdir makes one directory; its parent must exist.
	Mkdir(name string, perm fs.FileMode) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Rename moves oldname to newname and replaces a file that is there.
	Rename(oldname, newname string) error
	// Link gives the file oldname a second name, which must not exist.
	Link(oldname, newname string) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes a file or directory.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Available is how many bytes may still be written below dir by this user.
	Available(dir string) (int64, error)
	// Lock takes an exclusive advisory lock on a directory, without waiting and
	// without changing anything in it: on the one that has this name when Lock
	// returns. It ends with Close or with the process. ErrLocked if somebody else
	// has it.
	Lock(dir string) (io.Closer, error)
}

// File is an open file. ReadAt and WriteAt may run concurrently on ranges that
// do not overlap. They are the only way to its bytes; there is no offset.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes data and all metadata of the file durable.
	Sync() error
	// Datasync makes the data durable, and of the metadata only what is needed
	// to read it back. Where there is no such call it is Sync.
	Datasync() error
	// Truncate makes the file size bytes long, filled with zeros if it grows.
	Truncate(size int64) error
	// Size is the length in bytes.
	Size() (int64, error)
	// DropCache asks the system to forget clean cached pages of the file, so
	// that the next read comes from the device. It is a no-op where there is no
	// such call.
	DropCache() error
}

// Native is implemented by file systems whose names are those of package os,
// so that libraries that open files themselves can be given them.
type Native interface {
	NativePath(name string) string
}

// LockedError is ErrLocked with the process that holds the lock.
type LockedError struct {
	Dir string
	PID int // 0 if it could not be found out
}
