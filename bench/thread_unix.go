//go:build unix

package bench

import (
	"errors"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// threadSocket is a socket whose reads wait in the system call: its goroutine keeps
// a thread, and the bytes wake that thread and nobody else. By way of the runtime's
// poller each reply costs a read that finds nothing, two looks at the poller, and
// the wake-up of a second thread.
type threadSocket struct {
	*os.File
	yielded time.Time
}

// yieldEvery is how often a reader lets the scheduler see its goroutine: of one not
// seen for 10 ms the runtime takes the processor away in each call to come, and it
// looks for such ones every 20 µs.
const yieldEvery = 5 * time.Millisecond

// ownThread makes a threadSocket of c, which is closed; ours is then the only
// descriptor of the socket. What is no socket stays what it is.
func ownThread(c stream) (stream, error) {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return c, nil
	}
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	// A new descriptor, for the runtime's poller forgets a socket only when the one
	// that it knows is closed.
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(old uintptr) { fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, os.NewSyscallError("fcntl", dupErr)
	}
	c.Close()
	if err := unix.SetNonblock(fd, false); err != nil { // before NewFile, which looks
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &threadSocket{File: os.NewFile(uintptr(fd), "server")}, nil
}

// SetReadDeadline bounds each of the reads from now on by the time until t, of
// which at least a microsecond is left.
func (s *threadSocket) SetReadDeadline(t time.Time) error {
	wait := unix.NsecToTimeval(max(time.Until(t), time.Microsecond).Nanoseconds())
	return s.control("setsockopt", func(fd int) error {
		return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	})
}

// Read is that of a net.Conn, its errors as well.
func (s *threadSocket) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(s.yielded) >= yieldEvery {
		runtime.Gosched()
		s.yielded = now
	}
	n, err := s.File.Read(p)
	if errors.Is(err, unix.EAGAIN) {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// Close ends the socket, and a read that waits with it.
func (s *threadSocket) Close() error {
	s.control("shutdown", func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) })
	return s.File.Close()
}

func (s *threadSocket) control(call string, f func(fd int) error) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	if err := raw.Control(func(fd uintptr) { callErr = f(int(fd)) }); err != nil {
		return err
	}
	return os.NewSyscallError(call, callErr)
}
